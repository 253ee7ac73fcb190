// Replaces ffmpeg and ffprobe in tests, and fails in the way named by its folder:
//
//   FailingProgram/…/DEED/ffmpeg WORD…
//
// It is a program rather than a script, because a fenced process can't start an interpreter. It's linked without the
// toolchain's libraries, because the fence denies access to them.
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

// Fails like a program that doesn't check the result of malloc.
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
  // AVERROR(ENOMEM), as an exit status of ffmpeg.
  if (is(deed, "no-memory")) return 244;
  // The loader's exit status if a library is missing.
  if (is(deed, "no-library")) return 127;
  if (is(deed, "exit-3")) return 3;
  while (is(deed, "endless"))
    if (puts("0, 0, 0, 1, 4, 0") < 0) return 1;
  while (is(deed, "silent")) nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
  if (is(deed, "crash-on-files") && reads_a_file(count, words)) crash();
  if (is(deed, "crash-on-files")) return puts("{}") < 0;
  // ffmpeg's message about a file that it can't read.
  return 1;
}
