// The service's own files, embedded at build time.
#ifndef CVIEWER_H
#define CVIEWER_H
#include <stddef.h>
extern const unsigned char stillwave_openapi_yaml[];
extern const size_t stillwave_openapi_yaml_size;
extern const unsigned char stillwave_index_html[];
extern const size_t stillwave_index_html_size;
#endif
