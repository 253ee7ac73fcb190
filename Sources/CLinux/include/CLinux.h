// What `import Glibc` leaves out: headers that its module map does not list, and functions that the C library declares
// under _GNU_SOURCE only. Those are declared here, as their manual pages have them, rather than by defining the macro:
// it changes fd_set, rusage, sockaddr arguments and others, and two modules with different definitions of one type
// can't both be imported.
#ifndef CLINUX_H
#define CLINUX_H
#include <fcntl.h>
#include <linux/memfd.h>
#include <spawn.h>
#include <stdbool.h>
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

// Has a child begin with default signals and an empty mask, whatever this process ignores or blocks. `flags`: further
// ones.
void stillwave_start_afresh(posix_spawnattr_t *attributes, short flags);

// Lowers the priority of a process; `setpriority` takes an enum under _GNU_SOURCE and an int elsewhere.
int stillwave_lower_priority(pid_t process, int niceness);

// Gives the memory that malloc has kept back to the system (`malloc_trim`).
void stillwave_trim_memory(void);

// MARK: secrets.c

// Closes this process's memory, environment and descriptors in /proc to every other process without root's rights.
// Lasts until the next execve. There is no core dump after this.
void stillwave_close_to_others(void);

// Overwrites the value of every environment variable with this name where the kernel put it, which is what
// /proc/self/environ shows, and removes the variable. Before there are other threads that use the environment.
void stillwave_erase_variable(const char *name);

// Overwrites the value of every argument with this name (`--name VALUE`, `--name=VALUE`) where the kernel put it, which
// is what /proc/PID/cmdline shows to everyone.
void stillwave_erase_argument(const char *name);

// No child inherits what is open now, the standard descriptors aside: whoever started this process may have left it
// more.
void stillwave_keep_descriptors(void);

// The variables that workers need, and those that ffmpeg and the C library need, to hand on to them: none is a secret.
// The list is to be freed, its entries aren't. NULL if there is no memory.
char **stillwave_worker_environment(void);
char **stillwave_program_environment(void);

// MARK: fence.c

// The user and the group that a program runs as when root starts it: a number that Debian and systemd give to nobody.
enum { STILLWAVE_UNPRIVILEGED_ID = 65533 };

// Processes and threads of that user at the most, all programs together.
enum { STILLWAVE_UNPRIVILEGED_TASKS = 512 };

// Lowers this process's limits for good: bytes of memory that no file backs, seconds of processor time, bytes of any
// one file it writes, descriptors. There is no core dump after this. Limits that are lower already stay.
void stillwave_lower_limits(uint64_t memory, uint64_t seconds, uint64_t output, uint64_t descriptors);

// Gives up, for good, what working on files has no use for. Of files, `source` may be read; in `folder`, which may be
// NULL, files may be made, read, written and removed (Landlock; what is open stays open). System calls that filter.c
// doesn't list fail with EPERM, for all threads. Root keeps no capability, except CAP_DAC_OVERRIDE if it can't open
// these two without. Call it before there are other threads: only the filter reaches them. Returns 0, or the errno with
// which the kernel refused Landlock or the filter although it has them; what it doesn't have is passed over.
int stillwave_fence_worker(const char *source, const char *folder);

// A program to become, with the descriptors that it gets besides the standard ones.
struct stillwave_program {
  const char *path;
  char *const *words;
  // The file that it reads and the file that it writes, under /proc/self/fd; -1 for none.
  int input, output;
  // Whether root becomes another user first.
  bool drops_root;
  // The process that starts it; 0 if it may be any.
  pid_t parent;
};

// Becomes the program, in a fence of its own: it may read itself, its libraries and its input, and write its output. It
// is killed when the thread that started this process ends. Returns only if that fails, or if a part of the fence does
// that the kernel has: the errno.
int stillwave_become_program(const struct stillwave_program *program);

// Has the filter of this process let it kill this child of its own. For a handful of them, before it fences itself in.
void stillwave_may_end(pid_t child);

// Undoes what `stillwave_become_program` did to the mode of a file, once the program has ended, unless another one
// still uses the file. Whether the file is its owner's alone now.
bool stillwave_take_back(int file);

// Whether a file is still lent.
bool stillwave_is_lent(int file);

// Whether root can start a program as another user. True for any other user, who is that other user already.
bool stillwave_can_drop_root(void);

// Whether that other user can start the program at `path`. True for any user but root. For this thread's rights see
// above.
bool stillwave_other_can_run(const char *path);

// Writes `line`, at most 1,023 bytes, to standard output where the process crashes right after memory was refused to
// it.
void stillwave_on_memory_exhausted(const char *line);

// MARK: files.c

// Landlock's version in this kernel; 0 if there is none.
int stillwave_landlock_version(void);

// Leaves to this thread, and to those that it starts, no files but these. 0, or an errno.
int stillwave_fence_files(const char *source, const char *folder);

// The same for a program: itself, its libraries and the two descriptors' files, which may be -1.
int stillwave_fence_program_files(const char *path, int input, int output);

// MARK: filter.c

// Whether the kernel filters system calls.
bool stillwave_has_filter(void);

// Filters the calls of all threads. `writes`: whether files may be opened for writing. `executed`: the path of the
// program that may be started in place of this one, NULL for a worker. 0, or an errno.
int stillwave_filter_calls(bool writes, const char *executed);
#endif
