// The loops over samples and bins. They are included once per instruction set, for which the compiler vectorizes them.
// KERNELS is the name of the set's table.

// Not fused; see CKernels.h.
#pragma STDC FP_CONTRACT OFF

#define EACH(index) for (long index = 0; index < count; index++)

static inline float larger(float a, float b) { return a > b ? a : b; }
static inline float smaller(float a, float b) { return a < b ? a : b; }

static inline uint32_t bits_of(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline float float_of(uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

/// log2 x for positive, normal x, within 3e−6.
static inline float log2_of(float x) {
  const uint32_t bits = bits_of(x);
  const float exponent = (float)((int32_t)(bits >> 23) - 127);
  const float t = float_of((bits & 0x007fffff) | 0x3f800000) - 1;
  // log2 (1 + t) = t + t (1 − t) p(t), with p fitted for the smallest error over 0 ≤ t < 1. This has no step between
  // octaves.
  const float low = 0.44254423f - t * 0.27559309f;
  const float high = 0.18192509f - t * (0.09592505f - t * 0.02582701f);
  return exponent + (t + t * (1 - t) * (low + t * t * high));
}

/// 2^x for x from −100 to 100, with a relative error within 4e−6.
static inline float exp2_of(float x) {
  // Adding 1.5 · 2^23 rounds to an integer, which is then in the lowest bits.
  const float shifted = x + 12582912;
  const float t = x - (shifted - 12582912);
  // Fitted for the smallest relative error over −½ ≤ t ≤ ½.
  const float power = 1 + t * (0.69312441f + t * (0.24024153f + t * (0.05590581f + t * 0.00958083f)));
  return float_of(bits_of(power) + (bits_of(shifted) << 23));
}

// The log-spectral amplitude gain: Ephraim & Malah, "Speech enhancement using a minimum mean-square error
// log-spectral amplitude estimator", IEEE Trans. ASSP 33 (1985), equation 20:
//
//   r = ξ / (1 + ξ)        v = r γ        G = r exp(½ E1(v))        E1(v) = ∫ v…∞ e^−t / t dt
//
// with ξ the a-priori and γ the a-posteriori SNR of the bin. The form used here can't overflow and needs no
// exponential. Let
//
//   g(v) = v exp(E1(v))
//
// It is smooth: e^−0.5772 = 0.5615 at 0, and approaches v for large v (where the gain is Wiener's). Then
//
//   G² γ = r g(v)          the power of the cleaned bin in units of the noise, which the recursion needs
//   G    = √(r g(v) / γ)   limited to 1: below the noise the formula asks for more
//
// g(v) − v falls from 0.5615 to 0 and is approximated by a power of a reciprocal polynomial,
//
//   g(v) ≈ v + (c / (1 + q₁ v + q₂ v² + q₃ v³ + q₄ v⁴))⁴
//
// fitted for the smallest relative error of g over 0 ≤ v < ∞ (Lawson's iteration on 7,000 points): 5.2e−6, so 2.6e−6 of
// the gain, or 0.00003 dB; single precision adds 1e−6. Unlike a table it needs no lookups, so the loop vectorizes.

/// g(v), for v from 0 to 1e6, with a relative error within 8e−6, including rounding.
static inline float scaled_exponential(float v) {
  const float low = 1 + v * 0.1952239f;
  const float high = 0.033020928f + v * (0.0014962518f + v * 0.00024486696f);
  const float root = 0.86562352f / (low + v * v * high);
  const float square = root * root;
  return v + square * square;
}

// Two real frames a and b go through one complex transform, as z = a + i b. With Z its transform and
// Z' = conj Z[N − k], and gains g and h,
//
//   A = ½ (Z + Z')        B = −i/2 (Z − Z')        g A + i h B = ½ (g + h) Z + ½ (g − h) Z'

static unsigned window_pair(
  float *restrict z, const float *a, const float *b, const float *restrict window, long count
) {
  uint32_t any_a = 0, any_b = 0;
  EACH(n) {
    const float x = a[n] * window[n], y = b[n] * window[n];
    z[2 * n] = x;
    z[2 * n + 1] = y;
    // Without the sign, because −0 is silence too.
    any_a |= bits_of(x) << 1;
    any_b |= bits_of(y) << 1;
  }
  return (any_a != 0 ? 1 : 0) + (any_b != 0 ? 2 : 0);
}

static void pair_power(
  float *restrict a, float *restrict b, const float *restrict z, long bins, bool is_adding
) {
  const float *mirrored = z + 2 * (2 * bins - 2);
  const float p = 4 * (z[0] * z[0]), q = 4 * (z[1] * z[1]);
  a[0] = is_adding ? a[0] + p : p;
  b[0] = is_adding ? b[0] + q : q;
#define POWERS(k) \
  const float re = z[2 * (k)], im = z[2 * (k) + 1], mre = mirrored[-2 * (k)], mim = mirrored[-2 * (k) + 1]; \
  const float p = (re + mre) * (re + mre) + (im - mim) * (im - mim); \
  const float q = (im + mim) * (im + mim) + (re - mre) * (re - mre);
  if (is_adding) {
    for (long k = 1; k < bins; k++) {
      POWERS(k)
      a[k] += p;
      b[k] += q;
    }
  } else {
    for (long k = 1; k < bins; k++) {
      POWERS(k)
      a[k] = p;
      b[k] = q;
    }
  }
#undef POWERS
}

static void pair_gains(
  float *restrict out, const float *restrict z, const float *restrict a, const float *restrict b, long bins
) {
  const long end = 2 * (2 * bins - 2), half = bins - 1;
  out[0] = a[0] * z[0];
  out[1] = b[0] * z[1];
#pragma clang loop vectorize(assume_safety)
  for (long k = 1; k < half; k++) {
    const float s = 0.5f * (a[k] + b[k]), d = 0.5f * (a[k] - b[k]);
    const float re = z[2 * k], im = z[2 * k + 1], mre = z[end - 2 * k], mim = z[end - 2 * k + 1];
    out[2 * k] = s * re + d * mre;
    out[2 * k + 1] = s * im - d * mim;
    out[end - 2 * k] = s * mre + d * re;
    out[end - 2 * k + 1] = s * mim - d * im;
  }
  out[2 * half] = a[half] * z[2 * half];
  out[2 * half + 1] = b[half] * z[2 * half + 1];
}

static void add_windowed(float *restrict sum, const float *restrict z, const float *restrict window, long count) {
  EACH(n) sum[n] += z[2 * n] * window[n];
}

/// Completes `bins` complex numbers to 2 `bins` − 2.
static inline void mirror(float *z, long bins) {
  typedef uint64_t complex __attribute__((may_alias, aligned(4)));
  complex *all = (complex *)z, *end = all + 2 * bins - 2;
#pragma clang loop vectorize(assume_safety)
  for (long k = 1; k < bins - 1; k++) end[-k] = all[k];
}

static void pair_logs(
  float *restrict z, const float *restrict a, const float *restrict b, float least, long bins
) {
  for (long k = 0; k < bins; k++) {
    z[2 * k] = log2_of(larger(a[k] - 1, least));
    z[2 * k + 1] = log2_of(larger(b[k] - 1, least));
  }
  mirror(z, bins);
}

static void pair_rows(float *restrict z, const float *a, const float *b, long bins) {
  for (long k = 0; k < bins; k++) {
    z[2 * k] = a[k];
    z[2 * k + 1] = b[k];
  }
  mirror(z, bins);
}

static void split_pair(
  float *restrict a, float *restrict b, const float *restrict z, float scale, float offset, long bins
) {
  for (long k = 0; k < bins; k++) {
    a[k] = scale * z[2 * k] - offset;
    b[k] = scale * z[2 * k + 1] - offset;
  }
}

static void add(float *restrict sum, const float *restrict a, long count) { EACH(i) sum[i] += a[i]; }

static void posterior(
  float *restrict power, const float *restrict inverse, const float *restrict bias, float largest, long count
) {
  EACH(k) power[k] = smaller(largest, power[k] * inverse[k] + bias[k]);
}

static void follow_noise(
  float *next, const float *level, float *restrict presence, const float *restrict a, const float *restrict b,
  const float *restrict novelty, struct tracking_rule rule, long count
) {
#pragma clang loop vectorize(assume_safety)
  EACH(k) {
    const float power = 0.5f * (a[k] + b[k]), old = level[k];
    const float likely = 1 / (1 + rule.odds * exp2_of(larger(-60, rule.slope * power / old)));
    const float mean = likely + rule.memory * (presence[k] - likely);
    const float speech = mean > 0.99f ? smaller(0.99f, likely) : likely;
    presence[k] = mean;
    const float moved = larger(rule.least, old + novelty[k] * (1 - speech) * (power - old));
    next[k] = power < rule.silence ? old : moved;
  }
}

static void mean_octaves(float *restrict forward, const float *restrict backward, long count) {
  EACH(k) {
    const float a = forward[k], b = backward[k];
    forward[k] = 0.5f * log2_of(larger(a * b, 0.25f * larger(a * a, b * b)));
  }
}

static void rescale(
  float *restrict out, const float *restrict posterior, const float *restrict octaves, float largest, long count
) {
  EACH(k) out[k] = smaller(largest, posterior[k] * exp2_of(smaller(60, larger(-60, -octaves[k]))));
}

static void spread_bands(
  float *restrict out, const float *restrict shares, const float *restrict values, const int32_t *restrict ends,
  long bands
) {
  long k = 0;
  for (long band = 0; band < bands; band++) {
    const float low = values[band], step = band + 1 < bands ? values[band + 1] - low : 0;
    for (; k < ends[band]; k++) out[k] = low + shares[k] * step;
  }
}

static float maximum(const float *values, long count) {
  enum { width = 32 };
  float most[width];
  for (int lane = 0; lane < width; lane++) most[lane] = -__builtin_inff();
  long start = 0;
  for (; start + width <= count; start += width) {
    for (int lane = 0; lane < width; lane++) most[lane] = larger(values[start + lane], most[lane]);
  }
  for (; start < count; start++) most[0] = larger(values[start], most[0]);
  for (int lane = 1; lane < width; lane++) most[0] = larger(most[lane], most[0]);
  return most[0];
}

static float largest_step(const float *values, long count) {
  enum { width = 32 };
  float most[width] = {0};
  long start = 0;
  for (; start + width <= count; start += width) {
    for (int lane = 0; lane < width; lane++) {
      most[lane] = larger(__builtin_fabsf(values[start + lane + 1] - values[start + lane]), most[lane]);
    }
  }
  for (; start < count; start++) most[0] = larger(__builtin_fabsf(values[start + 1] - values[start]), most[0]);
  for (int lane = 1; lane < width; lane++) most[0] = larger(most[lane], most[0]);
  return most[0];
}

static void follow(
  float *out, const float *old, const float *restrict new_values, const float *restrict memory, long count
) {
#pragma clang loop vectorize(assume_safety)
  EACH(q) out[q] = new_values[q] + memory[q] * (old[q] - new_values[q]);
}

static void follow_evenly(
  float *out, const float *old, const float *restrict new_values, float memory, long count
) {
#pragma clang loop vectorize(assume_safety)
  EACH(q) out[q] = new_values[q] + memory * (old[q] - new_values[q]);
}

static void advance_prior(
  float *out, const float *old, const float *restrict left, const float *restrict posterior, struct prior_rule rule,
  long count
) {
#pragma clang loop vectorize(assume_safety)
  EACH(k) {
    const float prior = old[k], ratio = prior / (1 + prior);
    const float cleaned = smaller(left[k], ratio * scaled_exponential(ratio * left[k]));
    out[k] = larger(rule.least, rule.memory * cleaned + rule.novelty * larger(0, posterior[k] - 1));
  }
}

/// ξ from ξf, ξb, and log2 ξc.
static inline float joined(float forward, float backward, float cepstral, float share, float least) {
  const float directed = 0.5f * log2_of(forward * backward);
  const float joined = directed + share * (cepstral - directed);
  // Smoothing may overshoot, but never nearly this far.
  return larger(exp2_of(smaller(60, larger(joined, -60))), least);
}

static void amplitude_gain(
  float *restrict gain, const float *restrict backward, const float *restrict cepstral,
  const float *restrict posterior, const float *restrict floor, float share, float least, long count
) {
  EACH(k) {
    const float prior = joined(gain[k], backward[k], cepstral[k], share, least);
    // One division for both ξ / (1 + ξ) and 1 / γ.
    const float limited = larger(posterior[k], 1e-8f), sum = 1 + prior;
    const float inverse = 1 / (sum * limited), ratio = prior * limited * inverse;
    const float squared = ratio * scaled_exponential(ratio * posterior[k]) * (sum * inverse);
    gain[k] = larger(floor[k], __builtin_elementwise_sqrt(smaller(1, squared)));
  }
}

// The Wiener gain on the a-priori SNR of PriorSNR.swift:
//
//   G = ξ / (1 + ξ)
//
// Source: Scalart & Filho, "Speech enhancement based on a priori signal to noise estimation", ICASSP 1996. It differs
// from the log-spectral amplitude in that a bin's own power counts only through ξ: less musical noise, but weak speech
// is suppressed slightly more.
static void wiener_gain(
  float *restrict gain, const float *restrict backward, const float *restrict cepstral,
  const float *restrict, const float *restrict floor, float share, float least, long count
) {
  EACH(k) {
    const float prior = joined(gain[k], backward[k], cepstral[k], share, least);
    gain[k] = larger(floor[k], prior / (1 + prior));
  }
}

static void band_sums(float *restrict sums, const float *restrict a, const float *restrict b, long count) {
  enum { before = 16, after = 15 };
  for (long k = 0; k < before; k++) sums[k] = a[0] + b[0];
  EACH(k) sums[before + k] = a[k] + b[k];
  for (long k = 0; k < after; k++) sums[before + count + k] = a[count - 1] + b[count - 1];
  // Each loop reads only values that it hasn't changed.
  const long all = before + count + after;
  for (long k = 0; k < all - 3; k++) sums[k] = (sums[k] + sums[k + 1]) + (sums[k + 2] + sums[k + 3]);
  for (long k = 0; k < all - 15; k++) sums[k] = (sums[k] + sums[k + 4]) + (sums[k + 8] + sums[k + 12]);
}

static void draw_to_floor(
  float *restrict gain, const float *restrict floor, const float *restrict sums, struct gate_rule rule, long count
) {
  EACH(k) {
    const float band = sums[k] + sums[k + 16];
    const float speech = smaller(1, larger(0, rule.slope * (band - rule.least)));
    gain[k] = floor[k] + (1 - rule.share * (1 - speech)) * (gain[k] - floor[k]);
  }
}

static inline float limited(float sample, float limit) {
  // Unlike `isfinite`, a comparison lets the loop vectorize.
  return __builtin_fabsf(sample) <= __FLT_MAX__ ? smaller(limit, larger(-limit, sample)) : 0;
}

static void deinterleave(float *restrict out, const float *restrict all, long channels, float limit, long count) {
  // A constant distance lets the loop vectorize.
  if (channels == 1) {
    EACH(i) out[i] = limited(all[i], limit);
  } else if (channels == 2) {
    EACH(i) out[i] = limited(all[2 * i], limit);
  } else {
    EACH(i) out[i] = limited(all[i * channels], limit);
  }
}

static void interleave(float *restrict all, const float *restrict lanes, long distance, long channels, long count) {
  if (channels == 2) {
    EACH(i) {
      all[2 * i] = lanes[i];
      all[2 * i + 1] = lanes[distance + i];
    }
    return;
  }
  for (long channel = 0; channel < channels; channel++) {
    EACH(i) all[i * channels + channel] = lanes[channel * distance + i];
  }
}

/// A value in −65 536 … 65 534, the sum of two uniform numbers, from the finalizer of MurmurHash3.
static inline float triangle(uint32_t number) {
  uint32_t hash = number + 0x7f4a7c15;
  hash = (hash ^ hash >> 16) * 0x85ebca6b;
  hash = (hash ^ hash >> 13) * 0xc2b2ae35;
  hash ^= hash >> 16;
  return (float)((int32_t)(hash & 0xffff) + (int32_t)(hash >> 16) - 65536);
}

static long requantise(
  float *restrict out, const float *restrict cleaned, const float *restrict original, uint32_t number, float scale,
  float dither, long count
) {
  const float inverse = 1 / scale;
  uint32_t clipped = 0;
  EACH(i) {
    const float exact = cleaned[i] * scale, size = __builtin_fabsf(exact);
    clipped += size > scale ? 1 : 0;
    const float noise = dither * triangle(number + (uint32_t)i);
    const bool is_silent = (original[i] == 0) & (size < 0.5f);
    const float wanted = larger(-scale, smaller(scale, exact + (is_silent ? 0 : noise)));
    // The nearest whole number, ties to even: adding 2^23 leaves no bits for a fraction.
    const float magnitude = (__builtin_fabsf(wanted) + 8388608) - 8388608;
    const float rounded = float_of(bits_of(magnitude) | (bits_of(wanted) & 0x80000000));
    out[i] = smaller(scale - 1, rounded) * inverse;
  }
  return clipped;
}

const struct kernels KERNELS = {
  .window_pair = window_pair,
  .pair_power = pair_power,
  .pair_gains = pair_gains,
  .add_windowed = add_windowed,
  .pair_logs = pair_logs,
  .pair_rows = pair_rows,
  .split_pair = split_pair,
  .posterior = posterior,
  .add = add,
  .follow_noise = follow_noise,
  .mean_octaves = mean_octaves,
  .rescale = rescale,
  .spread_bands = spread_bands,
  .maximum = maximum,
  .largest_step = largest_step,
  .follow = follow,
  .follow_evenly = follow_evenly,
  .advance_prior = advance_prior,
  .amplitude_gain = amplitude_gain,
  .wiener_gain = wiener_gain,
  .band_sums = band_sums,
  .draw_to_floor = draw_to_floor,
  .deinterleave = deinterleave,
  .interleave = interleave,
  .requantise = requantise,
};
