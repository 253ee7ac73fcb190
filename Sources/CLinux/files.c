#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#if __has_include(<linux/landlock.h>) && defined(SYS_landlock_restrict_self)
#include <linux/landlock.h>

// Named by headers of Linux 5.19 and 6.2.
#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif

static const uint64_t reading = LANDLOCK_ACCESS_FS_READ_FILE;
static const uint64_t working = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_WRITE_FILE |
                                LANDLOCK_ACCESS_FS_TRUNCATE | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REMOVE_FILE;

// What the C library looks at when a process begins to use several processors, and what is harmless.
static const char *const common[] = {"/sys/devices/system/cpu/online", "/proc/sys/vm/overcommit_memory", "/dev/null",
                                     "/dev/urandom"};

// What is not there needs no rule: it can't be opened either.
static int allow(int rules, const char *path, uint64_t rights) {
  int place = open(path, O_PATH | O_CLOEXEC);
  if (place < 0) return 0;
  struct landlock_path_beneath_attr rule = {.allowed_access = rights, .parent_fd = place};
  int failure = syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0 ? errno : 0;
  close(place);
  return failure;
}

int stillwave_fence_files(const char *source, const char *folder) {
  long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 1) return errno;
  // All that the first version knows of, from executing to making links; the kernel refuses what it doesn't know.
  uint64_t known = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;
  if (version >= 2) known |= LANDLOCK_ACCESS_FS_REFER;
  if (version >= 3) known |= LANDLOCK_ACCESS_FS_TRUNCATE;
  struct landlock_ruleset_attr ruled = {.handled_access_fs = known};
  int rules = (int)syscall(SYS_landlock_create_ruleset, &ruled, sizeof ruled, 0);
  if (rules < 0) return errno;
  int failure = allow(rules, source, reading & known);
  if (failure == 0 && folder != NULL) failure = allow(rules, folder, working & known);
  for (size_t index = 0; failure == 0 && index < sizeof common / sizeof *common; index++)
    failure = allow(rules, common[index], reading & known);
  if (failure == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) failure = errno;
  if (failure == 0 && syscall(SYS_landlock_restrict_self, rules, 0) < 0) failure = errno;
  close(rules);
  return failure;
}
#else
int stillwave_fence_files(const char *source, const char *folder) {
  (void)source, (void)folder;
  return ENOSYS;
}
#endif
