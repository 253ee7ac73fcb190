// The service's own files, embedded at build time.
#ifndef CVIEWER_H
#define CVIEWER_H
#include <stddef.h>
extern const unsigned char stillwave_openapi_yaml[];
extern const size_t stillwave_openapi_yaml_size;

// What each code of a problem means: see ProblemKind.swift.
extern const unsigned char stillwave_problems[];
extern const size_t stillwave_problems_size;

// A file of the page; the first is the page itself.
struct stillwave_file {
  const char *name;
  const unsigned char *bytes;
  size_t size;
};
extern const struct stillwave_file stillwave_viewer_files[];
extern const size_t stillwave_viewer_file_count;

// Swift can't import an unsized array, but it can call a function that returns its address.
static inline const unsigned char *stillwave_openapi_yaml_start(void) { return stillwave_openapi_yaml; }
static inline const unsigned char *stillwave_problems_start(void) { return stillwave_problems; }
static inline const struct stillwave_file *stillwave_viewer_files_start(void) { return stillwave_viewer_files; }
#endif
