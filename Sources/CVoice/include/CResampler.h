// One function of libsoxr, which is loaded when it is first needed: see CCurl.c for why. It needs no headers of
// libsoxr.
#pragma once

#include <stdbool.h>

#pragma clang assume_nonnull begin

/// Loads libsoxr, unless it is loaded. Returns whether it is there. A fenced process can't load it any more.
bool resampler_load(void);
/// Resamples a sound as a whole: `in` to exactly `out_count` samples, with zeros at the end if it is shorter. The first
/// samples of both are at the same time. Returns false if libsoxr isn't there or has no memory.
bool resampler_run(
  const float *in, long in_count, double in_rate, float *out, long out_count, double out_rate);

#pragma clang assume_nonnull end
