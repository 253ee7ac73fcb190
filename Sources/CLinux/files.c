// An allowlist of the files that a process may open, enforced by the kernel (Landlock, Linux 5.13) for every user. The
// rules apply to files opened afterward under any name, including /proc/PID/fd. A folder's rule covers everything below
// it.
#define _GNU_SOURCE
#include "CLinux.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#if __has_include(<linux/landlock.h>) && defined(SYS_landlock_restrict_self)
#include <linux/landlock.h>

// Rights and fields added after Linux 5.13, which the installed headers may lack.
enum {
  refer = 1 << 13,         // 5.19
  truncating = 1 << 14,    // 6.2
  device_ioctl = 1 << 15,  // 6.10
  network = 3,             // 6.7: binding and connecting TCP
  scopes = 3,              // 6.12: abstract sockets and signals
};

struct ruleset {
  uint64_t files, network, scoped;
};

struct rules {
  int set;
  uint64_t known;
  // The first errno; after a failure, nothing more is done.
  int failure;
};

int stillwave_landlock_version(void) {
  long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return version < 0 ? 0 : (int)version;
}

// Creates rules that allow nothing yet. The kernel rejects rights that it doesn't know, so they depend on its version.
static struct rules nothing(bool ends_signals) {
  int version = stillwave_landlock_version();
  if (version == 0) return (struct rules){.set = -1, .failure = ENOSYS};
  struct ruleset all = {.files = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1};
  if (version >= 2) all.files |= refer;
  if (version >= 3) all.files |= truncating;
  if (version >= 4) all.network = network;
  if (version >= 5) all.files |= device_ioctl;
  if (version >= 6) all.scoped = ends_signals ? scopes : scopes & ~2;
  size_t size = version < 4 ? 8 : version < 6 ? 16 : 24;
  int set = (int)syscall(SYS_landlock_create_ruleset, &all, size, 0);
  return (struct rules){.set = set, .known = all.files, .failure = set < 0 ? errno : 0};
}

static void allow_open(struct rules *rules, int place, uint64_t rights) {
  if (rules->failure != 0 || place < 0) return;
  struct landlock_path_beneath_attr rule = {.allowed_access = rights & rules->known, .parent_fd = place};
  if (syscall(SYS_landlock_add_rule, rules->set, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0) rules->failure = errno;
}

// A missing file needs no rule, because it can't be opened anyway.
static void allow(struct rules *rules, const char *path, uint64_t rights) {
  int place = open(path, O_PATH | O_CLOEXEC);
  if (place < 0) return;
  allow_open(rules, place, rights);
  close(place);
}

static int enforce(struct rules *rules) {
  if (rules->failure == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) rules->failure = errno;
  if (rules->failure == 0 && syscall(SYS_landlock_restrict_self, rules->set, 0) < 0) rules->failure = errno;
  if (rules->set >= 0) close(rules->set);
  return rules->failure;
}

static const uint64_t reading = LANDLOCK_ACCESS_FS_READ_FILE;
static const uint64_t writing = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | truncating;
static const uint64_t running = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE;
static const uint64_t listing =
    LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE;
static const uint64_t making = writing | listing | LANDLOCK_ACCESS_FS_MAKE_REG;

// Files that the C library reads when a process starts using several processors, and harmless devices.
static void allow_common(struct rules *rules) {
  allow(rules, "/sys/devices/system/cpu/online", reading);
  allow(rules, "/sys/devices/system/cpu/possible", reading);
  allow(rules, "/proc/sys/vm/overcommit_memory", reading);
  allow(rules, "/dev/null", reading);
  allow(rules, "/dev/urandom", reading);
}

int stillwave_fence_files(const char *source, const char *folder, const char *const *outputs) {
  // Signals are left to the system call filter, because the signal that ends ffmpeg with its worker must get through.
  struct rules rules = nothing(false);
  allow(&rules, source, reading);
  if (folder != NULL) allow(&rules, folder, outputs == NULL ? making : listing);
  for (; outputs != NULL && *outputs != NULL; outputs++) allow(&rules, *outputs, writing);
  allow_common(&rules);
  return enforce(&rules);
}

// Allows the program itself and the loader named in its header; a statically linked program has none.
static void allow_execution(struct rules *rules, const char *path) {
  allow(rules, path, running);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  Elf64_Ehdr header;
  Elf64_Phdr part;
  char loader[256] = {0};
  if (pread(file, &header, sizeof header, 0) == sizeof header && memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
      header.e_ident[EI_CLASS] == ELFCLASS64) {
    for (int index = 0; index < header.e_phnum; index++) {
      off_t place = (off_t)(header.e_phoff + (uint64_t)index * sizeof part);
      if (pread(file, &part, sizeof part, place) != sizeof part) break;
      if (part.p_type != PT_INTERP || part.p_filesz >= sizeof loader) continue;
      if (pread(file, loader, part.p_filesz, (off_t)part.p_offset) > 0) allow(rules, loader, running);
      break;
    }
  }
  close(file);
}

// Allows the folders in which the loader searches for libraries: the system's, those in LD_LIBRARY_PATH, and "lib" next
// to the program and next to its folder. Mapping libraries requires no right to execute them.
static void allow_libraries(struct rules *rules, const char *path) {
  static const char *const places[] = {"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache",
                                       "/etc/ld.so.preload"};
  for (size_t index = 0; index < sizeof places / sizeof *places; index++) allow(rules, places[index], reading);
  char *named = getenv("LD_LIBRARY_PATH") != NULL ? strdup(getenv("LD_LIBRARY_PATH")) : NULL;
  char *rest = named;
  for (char *place; (place = strsep(&rest, ":")) != NULL;)
    if (*place == '/') allow(rules, place, reading);
  free(named);
  char real[PATH_MAX], beside[PATH_MAX + 16];
  if (realpath(path, real) == NULL) return;
  *(strrchr(real, '/') + 1) = 0;
  strcat(strcpy(beside, real), "lib");
  allow(rules, beside, reading);
  strcat(strcpy(beside, real), "../lib");
  allow(rules, beside, reading);
}

int stillwave_fence_program_files(const char *path, int input, int output) {
  struct rules rules = nothing(true);
  allow_execution(&rules, path);
  allow_libraries(&rules, path);
  allow_common(&rules);
  allow_open(&rules, input, reading);
  allow_open(&rules, output, writing);
  return enforce(&rules);
}
#else
int stillwave_landlock_version(void) { return 0; }

int stillwave_fence_files(const char *source, const char *folder, const char *const *outputs) {
  (void)source, (void)folder, (void)outputs;
  return ENOSYS;
}

int stillwave_fence_program_files(const char *path, int input, int output) {
  (void)path, (void)input, (void)output;
  return ENOSYS;
}
#endif
