// What `import Glibc` leaves out: headers that its module map does not list, and functions that the C library declares
// under _GNU_SOURCE only. Those are declared here, as their manual pages have them, rather than by defining the macro:
// it changes fd_set, sockaddr arguments and others, and two modules with different definitions of one type can't both
// be imported.
#ifndef CLINUX_H
#define CLINUX_H
#include <fcntl.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#ifndef POSIX_SPAWN_SETSID
#define POSIX_SPAWN_SETSID 0x80
#endif

int accept4(int socket, struct sockaddr *address, socklen_t *length, int flags);
int pipe2(int descriptors[2], int flags);
ssize_t copy_file_range(int from, off_t *from_offset, int to, off_t *to_offset, size_t count, unsigned int flags);
ssize_t splice(int from, off_t *from_offset, int to, off_t *to_offset, size_t count, unsigned int flags);
int prlimit(pid_t process, int resource, const struct rlimit *limit, struct rlimit *old_limit);
int posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t *actions, const char *path);
int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int from);
#endif
