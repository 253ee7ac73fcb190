// Swift can't call functions of variable arguments: curl_easy_setopt and curl_easy_getinfo by the types in use.
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

static inline CURLcode stillwave_curl_set_long(CURL *handle, CURLoption option, long value) {
  return curl_easy_setopt(handle, option, value);
}

static inline CURLcode stillwave_curl_set_pointer(CURL *handle, CURLoption option, const void *value) {
  return curl_easy_setopt(handle, option, value);
}

static inline CURLcode stillwave_curl_set_write(CURL *handle, curl_write_callback function) {
  return curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, function);
}

static inline CURLcode stillwave_curl_set_open_socket(CURL *handle, curl_opensocket_callback function) {
  return curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, function);
}

static inline CURLcode stillwave_curl_set_progress(CURL *handle, curl_xferinfo_callback function) {
  return curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, function);
}

static inline CURLcode stillwave_curl_get_long(CURL *handle, CURLINFO information, long *value) {
  return curl_easy_getinfo(handle, information, value);
}
