#include "CVersion.h"

const char *stillwave_commit(void) { return STILLWAVE_COMMIT; }
