#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

// The descriptors of an order, as the kernel wants them next to a message.
union control {
  struct cmsghdr header;
  char bytes[CMSG_SPACE(2 * sizeof(int))];
};

int stillwave_send_order(int socket, const void *label, size_t count, int input, int output) {
  union control control = {0};
  struct iovec text = {.iov_base = (void *)label, .iov_len = count};
  struct msghdr message = {
      .msg_iov = &text, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
  control.header =
      (struct cmsghdr){.cmsg_len = CMSG_LEN(2 * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
  memcpy(CMSG_DATA(&control.header), (int[]){input, output}, 2 * sizeof(int));
  ssize_t sent;
  do sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  if (sent < 0) return errno;
  return (size_t)sent == count ? 0 : EAGAIN;
}

ssize_t stillwave_receive_order(int socket, void *label, size_t count, int *input, int *output) {
  union control control = {0};
  struct iovec text = {.iov_base = label, .iov_len = count};
  struct msghdr message = {
      .msg_iov = &text, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
  ssize_t received;
  do received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  while (received < 0 && errno == EINTR);
  if (received <= 0) return received;
  *input = *output = -1;
  if (message.msg_controllen < CMSG_LEN(2 * sizeof(int)) || control.header.cmsg_type != SCM_RIGHTS) return received;
  memcpy(input, CMSG_DATA(&control.header), sizeof *input);
  memcpy(output, CMSG_DATA(&control.header) + sizeof *input, sizeof *output);
  return received;
}

pid_t stillwave_fork_sibling(void) {
  // Where the C library notes this thread's ID, which `fork` would correct in the child.
  int *noted = NULL;
  if (prctl(PR_GET_TID_ADDRESS, &noted, 0, 0, 0) != 0 || noted == NULL) return -1;
  unsigned long flags = CLONE_PARENT | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD;
#if defined(__x86_64__)
  return (pid_t)syscall(SYS_clone, flags, 0, NULL, noted, 0);
#else
  return (pid_t)syscall(SYS_clone, flags, 0, NULL, 0, noted);
#endif
}

void stillwave_release_free_pages(void) { malloc_trim(0); }
