// @ts-check
import { texts } from "./texts.js";

// The service describes its problems for programs and their authors, in English. For the codes that people meet, the page
// has sentences of its own.

/** Which sentence explains which codes. */
const codes = /** @type {const} */ ({
  problemBusy: "queue_full too_many_uploads too_many_connections request_timeout catalog_busy unavailable hook_unavailable not_ready "
    + "converting measuring idempotency_key_in_use upload_locked limit_requests_per_second limit_running_jobs limit_invalid_keys "
    + "limit_open_uploads limit_connections limit_queued_jobs limit_waiting_uploads limit_waiting_labels limit_waiting_pictures "
    + "limit_waiting_noise_profiles limit_event_streams limit_open_parts limit_waiting_previews limit_waiting_probes",
  problemFull: "disk_full",
  problemQuota: "limit_stored_bytes limit_recordings limit_job_seconds_per_day too_many_tracks too_many_noise_profiles",
  problemDeleted: "not_found upload_expired noise_profile_deleted",
  problemChanged: "precondition_failed",
  problemForbidden: "unauthorized missing_scope token_used hook_refused host_not_allowed origin_not_allowed",
  problemFile: "audio_missing audio_damaged",
  problemShort: "recording_too_short noise_region_too_short",
  problemOutside: "noise_region_outside window_outside",
  problemSilent: "silent_noise",
  problemProfile: "profile_unusable",
  problemLarge: "content_too_large output_limit too_many_pixels",
  problemHeavy: "memory_limit cpu_limit time_limit stalled probe_too_slow",
  problemUnread: "unsupported_media unsupported_format seek_failed decoder_failed waveform_failed",
  problemFormat: "unsupported_output no_cover no_video",
  problemUnknown: "outcome_unknown",
  problemService: "internal_error worker_failed worker_missing encoder_failed io_error write_failed disk_unwritable catalog_unwritable "
    + "catalog_damaged data_folder_replaced audit_unwritable draining",
});

/** The same for the warnings of recordings and tracks of labels. */
const warnings = /** @type {const} */ ({
  warningCut: "truncated frames_missing",
  warningLength: "length_unknown longer_than_claimed length_misstated",
  warningSkipped: "bytes_left_out leading_bytes foreign_bytes",
  warningStreams: "chained_stream streams_left_out",
  warningFirst: "audio_tracks_left_out",
  warningPauses: "silence_left_out",
  warningNumbers: "non_finite_samples",
  warningFull: "over_full_scale",
  warningOffset: "dc_offset",
  warningFormat: "format_changed lossy_result",
  warningTracks: "tracks_left_out labels_left_out",
  warningTags: "tags_left_out chunks_left_out",
  warningProfile: "profile_bands profile_channels",
  warningLoudness: "loudness_missed",
  warningLabels: "labels_past_end",
  warningSpeech: "not_speech",
  warningNoise: "noise_has_speech",
  warningNoNoise: "noise_not_found",
});

/** The same for what is wrong in a file of labels. */
const faults = /** @type {const} */ ({
  faultTime: "bad_time missing_times negative_time time_too_large ends_before_zero",
  faultEnd: "end_before_start",
  faultWords: "word_outside_label words_run_backward",
  faultMuch: "too_many_labels too_many_words too_much_text text_too_long tags_too_deep json_too_deep xml_too_deep",
  faultJSON: "malformed_json missing_member repeated_member unknown_member wrong_type",
  faultBand: "band_upside_down",
  faultFormat: "not_text unknown_format unread_format missing_header malformed_xml xml_has_document_type",
});

/** @type {Map<string, keyof typeof codes | keyof typeof warnings | keyof typeof faults>} */
const sentences = new Map();
for (const [sentence, list] of Object.entries({ ...codes, ...warnings, ...faults })) {
  for (const code of list.split(" ")) sentences.set(code, /** @type {any} */ (sentence));
}

/**
 * Returns what a person can read about a problem of the service (RFC 9457), or about a job's error.
 * @param {{ code?: string, detail?: string, title?: string, fault?: string, line?: number, column?: number } | null | undefined} problem
 * @param {string} otherwise the text if the service hasn't described it
 */
export function explain(problem, otherwise) {
  const { code = "", detail, title, fault = code, line, column } = problem ?? {}, told = detail || title || otherwise;
  const sentence = sentences.get(fault);
  if (!sentence) return told;
  return line && column ? texts.faultAt(line, column, texts[sentence]) : texts[sentence];
}
