// What `import Glibc` leaves out: headers that its module map does not list, and functions that the C library declares
// under _GNU_SOURCE only. Those are declared here, as their manual pages have them, rather than by defining the macro:
// it changes fd_set, rusage, sockaddr arguments and others, and two modules with different definitions of one type
// can't both be imported.
#ifndef CLINUX_H
#define CLINUX_H
#include <fcntl.h>
#include <linux/memfd.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

int accept4(int socket, struct sockaddr *address, socklen_t *length, int flags);
int pipe2(int descriptors[2], int flags);
int memfd_create(const char *name, unsigned int flags);

#ifndef POSIX_SPAWN_SETSID
#define POSIX_SPAWN_SETSID 0x80
#endif

// The environment, to hand on to a child.
char **stillwave_environment(void);

// Has a child begin with default signals and an empty mask, whatever this process ignores or blocks. `flags`: further ones.
void stillwave_start_afresh(posix_spawnattr_t *attributes, short flags);

// Lowers the priority of a process; `setpriority` takes an enum under _GNU_SOURCE and an int elsewhere.
int stillwave_lower_priority(pid_t process, int niceness);

// Lowers this process's limits for good: bytes of memory that no file backs, seconds of processor time, bytes of any one
// file it writes, descriptors. There is no core dump after this. Limits that are lower already stay.
void stillwave_lower_limits(uint64_t memory, uint64_t seconds, uint64_t output, uint64_t descriptors);

// Leaves to this thread, and to those that it starts, no files but these (Landlock): `source` may be read; in `folder`, which
// may be NULL, files may be made, read, written and removed. What is open stays open. 0, or the errno of a kernel that has
// no such fence. Before `stillwave_enter_fence`, after which there are no such calls, and before there are other threads.
int stillwave_fence_files(const char *source, const char *folder);

// Gives up, for all threads of this process and for good, what working on files has no use for: the network, other
// programs and processes, more rights (the list is in fence.c). Such calls fail with EPERM from then on. Of root's rights
// this thread, and those that it starts, keep one: to open files whoever owns them. 0, or the errno with which the kernel
// refused the filter.
int stillwave_enter_fence(void);

// The same, then becomes the program at `path`, which is inside the fence with all that it does, and is killed when the
// thread that started this process ends. Returns only where that fails: the errno.
int stillwave_execute_fenced(const char *path, char *const words[]);

// Writes `line`, at most 1,023 bytes, to standard output where the process crashes right after memory was refused to it.
void stillwave_on_memory_exhausted(const char *line);
#endif
