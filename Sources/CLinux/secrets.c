#define _GNU_SOURCE
#include "CLinux.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

void stillwave_close_to_others(void) { prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

void stillwave_erase_variable(const char *name) {
  size_t length = strlen(name);
  // `unsetenv` takes the pointers away and leaves the text. A name may be there more than once.
  for (char **entry = environ; entry != NULL && *entry != NULL; entry++)
    if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
      explicit_bzero(*entry + length + 1, strlen(*entry + length + 1));
  unsetenv(name);
}
