#include "CViewer.h"

const unsigned char stillwave_openapi_yaml[] = {
#embed "../../openapi.yaml"
};
const size_t stillwave_openapi_yaml_size = sizeof stillwave_openapi_yaml;

const unsigned char stillwave_problems[] = {
#embed "problems.txt"
};
const size_t stillwave_problems_size = sizeof stillwave_problems;

static const unsigned char index_html[] = {
#embed "index.html"
};
static const unsigned char address_js[] = {
#embed "viewer/address.js"
};
static const unsigned char boxes_js[] = {
#embed "viewer/boxes.js"
};
static const unsigned char spectrogramcanvas_js[] = {
#embed "viewer/spectrogramcanvas.js"
};
static const unsigned char spectrogramtiles_js[] = {
#embed "viewer/spectrogramtiles.js"
};
static const unsigned char spectrogramview_js[] = {
#embed "viewer/spectrogramview.js"
};
static const unsigned char spectrogram_css[] = {
#embed "viewer/spectrogram.css"
};
static const unsigned char cleaning_js[] = {
#embed "viewer/cleaning.js"
};
static const unsigned char comparison_js[] = {
#embed "viewer/comparison.js"
};
static const unsigned char controls_js[] = {
#embed "viewer/controls.js"
};
static const unsigned char credentials_js[] = {
#embed "viewer/credentials.js"
};
static const unsigned char drawing_js[] = {
#embed "viewer/drawing.js"
};
static const unsigned char drawers_js[] = {
#embed "viewer/drawers.js"
};
static const unsigned char editing_js[] = {
#embed "viewer/editing.js"
};
static const unsigned char events_js[] = {
#embed "viewer/events.js"
};
static const unsigned char excerpt_js[] = {
#embed "viewer/excerpt.js"
};
static const unsigned char foresight_js[] = {
#embed "viewer/foresight.js"
};
static const unsigned char gestures_js[] = {
#embed "viewer/gestures.js"
};
static const unsigned char labelling_js[] = {
#embed "viewer/labelling.js"
};
static const unsigned char labels_js[] = {
#embed "viewer/labels.js"
};
static const unsigned char labeltiles_js[] = {
#embed "viewer/labeltiles.js"
};
static const unsigned char lane_js[] = {
#embed "viewer/lane.js"
};
static const unsigned char icon_svg[] = {
#embed "viewer/icon.svg"
};
static const unsigned char language_js[] = {
#embed "viewer/language.js"
};
static const unsigned char library_js[] = {
#embed "viewer/library.js"
};
static const unsigned char loading_js[] = {
#embed "viewer/loading.js"
};
static const unsigned char main_js[] = {
#embed "viewer/main.js"
};
static const unsigned char media_js[] = {
#embed "viewer/media.js"
};
static const unsigned char mediakeys_js[] = {
#embed "viewer/mediakeys.js"
};
static const unsigned char noisecurve_js[] = {
#embed "viewer/noisecurve.js"
};
static const unsigned char memory_js[] = {
#embed "viewer/memory.js"
};
static const unsigned char messages_js[] = {
#embed "viewer/messages.js"
};
static const unsigned char meter_js[] = {
#embed "viewer/meter.js"
};
static const unsigned char page_js[] = {
#embed "viewer/page.js"
};
static const unsigned char phrases_js[] = {
#embed "viewer/phrases.js"
};
static const unsigned char picking_js[] = {
#embed "viewer/picking.js"
};
static const unsigned char player_js[] = {
#embed "viewer/player.js"
};
static const unsigned char preview_js[] = {
#embed "viewer/preview.js"
};
static const unsigned char problems_js[] = {
#embed "viewer/problems.js"
};
static const unsigned char profiles_js[] = {
#embed "viewer/profiles.js"
};
static const unsigned char reels_js[] = {
#embed "viewer/reels.js"
};
static const unsigned char result_js[] = {
#embed "viewer/result.js"
};
static const unsigned char service_js[] = {
#embed "viewer/service.js"
};
static const unsigned char session_js[] = {
#embed "viewer/session.js"
};
static const unsigned char sharing_js[] = {
#embed "viewer/sharing.js"
};
static const unsigned char signal_js[] = {
#embed "viewer/signal.js"
};
static const unsigned char singing_js[] = {
#embed "viewer/singing.js"
};
static const unsigned char spectrum_js[] = {
#embed "viewer/spectrum.js"
};
static const unsigned char stage_js[] = {
#embed "viewer/stage.js"
};
static const unsigned char texts_ar_js[] = {
#embed "viewer/texts-ar.js"
};
static const unsigned char texts_de_js[] = {
#embed "viewer/texts-de.js"
};
static const unsigned char texts_es_js[] = {
#embed "viewer/texts-es.js"
};
static const unsigned char texts_fr_js[] = {
#embed "viewer/texts-fr.js"
};
static const unsigned char texts_ja_js[] = {
#embed "viewer/texts-ja.js"
};
static const unsigned char texts_js[] = {
#embed "viewer/texts.js"
};
static const unsigned char tiles_js[] = {
#embed "viewer/tiles.js"
};
static const unsigned char time_js[] = {
#embed "viewer/time.js"
};
static const unsigned char transcript_js[] = {
#embed "viewer/transcript.js"
};
static const unsigned char transfers_js[] = {
#embed "viewer/transfers.js"
};
static const unsigned char undo_js[] = {
#embed "viewer/undo.js"
};
static const unsigned char uploads_js[] = {
#embed "viewer/uploads.js"
};
static const unsigned char variants_js[] = {
#embed "viewer/variants.js"
};
static const unsigned char verses_js[] = {
#embed "viewer/verses.js"
};
static const unsigned char view_js[] = {
#embed "viewer/view.js"
};
static const unsigned char wav_js[] = {
#embed "viewer/wav.js"
};
static const unsigned char words_js[] = {
#embed "viewer/words.js"
};
static const unsigned char viewer_css[] = {
#embed "viewer/viewer.css"
};

// What other pages embed, and the documentation with its guides.
static const unsigned char embed_html[] = {
#embed "embed.html"
};
static const unsigned char embed_js[] = {
#embed "embed/page.js"
};
static const unsigned char embed_css[] = {
#embed "embed/page.css"
};
static const unsigned char docs_html[] = {
#embed "docs.html"
};
static const unsigned char docs_js[] = {
#embed "docs/docs.js"
};
static const unsigned char docs_css[] = {
#embed "docs/docs.css"
};
static const unsigned char markdown_js[] = {
#embed "docs/markdown.js"
};
static const unsigned char yaml_js[] = {
#embed "docs/yaml.js"
};
static const unsigned char stillwave_js[] = {
#embed "../../embed/stillwave.js"
};
static const unsigned char spectrogram_js[] = {
#embed "../../embed/spectrogram.js"
};
static const unsigned char api_md[] = {
#embed "../../docs/api.md"
};
static const unsigned char embedding_md[] = {
#embed "../../docs/embedding.md"
};
static const unsigned char labels_md[] = {
#embed "../../docs/labels.md"
};
static const unsigned char formats_md[] = {
#embed "../../docs/formats.md"
};
static const unsigned char clients_md[] = {
#embed "../../docs/clients.md"
};
static const unsigned char operating_md[] = {
#embed "../../docs/operating.md"
};
static const unsigned char proxies_md[] = {
#embed "../../docs/proxies.md"
};
static const unsigned char cluster_md[] = {
#embed "../../docs/cluster.md"
};
static const unsigned char security_md[] = {
#embed "../../docs/security.md"
};
static const unsigned char fences_md[] = {
#embed "../../docs/fences.md"
};
static const unsigned char how_it_works_md[] = {
#embed "../../docs/how-it-works.md"
};
static const unsigned char benchmarks_md[] = {
#embed "../../docs/benchmarks.md"
};

#define FILE(name, bytes) {name, bytes, sizeof bytes}
const struct stillwave_file stillwave_viewer_files[] = {
  FILE("index.html", index_html),
  FILE("address.js", address_js),
  FILE("boxes.js", boxes_js),
  FILE("spectrogramcanvas.js", spectrogramcanvas_js),
  FILE("spectrogramtiles.js", spectrogramtiles_js),
  FILE("spectrogramview.js", spectrogramview_js),
  FILE("spectrogram.css", spectrogram_css),
  FILE("cleaning.js", cleaning_js),
  FILE("comparison.js", comparison_js),
  FILE("controls.js", controls_js),
  FILE("credentials.js", credentials_js),
  FILE("drawing.js", drawing_js),
  FILE("drawers.js", drawers_js),
  FILE("editing.js", editing_js),
  FILE("events.js", events_js),
  FILE("excerpt.js", excerpt_js),
  FILE("foresight.js", foresight_js),
  FILE("gestures.js", gestures_js),
  FILE("labelling.js", labelling_js),
  FILE("labels.js", labels_js),
  FILE("labeltiles.js", labeltiles_js),
  FILE("lane.js", lane_js),
  FILE("icon.svg", icon_svg),
  FILE("language.js", language_js),
  FILE("library.js", library_js),
  FILE("loading.js", loading_js),
  FILE("main.js", main_js),
  FILE("media.js", media_js),
  FILE("mediakeys.js", mediakeys_js),
  FILE("noisecurve.js", noisecurve_js),
  FILE("memory.js", memory_js),
  FILE("messages.js", messages_js),
  FILE("meter.js", meter_js),
  FILE("page.js", page_js),
  FILE("phrases.js", phrases_js),
  FILE("picking.js", picking_js),
  FILE("player.js", player_js),
  FILE("preview.js", preview_js),
  FILE("problems.js", problems_js),
  FILE("profiles.js", profiles_js),
  FILE("reels.js", reels_js),
  FILE("result.js", result_js),
  FILE("service.js", service_js),
  FILE("session.js", session_js),
  FILE("sharing.js", sharing_js),
  FILE("signal.js", signal_js),
  FILE("singing.js", singing_js),
  FILE("spectrum.js", spectrum_js),
  FILE("stage.js", stage_js),
  FILE("texts-ar.js", texts_ar_js),
  FILE("texts-de.js", texts_de_js),
  FILE("texts-es.js", texts_es_js),
  FILE("texts-fr.js", texts_fr_js),
  FILE("texts-ja.js", texts_ja_js),
  FILE("texts.js", texts_js),
  FILE("tiles.js", tiles_js),
  FILE("time.js", time_js),
  FILE("transcript.js", transcript_js),
  FILE("transfers.js", transfers_js),
  FILE("undo.js", undo_js),
  FILE("uploads.js", uploads_js),
  FILE("variants.js", variants_js),
  FILE("verses.js", verses_js),
  FILE("view.js", view_js),
  FILE("wav.js", wav_js),
  FILE("words.js", words_js),
  FILE("viewer.css", viewer_css),
  FILE("embed.html", embed_html),
  FILE("embed.js", embed_js),
  FILE("embed.css", embed_css),
  FILE("docs.html", docs_html),
  FILE("docs.js", docs_js),
  FILE("docs.css", docs_css),
  FILE("markdown.js", markdown_js),
  FILE("yaml.js", yaml_js),
  FILE("stillwave.js", stillwave_js),
  FILE("spectrogram.js", spectrogram_js),
  FILE("api.md", api_md),
  FILE("embedding.md", embedding_md),
  FILE("labels.md", labels_md),
  FILE("formats.md", formats_md),
  FILE("clients.md", clients_md),
  FILE("operating.md", operating_md),
  FILE("proxies.md", proxies_md),
  FILE("cluster.md", cluster_md),
  FILE("security.md", security_md),
  FILE("fences.md", fences_md),
  FILE("how-it-works.md", how_it_works_md),
  FILE("benchmarks.md", benchmarks_md),
  FILE("problems.txt", stillwave_problems),
};
const size_t stillwave_viewer_file_count = sizeof stillwave_viewer_files / sizeof *stillwave_viewer_files;
