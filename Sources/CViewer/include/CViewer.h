// The service's own files, embedded at build time.
#ifndef CVIEWER_H
#define CVIEWER_H
#include <stddef.h>
extern const unsigned char stillwave_openapi_yaml[];
extern const size_t stillwave_openapi_yaml_size;
extern const unsigned char stillwave_index_html[];
extern const size_t stillwave_index_html_size;

// An unsized array is no Swift value; its address is.
static inline const unsigned char *stillwave_openapi_yaml_start(void) { return stillwave_openapi_yaml; }
static inline const unsigned char *stillwave_index_html_start(void) { return stillwave_index_html; }
#endif
