// Loaded before libfaketime, which moves the absolute times of all timers by the clock's error, also those of the
// monotonic clock, which it leaves alone otherwise. On a node with a slow clock no timer would ever end, and with a
// fast one each would end at once. The nodes use timers of the monotonic clock only.

#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

int timerfd_settime(int timer, int flags, const struct itimerspec *new, struct itimerspec *old) {
  return (int)syscall(SYS_timerfd_settime, timer, flags, new, old);
}
