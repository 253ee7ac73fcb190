// Declarations missing from `import Glibc`: headers that its module map doesn't list, and functions that the C library
// declares only under _GNU_SOURCE. The latter are declared here as in their manual pages. Defining the macro instead
// would change fd_set, rusage, sockaddr arguments, and others, and two modules with different definitions of a type
// can't both be imported.
#ifndef CLINUX_H
#define CLINUX_H
#include <fcntl.h>
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
int sync_file_range(int descriptor, off_t offset, off_t count, unsigned int flags);
#ifndef SYNC_FILE_RANGE_WRITE
#define SYNC_FILE_RANGE_WAIT_BEFORE 1
#define SYNC_FILE_RANGE_WRITE 2
#endif

#ifndef POSIX_SPAWN_SETSID
#define POSIX_SPAWN_SETSID 0x80
#endif

// Returns the environment, for passing it to a child.
char **stillwave_environment(void);

// Makes a child start with default signal actions and an empty signal mask, whatever this process ignores or blocks.
// `flags`: additional ones.
void stillwave_start_afresh(posix_spawnattr_t *attributes, short flags);

// Lets a process that root has started and that has become another user still find and read every file, but not write
// it: this thread and those that it starts from now on. Returns false if it can't. (capabilities(7))
bool stillwave_keep_reading(void);

// Lowers the priority of a process. (`setpriority` takes an enum under _GNU_SOURCE and an int elsewhere.)
int stillwave_lower_priority(pid_t process, int niceness);

// Gives the calling thread the lowest priority for the processor and the disk, as far as the system lets it.
void stillwave_idle_thread(void);

// Drops what arrives at a socket from now on. A client that connects to a listening one gets no answer and tries again
// a second later. (`sock_filter` is a header of Linux that the module map doesn't list.)
int stillwave_drop_input(int socket);

// Reads as pread does what the system has in memory. Fails with EAGAIN if it would have to wait for the disk.
ssize_t stillwave_read_cached(int file, void *bytes, size_t count, off_t offset);

// MARK: log.c

// Adds to the number of batches of lines that wait to be written to the log, by a thread that needs no reminder.
void stillwave_count_waiting_log(int change);

// From now on, a signal that ends the process because of a fault in its code (SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE,
// SIGSEGV) does so only when no batch waits, or after a second. Then its handler of before is called.
void stillwave_finish_log_at_crash(void);

// MARK: memory.c

// Makes malloc return blocks of `bytes` or more to the system when they are freed, and the free end of an arena when
// it's longer. By default, glibc raises both bounds to the largest block ever freed, or twice that. Also bounds the
// number of arenas (at most 64). Call it before other threads start.
void stillwave_bound_kept_memory(int bytes, int arena_count);

// Returns unused memory from malloc to the system: all free pages, except 128 KB at the end of each arena. Takes
// milliseconds.
void stillwave_trim_memory(void);

// MARK: secrets.c

// Closes this process's memory, environment, and descriptors in /proc to all other processes without root's rights,
// until the next execve. Also disables core dumps.
void stillwave_close_to_others(void);

// Overwrites the value of every environment variable with this name in the kernel's copy, which /proc/self/environ
// shows, and removes the variable. Call it before other threads use the environment.
void stillwave_erase_variable(const char *name);

// Overwrites the value of every argument with this name (`--name VALUE`, `--name=VALUE`) in the kernel's copy, which
// /proc/PID/cmdline shows to everyone.
void stillwave_erase_argument(const char *name);

// Overwrites the arguments in the kernel's copy with these words, each of which ends with a NUL. They are cut off where
// those that the process started with ended. Call it once.
void stillwave_show_arguments(const char *words, size_t count);

// Prevents children from inheriting the descriptors open now, except the standard ones. The parent of this process may
// have left others open.
void stillwave_keep_descriptors(void);

// Returns the environment variables that workers need, or that ffmpeg and the C library need; none is secret. Free the
// list but not its entries. Returns NULL if there is no memory.
char **stillwave_worker_environment(void);
char **stillwave_program_environment(void);

// MARK: template.c

// Sends a message with two descriptors, which stay open here. Returns 0 or an errno.
int stillwave_send_order(int socket, const void *label, size_t count, int input, int output);

// Receives such a message, and its two descriptors, which close on exec; they are -1 if none came. Blocks. Returns the
// message's length, 0 once the other end is closed, or -1 with errno.
ssize_t stillwave_receive_order(int socket, void *label, size_t count, int *input, int *output);

// Copies this process, which must have a single thread. The copy is a child of this process's parent, which can wait
// for it. Handlers set by pthread_atfork aren't called, and whatever else has noted the ID of this thread, as Swift's
// `Mutex` does once the thread has used one, has a wrong one in the copy. Returns 0 in the copy, here its ID, or -1
// with errno.
pid_t stillwave_fork_sibling(void);

// Returns free pages from malloc to the system. Copying this process then takes less time, which is mostly that of
// noting each page of its memory.
void stillwave_release_free_pages(void);

// MARK: fence.c

// The user and group that a program runs as when root starts it: an ID that neither Debian nor systemd assigns.
enum { STILLWAVE_UNPRIVILEGED_ID = 65533 };

// Maximum number of processes and threads of that user, over all programs.
enum { STILLWAVE_UNPRIVILEGED_TASKS = 512 };

// Lowers this process's limits permanently: bytes of memory not backed by a file, seconds of processor time, bytes of
// any file it writes, descriptors. Also disables core dumps. Lower existing limits stay.
void stillwave_lower_limits(uint64_t memory, uint64_t seconds, uint64_t output, uint64_t descriptors);

// Permanently drops all rights that working on files doesn't need. `source` may be read. In `folder`, which may be
// NULL, files may be read and removed, and `outputs`, which exist and end with NULL, also written. If that is NULL, any
// file may be created and written there (Landlock; open files stay open). Root keeps no capability, except
// CAP_DAC_OVERRIDE if it can't access these two without it. Call it before other threads start, which inherit the
// fence. Returns 0, or the errno if the kernel supports Landlock but refused it; if the kernel lacks it, it's skipped.
int stillwave_fence_worker(const char *source, const char *folder, const char *const *outputs);

// Completes that fence once all threads have started: system calls that filter.c doesn't list fail with EPERM in all
// of them, and no other can be started. `writes`: whether files may be opened for writing. Returns 0, or the errno if
// the kernel supports filters but refused this one.
int stillwave_filter_worker(bool writes);

// A program to execute, with the descriptors that it gets besides the standard ones.
struct stillwave_program {
  const char *path;
  char *const *words;
  // The descriptors of the input and output file, available under /proc/self/fd; -1 for none.
  int input, output;
  // Whether the output is written only through its descriptor and can't be opened, as if there were none.
  bool output_stays_open;
  // Whether root first becomes another user.
  bool drops_root;
  // The process that must have started this one; 0 for any.
  pid_t parent;
};

// Executes the program in its own fence: it may read itself, its libraries, and its input, and write its output. It is
// killed when the thread that started this process ends. Returns only on failure, including that of a part of the fence
// that the kernel supports, with the errno.
int stillwave_become_program(const struct stillwave_program *program);

// Makes this process's filter permit killing this child. For a few children, before the process fences itself in.
void stillwave_may_end(pid_t child);

// Undoes the change that `stillwave_become_program` made to a file's mode. Call it after the program has ended; does
// nothing if another program still uses the file. Returns whether only the owner has access now.
bool stillwave_take_back(int file);

// Whether a file is still accessible to the other user.
bool stillwave_is_lent(int file);

// Whether root can start a program as another user. True if this process isn't root.
bool stillwave_can_drop_root(void);

// Whether that other user can start the program at `path`. True if this process isn't root. Temporarily changes this
// thread's user and groups.
bool stillwave_other_can_run(const char *path);

// Makes the process write `line`, at most 1,023 bytes, to standard output if it crashes right after an allocation
// failed.
void stillwave_on_memory_exhausted(const char *line);

// MARK: files.c

// Returns the kernel's version of Landlock, or 0 if it is missing.
int stillwave_landlock_version(void);

// Limits this thread, and threads it starts, to these files. Returns 0 or an errno.
int stillwave_fence_files(const char *source, const char *folder, const char *const *outputs);

// Does the same for a program: itself, its libraries, and the files of the two descriptors, which may be -1.
int stillwave_fence_program_files(const char *path, int input, int output);

// MARK: filter.c

// Whether the kernel can filter system calls.
bool stillwave_has_filter(void);

// Makes the filters of workers in advance, for this process and copies of it that have no other threads yet. Without
// it, or if it fails, each makes its own.
void stillwave_prepare_filters(void);

// Filters the system calls of all threads. `writes`: whether files may be opened for writing. `executed`: the path of
// the program that may replace this one, or NULL for a worker. Returns 0 or an errno.
int stillwave_filter_calls(bool writes, const char *executed);
#endif
