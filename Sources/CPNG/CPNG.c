// libpng reports errors by longjmp, which mustn't skip Swift's frames.

#include "CPNG.h"

#include <string.h>

struct sink {
  uint8_t *file;
  size_t room, length;
};

static void append(png_structp png, png_bytep bytes, size_t count) {
  struct sink *sink = png_get_io_ptr(png);
  if (count > sink->room - sink->length) png_error(png, "the file has no room");
  memcpy(sink->file + sink->length, bytes, count);
  sink->length += count;
}

static void flush(png_structp png) { (void)png; }

// Standard error belongs to the log.
static void fail(png_structp png, png_const_charp message) {
  (void)message;
  png_longjmp(png, 1);
}

static void ignore(png_structp png, png_const_charp message) { (void)png, (void)message; }

size_t stillwave_write_png(const struct stillwave_picture *picture, uint8_t *file, size_t room) {
  struct sink sink = {file, room, 0};
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, fail, ignore);
  png_infop info = png == NULL ? NULL : png_create_info_struct(png);
  if (info == NULL || setjmp(png_jmpbuf(png)) != 0) {
    png_destroy_write_struct(&png, &info);
    return 0;
  }
  png_set_write_fn(png, &sink, append, flush);
  png_set_IHDR(png, info, picture->width, picture->height, 8, PNG_COLOR_TYPE_PALETTE, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_set_sRGB(png, info, PNG_sRGB_INTENT_PERCEPTUAL);
  png_set_PLTE(png, info, picture->colors, picture->color_count);
  if (picture->opacity_count > 0) png_set_tRNS(png, info, picture->opacities, picture->opacity_count, NULL);
  // A canvas has no other numbers than those of its colors.
  png_set_check_for_invalid_index(png, 0);
  png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_UP);
  png_set_compression_strategy(png, 3 /* Z_RLE */);
  png_set_compression_level(png, 1);
  // A window of 8 KB and tables for it: clearing larger ones would take longer than compressing. Runs need no window.
  png_set_compression_window_bits(png, 13);
  png_set_compression_mem_level(png, 6);
  png_write_info(png, info);
  for (uint32_t row = 0; row < picture->height; row++) {
    png_write_row(png, picture->pixels + (size_t)row * picture->width);
  }
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return sink.length;
}
