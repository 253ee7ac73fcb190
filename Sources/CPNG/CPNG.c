// libpng reports errors by longjmp, which mustn't skip Swift's frames.

#include "CPNG.h"

#include <stdlib.h>
#include <string.h>

#include "runs.h"

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

// The chunks besides the data have less than 1.2 KB.
size_t stillwave_png_bound(uint32_t width, uint32_t height) { return stillwave_runs_bound(width, height) + 2048; }

size_t stillwave_write_png(const struct stillwave_picture *picture, uint8_t *file, size_t room) {
  struct sink sink = {file, room, 0};
  uint8_t *data = malloc(stillwave_runs_bound(picture->width, picture->height));
  const size_t data_length =
    data == NULL ? 0 : stillwave_compress_runs(picture->pixels, picture->width, picture->height, data);
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, fail, ignore);
  png_infop info = png == NULL ? NULL : png_create_info_struct(png);
  if (info == NULL || data_length == 0 || setjmp(png_jmpbuf(png)) != 0) {
    png_destroy_write_struct(&png, &info);
    free(data);
    return 0;
  }
  png_set_write_fn(png, &sink, append, flush);
  png_set_IHDR(png, info, picture->width, picture->height, 8, PNG_COLOR_TYPE_PALETTE, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_set_sRGB(png, info, PNG_sRGB_INTENT_PERCEPTUAL);
  png_set_PLTE(png, info, picture->colors, picture->color_count);
  if (picture->opacity_count > 0) png_set_tRNS(png, info, picture->opacities, picture->opacity_count, NULL);
  png_write_info(png, info);
  png_write_chunk(png, (png_const_bytep)"IDAT", data, data_length);
  png_write_chunk(png, (png_const_bytep)"IEND", NULL, 0);
  free(data);
  png_destroy_write_struct(&png, &info);
  return sink.length;
}
