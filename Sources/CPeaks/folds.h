// The loops of slices, included once per instruction set after loops.h. PeakReader.swift says what is folded;
// SamplePeaks.swift, in which steps samples are.
//
// A point's peaks are two int16_t: its minimum, and the complement of its maximum. The complement reverses the order,
// so the smaller of both numbers are the peaks of two points together. What doesn't count is replaced by the largest
// number before the minimum is taken, and what counts may be compared twice. So there is no branch that depends on the
// position of a pixel; those are mispredicted.

enum { NAME(points) = LANES / 2 };

/// What the points from number `count` on are replaced by: −12 … 16. Its complement does that to those before.
static inline __attribute__((always_inline)) NAME(shorts) NAME(first)(long count) {
  return NAME(load)(kept_first + 32 - 2 * count);
}

static inline __attribute__((always_inline)) NAME(shorts) NAME(smaller)(NAME(shorts) a, NAME(shorts) b) {
  return __builtin_elementwise_min(a, b);
}

static inline __attribute__((always_inline)) NAME(shorts) NAME(larger)(NAME(shorts) a, NAME(shorts) b) {
  return __builtin_elementwise_max(a, b);
}

static inline __attribute__((always_inline)) NAME(shorts) NAME(nothing)(void) { return (NAME(shorts)){0} + INT16_MAX; }

/// Returns the peaks of four points.
static inline __attribute__((always_inline)) eight NAME(four)(NAME(shorts) points) {
#if LANES == 16
  eight halves[2];
  memcpy(halves, &points, sizeof halves);
  return __builtin_elementwise_min(halves[0], halves[1]);
#else
  return points;
#endif
}

/// Adds the points of a line of 16 before number `rank`, and those from number `next`, which is `rank` or the one after
/// it, on. Masks are loaded once if they can be: half of the loads cross a line of the cache.
static inline __attribute__((always_inline)) void NAME(divide)(
  const uint32_t *line, long rank, long next, NAME(shorts) *before, NAME(shorts) *after) {
#pragma clang loop unroll(full)
  for (int part = 0; part < 16; part += NAME(points)) {
    const NAME(shorts) points = NAME(load)((const int16_t *)(line + part)), mask = NAME(first)(rank - part);
    const NAME(shorts) other = next == rank ? mask : NAME(first)(next - part);
    *before = NAME(smaller)(*before, NAME(larger)(points, mask));
    *after = NAME(smaller)(*after, NAME(larger)(points, ~other));
  }
}

/// How the points of a row are read: as many as fit into one or two vectors, or more than a vector has, which overlap,
/// in two or in more.
enum NAME(reading) { NAME(one), NAME(two), NAME(overlapping), NAME(many) };

/// Adds `count` points of a row, at most `most`.
static inline __attribute__((always_inline)) NAME(shorts) NAME(run)(
  const uint32_t *from, long count, const enum NAME(reading) reading, long most, NAME(shorts) peaks) {
  const int16_t *samples = (const int16_t *)from;
  const long last = count - NAME(points);
  if (reading == NAME(one) || reading == NAME(two)) {
    peaks = NAME(smaller)(peaks, NAME(larger)(NAME(load)(samples), NAME(first)(count)));
    if (reading == NAME(one)) return peaks;
    return NAME(smaller)(peaks, NAME(larger)(NAME(load)(samples + LANES), NAME(first)(last)));
  }
  peaks = NAME(smaller)(peaks, NAME(load)(samples));
  if (reading == NAME(overlapping)) return NAME(smaller)(peaks, NAME(load)(samples + 2 * last));
#pragma clang loop unroll(disable)
  for (long done = NAME(points); done < most; done += NAME(points)) {
    peaks = NAME(smaller)(peaks, NAME(load)(samples + 2 * (done < last ? done : last)));
  }
  return peaks;
}

/// What is known at an edge.
struct NAME(walk) {
  /// The number of the next edge, and the first frame of the pixel that begins there.
  long number;
  int64_t position;
  /// The point of the level in which the edge before it lies, and the peaks of what comes after that edge in it.
  int64_t start;
  NAME(shorts) peaks;
};

/// Goes to the next edge. Returns the peaks of what comes before it in its point of the level, and of what came after
/// the edge before it. `is_end`: whether the last block may have to take the place of a missing one.
static inline __attribute__((always_inline)) NAME(shorts) NAME(next_edge)(
  const struct peak_fold *fold, const int level, const bool is_end, struct NAME(walk) *walk) {
  const int64_t edge = walk->position >> 8;
  NAME(shorts) before = walk->peaks, after = NAME(nothing)();
  if (level > 0) {
    // For level 4, blocks are found by their numbers, and else by those of the edges.
    const int64_t first = level == 4 ? fold->first_block : 0, last = fold->block_count - 1;
    // The lines of the edges are far apart: from memory, they take several times as long as all else.
    const int64_t ahead = (walk->position + edges_ahead * fold->scale) >> 8;
    int64_t next = (level == 4 ? ahead >> 8 : walk->number + edges_ahead) - first;
    int64_t this = (level == 4 ? edge >> 8 : walk->number) - first;
    if (is_end) {
      next = next < last ? next : last;
      this = this < last ? this : last;
    }
    const uint32_t *later = fold->blocks[next * fold->block_step];
    __builtin_prefetch(later + (ahead & 240));
    if (level == 8) __builtin_prefetch(level_four(later));
    const uint32_t *block = fold->blocks[this * fold->block_step];
    NAME(divide)(block + (edge & 240), edge & 15, edge & 15, &before, &after);
    if (level == 8) {
      NAME(divide)(level_four(block), (edge >> 4) & 15, ((edge >> 4) & 15) + 1, &before, &after);
    }
  }
  walk->number++;
  walk->position += fold->scale;
  walk->start = edge >> level;
  walk->peaks = after;
  return before;
}

static inline __attribute__((always_inline)) eight NAME(next_pixel)(
  const struct peak_fold *fold, const int level, const bool is_end, const enum NAME(reading) reading, long most,
  struct NAME(walk) *walk) {
  const int64_t first = walk->start + (level > 0);
  const NAME(shorts) peaks = NAME(next_edge)(fold, level, is_end, walk);
  return NAME(four)(NAME(run)(fold->row + (first - fold->row_first), walk->start - first, reading, most, peaks));
}

/// The number of pixels for which no block is missing, even of the edges that are fetched ahead.
static inline __attribute__((always_inline)) long NAME(count_inside)(const struct peak_fold *fold, const int level) {
  int64_t end = INT32_MAX;
  if (level == 4) end = (((fold->first_block + fold->block_count) << 16) - 1) / fold->scale - fold->first_pixel;
  if (level == 8) end = fold->block_count;
  const int64_t inside = end - edges_ahead - 1;
  return inside < 0 ? 0 : inside < fold->count ? (long)inside : fold->count;
}

static inline __attribute__((always_inline)) void NAME(fold_from)(
  const struct peak_fold *original, const int level, const enum NAME(reading) reading, long most) {
  // A copy, because as far as the compiler can tell, each pixel might overwrite the original.
  const struct peak_fold fold = *original;
  struct NAME(walk) walk = {0, fold.first_pixel * fold.scale, 0, NAME(nothing)()};
  NAME(next_edge)(&fold, level, true, &walk);
  uint32_t *pixels = fold.pixels;
  // Four pixels are stored at a time, which takes half the steps of storing each.
  eight four[4] = {{0}};
  for (long rest = NAME(count_inside)(&fold, level); rest >= 4; rest -= 4) {
#pragma clang loop unroll(full)
    for (int i = 0; i < 4; i++) four[i] = NAME(next_pixel)(&fold, level, false, reading, most, &walk);
    store_pixels(pixels, fold.step, four, 4);
    pixels += 4 * fold.step;
  }
  while (walk.number <= fold.count) {
    const long left = fold.count - walk.number + 1, count = left < 4 ? left : 4;
    for (long i = 0; i < count; i++) four[i] = NAME(next_pixel)(&fold, level, true, reading, most, &walk);
    store_pixels(pixels, fold.step, four, count);
    pixels += 4 * fold.step;
  }
}

static inline __attribute__((always_inline)) void NAME(fold_level)(const struct peak_fold *fold, const int level) {
  // The number of whole points of the level in a pixel, without that of its first edge.
  const long points = fold->scale >> (8 + level), least = level == 0 ? points : points - 1;
  const long most = points + 1;
  if (most <= NAME(points)) return NAME(fold_from)(fold, level, NAME(one), most);
  if (least < NAME(points)) return NAME(fold_from)(fold, level, NAME(two), most);
  if (most <= 2 * NAME(points)) return NAME(fold_from)(fold, level, NAME(overlapping), most);
  NAME(fold_from)(fold, level, NAME(many), most);
}

static void NAME(fold)(const struct peak_fold *fold) {
  switch (fold->level) {
    case 0: return NAME(fold_level)(fold, 0);
    case 4: return NAME(fold_level)(fold, 4);
    default: return NAME(fold_level)(fold, 8);
  }
}

// MARK: Samples

/// The mix of half as many frames as a vector has samples.
static inline __attribute__((always_inline)) NAME(ints) NAME(mix)(const int16_t *frames) {
  const NAME(ints) sum = NEIGHBORS(NAME(load)(frames));
  // The shift rounds down; adding 1 to a negative sum makes that toward zero.
  return (sum + (NAME(ints))((NAME(pairs))sum >> 31)) >> 1;
}

/// Extracts the mix (0), left (1) or right channel (2).
static inline __attribute__((always_inline)) void NAME(extract)(
  int16_t *lane, const int16_t *frames, long count, const int which) {
  long done = 0;
  for (; done + LANES <= count; done += LANES) {
    const int16_t *from = frames + 2 * done;
    const NAME(shorts) first = NAME(load)(from), second = NAME(load)(from + LANES);
    const NAME(quads) values =
      which == 0   ? (NAME(quads))PACK(NAME(mix)(from), NAME(mix)(from + LANES))
      : which == 1 ? (NAME(quads))__builtin_shufflevector(first, second, LEFT)
                   : (NAME(quads))__builtin_shufflevector(first, second, RIGHT);
    const NAME(quads) ordered = __builtin_shufflevector(values, values, ORDER);
    memcpy(lane + done, &ordered, sizeof ordered);
  }
  for (; done < count; done++) {
    const int32_t left = frames[2 * done], right = frames[2 * done + 1];
    lane[done] = (int16_t)(which == 0 ? (left + right) / 2 : which == 1 ? left : right);
  }
}

static void NAME(stereo_lane)(int16_t *lane, const int16_t *frames, long count, int which) {
  switch (which) {
    case 0: return NAME(extract)(lane, frames, count, 0);
    case 1: return NAME(extract)(lane, frames, count, 1);
    default: return NAME(extract)(lane, frames, count, 2);
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
