// The loops over 16-bit numbers that building waveforms and showing them consists of, compiled for several instruction
// sets.
//
// All of them give the same bits on every machine. Those of a point work on integers, so order doesn't matter. That of
// a frame's power adds floats in a fixed order, 16 sums side by side, and nothing is fused (FMA).
//
// The plain versions are PeakKernel.addFrames, PeakKernel.downmix, PointReader and WaveformSlice.appendPixels
// (Waveform) and SparseFrames' (Denoise).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

/// Where pages are in memory. A page of `peak_page_bytes` begins with its points in the order of the file, and is one
/// of those that a piece of `peak_piece_bytes`, aligned to its size, consists of. The piece begins with a line for each
/// of its pages, in order: a copy of the page's points of level 4. So the lines of pages that are side by side are side
/// by side, too, while the lines within the pages would all need the same few places of the processor's caches.
enum { peak_line_bytes = 64, peak_page_bytes = 4096, peak_piece_bytes = 1 << 21 };

/// The exact sums of 256 samples.
struct peak_sums {
  int16_t low, high;
  int64_t squares, absolutes;
};

/// Consecutive pixels to fold from the points of a pyramid: see PeakReader.swift. A point is its minimum in the lower
/// 16 bits and the complement of its maximum in the upper ones.
struct peak_fold {
  int64_t first_pixel;
  long count;
  /// Frames per pixel: at least 2^(8 + level).
  int64_t scale;
  /// 0, 4 or 8.
  int level;

  /// Points of the level, from number `row_first` on. 16 more must be readable after those that the pixels need.
  const uint32_t *row;
  int64_t row_first;

  /// The pages of lower blocks: for level 4, of consecutive blocks from `first_block` on; for level 8, of the block of
  /// each pixel's first point and that of the next one's. The last one takes the place of any missing after it. Not
  /// used for level 0.
  const uint32_t *_Nullable const *_Nullable blocks;
  /// How many pointers apart the blocks are.
  long block_step;
  int64_t first_block;
  long block_count;

  /// Receives the pixels, `step` numbers apart: the minimum in the lower 16 bits, the maximum in the upper ones.
  uint32_t *pixels;
  long step;
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

  /// Folds points into pixels.
  void (*fold)(const struct peak_fold *fold);
  /// Extracts one lane of `count` interleaved frames: the mix (0), left (1) or right (2).
  void (*stereo_lane)(int16_t *lane, const int16_t *frames, long count, int which);
  /// Folds samples of one lane into pixels of `scale` of them; the last pixel may be cut short. Pixels are written as
  /// by `fold`.
  void (*sample_pixels)(uint32_t *pixels, long step, const int16_t *samples, long count, long scale);
};

/// Returns the loops for this processor's widest known vectors.
const struct peak_loops *peak_loops_best(void);
/// Returns the loops of an instruction set, narrowest first, or null if there are no more that this processor has.
const struct peak_loops *_Nullable peak_loops_of_set(int index);

/// Copies the points of a level (0, 4 or 8) of each of `count` pages to `row`. The pages are `step` pointers apart in
/// `pages`.
void peak_gather(uint32_t *row, const uint32_t *_Nullable const *_Nonnull pages, long step, long count, int level);

/// Lower blocks that are looked up in order: see PageNumbers.swift.
struct peak_search {
  /// A frame in the next block, and the number of frames from there to one in the block after it.
  int64_t frame, step;
  /// The number of blocks left.
  long count;
};

/// Looks up the pages of the blocks that are in the same group as the next one. `pages`: those of a lane of that group,
/// null if missing, of which the upper block's is the first. Stores them in `found`, `step` pointers apart, and sets
/// the marks of those that aren't missing. Returns the number of missing ones.
long peak_find(struct peak_search *search, const uint32_t *_Nullable const *_Nonnull pages, uint8_t *marks,
               const uint32_t *_Nullable *_Nonnull found, long step);

/// Marks a page as used.
void peak_mark(uint8_t *mark);

/// Removes a mark. Returns whether there was one.
bool peak_take_mark(uint8_t *mark);

/// Copies points as pixels, which are written as by `fold`.
void peak_copy(uint32_t *pixels, long step, const uint32_t *points, long count);

#pragma clang assume_nonnull end
