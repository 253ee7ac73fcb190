#include "CResampler.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

// From soxr.h 0.1.3.
struct soxr_quality_spec {
  double precision, phase_response, passband_end, stopband_begin;
  void *e;
  unsigned long flags;
};
enum { SOXR_HQ = 4 };

typedef const char *oneshot(
  double in_rate, double out_rate, unsigned channels, const void *in, size_t in_count, size_t *in_done, void *out,
  size_t out_count, size_t *out_done, const void *io, const struct soxr_quality_spec *quality, const void *runtime);
typedef struct soxr_quality_spec quality_spec(unsigned long recipe, unsigned long flags);

static oneshot *run;
static quality_spec *quality;

static void load(void) {
  void *library = dlopen("libsoxr.so.0", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return;
  quality = (quality_spec *)dlsym(library, "soxr_quality_spec");
  run = quality ? (oneshot *)dlsym(library, "soxr_oneshot") : NULL;
}

bool resampler_load(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, load);
  return run != NULL;
}

bool resampler_run(
  const float *in, long in_count, double in_rate, float *out, long out_count, double out_rate
) {
  if (!resampler_load()) return false;
  const struct soxr_quality_spec spec = quality(SOXR_HQ, 0);
  size_t done = 0;
  const char *error = run(
    in_rate, out_rate, 1, in, (size_t)in_count, NULL, out, (size_t)out_count, &done, NULL, &spec, NULL);
  if (error != NULL) return false;
  memset(out + done, 0, ((size_t)out_count - done) * sizeof *out);
  return true;
}
