// The inner loops of noise removal, compiled for several instruction sets.
//
// All sets give the same bits: each number goes through the same additions, multiplications, divisions, and square
// roots in the same order, which IEEE 754 rounds exactly. Nothing is fused (FMA), because that rounds once instead of
// twice and baseline x86-64 can't, and no sum runs across the lanes of a vector.
//
// Tests/DenoiseTests/PlainLoops.swift defines the results, number by number.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

/// Parameters of the recursion of the a-priori SNR; see PriorSNR.swift.
struct prior_rule {
  float least, memory, novelty;
};

/// Parameters of the search for noise; see NoiseTracker.swift.
struct tracking_rule {
  /// 1 + x
  float odds;
  /// −x / (1 + x), for powers of 2
  float slope;
  /// The memory of p̄.
  float memory;
  /// The least level, and the power below which a bin counts as digital silence.
  float least, silence;
};

/// Parameters of what is drawn to the floor in hiss; see HissGate.swift.
struct gate_rule {
  /// The sum over a band up to which nothing is speech, and the reciprocal of how much more is.
  float least, slope;
  /// How much of the noise is hiss.
  float share;
};

/// The loops for one instruction set. The pointers are to separate memory unless stated otherwise.
struct kernels {
  // Two real frames a and b of N samples as one complex sequence z = a + i b: 2 N numbers, real and imaginary parts in
  // turn, the format of FFTW. `bins` is N / 2 + 1. The equations are in loops.h.

  /// z = (a + i b) w, for N = `count`. Returns 1 if a w isn't all zeros, plus 2 if b w isn't. `a` and `b` may overlap.
  unsigned (*window_pair)(float *z, const float *a, const float *b, const float *window, long count);
  /// From the transform of z, 4 |A|² and 4 |B|², or adds them.
  void (*pair_power)(float *a, float *b, const float *z, long bins, bool is_adding);
  /// From the transform of z and the gains of a and b, the transform of the two frames with the gains applied.
  void (*pair_gains)(float *out, const float *z, const float *a, const float *b, long bins);
  /// sum[n] += z[2n] w[n]. For the imaginary parts, pass z + 1.
  void (*add_windowed)(float *sum, const float *z, const float *window, long count);

  // Two rows of bins, each symmetric: value N − k is value k. Their transforms are real, so that of the first is the
  // real part and that of the second the imaginary part.

  /// z = log2 max(a − 1, least) + i log2 max(b − 1, least)
  void (*pair_logs)(float *z, const float *a, const float *b, float least, long bins);
  /// z = a + i b; `a` may be `b`.
  void (*pair_rows)(float *z, const float *a, const float *b, long bins);
  /// a = scale · Re z − offset, b = scale · Im z − offset
  void (*split_pair)(float *a, float *b, const float *z, float scale, float offset, long bins);

  // One row.

  /// γ = min(power · inverse + bias, largest), in place.
  void (*posterior)(float *power, const float *inverse, const float *bias, float largest, long count);
  /// sum += a
  void (*add)(float *sum, const float *a, long count);
  /// One step of the noise's level and of p̄, from γ of two frames (a and b); see NoiseTracker.swift. `novelty` is how
  /// much a bin without speech changes its level. `next` may be `level`.
  void (*follow_noise)(
    float *next, const float *level, float *presence, const float *a, const float *b, const float *novelty,
    struct tracking_rule rule, long count);
  /// forward = ½ log2 (forward · backward), but at least an octave below the larger of the two
  void (*mean_octaves)(float *forward, const float *backward, long count);
  /// out = min(posterior · 2^−octaves, largest)
  void (*rescale)(float *out, const float *posterior, const float *octaves, float largest, long count);
  /// A value for each bin, from those of bands: from the end of the band before to `ends[band]`, `shares` of the way
  /// from the band's value to the next one's. `ends` ascends to the number of bins.
  void (*spread_bands)(
    float *out, const float *shares, const float *values, const int32_t *ends, long bands);
  /// Returns the largest of finite values; −∞ if there are none.
  float (*maximum)(const float *values, long count);
  /// Returns the largest |values[n + 1] − values[n]| of `count` differences of finite values; 0 if there are none.
  float (*largest_step)(const float *values, long count);
  /// out = new + memory (old − new); `out` may be `old`.
  void (*follow)(float *out, const float *old, const float *new_values, const float *memory, long count);
  /// out = new + memory (old − new), with one value of memory; `out` may be `old`.
  void (*follow_evenly)(float *out, const float *old, const float *new_values, float memory, long count);
  /// ξ of a frame from ξ and γ of its neighbor (`left`) and its own γ; `out` may be `old`.
  void (*advance_prior)(
    float *out, const float *old, const float *left, const float *posterior, struct prior_rule rule, long count);
  /// G from ξf (in `gain`, replaced), ξb, log2 ξc, and γ by the log-spectral amplitude or by Wiener's rule.
  void (*amplitude_gain)(
    float *gain, const float *backward, const float *cepstral, const float *posterior, const float *floor,
    float share, float least, long count);
  void (*wiener_gain)(
    float *gain, const float *backward, const float *cepstral, const float *posterior, const float *floor,
    float share, float least, long count);
  /// With s = a + b, repeated beyond its ends, sums[k] = s[k − 16] + … + s[k − 1], in pairs of pairs. `sums` has
  /// `count` + 31 values.
  void (*band_sums)(float *sums, const float *a, const float *b, long count);
  /// Draws G to the floor where there is no speech in the band around it; see HissGate.swift. `sums` are from
  /// `band_sums`, and a band is sums[k] + sums[k + 16].
  void (*draw_to_floor)(
    float *gain, const float *floor, const float *sums, struct gate_rule rule, long count);

  // Samples.

  /// One channel of interleaved sound, which begins at `all`. Values beyond ±limit are clamped, and those that aren't
  /// finite become 0.
  void (*deinterleave)(float *out, const float *all, long channels, float limit, long count);
  /// The reverse for all channels, `distance` apart, without a limit.
  void (*interleave)(float *all, const float *lanes, long distance, long channels, long count);
  /// Requantizes samples; see Requantiser.swift. Returns the number beyond full scale.
  long (*requantise)(
    float *out, const float *cleaned, const float *original, uint32_t number, float scale, float dither, long count);
};

/// Returns the loops for this processor's widest known vectors.
const struct kernels *kernels_best(void);
/// Returns the loops of an instruction set, narrowest first, or null if there are no more that this processor has.
const struct kernels *_Nullable kernels_of_set(int index);

#pragma clang assume_nonnull end
