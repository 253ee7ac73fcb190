// Stands in for ffmpeg and ffprobe, and fails as the name of the folder that it was started from says:
//
//   FailingProgram/…/DEED/ffmpeg WORD…
//
// A program, not a script: behind the fence it can start no other. It is linked without the toolchain's libraries,
// which the fence keeps closed.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int is(const char *deed, const char *name) { return strcmp(deed, name) == 0; }

static _Noreturn void crash(void) {
  raise(SIGSEGV);
  abort();
}

// As a program does that doesn't look at what malloc returns.
static _Noreturn void use_up_memory(void) {
  for (;;) {
    char *piece = malloc(16 << 20);
    if (piece == NULL) abort();
    memset(piece, 1, 16 << 20);
  }
}

static int reads_a_file(int count, char **words) {
  for (int index = 1; index < count; index++)
    if (strncmp(words[index], "file:", 5) == 0) return 1;
  return 0;
}

int main(int count, char **words) {
  char path[4096] = {0};
  strncpy(path, words[0], sizeof path - 1);
  char *end = strrchr(path, '/');
  if (end == NULL) return 1;
  *end = 0;
  const char *slash = strrchr(path, '/'), *deed = slash == NULL ? path : slash + 1;
  if (is(deed, "crash")) crash();
  if (is(deed, "abort")) abort();
  if (is(deed, "killed")) raise(SIGKILL);
  if (is(deed, "use-up-memory")) use_up_memory();
  // AVERROR(ENOMEM), as ffmpeg exits with it.
  if (is(deed, "no-memory")) return 244;
  // As the loader does if a library is missing.
  if (is(deed, "no-library")) return 127;
  if (is(deed, "exit-3")) return 3;
  while (is(deed, "endless"))
    if (puts("0, 0, 0, 1, 4, 0") < 0) return 1;
  while (is(deed, "silent")) nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
  if (is(deed, "crash-on-files") && reads_a_file(count, words)) crash();
  if (is(deed, "crash-on-files")) return puts("{}") < 0;
  // What ffmpeg says of a file that it can't read.
  return 1;
}
