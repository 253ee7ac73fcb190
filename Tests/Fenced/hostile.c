// Simulates an ffmpeg that was replaced, or taken over by a hostile file: it attacks the service, other recordings and
// the system. Its input looks like an audio file and then names the targets:
//
//   service=PID
//   data=PATH       the data folder
//   other=PATH      another recording's audio
//   threads=COUNT   start so many threads, if possible, and hang
//   hang=yes        hang forever
//
// The results are printed as the name of a codec, which the answer to an upload repeats: `mem=13 environ=13 …`, where
// the number is the errno, or 0 if the attempt succeeded.
#define _GNU_SOURCE
#include "tests.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char input[4096];

// Returns the value after `name=` in the input; an empty string if there is none.
static const char *target(const char *name) {
  static char found[8][1024];
  static int next;
  char *value = found[next++ % 8];
  char *place = memmem(input, sizeof input, name, strlen(name));
  *value = 0;
  if (place != NULL) sscanf(place + strlen(name), "=%1023[^\n]", value);
  return value;
}

static int result(long value) { return value < 0 ? errno : 0; }

static int try_open(const char *path, int flags) {
  int file = open(path, flags, 0600);
  if (file < 0) return errno;
  close(file);
  return 0;
}

static const char *in_process(const char *name) {
  static char path[64];
  snprintf(path, sizeof path, "/proc/%s/%s", target("service"), name);
  return path;
}

static const char *in_data(const char *name) {
  static char path[1100];
  snprintf(path, sizeof path, "%s/%s", target("data"), name);
  return path;
}

// Returns 0 if any of the service's descriptors can be opened.
static int open_descriptors(void) {
  int failure = ENOENT;
  for (int number = 0; number < 64; number++) {
    char name[16];
    snprintf(name, sizeof name, "fd/%d", number);
    int found = try_open(in_process(name), O_RDONLY);
    if (found == 0) return 0;
    if (found != ENOENT) failure = found;
  }
  return failure;
}

static int start_process(void) {
  pid_t child = fork();
  if (child < 0) return errno;
  if (child == 0) _exit(0);
  waitpid(child, NULL, 0);
  return 0;
}

static int start_program(void) {
  char *words[] = {"true", NULL};
  return result(execve("/bin/true", words, NULL));
}

static int be_connected(void) {
  int end = socket(AF_INET, SOCK_STREAM, 0);
  if (end < 0) return errno;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  return result(connect(end, (struct sockaddr *)&address, sizeof address)) == EPERM ? EPERM : 0;
}

// Maps memory of a kind that no limit counts.
static int map(int flags) {
  return mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? errno : 0;
}

// Returns 0 if the number of threads isn't limited. The limit counts all threads of the user, so actually reaching it
// would make other tests' programs fail.
static int has_many_tasks(void) {
  struct rlimit limit;
  return getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_max <= 512 ? EAGAIN : 0;
}

// Returns 0 if it has inherited descriptors that it shouldn't have.
static int has_others(int last) {
  for (int number = last + 1; number < 1024; number++)
    if (fcntl(number, F_GETFD) >= 0) return 0;
  return EBADF;
}

// Returns 0 if it has environment variables that it shouldn't have.
static int has_variables(void) {
  for (char **entry = environ; *entry != NULL; entry++)
    if (strncmp(*entry, "PATH=", 5) != 0 && strncmp(*entry, "LD_LIBRARY_PATH=", 16) != 0 &&
        strcmp(*entry, "LC_ALL=C") != 0)
      return 0;
  return ENOENT;
}

static void *sleep_forever(void *argument) {
  for (;;) pause();
  return argument;
}

static void start_threads(int count) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 1 << 16);
  pthread_t thread;
  while (count-- > 0 && pthread_create(&thread, &attributes, sleep_forever, NULL) == 0) continue;
  sleep_forever(NULL);
}

static int signal_by_descriptor(pid_t service) {
  int ends[2];
  if (pipe(ends) != 0) return errno;
  return result(fcntl(ends[0], F_SETOWN, service));
}

int be_hostile(const char *name) {
  ssize_t got = pread(3, input, sizeof input - 1, 0);
  (void)got;
  if (*target("threads") != 0) start_threads(atoi(target("threads")));
  while (*target("hang") != 0) nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
  pid_t service = atoi(target("service"));
  const char *other = target("other");
  bool is_probe = strcmp(name, "ffprobe") == 0;
  // Checked before this program opens any descriptors itself.
  int inherited = has_others(is_probe ? 3 : 4);
  if (is_probe) printf("{\"streams\":[{\"codec_type\":\"audio\",\"codec_name\":\"");
#define TRY(name, attempt) printf("%s=%d ", name, attempt)
  TRY("write-memory", try_open(in_process("mem"), O_RDWR));
  TRY("read-memory", try_open(in_process("mem"), O_RDONLY));
  TRY("environment", try_open(in_process("environ"), O_RDONLY));
  TRY("descriptors", open_descriptors());
  TRY("trace", result(ptrace(PTRACE_ATTACH, service, NULL, NULL)));
  TRY("signal", result(kill(service, SIGKILL)));
  TRY("signal-by-descriptor", signal_by_descriptor(service));
  TRY("signal-group", result(kill(0, 0)));
  TRY("read-other", try_open(other, O_RDONLY));
  TRY("write-other", try_open(other, O_WRONLY));
  TRY("truncate-other", result(truncate(other, 0)));
  TRY("remove-other", result(unlink(other)));
  TRY("read-catalog", try_open(in_data("catalog.sqlite"), O_RDONLY));
  TRY("write-catalog", try_open(in_data("catalog.sqlite"), O_RDWR));
  TRY("write-data", try_open(in_data("intruder"), O_WRONLY | O_CREAT));
  TRY("list-data", try_open(target("data"), O_RDONLY | O_DIRECTORY));
  TRY("passwords", try_open("/etc/shadow", O_RDONLY));
  TRY("core-pattern", try_open("/proc/sys/kernel/core_pattern", O_WRONLY));
  TRY("connect", be_connected());
  TRY("fork", start_process());
  TRY("program", start_program());
  TRY("map-shared", map(MAP_SHARED));
  TRY("map-stack", map(MAP_PRIVATE | MAP_GROWSDOWN));
  TRY("tasks", has_many_tasks());
  TRY("inherited", inherited);
  TRY("variables", has_variables());
  TRY("change-input", try_open("/proc/self/fd/3", O_RDWR));
  TRY("cut-input", result(ftruncate(3, 0)));
  TRY("expose-input", result(fchmod(3, 0666)));
  // What ffmpeg must be able to do.
  TRY("read-input", try_open("/proc/self/fd/3", O_RDONLY) == 0 ? EPERM : 0);
  TRY("user", (int)geteuid());
  if (!is_probe) TRY("open-output", try_open("/proc/self/fd/4", O_WRONLY | O_CREAT | O_TRUNC));
  if (!is_probe) TRY("more-files", try_open("more", O_WRONLY | O_CREAT));
  if (!is_probe) TRY("calls", refused_calls() == 0 ? EPERM : 0);
  if (is_probe) printf("\"}]}");
  printf("\n");
  return 0;
}
