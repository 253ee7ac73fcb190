#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

// Lowers a limit permanently. Never raises one: children may not do more than the service itself.
static void lower(int resource, uint64_t soft, uint64_t hard) {
  struct rlimit limit;
  if (getrlimit(resource, &limit) != 0) return;
  if (soft < limit.rlim_cur) limit.rlim_cur = soft;
  if (hard < limit.rlim_max) limit.rlim_max = hard;
  if (limit.rlim_cur > limit.rlim_max) limit.rlim_cur = limit.rlim_max;
  setrlimit(resource, &limit);
}

void stillwave_lower_limits(uint64_t memory, uint64_t seconds, uint64_t output, uint64_t descriptors) {
  // Restores the default action of the two signals that limits send, whatever the parent set.
  sigset_t sent;
  sigemptyset(&sent);
  sigaddset(&sent, SIGXCPU);
  sigaddset(&sent, SIGXFSZ);
  signal(SIGXCPU, SIG_DFL);
  signal(SIGXFSZ, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &sent, NULL);
  // Not RLIMIT_AS: it counts memory that is merely reserved or mapped from files, including 64 MiB per thread from
  // malloc.
  lower(RLIMIT_DATA, memory, memory);
  // That doesn't count the first thread's stack, which decoders fill with what a file asks for. 8 MiB is what Linux
  // gives to programs, and what `Threads` gives to the others.
  lower(RLIMIT_STACK, 8 << 20, 8 << 20);
  // SIGXCPU at the first limit, SIGKILL at the second: ffmpeg catches SIGXCPU and then ignores it while reading a
  // header.
  lower(RLIMIT_CPU, seconds, seconds + 1);
  lower(RLIMIT_FSIZE, output, output);
  lower(RLIMIT_NOFILE, descriptors, descriptors);
  lower(RLIMIT_CORE, 0, 0);
}

// MARK: Root's rights

static const uint32_t override = 1u << CAP_DAC_OVERRIDE;

static uint32_t capabilities(void) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct rights[_LINUX_CAPABILITY_U32S_3] = {0};
  return syscall(SYS_capget, &header, rights) == 0 ? rights[0].effective : 0;
}

// Limits this thread's capabilities to these.
static void keep(uint32_t permitted, uint32_t effective) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct rights[_LINUX_CAPABILITY_U32S_3] = {{.effective = effective, .permitted = permitted}};
  syscall(SYS_capset, &header, rights);
}

static bool opens(const char *path, int flags) {
  int file = open(path, flags | O_CLOEXEC);
  if (file < 0) return false;
  close(file);
  return true;
}

// Root owns the service's files, so it needs no capability for them. But a parent folder may belong to another user and
// be closed to root. So access is tested without capabilities, and CAP_DAC_OVERRIDE, which opens files regardless of
// their owner, is kept only if the test fails.
static void drop_capabilities(const char *source, const char *folder) {
  uint32_t kept = capabilities() & override;
  keep(kept, 0);
  bool reaches = opens(source, O_RDONLY) &&
                 (folder == NULL || faccessat(AT_FDCWD, folder, R_OK | W_OK | X_OK, AT_EACCESS) == 0);
  if (reaches) kept = 0;
  keep(kept, kept);
}

bool stillwave_can_drop_root(void) {
  if (geteuid() != 0) return true;
  uint32_t needed = 1u << CAP_CHOWN | 1u << CAP_SETGID | 1u << CAP_SETUID;
  if ((capabilities() & needed) != needed) return false;
  // A user namespace may not map this ID.
  setfsuid(STILLWAVE_UNPRIVILEGED_ID);
  bool exists = setfsuid(0) == STILLWAVE_UNPRIVILEGED_ID;
  return exists;
}

// MARK: Worker

int stillwave_fence_worker(const char *source, const char *folder, const char *const *outputs) {
  stillwave_close_to_others();
  int failure = stillwave_fence_files(source, folder, outputs);
  if (failure != 0 && stillwave_landlock_version() > 0) return failure;
  if (geteuid() == 0) {
    // Sending a signal needs permission even if the kernel sends it because a parent ended. With the real user set to
    // the one that ffmpeg runs as, ffmpeg is killed with its worker. All other rights depend on the effective user,
    // which doesn't change.
    if (setresuid(STILLWAVE_UNPRIVILEGED_ID, -1, -1) != 0) errno = 0;
    stillwave_close_to_others();
  }
  drop_capabilities(source, folder);
  return 0;
}

int stillwave_filter_worker(bool writes) {
  int failure = stillwave_filter_calls(writes, NULL);
  return failure != 0 && stillwave_has_filter() ? failure : 0;
}

// MARK: Program

// The path with which a process can reopen an open descriptor.
static const char *name_of(int file, char path[32]) {
  snprintf(path, 32, "/proc/self/fd/%d", file);
  return path;
}

// Lets the other user open one of root's files through its descriptor while a program runs: the file gets that user's
// group, and the group gets `rights`. The parent folders stay closed to it, so it finds no other files.
//
// ffmpeg 5.1 reads an open descriptor only sequentially ("pipe:"), but must seek in most videos. So it reopens the
// file, and the kernel checks the file's mode again. The alternatives were worse: changing the owner (chown) would also
// let ffmpeg change the mode; a mount with mapped users needs CAP_SYS_ADMIN and isn't supported by every file system; a
// copy needs the file's size again on disk.
static void lend(int file, mode_t rights) {
  struct stat status;
  // Waits for a worker that is taking the file back at this moment.
  if (file < 0 || flock(file, LOCK_SH) != 0 || fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return;
  if (fchown(file, -1, STILLWAVE_UNPRIVILEGED_ID) == 0) fchmod(file, (status.st_mode & 0700) | rights);
}

bool stillwave_is_lent(int file) {
  struct stat status;
  return fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_gid == STILLWAVE_UNPRIVILEGED_ID &&
         status.st_uid == geteuid() && (status.st_mode & 07077) != 0;
}

bool stillwave_take_back(int file) {
  if (!stillwave_is_lent(file)) return true;
  struct stat status;
  // This descriptor shares the program's lock. If the file was also lent to another program, that program's worker
  // takes it back.
  bool is_free = flock(file, LOCK_EX | LOCK_NB) == 0;
  bool is_back = is_free && fstat(file, &status) == 0 && fchmod(file, status.st_mode & 0700) == 0;
  // The file may be lent to the next program before this descriptor is closed.
  flock(file, LOCK_UN);
  return is_back;
}

// Whether the program could open its files with the current rights.
static bool can_reopen(const struct stillwave_program *program) {
  char path[32];
  return (program->input < 0 || opens(name_of(program->input, path), O_RDONLY)) &&
         (program->output < 0 || opens(name_of(program->output, path), O_RDWR));
}

// Whether the other user can use what the program needs. It can't if the program is in a folder that is closed to
// others, or the disk doesn't support modes.
static bool can_be_other(const struct stillwave_program *program) {
  setfsgid(STILLWAVE_UNPRIVILEGED_ID);
  setfsuid(STILLWAVE_UNPRIVILEGED_ID);
  bool can = setfsuid(-1) == STILLWAVE_UNPRIVILEGED_ID && faccessat(AT_FDCWD, program->path, X_OK, AT_EACCESS) == 0 &&
             can_reopen(program);
  setfsuid(0);
  setfsgid(getegid());
  return can;
}

bool stillwave_other_can_run(const char *path) {
  if (geteuid() != 0) return true;
  bool is_closed = prctl(PR_GET_DUMPABLE) == 0;
  // Direct system calls, because they change only this thread. Root's groups are dropped, since they might permit what
  // the other user can't do.
  gid_t groups[NGROUPS_MAX];
  int count = getgroups(NGROUPS_MAX, groups);
  if (count < 0 || syscall(SYS_setgroups, 0, NULL) != 0) return true;
  setfsgid(STILLWAVE_UNPRIVILEGED_ID);
  setfsuid(STILLWAVE_UNPRIVILEGED_ID);
  bool can = faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0;
  setfsuid(0);
  setfsgid(getegid());
  syscall(SYS_setgroups, count, groups);
  // The changes have set this to the value in /proc/sys/fs/suid_dumpable.
  if (is_closed) stillwave_close_to_others();
  return can;
}

// Drops root's rights: becomes another user or, if that isn't possible, stays the owner of root's files without
// capabilities.
static void drop_root(const struct stillwave_program *program) {
  if (program->drops_root && stillwave_can_drop_root()) {
    lend(program->input, 0040);
    lend(program->output, 0060);
    gid_t group = STILLWAVE_UNPRIVILEGED_ID;
    if (setgroups(0, NULL) == 0 && can_be_other(program) && setresgid(group, group, group) == 0 &&
        setresuid(group, group, group) == 0) {
      // This user is used only here, so only the programs' processes and threads count.
      lower(RLIMIT_NPROC, STILLWAVE_UNPRIVILEGED_TASKS, STILLWAVE_UNPRIVILEGED_TASKS);
      return;
    }
  }
  uint32_t kept = capabilities() & override;
  keep(kept, 0);
  // If started manually, root may specify another user's file that only this capability opens.
  if (program->drops_root || can_reopen(program)) kept = 0;
  keep(kept, kept);
}

// Closes all descriptors except the standard ones and those of the program's two files.
static void close_others(const struct stillwave_program *program) {
  int first = STDERR_FILENO + 1;
  for (; program->input == first || program->output == first; first++) {}
  int last = program->input > program->output ? program->input : program->output;
  for (int number = first; number < last; number++)
    if (number != program->input && number != program->output) close(number);
  closefrom(last > first ? last + 1 : first);
}

int stillwave_become_program(const struct stillwave_program *program) {
  // Must come before Landlock: without the system call, the C library reads the open descriptors from /proc.
  close_others(program);
  struct stillwave_program opening = *program;
  if (program->output_stays_open) opening.output = -1;
  program = &opening;
  char **environment = stillwave_program_environment();
  if (environment == NULL) return errno;
  // Features that the kernel lacks are skipped; the service reports them once.
  int failure = stillwave_fence_program_files(program->path, program->input, program->output);
  if (failure != 0 && stillwave_landlock_version() > 0) return failure;
  if (geteuid() == 0) drop_root(program);
  // Must come after the change of user, which resets it; execve preserves it. If the parent has already ended, no
  // signal is sent.
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (program->parent != 0 && getppid() != program->parent) return ESRCH;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  failure = stillwave_filter_calls(program->output >= 0, program->path);
  if (failure != 0 && stillwave_has_filter()) return failure;
  execve(program->path, program->words, environment);
  return errno;
}

// MARK: Memory

static char last_words[1024];

// If a C library or a runtime can't allocate memory, it crashes soon after, on the same thread: Swift's runtime aborts,
// and C uses a null pointer. A trap is another fault of the program, even if an allocation has failed before.
static void tell_last_words(int signal) {
  if (errno == ENOMEM) {
    ssize_t written = write(STDOUT_FILENO, last_words, strlen(last_words));
    (void)written;
  }
  raise(signal);
}

void stillwave_on_memory_exhausted(const char *line) {
  strncpy(last_words, line, sizeof last_words - 1);
  struct sigaction action = {.sa_handler = tell_last_words, .sa_flags = (int)(SA_RESETHAND | SA_NODEFER)};
  const int signals[] = {SIGSEGV, SIGBUS, SIGABRT};
  for (size_t index = 0; index < sizeof signals / sizeof *signals; index++) sigaction(signals[index], &action, NULL);
}
