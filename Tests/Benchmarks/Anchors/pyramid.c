// The same pyramid as Stillwave's, in plain C: the baseline for building waveforms. Writes the same bytes.
//
//   pyramid IN.wav OUT.pyramid        IN: stereo, 16 bits, with a header of 44 bytes
//
// Sources/Waveform/Pyramid/PyramidLayout.swift specifies the file. The program reads and writes in large pieces and
// does nothing else: no checks of its input, no progress, no points before their block is full. Each pass over 256
// samples is a loop that compilers vectorize at -O3.
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LANES = 3, POINT = 256, LEVELS = 16, PAGE = 512, BLOCK = 65536, BATCH = 16 };

typedef struct {
  int16_t low, high;
  uint64_t squares, absolutes;
} Sums;

static const Sums none = {INT16_MAX, INT16_MIN, 0, 0};
static int in, out;
static uint64_t lower[BATCH][LANES][PAGE], upper[LANES][PAGE];
static Sums waiting[LEVELS][LANES];
static int64_t made[LEVELS];

static void fail(const char *what) {
  perror(what);
  exit(1);
}

// XXH64 of whole words.
#define P1 0x9e3779b185ebca87u
#define P2 0xc2b2ae3d27d4eb4fu
#define P3 0x165667b19e3779f9u
#define P4 0x85ebca77c2b2ae63u
#define P5 0x27d4eb2f165667c5u

static uint64_t rotate(uint64_t x, int count) { return x << count | x >> (64 - count); }
static uint64_t mixed(uint64_t a, uint64_t x) { return rotate(a + x * P2, 31) * P1; }

static uint64_t hash(const uint64_t *words, int count) {
  uint64_t h = P5;
  int i = 0;
  if (count >= 4) {
    uint64_t a[4] = {P1 + P2, P2, 0, -P1};
    for (; i + 4 <= count; i += 4)
      for (int k = 0; k < 4; k++) a[k] = mixed(a[k], words[i + k]);
    h = rotate(a[0], 1) + rotate(a[1], 7) + rotate(a[2], 12) + rotate(a[3], 18);
    for (int k = 0; k < 4; k++) h = (h ^ mixed(0, a[k])) * P1 + P4;
  }
  h += 8 * (uint64_t)count;
  for (; i < count; i++) h = rotate(h ^ mixed(0, words[i]), 27) * P1 + P4;
  h = (h ^ h >> 33) * P2;
  h = (h ^ h >> 29) * P3;
  return h ^ h >> 32;
}

static void put(const void *bytes, size_t count, int64_t page) {
  if (pwrite(out, bytes, count, page * PAGE * 8) != (ssize_t)count) fail("write");
}

static void seal(uint64_t *page, int64_t number) {
  page[510] = number;
  page[511] = hash(page, 511);
}

static void put_header(int64_t frames) {
  uint64_t words[PAGE] = {0};
  memcpy(words, "SWPYRAMD", 8);
  words[1] = 2 | (uint64_t)44100 << 32;
  words[2] = 2 | (uint64_t)LANES << 32;
  words[3] = hash(words, 3);
  words[4] = frames;
  if (frames >= 0) words[5] = hash(words, 5);
  put(words, sizeof words, 0);
}

static int64_t lower_page(int64_t block) { return 1 + (block + block / 256 + 1) * LANES; }

static void put_upper(int64_t block) {
  int64_t page = 1 + block * 257 * LANES;
  for (int lane = 0; lane < LANES; lane++) seal(upper[lane], page + lane);
  put(upper, sizeof upper, page);
  memset(upper, 0, sizeof upper);
}

static void put_lower(int64_t first, int count) {
  for (int block = 0; block < count; block++)
    for (int lane = 0; lane < LANES; lane++) seal(lower[block][lane], lower_page(first + block) + lane);
  put(lower, count * sizeof lower[0], lower_page(first));
  memset(lower, 0, sizeof lower);
}

static uint64_t word(Sums sums, int64_t frames) {
  uint64_t rms = (uint64_t)(sqrt((double)sums.squares / frames) + 0.5);
  uint64_t average = (uint64_t)((double)sums.absolutes / frames + 0.5);
  return (uint16_t)sums.low | (uint64_t)(uint16_t)sums.high << 16 | rms << 32 | average << 48;
}

static Sums merged(Sums a, Sums b) {
  return (Sums){a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high, a.squares + b.squares,
                a.absolutes + b.absolutes};
}

static void emit(int level, const Sums *sums, int64_t frames) {
  int inner = level & 7;
  int64_t point = made[level]++;
  int place = 512 - (512 >> inner) + (point & ((256 >> inner) - 1));
  int64_t block = point >> (8 - inner);
  for (int lane = 0; lane < LANES; lane++) {
    uint64_t *page = level < 8 ? lower[block % BATCH][lane] : upper[lane];
    page[place] = word(sums[lane], frames);
  }
}

// Adds a whole or partial pair: `sums` is the newest point of level 0, of `frames` frames.
static void add_point(Sums *sums, int64_t frames) {
  int level = 0;
  emit(0, sums, frames);
  while (level < LEVELS - 1) {
    if (made[level] % 2) {
      memcpy(waiting[level], sums, sizeof waiting[level]);
      return;
    }
    for (int lane = 0; lane < LANES; lane++) sums[lane] = merged(sums[lane], waiting[level][lane]);
    frames *= 2;
    emit(++level, sums, frames);
  }
  if (made[level] % 2 == 0) put_upper(made[level] / 2 - 1);
}

// Makes the last, partial point of each level.
static void finish(Sums *open, int64_t frames) {
  for (int level = 0; level < LEVELS; level++) {
    if (frames) emit(level, open, frames);
    if (level == LEVELS - 1) break;
    int64_t whole = frames ? made[level] - 1 : made[level];
    if (whole % 2) {
      for (int lane = 0; lane < LANES; lane++)
        open[lane] = frames ? merged(open[lane], waiting[level][lane]) : waiting[level][lane];
      frames += POINT << level;
    }
  }
}

static inline __attribute__((always_inline)) Sums fold(const int16_t *restrict samples, int count) {
  Sums sums = none;
  int16_t low = INT16_MAX, high = INT16_MIN;
  for (int i = 0; i < count; i++) {
    low = samples[i] < low ? samples[i] : low;
    high = samples[i] > high ? samples[i] : high;
  }
  uint32_t absolutes = 0;
  for (int i = 0; i < count; i++) absolutes += abs(samples[i]);
  // Two squares fit 32 bits. An odd count is followed by a zero.
  uint32_t low_squares = 0, high_squares = 0;
  for (int i = 0; i < (count + 1) / 2; i++) {
    uint32_t pair = (uint32_t)(samples[2 * i] * samples[2 * i]) + (uint32_t)(samples[2 * i + 1] * samples[2 * i + 1]);
    low_squares += pair & 0xffff;
    high_squares += pair >> 16;
  }
  sums.low = low;
  sums.high = high;
  sums.squares = ((uint64_t)high_squares << 16) + low_squares;
  sums.absolutes = absolutes;
  return sums;
}

static inline __attribute__((always_inline)) void fold_frames(const int16_t *restrict frames, int count, Sums *sums) {
  int16_t lanes[LANES][POINT + 1];
  for (int i = 0; i < count; i++) {
    lanes[1][i] = frames[2 * i];
    lanes[2][i] = frames[2 * i + 1];
    lanes[0][i] = (frames[2 * i] + frames[2 * i + 1]) / 2;
  }
  for (int lane = 0; lane < LANES; lane++) lanes[lane][count] = 0;
  for (int lane = 0; lane < LANES; lane++) sums[lane] = fold(lanes[lane], count);
}

// With a constant length, the loops vectorize better.
static void fold_point(const int16_t *frames, int count, Sums *sums) {
  if (count == POINT)
    fold_frames(frames, POINT, sums);
  else
    fold_frames(frames, count, sums);
}

int main(int count, char **words) {
  if (count != 3) return 2;
  unlink(words[2]);
  in = open(words[1], O_RDONLY);
  out = open(words[2], O_WRONLY | O_CREAT | O_EXCL, 0644);
  if (in < 0 || out < 0) fail("open");
  put_header(-1);
  // Half the second-level cache, and whole points.
  enum { READ = 1 << 18 };
  int16_t *samples = aligned_alloc(4096, READ);
  int64_t total = 0, blocks = 0;
  Sums open_sums[LANES] = {none, none, none};
  int open_frames = 0;
  for (off_t offset = 44;;) {
    ssize_t got = 0, part;
    while (got < READ && (part = pread(in, (char *)samples + got, READ - got, offset + got)) > 0) got += part;
    int frames = got / 4;
    if (!frames) break;
    offset += got;
    for (int start = 0; start < frames; start += POINT) {
      int length = frames - start < POINT ? frames - start : POINT;
      fold_point(samples + 2 * start, length, open_sums);
      open_frames = length % POINT;
      if (length == POINT) add_point(open_sums, POINT);
      total += length;
      if (total % ((int64_t)BLOCK * BATCH) == 0) {
        put_lower(blocks, BATCH);
        blocks += BATCH;
      }
    }
  }
  finish(open_sums, open_frames);
  int rest = (int)((total + BLOCK - 1) / BLOCK - blocks);
  if (rest) put_lower(blocks, rest);
  if (total % (1 << 24)) put_upper(total >> 24);
  if (fsync(out)) fail("fsync");
  put_header(total);
  if (fsync(out)) fail("fsync");
  return 0;
}
