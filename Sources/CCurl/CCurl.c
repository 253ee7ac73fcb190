// libcurl is loaded with the first webhook or the first request to a store. Linking it, along with its thirty
// dependencies, took 7 of the 18 ms that this program needs to start, and it is started for every job, preview, and
// upload.
//
// These are the functions of libcurl in use. Each calls the real one or, if libcurl isn't installed, reports a failure.

#include "CCurl.h"

#include <dlfcn.h>
#include <pthread.h>

static void *library;

static void load(void) { library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL); }

static void *real(const char *name) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, load);
  return library ? dlsym(library, name) : NULL;
}

#define FORWARD(result, name, parameters, arguments, otherwise) \
  result name parameters {                                      \
    result(*function) parameters = real(#name);                 \
    return function ? function arguments : otherwise;           \
  }

#define FORWARD_NOTHING(name, parameters, arguments) \
  void name parameters {                             \
    void(*function) parameters = real(#name);        \
    if (function) function arguments;                \
  }

FORWARD(CURLcode, curl_global_init, (long flags), (flags), CURLE_FAILED_INIT)

FORWARD(CURLU *, curl_url, (void), (), NULL)
FORWARD_NOTHING(curl_url_cleanup, (CURLU * url), (url))
FORWARD(CURLUcode, curl_url_set, (CURLU * url, CURLUPart part, const char *text, unsigned int flags),
        (url, part, text, flags), CURLUE_OUT_OF_MEMORY)
FORWARD_NOTHING(curl_free, (void *memory), (memory))

FORWARD(struct curl_slist *, curl_slist_append, (struct curl_slist *list, const char *text), (list, text), NULL)
FORWARD_NOTHING(curl_slist_free_all, (struct curl_slist *list), (list))

FORWARD(CURL *, curl_easy_init, (void), (), NULL)
FORWARD_NOTHING(curl_easy_cleanup, (CURL * handle), (handle))
FORWARD_NOTHING(curl_easy_reset, (CURL * handle), (handle))
FORWARD(CURLcode, curl_easy_perform, (CURL * handle), (handle), CURLE_FAILED_INIT)
FORWARD(const char *, curl_easy_strerror, (CURLcode code), (code), "there is no libcurl")

// Its declared type differs among libcurl's versions.
CURLUcode stillwave_curl_url_get(CURLU *url, CURLUPart part, char **text, unsigned int flags) {
  CURLUcode (*function)(CURLU *, CURLUPart, char **, unsigned int) = real("curl_url_get");
  return function ? function(url, part, text, flags) : CURLUE_OUT_OF_MEMORY;
}

// Variadic functions, which Swift can't call, with the types in use.

static CURLcode set(CURL *handle, CURLoption option, void *value) {
  CURLcode (*function)(CURL *, CURLoption, ...) = real("curl_easy_setopt");
  return function ? function(handle, option, value) : CURLE_FAILED_INIT;
}

CURLcode stillwave_curl_set_long(CURL *handle, CURLoption option, long value) {
  CURLcode (*function)(CURL *, CURLoption, ...) = real("curl_easy_setopt");
  return function ? function(handle, option, value) : CURLE_FAILED_INIT;
}

CURLcode stillwave_curl_set_pointer(CURL *handle, CURLoption option, const void *value) {
  return set(handle, option, (void *)value);
}

CURLcode stillwave_curl_set_write(CURL *handle, curl_write_callback function) {
  return set(handle, CURLOPT_WRITEFUNCTION, (void *)function);
}

CURLcode stillwave_curl_set_header(CURL *handle, curl_write_callback function) {
  return set(handle, CURLOPT_HEADERFUNCTION, (void *)function);
}

CURLcode stillwave_curl_set_read(CURL *handle, curl_read_callback function) {
  return set(handle, CURLOPT_READFUNCTION, (void *)function);
}

CURLcode stillwave_curl_set_seek(CURL *handle, curl_seek_callback function) {
  return set(handle, CURLOPT_SEEKFUNCTION, (void *)function);
}

CURLcode stillwave_curl_set_open_socket(CURL *handle, curl_opensocket_callback function) {
  return set(handle, CURLOPT_OPENSOCKETFUNCTION, (void *)function);
}

CURLcode stillwave_curl_set_progress(CURL *handle, curl_xferinfo_callback function) {
  return set(handle, CURLOPT_XFERINFOFUNCTION, (void *)function);
}

CURLcode stillwave_curl_get_long(CURL *handle, CURLINFO information, long *value) {
  CURLcode (*function)(CURL *, CURLINFO, ...) = real("curl_easy_getinfo");
  return function ? function(handle, information, value) : CURLE_FAILED_INIT;
}
