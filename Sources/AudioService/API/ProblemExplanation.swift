/// The explanation of a problem's code, for the page at its `type`.
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

  /// All codes that the service responds with or that a job ends with. A test compares this list with the source.
  static let all = Dictionary(
    uniqueKeysWithValues: (ofRequests + ofHTTP + ofRecordings + ofUploads + ofLimits + ofService + ofJobs)
      .map { ($0.code, $0) })

  private static let ofRequests = [
    Self(
      "duplicate_parameter", "A query parameter is given twice",
      "The query has the parameter more than once, so it isn't clear which value counts.",
      "Send the parameter once. “parameter” names it."),
    Self(
      "invalid_header", "A header field is not as it must be",
      "A header field of the request has a value that the service can't use.",
      "“detail” says what the field must be; “parameter” names the field."),
    Self(
      "invalid_json", "The body is not a JSON object",
      "The body isn't valid JSON in UTF-8, has a member twice, or is JSON but not an object.",
      "Send one JSON object as RFC 8259 defines it: no comments and no comma after the last member."),
    Self(
      "invalid_member", "A member of the body is not as it must be",
      "A member of the JSON object has a value of another type or outside its range, or must not be combined with "
        + "another one.",
      "“detail” says what is expected; “parameter” names the member."),
    Self(
      "invalid_multipart", "The form is not as it must be",
      "The request is multipart/form-data without a boundary, without a part named “file”, or with other parts.",
      "Send a form with exactly one part, named “file”, or send the file's bytes as the body without a form."),
    Self(
      "invalid_parameter", "A query parameter is not as it must be",
      "A query parameter has a value of another type or outside its range, or must not be combined with another one.",
      "“detail” says what is expected; “parameter” names the parameter."),
    Self(
      "not_acceptable", "The client excludes everything that can be answered",
      "The field “Accept” gives every type that this address can answer with a weight of 0.",
      "Accept one of the types that “detail” lists."),
    Self(
      "unknown_member", "The body has a member that isn't known",
      "The JSON object has a member that this call doesn't have. Nothing is ignored, so that a typo can't pass unseen.",
      "Remove the member or correct its name. “detail” lists the members that are known."),
    Self(
      "unknown_parameter", "The query has a parameter that isn't known",
      "The query has a parameter that this call doesn't have. Nothing is ignored, so that a typo can't pass unseen.",
      "Remove the parameter or correct its name. “detail” lists the parameters that are known."),
    Self(
      "unsupported_content_encoding", "The body is compressed",
      "The request has a Content-Encoding, but the service reads bodies only as they are.",
      "Send the body without compression and without the field."),
    Self(
      "unsupported_content_type", "The body has the wrong Content-Type",
      "The field “Content-Type” says that the body is something else than what this call reads.",
      "Send JSON as application/json, and the bytes of a resumable upload as application/offset+octet-stream."),
  ]

  private static let ofHTTP = [
    Self(
      "head_too_large", "The header section is too large",
      "The header fields of the request are longer or more numerous than the service accepts.",
      "Send fewer or shorter fields. Operators set the limits with --max-head-bytes and --max-head-fields."),
    Self(
      "host_not_allowed", "The service doesn't have this name",
      "The request was sent to a host name that the service doesn't know as its own. This keeps foreign web pages from "
        + "reaching it under a name of theirs.",
      "Use the IP address or localhost, or have the operator add the name to --allowed-hosts."),
    Self(
      "malformed_body", "The chunks of the body are malformed",
      "The body is sent in chunks (Transfer-Encoding: chunked) that break the rules of HTTP/1.1.",
      "This is a fault of the HTTP client or of a proxy on the way."),
    Self(
      "malformed_multipart", "The form is malformed",
      "The body is not multipart/form-data as its boundary announces it, or it ends before the last part does.",
      "Send the form again, whole, built by a library for it."),
    Self(
      "malformed_request", "The request is malformed",
      "The request line or a header field breaks the rules of HTTP/1.1. The connection is closed.",
      "“detail” names what is at fault. In addresses, escape special characters as %XX."),
    Self(
      "method_not_allowed", "This address doesn't have the method",
      "The address exists, but not with this method.", "Use one of the methods that the field “Allow” lists."),
    Self(
      "misdirected_request", "The target is an https address",
      "The request names a target of https, but came over a connection without TLS.",
      "Send the path alone, or have the proxy do so."),
    Self(
      "origin_not_allowed", "A foreign web page asks for a change",
      "A browser sent the request for a page of another origin, and the service doesn't let pages of that origin change "
        + "anything.",
      "Have the operator add the page's origin to --cors-origin."),
    Self(
      "precondition_failed", "It has changed in the meantime",
      "The request was to be carried out only if the resource still had a certain version, and it has another one now. "
        + "Nothing was changed.", "Read the resource again, look at what has changed, and decide anew."),
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
      "unknown_method", "The method isn't known",
      "The service doesn't know this request method.", "Use a method that openapi.yaml lists for the address."),
    Self(
      "unsupported_expectation", "The expectation can't be met",
      "The field “Expect” asks for something else than 100-continue.", "Send the request without it."),
    Self(
      "unsupported_transfer_coding", "The transfer coding isn't known",
      "The body is sent with a transfer coding other than chunked.", "Send it with Content-Length or chunked."),
    Self(
      "unsupported_version", "The HTTP version isn't known",
      "The request is of a version of HTTP that the service doesn't speak.", "Use HTTP/1.1."),
    Self(
      "uri_too_long", "The address is too long",
      "The request line is longer than the service accepts.",
      "Shorten the query. Operators set the limit with --max-request-line-bytes."),
  ]

  private static let ofRecordings = [
    Self(
      "audio_damaged", "The recording's file is damaged",
      "The recording is listed, but its file on the service's disk is shorter or longer than it was, or can't be decoded "
        + "any more.", "Upload the recording again, or have the operator restore the data folder from a backup."),
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
      "converting", "The conversion is under way",
      "The recording is being converted to the format asked for, which takes longer than a request waits.",
      "Ask again after “Retry-After” seconds; the work goes on meanwhile."),
    Self(
      "idempotency_key_in_use", "A request with this key is being answered",
      "Another request with the same Idempotency-Key is under way.",
      "Wait for its answer, or send the request again after “Retry-After” seconds."),
    Self(
      "idempotency_key_reused", "The key belongs to another request",
      "The Idempotency-Key was already used for a request with other content.",
      "Use a new key for every new request, and the same key only to repeat one."),
    Self(
      "job_finished", "The job has already finished",
      "Only a job that is queued or running can be canceled.", "Read the job to see what came of it."),
    Self(
      "no_video", "The recording has no picture",
      "The recording has sound only.", "Its sound is at “audio” instead of “video”."),
    Self(
      "noise_region_outside", "The noise region is outside the recording",
      "The stretch from which the noise is to be learned doesn't lie within the recording.",
      "Choose “start” and “end” within the recording's duration, in seconds."),
    Self(
      "noise_region_too_short", "The noise region is too short",
      "The stretch has too few frames to measure a spectrum.", "Choose a longer one; half a second or more works well."),
    Self(
      "not_found", "There is nothing here",
      "The address doesn't exist, or what it names was deleted.", "Check the address and the id."),
    Self(
      "not_ready", "The sound is still being made",
      "The recording is the result of a job that hasn't finished.",
      "Follow the job and ask again when it has succeeded."),
    Self(
      "recording_too_short", "The recording is too short",
      "The recording has too few frames to learn its noise from.", "Use a longer recording."),
    Self(
      "too_many_pixels", "The answer would be too large",
      "The window at this scale has more pixels or numbers than one answer may have.",
      "Take a larger scale, a smaller width or a shorter window."),
    Self(
      "unsupported_format", "The sound is outside the limits",
      "The number of channels, the sample rate or the duration is outside what the service accepts.",
      "“detail” names the limit. Convert the file, or cut it."),
    Self(
      "unsupported_media", "The file isn't sound that the service can read",
      "The bytes are of no kind that is known here, or not one frame of the sound could be decoded. The bytes decide, "
        + "not the name.", "Convert the file, for example to FLAC or WAV."),
    Self(
      "unsupported_output", "The format can't hold the sound",
      "The format asked for doesn't have the recording's sample rate or number of channels.",
      "Choose another one; wav holds everything."),
    Self(
      "waveform_not_failed", "The waveform has not failed",
      "Only a waveform whose job failed can be built again.", "There is nothing to do: it is ready or being built."),
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
      "checksum_mismatch", "The bytes are not what was announced",
      "The body doesn't have the digest that “Upload-Checksum” gives. Nothing of it was kept.",
      "Send the bytes again from the upload's offset."),
    Self(
      "content_too_large", "The body is too large",
      "The body is longer than this call accepts, or than the rest of the upload.",
      "“detail” has the limit. Operators set that of uploads with --max-upload-bytes."),
    Self(
      "empty_body", "The upload is empty", "The upload has no bytes.", "Send the file's bytes as the body."),
    Self(
      "probe_too_slow", "The file takes too long to look at",
      "Finding out what the file holds takes more processor time than an upload may use.",
      "Write the sound to a new file, for example as FLAC, and upload that."),
    Self(
      "unsupported_tus_version", "The version of tus isn't known",
      "The field “Tus-Resumable” is missing or names another version of the protocol than 1.0.0.",
      "Send “Tus-Resumable: 1.0.0”."),
    Self(
      "upload_expired", "The upload has expired",
      "The resumable upload was not continued in time, and its bytes were removed.", "Begin a new upload."),
    Self(
      "upload_locked", "Another request continues the upload",
      "A newer request has taken over the upload, or one is just ending.",
      "Ask for the offset with HEAD and go on from there."),
    Self(
      "unsupported_tus_extension", "The upload asks for an extension that the service doesn't have",
      "The request uses an extension of the tus protocol, such as concatenation, that the service doesn't offer.",
      "Ask for the extensions with OPTIONS (“Tus-Extension”), and send the whole file as one upload."),
    Self(
      "upload_offset_mismatch", "The offset is not the upload's",
      "“Upload-Offset” is not where the bytes on the server end.", "Ask for the offset with HEAD and go on from there."),
  ]

  private static let ofLimits = [
    Self(
      "limit_open_uploads", "This client has too many unfinished uploads",
      "One client may have only so many resumable uploads open, so that no client takes the room of all.",
      "Finish or delete some, or try again after “Retry-After” seconds."),
    Self(
      "limit_connections", "This client has too many connections open",
      "One client may have only so many connections open, so that no client takes the places of all.",
      "Close some or reuse them, and try again after “Retry-After” seconds. The operator can raise the limit "
        + "(--max-connections-per-client) and name proxies whose clients share an address (--trusted-proxies)."),
    Self(
      "limit_queued_jobs", "This client has too many jobs waiting",
      "One client may have only so many jobs in the queue, so that no client takes the places of all.",
      "Wait until some have finished, and try again after “Retry-After” seconds."),
    Self(
      "limit_waiting_pictures", "This client waits for too many pictures",
      "One client may wait for only so many pictures and long slices at once.",
      "Ask for fewer at a time, and try again after “Retry-After” seconds."),
    Self(
      "limit_waiting_previews", "This client waits for too many previews",
      "One client may wait for only so many previews and spectra at once.",
      "Ask for fewer at a time, and try again after “Retry-After” seconds."),
    Self(
      "limit_waiting_probes", "This client has too many uploads being looked at",
      "One client may have only so many uploads that wait to be looked at.",
      "Send fewer files at a time, and try again after “Retry-After” seconds."),
    Self(
      "queue_full", "The queue is full",
      "As many jobs are waiting as the service takes.", "Try again after “Retry-After” seconds."),
    Self(
      "too_many_uploads", "There are too many unfinished uploads",
      "The service has as many resumable uploads open as it takes.", "Try again after “Retry-After” seconds."),
  ]

  private static let ofService = [
    Self(
      "catalog_busy", "Another program holds the catalog",
      "The service can't use its database at the moment because another program has locked it. Nothing was changed.",
      "Try again after “Retry-After” seconds. Operators: look for a program that has catalog.sqlite open."),
    Self(
      "catalog_damaged", "The catalog is damaged",
      "The service's database is damaged. Nothing was changed.",
      "Operators: stop the service and run “stillwave check --repair”, or restore a backup."),
    Self(
      "catalog_unwritable", "The catalog can't be written",
      "The service can't write its database at the moment. Nothing was changed.",
      "Operators: check the disk and the permissions of the data folder."),
    Self(
      "data_folder_replaced", "The data folder was replaced",
      "The catalog or the lock in the service's data folder was removed or replaced while the service ran. Nothing was "
        + "changed.", "Operators: restart the service."),
    Self(
      "disk_full", "The disk is full",
      "The service's disk has no room for this.",
      "Delete recordings that are no longer needed, or have the operator make room."),
    Self(
      "disk_unwritable", "The disk can't be written",
      "The service can't write to its disk at the moment. Nothing was changed.",
      "Operators: check whether the disk is mounted read-only and who owns the data folder."),
    Self(
      "internal_error", "The service failed",
      "The service failed on this request through no fault of the client.",
      "Try again. Operators: the field “X-Request-Id” names the entry in the log."),
    Self(
      "unavailable", "The service can't do this now",
      "Too many requests of this kind are waiting, or a part of the service is busy or has just failed.",
      "Try again after “Retry-After” seconds."),
    Self(
      "worker_missing", "The program for workers is missing",
      "The program from which the service starts its workers is gone or can't be run.",
      "Operators: reinstall the service and restart it."),
  ]

  private static let ofJobs = [
    Self(
      "cpu_limit", "The work took too much processor time",
      "The work on this recording used more processor time than work of its length may.",
      "The file is unusual: convert it, for example to FLAC, and upload that."),
    Self(
      "decoder_failed", "The decoder crashed",
      "ffmpeg crashed on this file.", "The file is probably damaged: convert or repair it, and upload that."),
    Self(
      "encoder_failed", "The result couldn't be written",
      "ffmpeg could not write the result in the format asked for.", "Choose another format."),
    Self(
      "io_error", "A file couldn't be used",
      "Reading or writing a file on the service's disk failed.", "Try again. Operators: check the disk."),
    Self(
      "memory_limit", "The work took too much memory",
      "The work on this recording needed more memory than a worker may use.",
      "Use a shorter recording, or have the operator raise --worker-memory-bytes."),
    Self(
      "output_limit", "The result became too large",
      "The work on this recording wrote a longer file than it may.", "The file is unusual: convert it first."),
    Self(
      "seek_failed", "The decoder couldn't reach a position",
      "The decoder could not go to a place within the recording.",
      "The file is probably damaged: convert or repair it, and upload that."),
    Self(
      "stalled", "The work made no progress",
      "The worker reported no progress for too long and was ended.",
      "Try again. Operators: check the load and the disk."),
    Self(
      "time_limit", "The work took too long",
      "The work took longer than work on a recording of this length may.", "Try again when the service is less busy."),
    Self(
      "waveform_failed", "The waveform couldn't be made",
      "Building the waveform of this recording failed.", "Build it again with POST …/waveform."),
    Self(
      "worker_failed", "The worker ended unexpectedly",
      "The process that did the work crashed or was killed.", "Try again. Operators: the log says how it ended."),
    Self(
      "write_failed", "The result couldn't be written",
      "Writing the result to the service's disk failed.", "Try again. Operators: check the disk."),
  ]
}
