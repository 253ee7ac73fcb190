// The loops of slices, included once per instruction set after loops.h. PeakReader.swift says what is folded;
// SamplePeaks.swift, in which steps samples are.
//
// A point's peaks are two int16_t: its minimum, and the complement of its maximum. The complement reverses the order,
// so the smaller of both numbers are the peaks of two points together. What doesn't count is replaced by the largest
// number before the minimum is taken, and what counts may be compared twice. So there is no branch that depends on the
// position of a pixel; those are mispredicted.

enum { NAME(points) = LANES / 2 };

/// Keeps the first `count` points of a vector. −12 … 16.
static inline __attribute__((always_inline)) NAME(shorts) NAME(first)(long count, NAME(shorts) points) {
  return __builtin_elementwise_max(points, NAME(load)(kept_first + 32 - 2 * count));
}

/// Keeps the points of a vector from number `rank` on. −12 … 16.
static inline __attribute__((always_inline)) NAME(shorts) NAME(from)(long rank, NAME(shorts) points) {
  return __builtin_elementwise_max(points, NAME(load)(kept_last + 32 - 2 * rank));
}

static inline __attribute__((always_inline)) NAME(shorts) NAME(nothing)(void) { return (NAME(shorts)){0} + INT16_MAX; }

/// Stores the peaks of all points of a vector, as minimum and maximum.
static inline __attribute__((always_inline)) void NAME(store)(uint32_t *pixel, NAME(shorts) points) {
  uint64_t words[LANES / 4];
  memcpy(words, &points, sizeof words);
  eight all;
#if LANES == 16
  eight other;
  memcpy(&all, words, sizeof all);
  memcpy(&other, words + 2, sizeof other);
  all = __builtin_elementwise_min(all, other);
#else
  memcpy(&all, words, sizeof all);
#endif
  all = __builtin_elementwise_min(all, __builtin_shufflevector(all, all, 4, 5, 6, 7, 4, 5, 6, 7));
  all = __builtin_elementwise_min(all, __builtin_shufflevector(all, all, 2, 3, 2, 3, 2, 3, 2, 3));
  uint32_t both;
  memcpy(&both, &all, sizeof both);
  *pixel = both ^ 0xffff0000;
}

/// Adds the points of a line of 16 before number `rank`, and those from number `next` on.
static inline __attribute__((always_inline)) void NAME(divide)(
  const uint32_t *line, long rank, long next, NAME(shorts) *before, NAME(shorts) *after) {
#pragma clang loop unroll(full)
  for (int part = 0; part < 16; part += NAME(points)) {
    const NAME(shorts) points = NAME(load)((const int16_t *)(line + part));
    *before = __builtin_elementwise_min(*before, NAME(first)(rank - part, points));
    *after = __builtin_elementwise_min(*after, NAME(from)(next - part, points));
  }
}

/// Adds `count` points of a row, at least `least` and at most `most` of them.
static inline __attribute__((always_inline)) NAME(shorts) NAME(run)(
  const uint32_t *from, long count, long least, long most, NAME(shorts) peaks) {
  const int16_t *samples = (const int16_t *)from;
  if (least < NAME(points)) {
    for (long done = 0; done < most; done += NAME(points)) {
      const long rest = count - done;
      const NAME(shorts) points = NAME(load)(samples + 2 * done);
      peaks = __builtin_elementwise_min(peaks, NAME(first)(rest < NAME(points) ? rest : NAME(points), points));
    }
  } else {
    // The last vectors overlap.
    const long last = count - NAME(points);
#pragma clang loop unroll(disable)
    for (long done = 0; done < most; done += NAME(points)) {
      peaks = __builtin_elementwise_min(peaks, NAME(load)(samples + 2 * (done < last ? done : last)));
    }
  }
  return peaks;
}

/// The block of an edge. `number`: the edge's.
static inline __attribute__((always_inline)) const uint32_t *NAME(block)(
  const struct peak_fold *fold, const int level, int64_t edge, long number) {
  const long index = level == 4 ? (edge >> 8) - fold->first_block : number;
  return fold->blocks[(index < fold->block_count ? index : fold->block_count - 1) * fold->block_step];
}

static inline __attribute__((always_inline)) void NAME(fold_from)(const struct peak_fold *fold, const int level) {
  const int64_t points = fold->scale >> 8;
  // The number of whole points of the level in a pixel, without that of its first edge.
  const long least = level == 0 ? points : (points >> level) - 1, most = level == 0 ? points + 1 : least + 2;
  const int64_t skipped = fold->row_first - (level > 0);
  uint32_t *pixel = fold->pixels;
  int64_t position = fold->first_pixel * fold->scale, start = 0;
  NAME(shorts) peaks = NAME(nothing)();
  for (long number = 0; number <= fold->count; number++) {
    const int64_t edge = position >> 8, end = edge >> level;
    NAME(shorts) before = NAME(nothing)(), after = NAME(nothing)();
    if (level > 0) {
      // The lines of the edges are far apart: from memory, they take several times as long as all else.
      const int64_t ahead = (position + edges_ahead * fold->scale) >> 8;
      const uint32_t *next = NAME(block)(fold, level, ahead, number + edges_ahead);
      __builtin_prefetch(next + (ahead & 240));
      if (level == 8) __builtin_prefetch(next + 480);
      const uint32_t *block = NAME(block)(fold, level, edge, number);
      NAME(divide)(block + (edge & 240), edge & 15, edge & 15, &before, &after);
      // Level 4 of the block.
      if (level == 8) NAME(divide)(block + 480, (edge >> 4) & 15, ((edge >> 4) & 15) + 1, &before, &after);
    }
    if (number > 0) {
      peaks = __builtin_elementwise_min(peaks, before);
      const int64_t first = start - skipped;
      const long count = end - start - (level > 0);
      NAME(store)(pixel, NAME(run)(fold->row + first, count, least, most, peaks));
      pixel += fold->step;
    }
    peaks = after;
    start = end;
    position += fold->scale;
  }
}

static void NAME(fold)(const struct peak_fold *fold) {
  switch (fold->level) {
    case 0: return NAME(fold_from)(fold, 0);
    case 4: return NAME(fold_from)(fold, 4);
    default: return NAME(fold_from)(fold, 8);
  }
}

// MARK: Samples

static void NAME(stereo_lane)(int16_t *lane, const int16_t *frames, long count, int which) {
  long done = 0;
  for (; done + LANES / 2 <= count; done += LANES / 2) {
    NAME(ints) both;
    memcpy(&both, frames + 2 * done, sizeof both);
    const NAME(ints) left = (NAME(ints))((NAME(pairs))both << 16) >> 16, right = both >> 16, sum = left + right;
    // The shift rounds down; adding 1 to a negative sum makes that toward zero.
    const NAME(ints) mix = (sum - (sum >> 31)) >> 1;
    const NAME(half) values = __builtin_convertvector(which == 0 ? mix : which == 1 ? left : right, NAME(half));
    memcpy(lane + done, &values, sizeof values);
  }
  for (; done < count; done++) {
    const int32_t left = frames[2 * done], right = frames[2 * done + 1], sum = left + right;
    lane[done] = (int16_t)(which == 0 ? (sum - (sum >> 31)) >> 1 : which == 1 ? left : right);
  }
}

static void NAME(sample_pixels)(uint32_t *pixels, long step, const int16_t *samples, long count, long scale) {
  long start = 0;
  for (; start + scale <= count && start + LANES <= count; start += scale) {
    NAME(shorts) low = NAME(load)(samples + start), high = low;
    if (scale < LANES) {
      // The largest and the smallest number replace what belongs to the next pixels.
      const NAME(shorts) others = NAME(load)(kept_first + 32 - scale);
      low = __builtin_elementwise_max(low, others);
      high = __builtin_elementwise_min(high, ~others);
    }
    for (long done = LANES; done < scale; done += LANES) {
      const NAME(shorts) x = NAME(load)(samples + start + (done < scale - LANES ? done : scale - LANES));
      low = __builtin_elementwise_min(low, x);
      high = __builtin_elementwise_max(high, x);
    }
    *pixels = (uint16_t)__builtin_reduce_min(low) | (uint32_t)(uint16_t)__builtin_reduce_max(high) << 16;
    pixels += step;
  }
  for (; start < count; start += scale) {
    int16_t low = INT16_MAX, high = INT16_MIN;
    for (long i = start; i < count && i < start + scale; i++) {
      low = samples[i] < low ? samples[i] : low;
      high = samples[i] > high ? samples[i] : high;
    }
    *pixels = (uint16_t)low | (uint32_t)(uint16_t)high << 16;
    pixels += step;
  }
}
