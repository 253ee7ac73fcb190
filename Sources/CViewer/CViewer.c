#include "CViewer.h"

const unsigned char stillwave_openapi_yaml[] = {
#embed "../../openapi.yaml"
};
const size_t stillwave_openapi_yaml_size = sizeof stillwave_openapi_yaml;

const unsigned char stillwave_index_html[] = {
#embed "index.html"
};
const size_t stillwave_index_html_size = sizeof stillwave_index_html;
