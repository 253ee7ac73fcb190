#ifdef __x86_64__
#include "CVoice.h"

#include <string.h>

#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#define NETWORKS voice_avx2
#define WIDTH 16
#define ROWS 4
#include "networks.h"
#pragma clang attribute pop
#endif
