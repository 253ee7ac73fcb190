#ifdef __x86_64__
#include "CKernels.h"

#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#define KERNELS kernels_avx2
#include "loops.h"
#pragma clang attribute pop
#endif
