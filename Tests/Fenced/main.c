// Three programs in one, for testing the fence:
//
//   Fenced MEMORY SECONDS OUTPUT SOURCE FOLDER DEED   Fences itself in as a worker does, tries the deed, and prints
//                                                     the result: `0` if it succeeded, else the errno. If a signal
//                                                     kills it, it prints nothing. With `copied-` before the deed,
//                                                     as a copy of a process that has prepared the fence.
//   Fenced --without CALL,… PROGRAM ARGUMENT …        Runs the program as on a kernel without these calls.
//   ffmpeg … or ffprobe …                             A hostile program in place of them; see hostile.c.
#define _GNU_SOURCE
#include "tests.h"

#include <CLinux.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static int result(long value) { return value < 0 ? errno : 0; }

static void *nothing(void *argument) { return argument; }

static int start_thread(void) {
  pthread_t thread;
  int failure = pthread_create(&thread, NULL, nothing, NULL);
  return failure != 0 ? failure : pthread_join(thread, NULL);
}

// Starts as many threads as it can, at most 5,000.
static int start_many_threads(void) {
  pthread_t thread;
  for (int count = 0; count < 5000; count++) {
    int failure = pthread_create(&thread, NULL, nothing, NULL);
    if (failure != 0) return failure;
  }
  return 0;
}

static int start_process(pid_t child) {
  if (child < 0) return errno;
  if (child == 0) _exit(0);
  waitpid(child, NULL, 0);
  return 0;
}

static int spawn(void) {
  char *words[] = {"true", NULL};
  pid_t child;
  return posix_spawn(&child, "/bin/true", NULL, NULL, words, NULL);
}

static int run(void) {
  char *words[] = {"true", NULL};
  return result(execve("/bin/true", words, NULL));
}

static int raise_limit(int resource) {
  struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
  return result(setrlimit(resource, &limit));
}

static int read_limit(void) {
  struct rlimit limit;
  return result(getrlimit(RLIMIT_DATA, &limit));
}

static int open_many(void) {
  for (int count = 0; count < 1000; count++)
    if (open("/dev/null", O_RDONLY) < 0) return errno;
  return 0;
}

static int allocate(size_t megabytes) {
  for (size_t count = 0; count < megabytes; count++) {
    char *piece = malloc(1 << 20);
    if (piece == NULL) return errno;
    memset(piece, 1, 1 << 20);
  }
  return 0;
}

// Uses more than the limit of 64 MiB, in memory of a kind that the limit doesn't count.
static int map(int flags) {
  size_t length = 256 << 20;
  char *piece = mmap(NULL, length, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
  if (piece == MAP_FAILED) return errno;
  for (size_t place = 0; place < length; place += 4096) piece[place] = 1;
  return 0;
}

// Ends as a runtime does when it can't continue.
static int die_for_want_of_memory(void) {
  allocate(1 << 14);
  abort();
}

// Ends as a broken precondition does, long after an allocation has failed.
static int trap(void) {
  allocate(1 << 14);
  __builtin_trap();
}

static int make(int folder, const char *name) {
  return openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

static int write_much(int folder) {
  static char piece[1 << 16];
  int file = make(folder, "output");
  if (file < 0) return errno;
  for (int count = 0; count < 64; count++)
    if (write(file, piece, sizeof piece) < 0) return errno;
  return 0;
}

// Makes this many files and fills each up to the limit.
static int make_many(int folder, int count) {
  static char piece[1 << 20];
  for (int number = 0; number < count; number++) {
    char name[16];
    snprintf(name, sizeof name, "more-%d", number);
    int file = make(folder, name);
    if (file < 0 || (count < 100 && write(file, piece, sizeof piece) < 0)) return errno;
    close(file);
  }
  return 0;
}

static int spin(void) {
  for (volatile long count = 0;; count++) {}
}

static int is_undumpable(void) {
  struct rlimit limit;
  getrlimit(RLIMIT_CORE, &limit);
  return prctl(PR_GET_DUMPABLE) == 0 && limit.rlim_max == 0 ? 0 : EINVAL;
}

static int has_no_new_rights(void) { return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : EINVAL; }

static void *other_thread(void *argument) {
  while (!__atomic_load_n((int *)argument, __ATOMIC_ACQUIRE)) sched_yield();
  return (void *)(long)result(socket(AF_INET, SOCK_STREAM, 0));
}

static int work_on_files(int folder) {
  if (make(folder, "output") < 0) return errno;
  if (openat(folder, "output", O_RDONLY) < 0 || openat(folder, ".", O_RDONLY | O_DIRECTORY) < 0) return errno;
  return result(unlinkat(folder, "output", 0));
}

static int has_no_capabilities(void) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct rights[_LINUX_CAPABILITY_U32S_3] = {0};
  if (syscall(SYS_capget, &header, rights) != 0) return errno;
  unsigned int first = rights[0].effective | rights[0].permitted | rights[0].inheritable;
  return first == 0 && rights[1].effective == 0 && rights[1].permitted == 0 ? 0 : EINVAL;
}

// Sets up a descriptor that sends a signal to another process when data can be read.
static int signal_by_descriptor(void) {
  int ends[2];
  if (pipe(ends) != 0) return errno;
  return result(fcntl(ends[0], F_SETOWN, getppid()));
}

static int try_in_parent(const char *name, int flags) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", getppid(), name);
  return result(open(path, flags));
}

// Started before the fence is set up, like ffmpeg.
static pid_t child;

static int wait_for_child(void) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return errno;
  return WIFEXITED(status) && WEXITSTATUS(status) == 7 ? 0 : EINVAL;
}

static int open_to_others(int folder) {
  int file = make(folder, "output");
  return file < 0 ? 0 : result(fchmod(file, 0666));
}

static int try(const char *deed, const char *source, int folder) {
  char page[128] = {0};
#define DEED(name, attempt) \
  if (strcmp(deed, name) == 0) return attempt
  DEED("nothing", 0);
  DEED("thread", start_thread());
  DEED("many-threads", start_many_threads());
  DEED("many-files", make_many(folder, 20000));
  DEED("full-files", make_many(folder, 8));
  DEED("rename", result(renameat(folder, "output", folder, "other")));
  DEED("read-limit", read_limit());
  DEED("wait-for-child", wait_for_child());
  DEED("own-priority", result(setpriority(PRIO_PROCESS, 0, 19)));
  DEED("signal-self", result(kill(getpid(), 0) | raise(0)));
  DEED("read-source", result(open(source, O_RDONLY)));
  DEED("write-source", result(open(source, O_WRONLY)));
  DEED("cut-source", result(truncate(source, 0)));
  DEED("remove-source", result(unlink(source)));
  DEED("work-on-files", work_on_files(folder));
  DEED("read-outside", result(open("/etc/passwd", O_RDONLY)));
  DEED("list-outside", result(open("/", O_RDONLY | O_DIRECTORY)));
  DEED("make-outside", result(make(AT_FDCWD, "/tmp/stillwave-outside")));
  DEED("read-secrets", result(open("/proc/self/environ", O_RDONLY)));
  DEED("capabilities", has_no_capabilities());
  DEED("shared-memory", result(shmget(IPC_PRIVATE, 4096, 0600)));
  DEED("socket", result(socket(AF_INET, SOCK_STREAM, 0)));
  DEED("socket6", result(socket(AF_INET6, SOCK_DGRAM, 0)));
  DEED("local-socket", result(socket(AF_UNIX, SOCK_STREAM, 0)));
  DEED("socket-pair", result(socketpair(AF_UNIX, SOCK_STREAM, 0, (int[2]){0})));
  DEED("connect", result(connect(0, (struct sockaddr *)page, sizeof(struct sockaddr_in))));
  DEED("send", result(sendto(0, page, 1, 0, NULL, 0)));
  DEED("exec", run());
  DEED("spawn", spawn());
  DEED("fork", start_process(fork()));
  DEED("old-fork", start_process((pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)));
  DEED("new-clone", result(syscall(SYS_clone3, page, 88)));
  DEED("trace", result(ptrace(PTRACE_TRACEME, 0, NULL, NULL)));
  DEED("signal-parent", result(kill(getppid(), 0)));
  DEED("signal-all", result(kill(-1, 0)));
  DEED("signal-parents-thread", result(syscall(SYS_tgkill, getppid(), getppid(), 0)));
  DEED("mount", result(mount("none", "/tmp", "tmpfs", 0, NULL)));
  DEED("namespace", result(unshare(CLONE_NEWUSER)));
  DEED("root", result(chroot("/")));
  DEED("bpf", result(syscall(SYS_bpf, BPF_MAP_CREATE, page, sizeof page)));
  DEED("io-uring", result(syscall(SYS_io_uring_setup, 1, page)));
  DEED("device", result(mknod("/tmp/stillwave-device", S_IFCHR | 0600, 0x103)));
  DEED("become-root", result(setuid(0)));
  DEED("raise-memory", raise_limit(RLIMIT_DATA));
  DEED("raise-seconds", raise_limit(RLIMIT_CPU));
  DEED("lower-parents-limit", result(prlimit(getppid(), RLIMIT_CPU, &(struct rlimit){1, 1}, NULL)));
  DEED("open-many", open_many());
  DEED("allocate-some", allocate(32));
  DEED("allocate-much", allocate(1 << 14));
  DEED("map-shared", map(MAP_SHARED));
  DEED("map-shared-validated", map(MAP_SHARED_VALIDATE));
  DEED("map-stack", map(MAP_PRIVATE | MAP_GROWSDOWN));
  DEED("map-private", map(MAP_PRIVATE));
  DEED("memory-file", result(memfd_create("x", 0)));
  DEED("die-for-want-of-memory", die_for_want_of_memory());
  DEED("trap", trap());
  DEED("write-much", write_much(folder));
  DEED("spin", spin());
  DEED("dump", is_undumpable());
  DEED("rights", has_no_new_rights());
  DEED("parents-memory", try_in_parent("mem", O_RDWR));
  DEED("parents-environment", try_in_parent("environ", O_RDONLY));
  DEED("parents-input", try_in_parent("fd/0", O_RDONLY));
  DEED("passwords", result(open("/etc/shadow", O_RDONLY)));
  DEED("core-pattern", result(open("/proc/sys/kernel/core_pattern", O_WRONLY)));
  DEED("calls", refused_calls());
  DEED("old-table", result(syscall(0x40000000 | SYS_getpid)));
  DEED("signal-by-descriptor", signal_by_descriptor());
  DEED("type", result(ioctl(0, TIOCSTI, "x")));
  DEED("be-dumpable", result(prctl(PR_SET_DUMPABLE, 1)));
  DEED("outlive-parent", result(prctl(PR_SET_PDEATHSIG, 0)));
  DEED("open-to-others", open_to_others(folder));
  DEED("priority-of-parent", result(setpriority(PRIO_PROCESS, (id_t)getppid(), 19)));
  const long flags = CLONE_THREAD | CLONE_VM | CLONE_SIGHAND | CLONE_NEWUSER;
  DEED("namespace-thread", result(syscall(SYS_clone, flags, 0, 0, 0, 0)));
  return -1;
}

// Makes the kernel look to the program as if it lacked these calls.
static int run_without(char *names, char **words) {
  scmp_filter_ctx rules = seccomp_init(SCMP_ACT_ALLOW);
  for (char *name; (name = strsep(&names, ",")) != NULL;)
    seccomp_rule_add(rules, SCMP_ACT_ERRNO(ENOSYS), seccomp_syscall_resolve_name(name), 0);
  if (seccomp_load(rules) != 0) return 4;
  execv(words[0], words);
  return 5;
}

int main(int count, char **words) {
  const char *slash = strrchr(words[0], '/'), *name = slash == NULL ? words[0] : slash + 1;
  if (strcmp(name, "ffmpeg") == 0 || strcmp(name, "ffprobe") == 0) return be_hostile(name);
  if (count > 3 && strcmp(words[1], "--without") == 0) return run_without(words[2], words + 3);
  if (count != 7) return 2;
  const char *source = words[4], *deed = words[6];
  // A worker that is a copy has a filter that was made before it was copied.
  if (strncmp(deed, "copied-", 7) == 0) {
    deed += 7;
    stillwave_prepare_filters();
    pid_t copy = fork();
    if (copy != 0) {
      int status = 0;
      waitpid(copy, &status, 0);
      if (WIFSIGNALED(status)) raise(WTERMSIG(status));
      return WEXITSTATUS(status);
    }
  }
  int folder = open(words[5], O_PATH | O_DIRECTORY | O_CLOEXEC);
  stillwave_on_memory_exhausted("{\"told\":\"memory\"}\n");
  child = fork();
  if (child == 0) _exit(7);
  int fenced = 0;
  pthread_t early;
  pthread_create(&early, NULL, other_thread, &fenced);
  stillwave_lower_limits(strtoull(words[1], NULL, 10), strtoull(words[2], NULL, 10), strtoull(words[3], NULL, 10), 64);
  // For deeds that only read, the worker has no folder, as it writes nothing. For those that make files, it may.
  bool reads = strncmp(deed, "reading-", 8) == 0;
  char output[4096];
  snprintf(output, sizeof output, "%s/output", words[5]);
  if (!reads) close(make(folder, "output"));
  bool makes = strncmp(deed, "making-", 7) == 0;
  const char *const outputs[] = {output, NULL};
  int refusal = stillwave_fence_worker(source, reads ? NULL : words[5], makes ? NULL : outputs);
  if (refusal == 0) refusal = stillwave_filter_worker(!reads);
  __atomic_store_n(&fenced, 1, __ATOMIC_RELEASE);
  void *outcome;
  pthread_join(early, &outcome);
  if (refusal != 0) {
    printf("unfenced %d\n", refusal);
    return 3;
  }
  if (reads) deed += 8;
  if (makes) deed += 7;
  printf("%ld\n", strcmp(deed, "early-thread") == 0 ? (long)outcome : try(deed, source, folder));
  fflush(stdout);
  return 0;
}
