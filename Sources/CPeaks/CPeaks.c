#include "CPeaks.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#pragma STDC FP_CONTRACT OFF

#define TEN(x) x, x, x, x, x, x, x, x, x, x
#define THIRTY_TWO(x) TEN(x), TEN(x), TEN(x), x, x
/// From number 32 − n on: the smallest number n times, then the largest.
static const int16_t kept_first[64] = {THIRTY_TWO(INT16_MIN), THIRTY_TWO(INT16_MAX)};
/// How far ahead the points of edges are fetched.
enum { edges_ahead = 40 };

/// Returns the copy of a page's points of level 4 (CPeaks.h says where it is).
static inline __attribute__((always_inline)) const uint32_t *level_four(const uint32_t *page) {
  const uintptr_t address = (uintptr_t)page, within = address & (peak_piece_bytes - 1);
  return (const uint32_t *)(address - within + within / (peak_page_bytes / peak_line_bytes));
}

typedef int16_t eight __attribute__((vector_size(16)));

typedef uint32_t four_points __attribute__((vector_size(16)));
typedef uint64_t two_pairs __attribute__((vector_size(16)));

/// Stores the peaks of `count` pixels, at most four, `step` apart, as minimum and maximum. `points`: four of each.
static inline __attribute__((always_inline)) void store_pixels(
  uint32_t *pixels, long step, const eight *points, long count) {
  four_points p[4];
  memcpy(p, points, sizeof p);
  // Two points of each of two pixels.
  const eight first = __builtin_elementwise_min(
    (eight)__builtin_shufflevector(p[0], p[1], 0, 4, 1, 5), (eight)__builtin_shufflevector(p[0], p[1], 2, 6, 3, 7));
  const eight second = __builtin_elementwise_min(
    (eight)__builtin_shufflevector(p[2], p[3], 0, 4, 1, 5), (eight)__builtin_shufflevector(p[2], p[3], 2, 6, 3, 7));
  const four_points all = (four_points)__builtin_elementwise_min(
                            (eight)__builtin_shufflevector((two_pairs)first, (two_pairs)second, 0, 2),
                            (eight)__builtin_shufflevector((two_pairs)first, (two_pairs)second, 1, 3)) ^
                          0xffff0000;
  if (step == 1 && count == 4) {
    memcpy(pixels, &all, sizeof all);
  } else {
    for (long i = 0; i < count; i++) pixels[i * step] = all[i];
  }
}

// NEIGHBORS(x): the sums of the pairs of samples of a vector. PACK(x, y): the numbers of two vectors as samples, in the
// order of LEFT. ORDER puts the quarters of such a vector in the order of the frames. On x86, the compiler doesn't find
// the instructions for the first two by itself, which take half the time.

// What every processor has: SSE2 on x86-64, NEON on arm64.
#define NAME(name) name##_baseline
#define SET "baseline"
#define LANES 8
#define EVEN 0, 2, 4, 6
#define ODD 1, 3, 5, 7
#define LEFT 0, 2, 4, 6, 8, 10, 12, 14
#define RIGHT 1, 3, 5, 7, 9, 11, 13, 15
#define ORDER 0, 1
#ifdef __x86_64__
#define NEIGHBORS(x) __builtin_ia32_pmaddwd128(x, (x) * 0 + 1)
#define PACK(x, y) __builtin_ia32_packssdw128(x, y)
#else
#define NEIGHBORS(x) (((ints_baseline)((pairs_baseline)(x) << 16) >> 16) + ((ints_baseline)(x) >> 16))
#define PACK(x, y) __builtin_shufflevector((eight)(x), (eight)(y), LEFT)
#endif
#include "loops.h"

#ifdef __x86_64__
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#define NAME(name) name##_avx2
#define SET "AVX2"
#define LANES 16
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14
#define ODD 1, 3, 5, 7, 9, 11, 13, 15
// Within the halves of a vector, which AVX2's shuffles don't cross.
#define LEFT 0, 2, 4, 6, 16, 18, 20, 22, 8, 10, 12, 14, 24, 26, 28, 30
#define RIGHT 1, 3, 5, 7, 17, 19, 21, 23, 9, 11, 13, 15, 25, 27, 29, 31
#define ORDER 0, 2, 1, 3
#define NEIGHBORS(x) __builtin_ia32_pmaddwd256(x, (x) * 0 + 1)
#define PACK(x, y) __builtin_ia32_packssdw256(x, y)
#include "loops.h"
#pragma clang attribute pop
#endif

const struct peak_loops *peak_loops_of_set(int index) {
  if (index == 0) return &peak_loops_baseline;
#ifdef __x86_64__
  if (index == 1 && __builtin_cpu_supports("avx2")) return &peak_loops_avx2;
#endif
  return NULL;
}

const struct peak_loops *peak_loops_best(void) {
  const struct peak_loops *best = &peak_loops_baseline;
  for (int index = 1; peak_loops_of_set(index) != NULL; index++) best = peak_loops_of_set(index);
  return best;
}

/// Copies `length` points of each page, from number `word` on; of level 4, the copies beside the pages.
static inline __attribute__((always_inline)) void gather(
  uint32_t *row, const uint32_t *const *pages, long step, long count, long word, const long length) {
  // The processor fetches ahead by itself within a page, but not from one to the next: that took half of the time.
  enum { points_per_line = 16, lines_ahead = 32 };
  const long lines = length / points_per_line, ahead = lines_ahead / lines;
  for (long page = 0; page < count; page++) {
    const uint32_t *points = pages[page * step];
    points = length == points_per_line ? level_four(points) : points + word;
    if (page + ahead < count) {
      const uint32_t *next = pages[(page + ahead) * step];
      next = length == points_per_line ? level_four(next) : next + word;
      for (long line = 0; line < lines; line++) __builtin_prefetch(next + points_per_line * line);
    }
    memcpy(row + page * length, points, (size_t)length * sizeof *row);
  }
}

void peak_gather(uint32_t *row, const uint32_t *const *pages, long step, long count, int level) {
  const long first = 512 - (512 >> (level & 7));
  if (level == 4) {
    // A constant lets the compiler copy without a call.
    gather(row, pages, step, count, first, 16);
  } else {
    gather(row, pages, step, count, first, 256 >> (level & 7));
  }
}

void peak_mark(uint8_t *mark) {
  // Not stored for every use, because that would move the line between the caches of cores.
  if (__atomic_load_n(mark, __ATOMIC_RELAXED) == 0) __atomic_store_n(mark, 1, __ATOMIC_RELAXED);
}

bool peak_take_mark(uint8_t *mark) { return __atomic_exchange_n(mark, 0, __ATOMIC_RELAXED) != 0; }

long peak_find(
  struct peak_search *search, const uint32_t *const *pages, uint8_t *marks, const uint32_t **found, long step) {
  const int64_t per_group = (int64_t)1 << 24, first = search->frame, group_end = (first | (per_group - 1)) + 1;
  const long within = (long)((group_end - first + search->step - 1) / search->step);
  const long count = within < search->count ? within : search->count;
  long missing = 0;
  int64_t frame = first;
  for (long i = 0; i < count; i++) {
    const long index = 1 + (uint8_t)(frame >> 16);
    const uint32_t *page = pages[index];
    found[i * step] = page;
    if (page == NULL) {
      missing++;
    } else {
      peak_mark(&marks[index]);
    }
    frame += search->step;
  }
  search->frame = frame;
  search->count -= count;
  return missing;
}

void peak_copy(uint32_t *pixels, long step, const uint32_t *points, long count) {
  if (step == 1) {
    for (long i = 0; i < count; i++) pixels[i] = points[i] ^ 0xffff0000;
  } else {
    for (long i = 0; i < count; i++) pixels[i * step] = points[i] ^ 0xffff0000;
  }
}
