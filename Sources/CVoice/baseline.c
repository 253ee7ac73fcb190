// What every processor has: SSE2 on x86-64, NEON on arm64.
#define NETWORKS voice_baseline
#define WIDTH 8
#define ROWS 4
#include "networks.h"
