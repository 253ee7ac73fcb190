#include "CVoice.h"

#include <stddef.h>

extern voice_networks voice_baseline, voice_avx2, voice_avx512;

voice_networks *voice_of_set(int index) {
  if (index == 0) return voice_baseline;
#ifdef __x86_64__
  if (index == 1 && __builtin_cpu_supports("avx2")) return voice_avx2;
  if (index == 2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")) {
    return voice_avx512;
  }
#endif
  return NULL;
}

voice_networks *voice_best(void) {
  voice_networks *best = voice_baseline;
  for (int index = 1; voice_of_set(index) != NULL; index++) best = voice_of_set(index);
  return best;
}

void voice_expand(float *out, const uint8_t *halves, long count) {
  for (long i = 0; i < count; i++) {
    const uint32_t half = (uint32_t)halves[2 * i] | (uint32_t)halves[2 * i + 1] << 8;
    // The exponent moves to its place, and is corrected by a product that is exact also for denormal numbers.
    const uint32_t bits = (half & 0x7fff) << 13;
    float size;
    __builtin_memcpy(&size, &bits, sizeof size);
    size *= 0x1p112f;
    out[i] = half & 0x8000 ? -size : size;
  }
}
