#ifdef __x86_64__
#include "CKernels.h"

#pragma clang attribute push( \
  __attribute__((target("avx2,avx512f,avx512vl,avx512dq,avx512bw"))), apply_to = function)
#define KERNELS kernels_avx512
#include "loops.h"
#pragma clang attribute pop
#endif
