#pragma once

#include <png.h>
#include <stdbool.h>
#include <stdint.h>

// A picture whose pixels are numbers of colors, row by row without gaps.
struct stillwave_picture {
  uint32_t width, height;
  const uint8_t *pixels;
  // 1 to 256 colors, and the number of those up to the last one that isn't opaque.
  const png_color *colors;
  const uint8_t *opacities;
  int color_count, opacity_count;
};

// Writes a PNG file to `file`, which has room for `room` bytes. Returns its length, or 0 if libpng fails or the file is
// longer.
//
// Waveforms are vertical: nearly every pixel equals the one above it, so the filter Up leaves long runs of zeros. For
// these zlib's run-length strategy is as good as its search for repetitions, and several times as fast. libpng's
// simplified interface can choose neither.
size_t stillwave_write_png(const struct stillwave_picture *picture, uint8_t *file, size_t room);
