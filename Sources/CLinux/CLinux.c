#include <malloc.h>
#include "CLinux.h"

#include <signal.h>
#include <sys/resource.h>

extern char **environ;

char **stillwave_environment(void) { return environ; }

void stillwave_start_afresh(posix_spawnattr_t *attributes, short flags) {
  sigset_t all, none;
  sigfillset(&all);
  sigemptyset(&none);
  posix_spawnattr_setsigdefault(attributes, &all);
  posix_spawnattr_setsigmask(attributes, &none);
  posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | flags);
}

int stillwave_lower_priority(pid_t process, int niceness) {
  return setpriority(PRIO_PROCESS, (id_t)process, niceness);
}

void stillwave_trim_memory(void) { malloc_trim(0); }
