// The thread that writes the log runs on while another one is in a signal handler, so the handler only has to wait for
// it. Then it hands the signal on to the handler before it, such as Swift's backtracer, which stops all threads.

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

#include "CLinux.h"

static atomic_int waiting;
static struct sigaction previous[NSIG];

void stillwave_count_waiting_log(int change) { atomic_fetch_add(&waiting, change); }

// Only async-signal-safe functions. If this thread holds the log's lock, or is the one that writes, the wait is in
// vain.
static void finish_log(int number, siginfo_t *information, void *context) {
  (void)context;
  const struct timespec pause = {.tv_sec = 0, .tv_nsec = 5000000};
  for (int waits = 0; waits < 200 && atomic_load(&waiting) > 0; waits++) nanosleep(&pause, NULL);
  sigaction(number, &previous[number], NULL);
  // A fault occurs again when this function returns; a signal that was sent has to be sent again.
  if (information->si_code <= 0) raise(number);
}

void stillwave_finish_log_at_crash(void) {
  const int numbers[] = {SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV};
  for (size_t index = 0; index < sizeof numbers / sizeof *numbers; index++) {
    struct sigaction action = {.sa_sigaction = finish_log, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    sigaction(numbers[index], &action, &previous[numbers[index]]);
  }
}
