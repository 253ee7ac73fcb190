// DeepFilterNet3's networks (Schröter, Maier, Escalante-B. & Rosenkranz, "DeepFilterNet: Perceptually motivated
// real-time speech enhancement", Interspeech 2023). Included once per instruction set; NETWORKS is the set's function,
// WIDTH the number of lanes of its vectors, and ROWS how many rows a product works on at a time.
//
// An encoder makes an embedding of 512 numbers from the bands' levels and from the lower bins. One decoder makes the
// gains of the bands from it, another one the filter of the lower bins. The convolutions over time are causal. Maps are
// stored as [frequency][64 channels], matrices as [in][out], and batch normalization is part of the weights.
//
// The weights, in this order:
//
//   encoder         levels: 3 frames × 3 bands × 64, bias 64; three times depthwise 3 × 64, 64 × 64, bias 64
//                   bins: 3 frames × 3 bins × 64, 64 × 64, bias 64; depthwise 3 × 64, 64 × 64, bias 64
//                   32 groups 96 × 16; 16 groups 32 × 16; GRU; 16 groups 16 × 32
//   gains           16 groups 32 × 16; two GRUs; 16 groups 16 × 32
//                   three times: scale 64, bias 64, depthwise 3 × 64, 64 × 64, bias 64;
//                   scale 64, bias 64; 3 × 64; bias 1
//   filter          8 groups 64 × 32; two GRUs; 16 groups 32 × 16; 16 groups 16 × 60
//                   2 groups × 5 frames × 32 × 5 (8 with zeros), 16 × 12 (10 × 10 with zeros), bias 10
//
// GRU: 256 × 768 for the input, 256 × 768 for the state, and a bias of 768 for each; of 768, the update gate's are
// first, then those of the reset gate and of the candidate.

#include "CVoice.h"

#include <string.h>

// Not fused; see CVoice.h.
#pragma STDC FP_CONTRACT OFF

enum { channels = 64, units = 256 };

typedef float lanes __attribute__((ext_vector_type(WIDTH)));
typedef float four __attribute__((ext_vector_type(4)));

#define LOAD(type, place) ({ type loaded; __builtin_memcpy(&loaded, place, sizeof loaded); loaded; })
#define STORE(place, value) ({ __auto_type stored = (value); __builtin_memcpy(place, &stored, sizeof stored); })

/// A matrix: the numbers from one row to the next.
struct rows {
  float *first;
  long distance;
};

/// y[r][j] += Σ x[r][i] w[i][j] in the order of i, for ROWS rows or one, and as many columns as `type` has lanes.
#define PRODUCT(type, count) \
  type sums[count]; \
  for (int r = 0; r < count; r++) sums[r] = LOAD(type, y.first + (row + r) * y.distance + j); \
  for (long i = 0; i < n; i++) { \
    const type weight = LOAD(type, w + i * distance + j); \
    for (int r = 0; r < count; r++) sums[r] += weight * x.first[(row + r) * x.distance + i]; \
  } \
  for (int r = 0; r < count; r++) STORE(y.first + (row + r) * y.distance + j, sums[r]);

/// y += x w, with `m` columns, which is a multiple of 4, and `n` rows of w that are `distance` apart.
static void multiply_apart(struct rows y, struct rows x, const float *w, long distance, long rows, long n, long m) {
  for (long j = 0; j < m;) {
    const bool is_wide = j + WIDTH <= m;
    long row = 0;
    for (; row + ROWS <= rows; row += ROWS) {
      if (is_wide) { PRODUCT(lanes, ROWS) } else { PRODUCT(four, ROWS) }
    }
    for (; row < rows; row++) {
      if (is_wide) { PRODUCT(lanes, 1) } else { PRODUCT(four, 1) }
    }
    j += is_wide ? WIDTH : 4;
  }
}

static void multiply(struct rows y, struct rows x, const float *w, long rows, long n, long m) {
  multiply_apart(y, x, w, m, rows, n, m);
}

/// 2^x with a relative error within 3e−7, for x from −100 to 100.
static inline float exp2_of(float x) {
  // Adding 1.5 · 2^23 rounds to an integer, which is then in the lowest bits.
  const float shifted = x + 12582912, t = x - (shifted - 12582912);
  // Taylor's series, for −½ ≤ t ≤ ½.
  const float high = 0.00961812911f + t * (0.00133335581f + t * 0.000154035304f);
  const float power = 1 + t * (0.693147181f + t * (0.240226507f + t * (0.0555041087f + t * high)));
  uint32_t bits, exponent;
  __builtin_memcpy(&bits, &power, sizeof bits);
  __builtin_memcpy(&exponent, &shifted, sizeof exponent);
  bits += exponent << 23;
  float result;
  __builtin_memcpy(&result, &bits, sizeof result);
  return result;
}

static inline float limited(float x, float limit) { return x < -limit ? -limit : x > limit ? limit : x; }
static inline float sigmoid(float x) { return 1 / (1 + exp2_of(limited(-1.44269504f * x, 60))); }
static inline float tanh_of(float x) { return 1 - 2 / (1 + exp2_of(limited(2.88539008f * x, 60))); }
static inline float positive(float x) { return x > 0 ? x : 0; }

static void rectify(float *x, long count) {
  for (long i = 0; i < count; i++) x[i] = positive(x[i]);
}

/// The networks' next weights.
static const float *take(const float **weights, long count) {
  const float *taken = *weights;
  *weights += count;
  return taken;
}

/// Over frequency, 3 bins per channel, with every `step`-th result.
static void depthwise(float *restrict y, const float *restrict x, const float **weights, int width, int step) {
  const float *restrict w = take(weights, 3 * channels);
  for (int f = 0; f < width / step; f++) {
    for (int c = 0; c < channels; c++) {
      float sum = 0;
      for (int k = 0; k < 3; k++) {
        const int i = f * step + k - 1;
        if (i >= 0 && i < width) sum += x[i * channels + c] * w[k * channels + c];
      }
      y[f * channels + c] = sum;
    }
  }
}

/// The transposed convolution: twice as many results.
static void spread(float *restrict y, const float *restrict x, const float **weights, int width) {
  const float *restrict w = take(weights, 3 * channels);
  for (int f = 0; f < width; f++) {
    for (int c = 0; c < channels; c++) {
      const float here = x[f * channels + c], next = f + 1 < width ? x[(f + 1) * channels + c] : 0;
      y[2 * f * channels + c] = here * w[channels + c];
      y[(2 * f + 1) * channels + c] = here * w[2 * channels + c] + next * w[c];
    }
  }
}

static void pointwise(float *restrict y, float *restrict x, const float **weights, int width) {
  const float *w = take(weights, channels * channels), *bias = take(weights, channels);
  for (int f = 0; f < width; f++) memcpy(y + f * channels, bias, channels * sizeof *y);
  multiply((struct rows){y, channels}, (struct rows){x, channels}, w, width, channels, channels);
  rectify(y, width * channels);
}

/// y += the rectified map, scaled per channel.
static void skip(float *restrict y, const float *restrict map, const float **weights, int width) {
  const float *restrict scale = take(weights, channels), *restrict bias = take(weights, channels);
  for (int f = 0; f < width; f++) {
    for (int c = 0; c < channels; c++) y[f * channels + c] += positive(map[f * channels + c] * scale[c] + bias[c]);
  }
}

/// The distance between the streams' members.
enum { apart = sizeof(struct voice_stream) / sizeof(float) };

#define MEMBER(name) ((struct rows){streams[0].name, apart})

/// For each stream, y = `groups` products of n numbers and a matrix n × m.
static void grouped(struct rows y, struct rows x, const float **weights, long count, long groups, long n, long m) {
  const float *w = take(weights, groups * n * m);
  for (long s = 0; s < count; s++) memset(y.first + s * y.distance, 0, (size_t)(groups * m) * sizeof(float));
  for (long g = 0; g < groups; g++) {
    const struct rows out = {y.first + g * m, y.distance}, in = {x.first + g * n, x.distance};
    multiply(out, in, w + g * n * m, count, n, m);
  }
}

static void rectify_all(struct rows x, long count, long numbers) {
  for (long s = 0; s < count; s++) rectify(x.first + s * x.distance, numbers);
}

/// A layer of gated recurrent units.
static void recur(
  struct voice_stream *streams, struct rows out, struct rows x, const float **weights, long count, int layer
) {
  const float *w = take(weights, 3 * units * units), *r = take(weights, 3 * units * units);
  const float *bias = take(weights, 6 * units);
  for (long s = 0; s < count; s++) memcpy(streams[s].gates, bias, 6 * units * sizeof(float));
  multiply(MEMBER(gates[0]), x, w, count, units, 3 * units);
  multiply(MEMBER(gates[1]), MEMBER(hidden[layer]), r, count, units, 3 * units);
  for (long s = 0; s < count; s++) {
    const float *restrict a = streams[s].gates[0], *restrict b = streams[s].gates[1];
    float *restrict hidden = streams[s].hidden[layer];
    for (int i = 0; i < units; i++) {
      const float update = sigmoid(a[i] + b[i]), reset = sigmoid(a[units + i] + b[units + i]);
      const float candidate = tanh_of(a[2 * units + i] + reset * b[2 * units + i]);
      hidden[i] = candidate + update * (hidden[i] - candidate);
    }
    memcpy(out.first + s * out.distance, hidden, units * sizeof(float));
  }
}

/// Appends the frame's features to those of the last two.
static void remember(struct voice_stream *s, const struct voice_frame *frame) {
  memmove(s->levels[0], s->levels[1], 2 * sizeof s->levels[0]);
  memcpy(s->levels[2] + 1, frame->levels, sizeof frame->levels);
  memmove(s->spectrum[0], s->spectrum[1], 2 * sizeof s->spectrum[0]);
  memcpy(s->spectrum[2][0] + 1, frame->real, sizeof frame->real);
  memcpy(s->spectrum[2][1] + 1, frame->imaginary, sizeof frame->imaginary);
}

/// The encoder's convolutions over the bands. Returns the weights after them.
static const float *encode_levels(struct voice_stream *s, const float *weights) {
  const float *w = take(&weights, 9 * channels), *bias = take(&weights, channels);
  for (int f = 0; f < 32; f++) memcpy(s->level_maps[0] + f * channels, bias, channels * sizeof(float));
  for (int t = 0; t < 3; t++) {
    const struct rows y = {s->level_maps[0], channels}, x = {s->levels[t], 1};
    multiply(y, x, w + 3 * t * channels, 32, 3, channels);
  }
  rectify(s->level_maps[0], 32 * channels);
  for (int layer = 1; layer < 4; layer++) {
    const int width = 64 >> layer, step = layer < 3 ? 2 : 1;
    depthwise(s->map, s->level_maps[layer - 1], &weights, width, step);
    pointwise(s->level_maps[layer], s->map, &weights, width / step);
  }
  return weights;
}

/// Those over the bins.
static const float *encode_bins(struct voice_stream *s, const float *weights) {
  const float *w = take(&weights, 9 * channels);
  memset(s->map, 0, sizeof s->map);
  for (int t = 0; t < 3; t++) {
    for (int half = 0; half < 2; half++) {
      const struct rows y = {s->map + 32 * half, channels}, x = {s->spectrum[t][half], 1};
      multiply_apart(y, x, w + 3 * t * channels + 32 * half, channels, 96, 3, 32);
    }
  }
  float *bins = s->bins[s->frames % 5];
  pointwise(bins, s->map, &weights, 96);
  depthwise(s->map, bins, &weights, 96, 2);
  pointwise(s->halved_bins, s->map, &weights, 48);
  return weights;
}

/// The gains' convolutions, from the eight bands in `map`.
static const float *decode_gains(struct voice_stream *s, const float *weights, float *restrict gains) {
  rectify(s->map, 8 * channels);
  int width = 8;
  for (int layer = 3; layer > 0; layer--) {
    skip(s->map, s->level_maps[layer], &weights, width);
    if (layer == 3) {
      depthwise(s->other, s->map, &weights, width, 1);
    } else {
      spread(s->other, s->map, &weights, width);
      width *= 2;
    }
    pointwise(s->map, s->other, &weights, width);
  }
  skip(s->map, s->level_maps[0], &weights, 32);
  const float *w = take(&weights, 3 * channels), bias = *take(&weights, 1);
  for (int f = 0; f < 32; f++) {
    // Four sums side by side, added in the end.
    four sum = {bias, 0, 0, 0};
    for (int k = 0; k < 3; k++) {
      const int i = f + k - 1;
      if (i < 0 || i >= 32) continue;
      for (int c = 0; c < channels; c += 4) {
        sum += LOAD(four, s->map + i * channels + c) * LOAD(four, w + k * channels + c);
      }
    }
    gains[f] = sigmoid((sum[0] + sum[1]) + (sum[2] + sum[3]));
  }
  return weights;
}

/// The filter of the lower bins, from `sums` and the maps of the last five frames.
static void decode_filter(struct voice_stream *s, const float *weights, float (*filter)[5][2]) {
  const float *w = take(&weights, 2 * 5 * 32 * 8), *joining = take(&weights, 16 * 12), *bias = weights;
  memset(s->taps, 0, sizeof s->taps);
  for (int group = 0; group < 2; group++) {
    for (int k = 0; k < 5; k++) {
      const long frame = s->frames - 4 + k;
      if (frame < 0) continue;
      const struct rows y = {s->taps + 8 * group, 16}, x = {s->bins[frame % 5] + 32 * group, channels};
      multiply(y, x, w + (5 * group + k) * 32 * 8, 96, 32, 8);
    }
  }
  float joined[96 * 12];
  for (int f = 0; f < 96; f++) {
    memcpy(joined + 12 * f, bias, 10 * sizeof(float));
    memset(joined + 12 * f + 10, 0, 2 * sizeof(float));
  }
  multiply((struct rows){joined, 12}, (struct rows){s->taps, 16}, joining, 96, 16, 12);
  float *restrict out = filter[0][0];
  for (int f = 0; f < 96; f++) {
    for (int k = 0; k < 10; k++) out[10 * f + k] = tanh_of(s->sums[10 * f + k]) + positive(joined[12 * f + k]);
  }
}

void NETWORKS(struct voice_stream *streams, struct voice_frame *frames, long count, const float *weights) {
  const float *next = weights;
  for (long s = 0; s < count; s++) {
    remember(streams + s, frames + s);
    next = encode_bins(streams + s, encode_levels(streams + s, weights));
  }
  const float **rest = &next;
  grouped(MEMBER(embedding), MEMBER(halved_bins), rest, count, 32, 96, 16);
  for (long s = 0; s < count; s++) {
    for (int i = 0; i < 512; i++) {
      streams[s].embedding[i] = positive(streams[s].embedding[i]) + streams[s].level_maps[3][i];
    }
  }
  grouped(MEMBER(vector), MEMBER(embedding), rest, count, 16, 32, 16);
  rectify_all(MEMBER(vector), count, units);
  recur(streams, MEMBER(next), MEMBER(vector), rest, count, 0);
  grouped(MEMBER(embedding), MEMBER(next), rest, count, 16, 16, 32);
  rectify_all(MEMBER(embedding), count, 512);

  grouped(MEMBER(vector), MEMBER(embedding), rest, count, 16, 32, 16);
  rectify_all(MEMBER(vector), count, units);
  recur(streams, MEMBER(next), MEMBER(vector), rest, count, 1);
  recur(streams, MEMBER(vector), MEMBER(next), rest, count, 2);
  grouped(MEMBER(map), MEMBER(vector), rest, count, 16, 16, 32);
  const float *decoding = next;
  for (long s = 0; s < count; s++) next = decode_gains(streams + s, decoding, frames[s].gains);

  grouped(MEMBER(vector), MEMBER(embedding), rest, count, 8, 64, 32);
  rectify_all(MEMBER(vector), count, units);
  recur(streams, MEMBER(next), MEMBER(vector), rest, count, 3);
  recur(streams, MEMBER(vector), MEMBER(next), rest, count, 4);
  grouped(MEMBER(next), MEMBER(embedding), rest, count, 16, 32, 16);
  for (long s = 0; s < count; s++) {
    for (int i = 0; i < units; i++) streams[s].vector[i] += streams[s].next[i];
  }
  grouped(MEMBER(sums), MEMBER(vector), rest, count, 16, 16, 60);
  for (long s = 0; s < count; s++) {
    decode_filter(streams + s, next, frames[s].filter);
    streams[s].frames++;
  }
}
