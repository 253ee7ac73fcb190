// What every processor has: SSE2 on x86-64, NEON on arm64.
#include "CKernels.h"

#define KERNELS kernels_baseline
#include "loops.h"
