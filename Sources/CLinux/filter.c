// An allowlist of system calls, by name; any other call fails with EPERM. Names that the architecture lacks or that
// libseccomp doesn't know yet are skipped.
//
// Excluded is everything that reaches outside the process: the network, other programs, processes, and users, mounts,
// devices, System V and POSIX objects shared between processes, and everything new. If a call has both harmless and
// harmful uses, its arguments are checked, as far as they are numbers: a filter can't read memory.
#define _GNU_SOURCE
#include "CLinux.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif

// For both workers and programs.
static const char *const common[] = {
    // Open descriptors.
    "read", "readv", "pread64", "preadv", "preadv2", "write", "writev", "pwrite64", "pwritev", "pwritev2", "lseek",
    "close", "close_range", "dup", "dup2", "dup3", "fstat", "fstatfs", "fadvise64", "getdents64", "pipe", "pipe2",
    "poll", "ppoll", "select", "pselect6",
    // Names.
    "stat", "lstat", "newfstatat", "statx", "statfs", "access", "faccessat", "faccessat2", "readlink", "readlinkat",
    "getcwd",
    // Memory.
    "munmap", "mprotect", "mremap", "madvise", "brk", "mincore", "membarrier", "get_mempolicy",
    // Threads.
    "futex", "set_robust_list", "get_robust_list", "rseq", "set_tid_address", "gettid", "exit", "exit_group",
    "sched_yield", "sched_getaffinity", "sched_getparam", "sched_getscheduler", "sched_get_priority_min",
    "sched_get_priority_max", "getcpu", "arch_prctl", "restart_syscall",
    // Its own signals.
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigtimedwait", "rt_sigsuspend",
    "sigaltstack",
    // Time and system information.
    "clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "time", "times", "getrusage",
    "getrlimit", "sysinfo", "uname", "getrandom", "getpid", "getppid", "getpgrp", "getpgid", "getsid", "getuid",
    "geteuid", "getgid", "getegid", "getresuid", "getresgid", "getgroups", "capget"};

// Our own code: waiting for the programs it started, and saving and removing files.
static const char *const workers[] = {
    "wait4", "waitid", "flock", "fsync", "fdatasync", "ftruncate", "fallocate", "sync_file_range", "copy_file_range",
    "sendfile", "unlink", "unlinkat", "umask"};

struct filter {
  scmp_filter_ctx rules;
  int failure;
};

static void allow_if(struct filter *filter, const char *name, unsigned int count, const struct scmp_arg_cmp *tests) {
  int number = seccomp_syscall_resolve_name(name);
  if (filter->failure != 0 || number < 0) return;
  filter->failure = -seccomp_rule_add_array(filter->rules, SCMP_ACT_ALLOW, number, count, tests);
}

static void allow_all(struct filter *filter, const char *const *names, size_t count) {
  for (size_t index = 0; index < count; index++) allow_if(filter, names[index], 0, NULL);
}

// Allows the call if the bits of the argument selected by `mask` equal `bits`.
static void allow_bits(struct filter *filter, const char *name, unsigned int argument, uint64_t mask, uint64_t bits) {
  allow_if(filter, name, 1, &SCMP_CMP64(argument, SCMP_CMP_MASKED_EQ, mask, bits));
}

// The same for a whole argument, and for one of several values.
static void allow_value(struct filter *filter, const char *name, unsigned int argument, uint64_t value) {
  allow_bits(filter, name, argument, UINT64_MAX, value);
}

static void allow_values(
    struct filter *filter, const char *name, unsigned int argument, const unsigned int *values, size_t count) {
  // The argument is an int; the upper half of the register is undefined.
  for (size_t index = 0; index < count; index++) allow_bits(filter, name, argument, UINT32_MAX, values[index]);
}

#define COUNT(list) (sizeof(list) / sizeof *(list))

// Children that the fenced process may still end. Threads may start programs at the same time.
static pid_t ended[8];
static _Atomic size_t ended_count;

void stillwave_may_end(pid_t child) {
  size_t index = ended_count++;
  if (index < COUNT(ended)) ended[index] = child;
}

// `self`: the ID of the process.
static void allow_by_arguments(struct filter *filter, uint32_t self) {
  // Memory that RLIMIT_DATA counts, and files. It counts neither shared memory without a file nor memory that grows
  // like a stack.
  static const uint64_t kinds = MAP_SHARED | MAP_ANONYMOUS | MAP_GROWSDOWN;
  allow_bits(filter, "mmap", 3, kinds, 0);
  allow_bits(filter, "mmap", 3, kinds, MAP_ANONYMOUS);
  allow_bits(filter, "mmap", 3, kinds, MAP_SHARED);
  // The flags of clone3 are in memory, where a filter can't see them; without that call, the C library uses clone.
  int clone3 = seccomp_syscall_resolve_name("clone3");
  if (filter->failure == 0 && clone3 >= 0)
    filter->failure = -seccomp_rule_add(filter->rules, SCMP_ACT_ERRNO(ENOSYS), clone3, 0);
  // A signal to itself, as sent by abort().
  allow_value(filter, "kill", 0, self);
  allow_value(filter, "tgkill", 0, self);
  // Killing a program that it started.
  for (size_t index = 0; index < ended_count && index < COUNT(ended); index++)
    allow_if(filter, "kill", 2,
             (struct scmp_arg_cmp[]){SCMP_CMP64(0, SCMP_CMP_EQ, (uint64_t)ended[index]),
                                     SCMP_CMP64(1, SCMP_CMP_EQ, SIGKILL)});
  // Reading its own limits, without setting new ones.
  allow_if(filter, "prlimit64", 2,
           (struct scmp_arg_cmp[]){SCMP_CMP64(0, SCMP_CMP_EQ, 0), SCMP_CMP64(2, SCMP_CMP_EQ, 0)});
  static const unsigned int own[] = {PR_SET_NAME,  PR_GET_NAME,    PR_GET_DUMPABLE, PR_GET_NO_NEW_PRIVS,
                                     PR_GET_SECCOMP, PR_CAPBSET_READ, PR_SET_VMA};
  allow_values(filter, "prctl", 0, own, COUNT(own));
  // Not F_SETOWN and F_SETSIG, which make a descriptor send any signal to any process of the same user.
  static const unsigned int descriptors[] = {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL};
  allow_values(filter, "fcntl", 1, descriptors, COUNT(descriptors));
  // Queries: whether it is a terminal, its width, how much can be read. Not TIOCSTI, which simulates typing.
  static const unsigned int questions[] = {TCGETS, TIOCGWINSZ, FIONREAD, FIOCLEX, FIONBIO};
  allow_values(filter, "ioctl", 1, questions, COUNT(questions));
}

static void allow_opening(struct filter *filter, bool writes) {
  if (writes) return allow_all(filter, (const char *const[]){"openat", "open"}, 2);
  uint64_t writing = O_ACCMODE | O_CREAT | O_TRUNC;
  allow_bits(filter, "openat", 2, writing, 0);
  allow_bits(filter, "open", 1, writing, 0);
}

// Makes the filter of a worker, or of a program that it starts.
static int make(struct filter *filter, bool writes, const char *executed, uint32_t self) {
  *filter = (struct filter){.rules = seccomp_init(SCMP_ACT_ERRNO(EPERM))};
  if (filter->rules == NULL) return ENOMEM;
  // The other system call tables (x32, 32-bit) are blocked.
  seccomp_attr_set(filter->rules, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(EPERM));
  allow_all(filter, common, COUNT(common));
  allow_by_arguments(filter, self);
  allow_opening(filter, writes);
  if (executed == NULL) {
    allow_all(filter, workers, COUNT(workers));
    // The mode must not leave a lent file accessible to others: see stillwave_take_back.
    allow_bits(filter, "fchmod", 1, 07077, 0);
    // By its standard input, its only socket, a reader gets the file that a preview goes into.
    if (!writes)
      allow_if(filter, "recvmsg", 2,
               (struct scmp_arg_cmp[]){SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, UINT32_MAX, STDIN_FILENO),
                                       SCMP_CMP64(2, SCMP_CMP_MASKED_EQ, UINT32_MAX, MSG_CMSG_CLOEXEC)});
  } else {
    // Only threads of this process, without new namespaces. A worker has started its threads.
    static const uint64_t namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                                       CLONE_NEWPID | CLONE_NEWNET;
    allow_bits(filter, "clone", 0, CLONE_THREAD | namespaces, CLONE_THREAD);
    // Only the program whose path is at this very address. After execve there is no such string there. If the program
    // puts one there, Landlock still executes only the same program, inside the same fence.
    allow_value(filter, "execve", 0, (uint64_t)(uintptr_t)executed);
  }
  return filter->failure;
}

static int load(struct filter *filter) {
  // Applies to all threads.
  seccomp_attr_set(filter->rules, SCMP_FLTATR_CTL_TSYNC, 1);
  return -seccomp_load(filter->rules);
}

// MARK: Made in advance

// libseccomp takes 0.7 ms to make a filter, a tenth of the work for a short upload. So the process that workers are
// copies of makes it once, and each worker only enters its own process ID.

// Stands for the ID in a filter made in advance. Greater than any (PID_MAX_LIMIT is 2^22), and no other number in it.
static const uint32_t unknown_self = 0x5e1f5e1f;
// By `writes`. Without instructions until it's made.
static struct sock_fprog ready[2];

static bool names_self(const struct sock_filter *step) {
  return step->code == (BPF_JMP | BPF_JEQ | BPF_K) && step->k == unknown_self;
}

// Copies the instructions of a filter into memory. Returns whether they name the process, as they must.
static bool export(const struct filter *filter, struct sock_fprog *program) {
  int file = memfd_create("filter", MFD_CLOEXEC);
  if (file < 0) return false;
  off_t size = seccomp_export_bpf(filter->rules, file) == 0 ? lseek(file, 0, SEEK_END) : 0;
  struct sock_filter *steps = size > 0 ? malloc((size_t)size) : NULL;
  size_t count = (size_t)size / sizeof *steps, found = 0;
  bool is_complete = steps != NULL && count <= BPF_MAXINSNS && pread(file, steps, (size_t)size, 0) == size;
  close(file);
  for (size_t index = 0; is_complete && index < count; index++) found += names_self(&steps[index]);
  if (found == 0) {
    free(steps);
    return false;
  }
  *program = (struct sock_fprog){.len = (unsigned short)count, .filter = steps};
  return true;
}

void stillwave_prepare_filters(void) {
  for (int writes = 0; writes < 2; writes++) {
    struct filter filter;
    int failure = make(&filter, writes, NULL, unknown_self);
    // A tree of comparisons instead of a list takes half as long to load: the kernel then tries every call.
    if (failure == 0) seccomp_attr_set(filter.rules, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    if (failure == 0) export(&filter, &ready[writes]);
    if (filter.rules != NULL) seccomp_release(filter.rules);
  }
}

static int load_ready(struct sock_fprog *program) {
  for (size_t index = 0; index < program->len; index++)
    if (names_self(&program->filter[index])) program->filter[index].k = (uint32_t)getpid();
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  long failure = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, program);
  // A positive result is a thread that can't be filtered, because it has another filter.
  return failure < 0 ? errno : failure > 0 ? ECANCELED : 0;
}

int stillwave_filter_calls(bool writes, const char *executed) {
  if (executed == NULL && ended_count == 0 && ready[writes].len > 0) return load_ready(&ready[writes]);
  struct filter filter;
  int failure = make(&filter, writes, executed, (uint32_t)getpid());
  if (failure == 0) failure = load(&filter);
  if (filter.rules != NULL) seccomp_release(filter.rules);
  return failure;
}

bool stillwave_has_filter(void) {
  unsigned int action = SECCOMP_RET_ERRNO;
  return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}
