// The thread that writes the log runs on while another one is in a signal handler, so the handler only has to wait for it.

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

#include "CLinux.h"

static atomic_int waiting;

void stillwave_count_waiting_log(int change) { atomic_fetch_add(&waiting, change); }

// Only async-signal-safe functions. If this thread holds the log's lock, or is the one that writes, the wait is in vain.
static void finish_log(int number) {
  const struct timespec pause = {.tv_sec = 0, .tv_nsec = 5000000};
  for (int waits = 0; waits < 200 && atomic_load(&waiting) > 0; waits++) nanosleep(&pause, NULL);
  // The default action, which SA_RESETHAND has restored, follows when this function returns.
  raise(number);
}

void stillwave_finish_log_at_crash(void) {
  const int numbers[] = {SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV};
  for (size_t index = 0; index < sizeof numbers / sizeof *numbers; index++) {
    struct sigaction action;
    if (sigaction(numbers[index], NULL, &action) != 0 || action.sa_handler != SIG_DFL) continue;
    action = (struct sigaction){.sa_handler = finish_log, .sa_flags = SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(numbers[index], &action, NULL);
  }
}
