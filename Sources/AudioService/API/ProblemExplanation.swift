/// Explains a problem's code, for the page at its `type`.
struct ProblemExplanation: Sendable {
  let code: String
  /// A short title without a period.
  let title: String
  /// What happened.
  let meaning: String
  /// What the client, its user, or the operator can do about it.
  let remedy: String

  init(_ code: String, _ title: String, _ meaning: String, _ remedy: String) {
    (self.code, self.title, self.meaning, self.remedy) = (code, title, meaning, remedy)
  }

  /// Every code of a response or a failed job, which a test compares with the source.
  static let all = Dictionary(
    uniqueKeysWithValues: (ofRequests + ofHTTP + ofAccess + ofRecordings + ofUploads + ofLimits + ofService + ofJobs)
      .map { ($0.code, $0) })

  private static let ofRequests = [
    Self(
      "duplicate_parameter", "A query parameter is given twice",
      "The query has the parameter more than once, so it isn't clear which value counts.",
      "Send the parameter once. “parameter” names it."),
    Self(
      "invalid_header", "A header field has an invalid value",
      "A header field of the request has a value that the service can't use.",
      "“detail” says what the field must be; “parameter” names the field."),
    Self(
      "invalid_json", "The body is not a JSON object",
      "The body isn't valid JSON in UTF-8, has a member twice, or is JSON but not an object.",
      "Send one JSON object as RFC 8259 defines it: no comments and no comma after the last member."),
    Self(
      "invalid_member", "A member of the body has an invalid value",
      "A member of the JSON object has a value of the wrong type or outside its range, or must not be combined with "
        + "another one.",
      "“detail” says what is expected; “parameter” names the member."),
    Self(
      "invalid_multipart", "The form doesn't have the right parts",
      "The request is multipart/form-data without a boundary, without a part named “file”, or with other parts.",
      "Send a form with exactly one part, named “file”, or send the file's bytes as the body without a form."),
    Self(
      "invalid_parameter", "A query parameter has an invalid value",
      "A query parameter has a value of the wrong type or outside its range, or must not be combined with another one.",
      "“detail” says what is expected; “parameter” names the parameter."),
    Self(
      "not_acceptable", "The client accepts no possible response",
      "The field “Accept” excludes every type that this address can respond with.",
      "Accept one of the types that “detail” lists."),
    Self(
      "unknown_member", "The body has an unknown member",
      "The JSON object has a member that this call doesn't know. Unknown members aren't ignored, so that typos don't "
        + "pass unnoticed.",
      "Remove the member or correct its name. “detail” lists the known members."),
    Self(
      "unknown_parameter", "The query has an unknown parameter",
      "The query has a parameter that this call doesn't know. Unknown parameters aren't ignored, so that typos "
        + "don't pass unnoticed.",
      "Remove the parameter or correct its name. “detail” lists the known parameters."),
    Self(
      "unsupported_content_encoding", "The body is compressed",
      "The request has a Content-Encoding, but the service accepts only bodies without one.",
      "Send the body without compression and without the field."),
    Self(
      "unsupported_content_type", "The body has the wrong Content-Type",
      "The field “Content-Type” names another type than the one that this call reads.",
      "Send JSON as application/json, and the bytes of a resumable upload as application/offset+octet-stream."),
  ]

  private static let ofHTTP = [
    Self(
      "head_too_large", "The header section is too large",
      "The header fields of the request are longer or more numerous than the service accepts.",
      "Send at most 100 fields and 16 KiB in all."),
    Self(
      "host_not_allowed", "The service doesn't accept this host name",
      "The request was sent to a host name that the service doesn't know as its own. This keeps foreign web pages from "
        + "reaching it through one of their own names.",
      "Use the IP address or localhost, or have the operator add the name to --allowed-hosts."),
    Self(
      "malformed_body", "The chunks of the body are malformed",
      "The body is sent in chunks (Transfer-Encoding: chunked) that break the rules of HTTP/1.1.",
      "This is a fault of the HTTP client or of a proxy on the way."),
    Self(
      "malformed_multipart", "The form is malformed",
      "The body doesn't have the parts that its boundary announces, or it ends before the last part does.",
      "Send the complete form again, preferably built by a library."),
    Self(
      "malformed_request", "The request is malformed",
      "The request line or a header field breaks the rules of HTTP/1.1. The connection is closed.",
      "“detail” names the faulty part. Escape special characters in addresses as %XX."),
    Self(
      "method_not_allowed", "This address doesn't support the method",
      "The address exists, but doesn't support this method.", "Use one of the methods that the field “Allow” lists."),
    Self(
      "misdirected_request", "The target is an https address",
      "The request's target is an https URL, but it came over a connection without TLS.",
      "Send only the path, or configure the proxy to do so."),
    Self(
      "origin_not_allowed", "A foreign web page tries to make a change",
      "A browser sent the request for a page of another origin, and pages of that origin may not change anything.",
      "Have the operator add the page's origin to --cors-origin."),
    Self(
      "precondition_failed", "The resource has changed",
      "The request depended on a certain version of the resource, which has another version now. Nothing was changed.",
      "Read the resource again, look at what has changed, and decide again."),
    Self(
      "precondition_required", "The request must name a version",
      "The resource may be changed by several clients, so a request that changes it must say which version it changes.",
      "Send “If-Match” with the resource's ETag."),
    Self(
      "range_not_satisfiable", "No part of the range exists",
      "Every range that the request asks for begins past the end of the content.",
      "The field “Content-Range” has the length of the content."),
    Self(
      "request_timeout", "The request came too slowly",
      "The head or the body of the request didn't arrive in time.",
      "Send it again. Over a slow connection, use a resumable upload."),
    Self(
      "too_many_connections", "There are too many connections",
      "The service has as many connections open as it can serve.",
      "Try again after “Retry-After” seconds, and reuse connections. Operators set the limit with --max-connections."),
    Self(
      "truncated_body", "The body ended early",
      "The connection ended before the whole body had arrived. Nothing of it was kept.",
      "Send it again. Over an unreliable connection, use a resumable upload."),
    Self(
      "unknown_method", "The method is unknown",
      "The service doesn't know this request method.", "Use a method that openapi.yaml lists for the address."),
    Self(
      "unsupported_expectation", "The expectation isn't supported",
      "The field “Expect” asks for something other than 100-continue.", "Send the request without it."),
    Self(
      "unsupported_transfer_coding", "The transfer coding isn't supported",
      "The body is sent with a transfer coding other than chunked.", "Send it with a Content-Length, or chunked."),
    Self(
      "unsupported_version", "The HTTP version isn't supported",
      "The request uses a version of HTTP that the service doesn't support.", "Use HTTP/1.1."),
    Self(
      "uri_too_long", "The address is too long",
      "The request line is longer than the service accepts.",
      "Shorten the query: the request line may have 8 KiB."),
  ]

  private static let ofRecordings = [
    Self(
      "audio_damaged", "The recording's file is damaged",
      "The recording is listed, but its file on the service's disk is shorter or longer than before, or can no longer "
        + "be decoded.", "Upload the recording again, or have the operator restore the data folder from a backup."),
    Self(
      "audio_missing", "The recording's file is gone",
      "The recording is listed, but its file is no longer on the service's disk.",
      "Upload the recording again, or have the operator restore the data folder from a backup."),
    Self(
      "callback_refused", "The callback address can't be used",
      "The “callback_url” has a form that isn't allowed, or leads into a private network.",
      "Use an http or https address that the service may call. Operators allow private networks with "
        + "--webhook-networks."),
    Self(
      "converting", "The conversion is in progress",
      "The recording is being converted to the format asked for, which takes longer than a request waits.",
      "Try again after “Retry-After” seconds; the conversion continues meanwhile."),
    Self(
      "measuring", "The measurement is in progress",
      "The recording's loudness is being measured, which takes longer than a request waits.",
      "Try again after “Retry-After” seconds; the measurement continues meanwhile."),
    Self(
      "idempotency_key_in_use", "A request with this key is in progress",
      "Another request with the same Idempotency-Key is in progress.",
      "Wait for its response, or send the request again after “Retry-After” seconds."),
    Self(
      "idempotency_key_reused", "The key belongs to another request",
      "The Idempotency-Key was already used for a request with other content.",
      "Use a new key for each new request, and the same key only to repeat one."),
    Self(
      "job_finished", "The job has already finished",
      "Only a job that is queued or running can be canceled.", "Read the job to see its result."),
    Self(
      "no_video", "The recording has no video",
      "The recording has only sound.", "Use “audio” instead of “video”."),
    Self(
      "noise_region_outside", "The noise region is outside the recording",
      "A stretch to learn the noise from isn't within the recording.",
      "Choose “start” and “end” within the recording's duration, in seconds."),
    Self(
      "noise_region_too_short", "The noise region is too short",
      "The stretch has too few frames to measure a spectrum.",
      "Choose a longer one; half a second or more works well."),
    Self(
      "not_found", "There is nothing here",
      "The address doesn't exist, or the resource was deleted.", "Check the address and the id."),
    Self(
      "not_ready", "The sound isn't finished yet",
      "The recording is the result of a job that hasn't finished.",
      "Follow the job and try again when it has succeeded."),
    Self(
      "recording_too_short", "The recording is too short",
      "The recording has too few frames to learn its noise from.", "Use a longer recording."),
    Self(
      "invalid_labels", "The file can't be read as labels",
      "The body isn't in the format that the request names, or has a time, a tag or a value that the format doesn't "
        + "allow.", "“detail” says what is wrong in which line and column. Correct it and send the file again."),
    Self(
      "too_many_noise_profiles", "There are too many noise profiles",
      "The maximum number of noise profiles is kept already.", "Delete one that is no longer needed."),
    Self(
      "too_many_tracks", "The recording has too many tracks of labels",
      "A recording can have only so many tracks, and this one has all of them.", "Delete a track first."),
    Self(
      "too_many_pixels", "The response would be too large",
      "The window at this scale has more pixels or numbers than one response may have.",
      "Use a larger scale, a smaller width or a shorter window."),
    Self(
      "unsupported_format", "The sound is outside the limits",
      "The number of channels, the sample rate or the duration exceeds what the service accepts.",
      "“detail” names the limit. Convert or shorten the file."),
    Self(
      "unsupported_media", "The file isn't audio that the service can read",
      "The bytes are of an unknown kind, or not a single frame of the sound could be decoded. The bytes decide, not "
        + "the name.", "Convert the file, for example to FLAC or WAV."),
    Self(
      "unsupported_output", "The format can't hold the sound",
      "The requested format doesn't support the recording's sample rate or number of channels.",
      "Choose another one; wav supports all."),
    Self(
      "waveform_not_failed", "The waveform has not failed",
      "Only a waveform whose job failed can be rebuilt.", "There is nothing to do: it is ready or being built."),
    Self(
      "webhooks_off", "Webhooks are off",
      "The request has a “callback_url”, but the service has no secret to sign webhooks with.",
      "Follow the job instead, or have the operator set --webhook-secret."),
    Self(
      "window_outside", "The window is outside the recording",
      "The window begins past the end of the recording.", "Choose a window within the recording's duration, in seconds."
    ),
  ]

  private static let ofUploads = [
    Self(
      "checksum_mismatch", "The bytes don't match their digest",
      "The body doesn't have the digest that “Upload-Checksum” gives. None of it was kept.",
      "Send the bytes again from the upload's offset."),
    Self(
      "content_too_large", "The body is too large",
      "The body is longer than this call accepts, or longer than the rest of the upload.",
      "“detail” has the limit. Operators set the limit of uploads with --max-upload-bytes."),
    Self(
      "empty_body", "The upload is empty", "The upload has no bytes.", "Send the file's bytes as the body."),
    Self(
      "probe_too_slow", "The file takes too long to probe",
      "Finding out what the file contains takes more processor time than an upload may use.",
      "Save the sound as a new file, for example as FLAC, and upload that."),
    Self(
      "unsupported_tus_version", "The version of tus isn't supported",
      "The field “Tus-Resumable” is missing or names a version of the protocol other than 1.0.0.",
      "Send “Tus-Resumable: 1.0.0”."),
    Self(
      "upload_expired", "The upload has expired",
      "The resumable upload was not continued in time, and its bytes were removed.", "Start a new upload."),
    Self(
      "upload_locked", "Another request continues the upload",
      "A newer request has taken over the upload, one is just ending, or another node is making the recording.",
      "Ask for the offset with HEAD and continue from there."),
    Self(
      "unsupported_tus_extension", "The upload asks for an extension that the service doesn't support",
      "The request uses an extension of the tus protocol, such as concatenation, that the service doesn't support.",
      "See “Tus-Extension” of an OPTIONS request for the extensions, and send the whole file as one upload."),
    Self(
      "upload_offset_mismatch", "The offset is wrong",
      "“Upload-Offset” is not the upload's current offset.", "Ask for the offset with HEAD and continue from there."),
  ]

  private static let ofLimits = [
    Self(
      "limit_open_uploads", "This client has too many unfinished uploads",
      "The number of resumable uploads that one client may have open is limited, so that no client takes everyone's "
        + "room.",
      "Finish or delete some, or try again after “Retry-After” seconds."),
    Self(
      "limit_connections", "This client has too many connections open",
      "The number of connections that one client may have open is limited, so that no client takes everyone's places.",
      "Close some or reuse them, and try again after “Retry-After” seconds. The operator can raise the limit "
        + "(--max-connections-per-client) and name proxies whose clients share an address (--trusted-proxies)."),
    Self(
      "limit_queued_jobs", "This client has too many jobs waiting",
      "The number of jobs that one client may have in the queue is limited, so that no client takes everyone's places.",
      "Wait until some have finished, and try again after “Retry-After” seconds."),
    Self(
      "limit_waiting_labels", "This client sends too many files of labels",
      "Long files of labels are read a few at a time, and the number of those that one client may have waiting is "
        + "limited.", "Send fewer at a time, and try again after “Retry-After” seconds."),
    Self(
      "limit_waiting_noise_profiles", "This client sends too many noise profiles",
      "Long noise profiles are read a few at a time, and the number of those that one client may have waiting is "
        + "limited.", "Send fewer at a time, and try again after “Retry-After” seconds."),
    Self(
      "limit_waiting_pictures", "This client is waiting for too many pictures",
      "The number of pictures, long slices and windows of samples that one client may wait for at once is limited.",
      "Ask for fewer at a time, and try again after “Retry-After” seconds."),
    Self(
      "limit_event_streams", "This client has too many event streams open",
      "The number of event streams of the list (`GET /v1/events`) that one client may have open is limited.",
      "Close some, or share one among pages, and try again after “Retry-After” seconds."),
    Self(
      "limit_open_parts", "This client is reading too many parts of recordings",
      "The number of parts of recordings (`audio` with `start` and `end`) that one client may read at once is limited.",
      "Read fewer at a time, and try again after “Retry-After” seconds."),
    Self(
      "limit_waiting_previews", "This client is waiting for too many previews",
      "The number of previews and spectra that one client may wait for at once is limited.",
      "Ask for fewer at a time, and try again after “Retry-After” seconds."),
    Self(
      "limit_waiting_probes", "This client has too many uploads waiting to be probed",
      "The number of uploads of one client that may wait to be probed is limited.",
      "Send fewer files at a time, and try again after “Retry-After” seconds."),
    Self(
      "queue_full", "The queue is full",
      "The maximum number of jobs is waiting already.", "Try again after “Retry-After” seconds."),
    Self(
      "too_many_uploads", "There are too many unfinished uploads",
      "The maximum number of resumable uploads is open already.", "Try again after “Retry-After” seconds."),
  ]

  private static let ofService = [
    Self(
      "catalog_busy", "The catalog is locked",
      """
      The service can't use its database at the moment: another program has locked it, or a write takes too long. \
      Nothing was changed.
      """,
      """
      Try again after “Retry-After” seconds. Operators: look for “a write holds the catalog” in the log, and for a \
      program that has catalog.sqlite open.
      """),
    Self(
      "catalog_damaged", "The catalog is damaged",
      "The service's database is damaged. Nothing was changed.",
      "Operators: stop the service and run “stillwave check --repair”, or restore a backup."),
    Self(
      "catalog_unwritable", "The catalog can't be written",
      "The service can't write its database at the moment. Nothing was changed.",
      "Operators: check the disk and the permissions of the data folder."),
    Self(
      "media_full", "The store of recordings is full",
      "The recordings are in a bucket, and it or its owner has no room left.",
      "Delete recordings that you no longer need, or ask the operator for a larger quota. Jobs wait until there is room."
    ),
    Self(
      "media_unavailable", "The store of recordings can't be used",
      "The recordings are in a bucket, and its store can't be reached or refuses requests at the moment. A job fails "
        + "with this only after more than half an hour.",
      "Try again after “Retry-After” seconds. Operators: the log has the store's answer."),
    Self(
      "data_folder_replaced", "The data folder was replaced",
      "The catalog or the lock in the service's data folder was removed or replaced while the service ran. Nothing was "
        + "changed.", "Operators: restart the service."),
    Self(
      "disk_full", "The disk is full",
      "The service's disk doesn't have enough room.",
      "Delete recordings that you no longer need, or ask the operator to make room."),
    Self(
      "disk_unwritable", "The disk can't be written",
      "The service can't write to its disk at the moment. Nothing was changed.",
      "Operators: check whether the disk is mounted read-only and who owns the data folder."),
    Self(
      "draining", "This node is about to stop",
      "The service was told to stop: it still answers requests, but begins no more jobs.",
      "Send requests to another node, or wait until the service has started again."),
    Self(
      "internal_error", "The service failed",
      "The service failed on this request through no fault of the client.",
      "Try again. Operators: the field “X-Request-Id” names the entry in the log."),
    Self(
      "outcome_unknown", "The change may have been made",
      "The catalog's server, or its standby, failed or didn't answer in time, so the service doesn't know whether the "
        + "change was made. It may also be made a little later.",
      "Check whether it was made before you repeat the request. A request with an “Idempotency-Key” can be repeated with "
        + "the same key: it is carried out only once."),
    Self(
      "unavailable", "The service can't do this right now",
      "Too many requests of this kind are waiting, or a part of the service is busy or has just failed.",
      "Try again after “Retry-After” seconds."),
    Self(
      "worker_missing", "The program for workers is missing",
      "The program that the service starts its workers from is missing or can't be run.",
      "Operators: reinstall the service and restart it."),
  ]

  private static let ofJobs = [
    Self(
      "cpu_limit", "The work took too much processor time",
      "The work on this recording used more processor time than is allowed for its length.",
      "The file is unusual: convert it, for example to FLAC, and upload that."),
    Self(
      "decoder_failed", "The decoder crashed",
      "ffmpeg crashed on this file.", "The file is probably damaged: convert or repair it, and upload that."),
    Self(
      "encoder_failed", "The result couldn't be written",
      "ffmpeg could not write the result in the requested format.", "Choose another format."),
    Self(
      "io_error", "A file couldn't be used",
      "Reading or writing a file on the service's disk failed. With several nodes, that means that it was tried for more "
        + "than half an hour.", "Try again. Operators: check the disk."),
    Self(
      "memory_limit", "The work took too much memory",
      "The work on this recording needed more memory than a worker may use.",
      "Use a shorter recording, or have the operator raise --worker-memory-bytes."),
    Self(
      "noise_profile_deleted", "The noise profile was deleted",
      "The noise profile that the job was to use was deleted before the job began.",
      "Request the work again with another profile."),
    Self(
      "profile_unusable", "The noise profile can't be used",
      "The noise profile can't be read, or isn't a valid one.", "Make it again, and request the work again."),
    Self(
      "output_limit", "The result became too large",
      "The work on this recording wrote a longer file than is allowed.", "The file is unusual: convert it first."),
    Self(
      "seek_failed", "The decoder couldn't reach a position",
      "The decoder could not seek to a position within the recording.",
      "The file is probably damaged: convert or repair it, and upload that."),
    Self(
      "silent_noise", "The noise region is silent",
      "The stretch to learn the noise from contains only digital silence, which is not counted as noise.",
      "Choose a stretch in which the noise is heard."),
    Self(
      "stalled", "The work made no progress",
      "The worker reported no progress for too long and was stopped.",
      "Try again. Operators: check the load and the disk."),
    Self(
      "time_limit", "The work took too long",
      "The work took longer than is allowed for a recording of this length.", "Try again when the service is less busy."
    ),
    Self(
      "waveform_failed", "The waveform couldn't be made",
      "Building the waveform of this recording failed.", "Rebuild it with POST …/waveform."),
    Self(
      "worker_failed", "The worker ended unexpectedly",
      "The process that did the work crashed or was killed.", "Try again. Operators: the log says how it ended."),
    Self(
      "write_failed", "The result couldn't be written",
      "Writing the result to the service's disk failed.", "Try again. Operators: check the disk."),
  ]
}
