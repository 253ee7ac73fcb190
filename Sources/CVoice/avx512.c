#ifdef __x86_64__
#include "CVoice.h"

#include <string.h>

#pragma clang attribute push( \
  __attribute__((target("avx2,avx512f,avx512vl,avx512dq,avx512bw"))), apply_to = function)
#define NETWORKS voice_avx512
#define WIDTH 32
#define ROWS 4
#include "networks.h"
#pragma clang attribute pop
#endif
