// The loops over 16-bit samples that building a waveform consists of, compiled for several instruction sets.
//
// All of them give the same bits on every machine. Those of a point work on integers, so order doesn't matter. That of
// a frame's power adds floats in a fixed order, 16 sums side by side, and nothing is fused (FMA).
//
// The plain versions are PeakKernel.addFrames and PeakKernel.downmix (Waveform) and SparseFrames' (Denoise).
#pragma once

#include <stdint.h>

#pragma clang assume_nonnull begin

/// The exact sums of 256 samples.
struct peak_sums {
  int16_t low, high;
  int64_t squares, absolutes;
};

/// The loops for one instruction set.
struct peak_loops {
  const char *name;

  /// Sums up 256 samples.
  void (*mono_point)(struct peak_sums *sums, const int16_t *samples);
  /// Sums up the mix, the left and the right channel of 256 interleaved frames: three sums. The mix is (l + r) / 2,
  /// truncated toward zero.
  void (*stereo_point)(struct peak_sums *sums, const int16_t *samples);

  /// sums[i] = Σ x² over samples i, i + 16, i + 32 … of `count`, a multiple of 16, each square and sum rounded.
  void (*square_sums)(float *sums, const int16_t *samples, long count);
  /// mix[i] = Σ 5 x[j] + 3 x[j + 1] over the pairs of group i, of `width` samples each: 2, 4, 8 or 16.
  void (*mix_pairs)(float *mix, const int16_t *samples, long width, long count);
};

/// Returns the loops for this processor's widest known vectors.
const struct peak_loops *peak_loops_best(void);
/// Returns the loops of an instruction set, narrowest first, or null if there are no more that this processor has.
const struct peak_loops *_Nullable peak_loops_of_set(int index);

#pragma clang assume_nonnull end
