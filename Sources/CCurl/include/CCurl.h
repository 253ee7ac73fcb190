#pragma once

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

CURLUcode stillwave_curl_url_get(CURLU *url, CURLUPart part, char **text, unsigned int flags);

// curl_easy_setopt and curl_easy_getinfo for the types in use, because Swift can't call variadic functions.

CURLcode stillwave_curl_set_long(CURL *handle, CURLoption option, long value);
CURLcode stillwave_curl_set_pointer(CURL *handle, CURLoption option, const void *value);
CURLcode stillwave_curl_set_write(CURL *handle, curl_write_callback function);
CURLcode stillwave_curl_set_header(CURL *handle, curl_write_callback function);
CURLcode stillwave_curl_set_read(CURL *handle, curl_read_callback function);
CURLcode stillwave_curl_set_seek(CURL *handle, curl_seek_callback function);
CURLcode stillwave_curl_set_open_socket(CURL *handle, curl_opensocket_callback function);
CURLcode stillwave_curl_set_progress(CURL *handle, curl_xferinfo_callback function);
CURLcode stillwave_curl_get_long(CURL *handle, CURLINFO information, long *value);
