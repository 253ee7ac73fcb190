#define _GNU_SOURCE
#include "CLinux.h"

#include <linux/capability.h>
#include <linux/filter.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>

extern char **environ;

char **stillwave_environment(void) { return environ; }

void stillwave_start_afresh(posix_spawnattr_t *attributes, short flags) {
  sigset_t all, none;
  sigfillset(&all);
  sigemptyset(&none);
  posix_spawnattr_setsigdefault(attributes, &all);
  posix_spawnattr_setsigmask(attributes, &none);
  posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | flags);
}

bool stillwave_keep_reading(void) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
  if (syscall(SYS_capget, &header, data) != 0) return false;
  data[CAP_TO_INDEX(CAP_DAC_READ_SEARCH)].effective |= CAP_TO_MASK(CAP_DAC_READ_SEARCH);
  return syscall(SYS_capset, &header, data) == 0;
}

int stillwave_lower_priority(pid_t process, int niceness) {
  return setpriority(PRIO_PROCESS, (id_t)process, niceness);
}

void stillwave_idle_thread(void) {
  // Of linux/ioprio.h: a process or thread, and the class of those that get the disk only while nobody else wants it.
  enum { WHO_PROCESS = 1, CLASS_IDLE = 3, CLASS_SHIFT = 13, LOWEST = 19 };
  setpriority(PRIO_PROCESS, 0, LOWEST);
  syscall(SYS_ioprio_set, WHO_PROCESS, 0, CLASS_IDLE << CLASS_SHIFT);
}

int stillwave_drop_input(int socket) {
  struct sock_filter none = BPF_STMT(BPF_RET | BPF_K, 0);
  const struct sock_fprog program = {1, &none};
  return setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

ssize_t stillwave_read_cached(int file, void *bytes, size_t count, off_t offset) {
  const struct iovec part = {bytes, count};
  return preadv2(file, &part, 1, offset, RWF_NOWAIT);
}
