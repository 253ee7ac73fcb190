// The loops, included once per instruction set. NAME gives each set its own functions, LANES is the number of 16-bit
// samples per vector, and the other macros select samples of vectors. All are undefined again at the end.

typedef int16_t NAME(shorts) __attribute__((vector_size(2 * LANES)));
typedef uint16_t NAME(magnitudes) __attribute__((vector_size(2 * LANES)));
typedef int16_t NAME(half) __attribute__((vector_size(LANES)));
typedef int32_t NAME(ints) __attribute__((vector_size(2 * LANES)));
typedef uint64_t NAME(quads) __attribute__((vector_size(2 * LANES)));
typedef uint32_t NAME(pairs) __attribute__((vector_size(2 * LANES)));

static inline __attribute__((always_inline)) NAME(shorts) NAME(load)(const int16_t *from) {
  NAME(shorts) value;
  memcpy(&value, from, sizeof value);
  return value;
}

// Σ|x| of 256 samples needs 24 bits, but 16-bit sums are faster: S = Σ|x| modulo 2^16 and U = Σ ⌊|x| / 2^8⌋ ≤ 2^15.
// What is left, Σ|x| − 2^8·U, is at most 256 · 255, so S − 2^8·U modulo 2^16 is exact. The same holds for Σx² in 32
// bits, with pairs of squares, which are at most 2^31: Σ − 2^16·U ≤ 128 · 65535.
static inline __attribute__((always_inline)) void NAME(sum_up)(struct peak_sums *sums, const int16_t *samples) {
  NAME(shorts) low = NAME(load)(samples), high = low;
  NAME(magnitudes) absolutes = {0}, upper_absolutes = {0};
  NAME(pairs) squares = {0}, upper_squares = {0};
  for (int i = 0; i < 256; i += LANES) {
    const NAME(shorts) x = NAME(load)(samples + i);
    low = __builtin_elementwise_min(low, x);
    high = __builtin_elementwise_max(high, x);
    // Unsigned, because |−32768| exceeds an int16_t.
    const NAME(magnitudes) sign = (NAME(magnitudes))(x >> 15), magnitude = ((NAME(magnitudes))x ^ sign) - sign;
    absolutes += magnitude;
    upper_absolutes += magnitude >> 8;
    // One instruction on x86 (pmaddwd).
    const NAME(ints) even = __builtin_convertvector(__builtin_shufflevector(x, x, EVEN), NAME(ints));
    const NAME(ints) odd = __builtin_convertvector(__builtin_shufflevector(x, x, ODD), NAME(ints));
    const NAME(pairs) pair = (NAME(pairs))(even * even) + (NAME(pairs))(odd * odd);
    squares += pair;
    upper_squares += pair >> 16;
  }
  sums->low = __builtin_reduce_min(low);
  sums->high = __builtin_reduce_max(high);
  uint32_t square = 0, upper_square = 0;
  uint16_t absolute = 0, upper_absolute = 0;
  for (int i = 0; i < LANES / 2; i++) {
    square += squares[i];
    upper_square += upper_squares[i];
  }
  for (int i = 0; i < LANES; i++) {
    absolute += absolutes[i];
    upper_absolute += upper_absolutes[i];
  }
  sums->squares = ((int64_t)upper_square << 16) + (uint32_t)(square - (upper_square << 16));
  sums->absolutes = ((int64_t)upper_absolute << 8) + (uint16_t)(absolute - (upper_absolute << 8));
}

static void NAME(mono_point)(struct peak_sums *sums, const int16_t *samples) { NAME(sum_up)(sums, samples); }

static void NAME(stereo_point)(struct peak_sums *sums, const int16_t *samples) {
  // In an order that suits the instruction set; sums don't depend on it.
  int16_t mix[256], left[256], right[256];
  for (int i = 0; i < 256; i += LANES) {
    const NAME(shorts) first = NAME(load)(samples + 2 * i), second = NAME(load)(samples + 2 * i + LANES);
    const NAME(shorts) l = __builtin_shufflevector(first, second, LEFT);
    const NAME(shorts) r = __builtin_shufflevector(first, second, RIGHT);
    // ⌊(l + r) / 2⌋ = (l & r) + ((l ^ r) >> 1), plus 1 if that is negative and l + r is odd.
    const NAME(shorts) floor = (l & r) + ((l ^ r) >> 1);
    const NAME(shorts) m = floor + ((l ^ r) & (NAME(shorts))((NAME(magnitudes))floor >> 15));
    memcpy(mix + i, &m, sizeof m);
    memcpy(left + i, &l, sizeof l);
    memcpy(right + i, &r, sizeof r);
  }
  NAME(sum_up)(&sums[0], mix);
  NAME(sum_up)(&sums[1], left);
  NAME(sum_up)(&sums[2], right);
}

typedef float NAME(floats) __attribute__((vector_size(2 * LANES)));

/// Half as many samples as `load`, as numbers.
static inline __attribute__((always_inline)) NAME(floats) NAME(load_floats)(const int16_t *from) {
  NAME(half) value;
  memcpy(&value, from, sizeof value);
  return __builtin_convertvector(__builtin_convertvector(value, NAME(ints)), NAME(floats));
}

static void NAME(square_sums)(float *sums, const int16_t *samples, long count) {
  enum { vectors = 16 / (LANES / 2) };
  NAME(floats) lanes[vectors] = {0};
  for (long start = 0; start < count; start += 16) {
#pragma clang loop unroll(full)
    for (int i = 0; i < vectors; i++) {
      const NAME(floats) x = NAME(load_floats)(samples + start + i * LANES / 2);
      lanes[i] += x * x;
    }
  }
  memcpy(sums, lanes, sizeof lanes);
}

/// 5 x + 3 y of the pairs of a vector.
static inline __attribute__((always_inline)) NAME(ints) NAME(weigh)(const int16_t *from) {
  const NAME(shorts) x = NAME(load)(from);
  const NAME(ints) even = __builtin_convertvector(__builtin_shufflevector(x, x, EVEN), NAME(ints));
  const NAME(ints) odd = __builtin_convertvector(__builtin_shufflevector(x, x, ODD), NAME(ints));
  return 5 * even + 3 * odd;
}

/// The sums of neighbors: of those in `a`, then of those in `b`.
static inline __attribute__((always_inline)) NAME(ints) NAME(join)(NAME(ints) a, NAME(ints) b) {
  return __builtin_shufflevector(a, b, EVEN) + __builtin_shufflevector(a, b, ODD);
}

static inline __attribute__((always_inline)) NAME(ints) NAME(weigh_fours)(const int16_t *from) {
  return NAME(join)(NAME(weigh)(from), NAME(weigh)(from + LANES));
}

static void NAME(mix_pairs)(float *mix, const int16_t *samples, long width, long count) {
  long done = 0;
  if (width == 4 || width == 8) {
    for (; done + LANES / 2 <= count; done += LANES / 2) {
      const int16_t *from = samples + done * width;
      const NAME(ints) sums = width == 4 ? NAME(weigh_fours)(from)
                                         : NAME(join)(NAME(weigh_fours)(from), NAME(weigh_fours)(from + 2 * LANES));
      const NAME(floats) values = __builtin_convertvector(sums, NAME(floats));
      memcpy(mix + done, &values, sizeof values);
    }
  }
  for (; done < count; done++) {
    int32_t sum = 0;
    for (long i = done * width; i < (done + 1) * width; i += 2) sum += 5 * samples[i] + 3 * samples[i + 1];
    mix[done] = (float)sum;
  }
}

#include "folds.h"

static const struct peak_loops NAME(peak_loops) = {
  SET,
  NAME(mono_point),
  NAME(stereo_point),
  NAME(square_sums),
  NAME(mix_pairs),
  NAME(fold),
  NAME(stereo_lane),
  NAME(sample_pixels),
};

#undef NAME
#undef SET
#undef LANES
#undef EVEN
#undef ODD
#undef LEFT
#undef RIGHT
#undef ORDER
#undef NEIGHBORS
#undef PACK
