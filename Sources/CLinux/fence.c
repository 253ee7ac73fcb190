#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

// Lowers a limit for good. Never raises one: what the service itself may not do, its children may not either.
static void lower(int resource, uint64_t soft, uint64_t hard) {
  struct rlimit limit;
  if (getrlimit(resource, &limit) != 0) return;
  if (soft < limit.rlim_cur) limit.rlim_cur = soft;
  if (hard < limit.rlim_max) limit.rlim_max = hard;
  if (limit.rlim_cur > limit.rlim_max) limit.rlim_cur = limit.rlim_max;
  setrlimit(resource, &limit);
}

void stillwave_lower_limits(uint64_t memory, uint64_t seconds, uint64_t output, uint64_t descriptors) {
  // The two signals that limits send end the process, whatever whoever started it thought of them.
  sigset_t sent;
  sigemptyset(&sent);
  sigaddset(&sent, SIGXCPU);
  sigaddset(&sent, SIGXFSZ);
  signal(SIGXCPU, SIG_DFL);
  signal(SIGXFSZ, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &sent, NULL);
  // Not RLIMIT_AS: it counts what is merely reserved or mapped from files, 64 MiB of malloc's for every thread among it.
  lower(RLIMIT_DATA, memory, memory);
  // SIGXCPU at the first, SIGKILL at the second.
  lower(RLIMIT_CPU, seconds, seconds + 5);
  lower(RLIMIT_FSIZE, output, output);
  lower(RLIMIT_NOFILE, descriptors, descriptors);
  lower(RLIMIT_CORE, 0, 0);
}

#if defined(__x86_64__)
#define OWN_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifdef OWN_ARCHITECTURE
// What decoding and encoding files has no use for. Numbers that one of the two architectures lacks are left out there:
// it has the newer call of the pair, which is listed beside it.
static const unsigned int refused[] = {
    // The network, other processes' sockets among it.
    SYS_socket, SYS_socketpair, SYS_connect, SYS_bind, SYS_listen, SYS_accept, SYS_accept4, SYS_sendto, SYS_sendmsg,
    SYS_sendmmsg, SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg,
    // Other processes, by what System V and POSIX share between them.
    SYS_shmget, SYS_shmat, SYS_semget, SYS_msgget, SYS_mq_open,
    // Other programs and other processes.
    SYS_execve, SYS_execveat, SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_tkill, SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo, SYS_pidfd_open, SYS_pidfd_send_signal, SYS_pidfd_getfd, SYS_process_madvise, SYS_kcmp,
    SYS_setpgid, SYS_setsid, SYS_migrate_pages, SYS_move_pages,
    // More rights, or another view of the system.
    SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid, SYS_setresuid, SYS_setresgid, SYS_setgroups, SYS_setfsuid,
    SYS_setfsgid, SYS_capset, SYS_unshare, SYS_setns, SYS_chroot, SYS_pivot_root, SYS_mount, SYS_umount2,
    SYS_move_mount, SYS_open_tree, SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick, SYS_personality,
    SYS_open_by_handle_at, SYS_setrlimit,
    // Files that are more than files, and those of others.
    SYS_mknodat, SYS_linkat, SYS_symlinkat, SYS_fchown, SYS_fchownat, SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr,
    // The kernel.
    SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register,
    SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_reboot, SYS_swapon, SYS_swapoff,
    SYS_add_key, SYS_request_key, SYS_keyctl, SYS_quotactl, SYS_acct, SYS_syslog, SYS_settimeofday, SYS_clock_settime,
    SYS_adjtimex, SYS_clock_adjtime, SYS_sethostname, SYS_setdomainname, SYS_fanotify_init,
#if defined(__x86_64__)
    SYS_fork, SYS_vfork, SYS_mknod, SYS_link, SYS_symlink, SYS_chown, SYS_lchown, SYS_iopl, SYS_ioperm, SYS_modify_ldt,
    SYS_uselib, SYS_kexec_file_load,
#endif
};

enum { refused_count = sizeof refused / sizeof *refused, program_limit = 2 * refused_count + 40 };

struct program {
  unsigned short count;
  struct sock_filter steps[program_limit];
};

static void add(struct program *program, struct sock_filter step) { program->steps[program->count++] = step; }

static void answer(struct program *program, unsigned int action) {
  add(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

// Goes on with the next step where the value loaded last is `number`, else passes over `count` of them.
static void unless_equal_skip(struct program *program, unsigned int number, unsigned char count) {
  add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, count));
}

static void load(struct program *program, size_t offset) {
  add(program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned int)offset));
}

// Both architectures are little-endian: the lower half of an argument comes first.
static size_t lower_half(int argument) { return offsetof(struct seccomp_data, args) + 8 * (size_t)argument; }

static const unsigned int refuse = SECCOMP_RET_ERRNO | EPERM;

// A signal may go to this process alone, as abort() sends it.
static void allow_own_only(struct program *program, unsigned int number, unsigned int own) {
  unless_equal_skip(program, number, 4);
  load(program, lower_half(0));
  unless_equal_skip(program, own, 1);
  answer(program, SECCOMP_RET_ALLOW);
  answer(program, refuse);
}

// One program may be started in place of this one: that whose path is at this very address. What it turns into has no
// string there, so it starts no other; and could it, that one would be inside the same fence.
static void allow_execution(struct program *program, const char *path) {
  unless_equal_skip(program, SYS_execve, 6);
  load(program, lower_half(0));
  unless_equal_skip(program, (unsigned int)(uintptr_t)path, 3);
  load(program, lower_half(0) + 4);
  unless_equal_skip(program, (unsigned int)((uint64_t)(uintptr_t)path >> 32), 1);
  answer(program, SECCOMP_RET_ALLOW);
  answer(program, refuse);
}

// `executed` is the path of the one program that may be started, NULL for none.
static void write_program(struct program *program, const char *executed) {
  load(program, offsetof(struct seccomp_data, arch));
  add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCHITECTURE, 1, 0));
  answer(program, refuse);
  load(program, offsetof(struct seccomp_data, nr));
#if defined(__x86_64__)
  // The x32 numbers are second names of the same calls.
  add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1));
  answer(program, refuse);
#endif
  if (executed != NULL) allow_execution(program, executed);
  for (int index = 0; index < refused_count; index++) {
    unless_equal_skip(program, refused[index], 1);
    answer(program, refuse);
  }
  // Its flags are out of a filter's sight; the C library goes back to clone, whose flags are not.
  unless_equal_skip(program, SYS_clone3, 1);
  answer(program, SECCOMP_RET_ERRNO | ENOSYS);
  // A thread, not a process.
  unless_equal_skip(program, SYS_clone, 4);
  load(program, lower_half(0));
  add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1));
  answer(program, SECCOMP_RET_ALLOW);
  answer(program, refuse);
  unsigned int own = (unsigned int)getpid();
  allow_own_only(program, SYS_kill, own);
  allow_own_only(program, SYS_tgkill, own);
  // Limits may be read, not set: root could raise its own again.
  unless_equal_skip(program, SYS_prlimit64, 6);
  load(program, lower_half(2));
  unless_equal_skip(program, 0, 3);
  load(program, lower_half(2) + 4);
  unless_equal_skip(program, 0, 1);
  answer(program, SECCOMP_RET_ALLOW);
  answer(program, refuse);
  answer(program, SECCOMP_RET_ALLOW);
}
#endif

// Root, in a container most often, gives up all it may beyond other users, but for the right to open its own service's
// files below folders that are somebody else's.
static void drop_capabilities(void) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct rights[_LINUX_CAPABILITY_U32S_3] = {0};
  if (syscall(SYS_capget, &header, rights) != 0) return;
  unsigned int kept = rights[0].permitted & 1u << CAP_DAC_OVERRIDE;
  rights[0] = (struct __user_cap_data_struct){.effective = kept, .permitted = kept};
  rights[1] = (struct __user_cap_data_struct){0};
  syscall(SYS_capset, &header, rights);
}

static int enter_fence(const char *executed) {
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  drop_capabilities();
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
#ifdef OWN_ARCHITECTURE
  struct program program = {0};
  write_program(&program, executed);
  struct sock_fprog filter = {program.count, program.steps};
  // For all threads: the runtime may have started some already.
  long result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter);
  if (result < 0) return errno;
  return result == 0 ? 0 : EAGAIN;
#else
  return ENOSYS;
#endif
}

int stillwave_enter_fence(void) { return enter_fence(NULL); }

int stillwave_execute_fenced(const char *path, char *const words[]) {
  // Kept over execve: it ends with the worker that waits for what it writes.
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  // Where the kernel refuses the filter the limits hold all the same, as they do for workers.
  enter_fence(path);
  execve(path, words, stillwave_environment());
  return errno;
}

static char last_words[1024];

// A C library or a runtime that gets no memory dies of it soon after, on the same thread.
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
  const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGABRT, SIGFPE};
  for (size_t index = 0; index < sizeof signals / sizeof *signals; index++) sigaction(signals[index], &action, NULL);
}
