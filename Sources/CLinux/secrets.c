#define _GNU_SOURCE
#include "CLinux.h"

#include <dirent.h>
#include <linux/close_range.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

void stillwave_close_to_others(void) { prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

void stillwave_erase_variable(const char *name) {
  size_t length = strlen(name);
  // `unsetenv` removes the pointers but leaves the text. A name may occur more than once.
  for (char **entry = environ; entry != NULL && *entry != NULL; entry++)
    if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
      explicit_bzero(*entry + length + 1, strlen(*entry + length + 1));
  unsetenv(name);
}

static char **arguments;

// Swift has a copy of the arguments; these are the kernel's, which /proc/PID/cmdline shows to everyone.
__attribute__((constructor)) static void remember(int count, char **words) {
  (void)count;
  arguments = words;
}

void stillwave_erase_argument(const char *name) {
  size_t length = strlen(name);
  for (char **word = arguments; word != NULL && *word != NULL; word++) {
    if (strncmp(*word, name, length) != 0) continue;
    char *value = NULL;
    if ((*word)[length] == '=') value = *word + length + 1;
    if ((*word)[length] == 0) value = word[1];
    if (value != NULL) explicit_bzero(value, strlen(value));
  }
}

void stillwave_show_arguments(const char *words, size_t count) {
  if (arguments == NULL || arguments[0] == NULL) return;
  char *begin = arguments[0], *end = begin;
  for (char **word = arguments; *word != NULL; word++) end = *word + strlen(*word);
  size_t room = (size_t)(end - begin);
  memset(begin, 0, room);
  memcpy(begin, words, count < room ? count : room);
}

void stillwave_keep_descriptors(void) {
#ifdef SYS_close_range
  if (syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, CLOSE_RANGE_CLOEXEC) == 0) return;
#endif
  // Before Linux 5.11.
  DIR *folder = opendir("/proc/self/fd");
  if (folder == NULL) return;
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    int number = atoi(entry->d_name);
    if (number > STDERR_FILENO) fcntl(number, F_SETFD, FD_CLOEXEC);
  }
  closedir(folder);
}

// MARK: What children get

// Returns the named variables that are set, and `more`, which may be NULL.
static char **environment_of(const char *const *names, size_t count, char *more) {
  char **kept = calloc(count + 2, sizeof *kept);
  if (kept == NULL) return NULL;
  size_t found = 0;
  for (size_t index = 0; index < count; index++) {
    size_t length = strlen(names[index]);
    for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
      if (strncmp(*entry, names[index], length) != 0 || (*entry)[length] != '=') continue;
      kept[found++] = *entry;
      break;
    }
  }
  kept[found] = more;
  return kept;
}

char **stillwave_worker_environment(void) {
  // Sanitizers and coverage have their own settings.
  static const char *const names[] = {"PATH", "LD_LIBRARY_PATH", "TMPDIR", "STILLWAVE_FFMPEG", "ASAN_OPTIONS",
                                      "LSAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS", "LLVM_PROFILE_FILE"};
  return environment_of(names, sizeof names / sizeof *names, NULL);
}

char **stillwave_program_environment(void) {
  static const char *const names[] = {"PATH", "LD_LIBRARY_PATH"};
  return environment_of(names, sizeof names / sizeof *names, "LC_ALL=C");
}
