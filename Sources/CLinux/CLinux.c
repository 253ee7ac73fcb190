#include "CLinux.h"

#include <sys/resource.h>

extern char **environ;

char **stillwave_environment(void) { return environ; }

int stillwave_lower_priority(pid_t process, int niceness) {
  return setpriority(PRIO_PROCESS, (id_t)process, niceness);
}
