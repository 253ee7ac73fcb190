import AudioIO
import Glibc
import HTTP
import Jobs
import PresentRows
import Storage
import Terms
import Testing
import Waveform

@testable import AudioService

@Suite struct ErrorResponsesTests {
  private static let opus = AudioFormat(container: .ogg, codec: .opus, sampleRate: 44_100, channels: 2)

  private static let table: [(any Error, Int, String, String?)] = [
    (ServiceError.noSuchRecording("x"), 404, "not_found", "id"),
    (ServiceError.noSuchJob("x"), 404, "not_found", "id"),
    (ServiceError.jobIsFinished(JobID(), .failed), 409, "job_finished", nil),
    (ServiceError.notReady(RecordingID()), 409, "not_ready", nil),
    (ServiceError.waveformIsNotFailed(RecordingID(), .ready), 409, "waveform_not_failed", nil),
    (ServiceError.emptyUpload, 400, "empty_body", nil),
    (ServiceError.diskFull, 507, "disk_full", nil),
    (JobsError.queueFull(limit: 3), 429, "queue_full", nil),
    (StorageError.queueFull(limit: 3), 429, "queue_full", nil),
    (ServiceError.limitReached("queued_jobs", limit: 3, retryAfter: 5), 429, "limit_queued_jobs", nil),
    (StorageError.tooManyUploads(limit: 3), 429, "too_many_uploads", nil),
    (StorageError.tooManyUploadsOfClient(limit: 3), 429, "limit_open_uploads", nil),
    (ServiceError.rejectedByProbe(code: "unsupported_media", detail: ""), 415, "unsupported_media", nil),
    (ServiceError.rejectedByProbe(code: "unsupported_format", detail: ""), 422, "unsupported_format", nil),
    (ServiceError.rejectedByProbe(code: "probe_too_slow", detail: "."), 422, "probe_too_slow", nil),
    (ServiceError.workerUnavailable(reason: "secret"), 503, "unavailable", nil),
    (StorageError.diskFull, 507, "disk_full", nil),
    (StorageError.noSuchRecording(RecordingID()), 404, "not_found", "id"),
    (StorageError.io(operation: "open", path: "/secret", errno: 5), 500, "internal_error", nil),
    (StorageError.io(operation: "rename", path: "/secret", errno: EROFS), 503, "disk_unwritable", nil),
    (StorageError.io(operation: "access", path: "/secret", errno: EACCES), 503, "disk_unwritable", nil),
    (StorageError.io(operation: "open", path: "/secret", errno: EMFILE), 503, "unavailable", nil),
    (StorageError.database(code: 1, message: "secret"), 500, "internal_error", nil),
    (StorageError.database(code: 5, message: "secret"), 503, "catalog_busy", nil),
    (StorageError.busy, 503, "catalog_busy", nil),
    (StorageError.unreachable(detail: "secret"), 503, "catalog_unwritable", nil),
    (StorageError.storeUnreachable(detail: "secret"), 503, "media_unavailable", nil),
    (StorageError.objectStore(detail: "secret"), 503, "media_unavailable", nil),
    (StorageError.server(state: "42601", message: "secret"), 500, "internal_error", nil),
    (StorageError.outcomeUnknown, 500, "outcome_unknown", nil),
    (StorageError.database(code: 8, message: "secret"), 503, "catalog_unwritable", nil),
    // SQLITE_IOERR_WRITE, as reported if a disk turns read-only under an open catalog.
    (StorageError.database(code: 778, message: "secret"), 503, "catalog_unwritable", nil),
    (StorageError.corrupt(column: "secret", value: ""), 500, "internal_error", nil),
    (AudioIOError.unwritable(opus), 422, "unsupported_output", "format"),
    (ServiceError.audioMissing(RecordingID()), 410, "audio_missing", nil),
    (ServiceError.audioDamaged(RecordingID()), 410, "audio_damaged", nil),
    (WaveformError.timeOutOfRange(parameter: "end", seconds: -1), 400, "invalid_parameter", "end"),
    (WaveformError.windowReversed(start: 2, end: 1), 400, "invalid_parameter", "end"),
    (WaveformError.scaleOutOfRange(scale: 0, limit: 9), 400, "invalid_parameter", "scale"),
    (WaveformError.widthOutOfRange(width: 0, limit: 9), 400, "invalid_parameter", "width"),
    (WaveformError.tooManyPixels(count: 9, limit: 8), 400, "too_many_pixels", "scale"),
    (WaveformError.tooManyNumbers(count: 9, limit: 8, parameter: "width"), 400, "too_many_pixels", "width"),
    (WaveformError.tooManyNumbers(count: 9, limit: 8, parameter: "scale"), 400, "too_many_pixels", "scale"),
    (WaveformError.channelOutOfRange(channel: 2, channels: 2), 400, "invalid_parameter", "channels"),
    (WaveformError.noMeasures, 400, "invalid_parameter", "measures"),
    (WaveformError.measureNotInForm, 400, "invalid_parameter", "measures"),
    (WaveformError.versionUnavailable(version: 1, lanes: 2), 400, "invalid_parameter", "version"),
    (
      WaveformError.pictureOutOfRange(parameter: "height", value: 9, lowest: 10, highest: 20), 400, "invalid_parameter",
      "height"
    ),
    (WaveformError.pictureTooWide(parameter: "width", pixels: 9, limit: 8), 400, "too_many_pixels", "width"),
    (WaveformError.pictureTooWide(parameter: "scale", pixels: 9, limit: 8), 400, "too_many_pixels", "scale"),
    (WaveformError.pictureTooLarge(pixels: 9, limit: 8), 400, "too_many_pixels", "height"),
    (WaveformError.pictureNotEncoded, 500, "internal_error", nil),
    (WaveformError.extentMismatch, 500, "internal_error", nil),
    (WaveformError.io(operation: "open", path: "/secret", errno: 5), 500, "internal_error", nil),
    (WaveformError.io(operation: "open", path: "/secret", errno: EMFILE), 503, "unavailable", nil),
    (MultipartError.truncated, 400, "malformed_multipart", nil),
    (MultipartError.malformed(.field), 400, "malformed_multipart", nil),
    (RequestBodyError.tooLarge(limit: 3), 413, "content_too_large", nil),
    (RequestBodyError.truncated, 400, "truncated_body", nil),
    (RequestBodyError.timedOut, 408, "request_timeout", nil),
    (RoutingError.notFound, 404, "not_found", nil),
    (RoutingError.methodNotAllowed(allowed: [.get]), 405, "method_not_allowed", nil),
    (FileContentError.notAFile(path: "/secret"), 500, "internal_error", nil),
    (CancellationError(), 500, "internal_error", nil),
  ]

  @Test("each error has its status, code, and parameter", arguments: table.indices)
  func tabled(index: Int) {
    let (error, status, code, parameter) = Self.table[index]
    let problem = problem(for: error)
    #expect(problem.status.code == status && problem.code == code && problem.parameter == parameter, "\(error)")
    #expect(!problem.detail.contains("secret") && problem.detail.hasSuffix(".") || code.hasPrefix("unsupported"))
    #expect(problem.fields.contains("Retry-After") == (status == 429 || status == 503))
    let kind = ProblemKind.all[code]
    #expect(
      status == kind?.status.code || status == kind?.jobStatus.code,
      "problems.txt has another status")
  }

  private static let needs = NoiseNeeds(frames: 2048, sampleRate: 44_100)

  private static let requests: [(RequestError, Int, String, String?)] = [
    (.repeatedParameter("a"), 400, "duplicate_parameter", "a"),
    (.unknownParameter("a", known: []), 400, "unknown_parameter", "a"),
    (.unknownParameter("a", known: ["b"]), 400, "unknown_parameter", "a"),
    (.missingParameter("a", .secondsFromZero), 400, "invalid_parameter", "a"),
    (.invalidParameter("a", value: "x", .seconds), 400, "invalid_parameter", "a"),
    (.twoResolutions, 400, "invalid_parameter", "width"),
    (.noSuchOverlay("x"), 404, "not_found", "overlay"),
    (.noSuchProblem("x"), 404, "not_found", "code"),
    (.invalidField("A", .byteCount), 400, "invalid_header", "A"),
    (.notJSON(contentType: "text/html"), 415, "unsupported_content_type", "Content-Type"),
    (.encodedContent(["gzip"]), 415, "unsupported_content_encoding", "Content-Encoding"),
    (.notAcceptable(["text/html"]), 406, "not_acceptable", "Accept"),
    (.notUploadBytes, 415, "unsupported_content_type", "Content-Type"),
    (.unsupportedTusVersion(nil), 412, "unsupported_tus_version", "Tus-Resumable"),
    (.joinedUploads, 403, "joined_upload", "Upload-Concat"),
    (.emptyUploadAnnounced, 400, "empty_body", "Upload-Length"),
    (.uploadTooLarge(limit: 9), 413, "content_too_large", nil),
    (.malformedJSON(.notUTF8), 400, "invalid_json", nil),
    (.malformedJSON(.malformed(offset: 3)), 400, "invalid_json", nil),
    (.malformedJSON(.tooDeep(limit: 9)), 400, "invalid_json", nil),
    (.malformedJSON(.repeatedMember(JSONPath(steps: [.member("a")]))), 400, "invalid_json", "a"),
    (.malformedJSON(.nameTooLong(limit: 9)), 400, "invalid_json", nil),
    (.malformedJSON(.longMarkRun), 400, "invalid_json", nil),
    (.notAnObject, 400, "invalid_json", nil),
    (.unknownMember("a.b", known: ["c"]), 400, "unknown_member", "a.b"),
    (.invalidMember("a.b", .given), 400, "invalid_member", "a.b"),
    (.noBoundary, 400, "invalid_multipart", "Content-Type"),
    (.unexpectedPart("a"), 400, "invalid_multipart", "a"),
    (.noFilePart, 400, "invalid_multipart", "file"), (.longFormField("a", limit: 9), 400, "invalid_multipart", "a"),
    (.windowOutside(start: 9, duration: 1, parameter: "start"), 422, "window_outside", "start"),
    (.recordingTooShort(frames: 1, needs), 422, "recording_too_short", nil),
    (.noiseRegionOutside(start: 1, end: 9, duration: 2), 422, "noise_region_outside", "noise"),
    (.noiseRegionTooShort(frames: 1, needs), 422, "noise_region_too_short", "noise"),
    (.tooManyChannelsForMP3(9, limit: 8), 422, "unsupported_output", "format"),
    (.webhooksAreOff, 422, "webhooks_off", "callback_url"),
    (.privateCallback, 422, "callback_refused", "callback_url"),
    (.converting(JobID()), 503, "converting", nil),
    (.decoding(JobID()), 503, "converting", nil),
    (.clientLeft, 503, "unavailable", nil),
    (.serviceUnready(.diskIsFull), 503, "disk_full", nil),
    (.serviceUnready(.diskFails("secret")), 503, "disk_unwritable", nil),
    (.serviceUnready(.mediaFail("secret")), 503, "media_unavailable", nil),
    (.serviceUnready(.catalogFails("secret")), 503, "catalog_unwritable", nil),
    (.serviceUnready(.catalogIsBusy), 503, "catalog_busy", nil),
    (.serviceUnready(.catalogIsDamaged("secret")), 503, "catalog_damaged", nil),
    (.serviceUnready(.dataFolderIsReplaced("secret")), 503, "data_folder_replaced", nil),
    (.serviceUnready(.programIsMissing("secret")), 503, "worker_missing", nil),
  ]

  @Test("each fault of a request has its status, its code and its parameter", arguments: requests.indices)
  func tabledRequest(index: Int) {
    let (error, status, code, parameter) = Self.requests[index]
    let problem = problem(for: error as any Error)
    #expect(problem.status.code == status && problem.code == code && problem.parameter == parameter, "\(error)")
    #expect(problem.detail.hasSuffix(".") || problem.detail.hasSuffix("?"), "\(problem.detail)")
    #expect(code == "webhooks_off" || !problem.detail.contains("secret"))
    #expect(ProblemKind.all[code] != nil)
  }

  @Test("a refusal has the fields that help the client to do better")
  func fields() {
    func fields(_ error: RequestError) -> HTTPFields { problem(for: error).fields }
    #expect(fields(.notJSON(contentType: "a/b"))["Accept"] == "application/json")
    #expect(fields(.encodedContent(["gzip"]))["Accept-Encoding"] == "identity")
    #expect(fields(.notAcceptable([]))["Vary"] == "Accept")
    #expect(fields(.unsupportedTusVersion("2"))["Tus-Version"] == "1.0.0")
    #expect(fields(.uploadTooLarge(limit: 9))["Tus-Max-Size"] == "9")
    #expect(fields(.converting(JobID()))["Retry-After"] == "5" && fields(.decoding(JobID()))["Retry-After"] == "5")
  }
}
