#define _GNU_SOURCE
#include "tests.h"

#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

struct call {
  const char *name;
  long number;
};

#define CALL(name) {#name, SYS_##name}

static const struct call calls[] = {
    // Network.
    CALL(socket), CALL(socketpair), CALL(connect), CALL(bind), CALL(listen), CALL(accept), CALL(accept4), CALL(sendto),
    CALL(sendmsg), CALL(sendmmsg), CALL(recvfrom), CALL(recvmsg), CALL(recvmmsg), CALL(setsockopt), CALL(getsockopt),
    // Resources shared between processes.
    CALL(shmget), CALL(shmat), CALL(shmctl), CALL(semget), CALL(semop), CALL(msgget), CALL(msgsnd), CALL(mq_open),
    CALL(memfd_create),
    // Starting programs, and acting on other processes.
    CALL(execve), CALL(execveat), CALL(ptrace), CALL(process_vm_readv), CALL(process_vm_writev), CALL(tkill),
    CALL(rt_sigqueueinfo), CALL(rt_tgsigqueueinfo), CALL(pidfd_open), CALL(pidfd_send_signal), CALL(pidfd_getfd),
    CALL(process_madvise), CALL(kcmp), CALL(setpgid), CALL(setsid), CALL(migrate_pages), CALL(move_pages),
    CALL(sched_setaffinity), CALL(sched_setscheduler), CALL(sched_setattr), CALL(ioprio_set),
    // Gaining privileges, or another view of the system.
    CALL(setuid), CALL(setgid), CALL(setreuid), CALL(setregid), CALL(setresuid), CALL(setresgid), CALL(setgroups),
    CALL(setfsuid), CALL(setfsgid), CALL(capset), CALL(unshare), CALL(setns), CALL(chroot), CALL(pivot_root),
    CALL(mount), CALL(umount2), CALL(move_mount), CALL(open_tree), CALL(fsopen), CALL(fsconfig), CALL(fsmount),
    CALL(fspick), CALL(personality), CALL(open_by_handle_at), CALL(name_to_handle_at), CALL(setrlimit), CALL(seccomp),
    // Special files, and other users' files.
    CALL(mknodat), CALL(linkat), CALL(symlinkat), CALL(fchown), CALL(fchownat), CALL(fchmodat), CALL(setxattr),
    CALL(lsetxattr), CALL(fsetxattr), CALL(truncate), CALL(openat2), CALL(utimensat), CALL(mkdirat), CALL(chdir),
    CALL(inotify_init1), CALL(inotify_add_watch),
    // The kernel itself.
    CALL(bpf), CALL(perf_event_open), CALL(userfaultfd), CALL(io_uring_setup), CALL(io_uring_enter),
    CALL(io_uring_register), CALL(io_setup), CALL(init_module), CALL(finit_module), CALL(delete_module),
    CALL(kexec_load), CALL(reboot), CALL(swapon), CALL(swapoff), CALL(add_key), CALL(request_key), CALL(keyctl),
    CALL(quotactl), CALL(acct), CALL(syslog), CALL(settimeofday), CALL(clock_settime), CALL(adjtimex),
    CALL(clock_adjtime), CALL(sethostname), CALL(setdomainname), CALL(fanotify_init), CALL(mlockall), CALL(vhangup),
#if defined(__x86_64__)
    CALL(fork), CALL(vfork), CALL(mknod), CALL(link), CALL(symlink), CALL(chown), CALL(lchown), CALL(chmod),
    CALL(creat), CALL(mkdir), CALL(iopl), CALL(ioperm), CALL(modify_ldt), CALL(uselib), CALL(kexec_file_load),
#endif
    // A number that a future kernel may use.
    {"4095", 4095},
};

int refused_calls(void) {
  int others = 0;
  for (size_t index = 0; index < sizeof calls / sizeof *calls; index++) {
    errno = 0;
    if (syscall(calls[index].number, 0, 0, 0, 0, 0, 0) == -1 && errno == EPERM) continue;
    printf("%s ", calls[index].name);
    others++;
  }
  return others;
}
