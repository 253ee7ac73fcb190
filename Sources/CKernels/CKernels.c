#include "CKernels.h"

#include <stddef.h>

extern const struct kernels kernels_baseline, kernels_avx2, kernels_avx512;

const struct kernels *kernels_of_set(int index) {
  if (index == 0) return &kernels_baseline;
#ifdef __x86_64__
  if (index == 1 && __builtin_cpu_supports("avx2")) return &kernels_avx2;
  if (index == 2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")) {
    return &kernels_avx512;
  }
#endif
  return NULL;
}

const struct kernels *kernels_best(void) {
  const struct kernels *best = &kernels_baseline;
  for (int index = 1; kernels_of_set(index) != NULL; index++) best = kernels_of_set(index);
  return best;
}
