#include "CPeaks.h"

#include <stddef.h>
#include <string.h>

#pragma STDC FP_CONTRACT OFF

// What every processor has: SSE2 on x86-64, NEON on arm64.
#define NAME(name) name##_baseline
#define SET "baseline"
#define LANES 8
#define EVEN 0, 2, 4, 6
#define ODD 1, 3, 5, 7
#define LEFT 0, 2, 4, 6, 8, 10, 12, 14
#define RIGHT 1, 3, 5, 7, 9, 11, 13, 15
#include "loops.h"

#ifdef __x86_64__
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#define NAME(name) name##_avx2
#define SET "AVX2"
#define LANES 16
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14
#define ODD 1, 3, 5, 7, 9, 11, 13, 15
// Within the halves of a vector, which AVX2's shuffles don't cross.
#define LEFT 0, 2, 4, 6, 16, 18, 20, 22, 8, 10, 12, 14, 24, 26, 28, 30
#define RIGHT 1, 3, 5, 7, 17, 19, 21, 23, 9, 11, 13, 15, 25, 27, 29, 31
#include "loops.h"
#pragma clang attribute pop
#endif

const struct peak_loops *peak_loops_of_set(int index) {
  if (index == 0) return &peak_loops_baseline;
#ifdef __x86_64__
  if (index == 1 && __builtin_cpu_supports("avx2")) return &peak_loops_avx2;
#endif
  return NULL;
}

const struct peak_loops *peak_loops_best(void) {
  const struct peak_loops *best = &peak_loops_baseline;
  for (int index = 1; peak_loops_of_set(index) != NULL; index++) best = peak_loops_of_set(index);
  return best;
}
