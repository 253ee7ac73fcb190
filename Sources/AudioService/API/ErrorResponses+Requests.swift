import HTTP
import Labels
import Workers

// The table's part about requests. Each detail says what was wrong and what would be right.

func problem(for error: RequestError) -> Problem {
  switch error {
  // The query.
  case .repeatedParameter(let name):
    Problem("duplicate_parameter", "“\(name)” is given more than once.", parameter: name)
  case .unknownParameter(let name, []):
    Problem("unknown_parameter", "There is no query parameter “\(name)”, nor any other.", parameter: name)
  case .unknownParameter(let name, let known):
    Problem("unknown_parameter", "There is no query parameter “\(name)”. Known: \(list(known)).", parameter: name)
  case .missingParameter(let name, let expected):
    Problem("invalid_parameter", "“\(name)” is missing; it must be \(expected.words).", parameter: name)
  case .invalidParameter(let name, let value, let expected):
    Problem("invalid_parameter", "“\(name)” is “\(value)”; it must be \(expected.words).", parameter: name)
  case .twoResolutions:
    Problem("invalid_parameter", "Only one of “scale” and “width” can be given.", parameter: "width")
  case .noSuchOverlay(let id):
    Problem("not_found", "There is no recording “\(id)” to draw over this one.", parameter: "overlay")
  case .noSuchNoiseProfile(let id, let parameter):
    Problem("not_found", "There is no noise profile “\(id)”.", parameter: parameter)
  case .noSuchNoisyRecording(let id):
    Problem("not_found", "There is no recording “\(id)” to learn from.", parameter: "recording")
  case .noSuchProblem(let code): Problem("not_found", "There is no problem with the code “\(code)”.", parameter: "code")
  case .notEmbeddable:
    Problem(
      "not_found",
      "“url” must be an address of this service with a recording: …/embed#recording=… or a link of the viewer.",
      parameter: "url")

  // The header fields.
  case .invalidField(let name, let expected):
    Problem("invalid_header", "“\(name)” must be \(expected.words).", parameter: name)
  case .notJSON(let type):
    Problem(
      "unsupported_content_type",
      "The body is sent as “\(type)”; it must be JSON, with “Content-Type: application/json”.",
      parameter: "Content-Type", fields: ["Accept": "application/json"])
  case .encodedContent(let codings):
    Problem(
      "unsupported_content_encoding", "The body has “Content-Encoding: \(list(codings))”; send it without one.",
      parameter: "Content-Encoding", fields: ["Accept-Encoding": "identity"])
  case .notAcceptable(let types):
    Problem(
      "not_acceptable", "“Accept” excludes every possible response: \(list(types)).",
      parameter: "Accept", fields: ["Vary": "Accept"])
  case .notUploadBytes:
    Problem(
      "unsupported_content_type",
      "The bytes of a resumable upload must be sent with “Content-Type: \(Tus.contentType)”.",
      parameter: "Content-Type")
  case .unsupportedTusVersion(let version):
    Problem(
      "unsupported_tus_version",
      "“Tus-Resumable” must be \(Tus.version); it is \(version.map { "“\($0)”" } ?? "missing").",
      parameter: "Tus-Resumable", fields: ["Tus-Version": Tus.version])
  case .joinedUploads:
    Problem(
      "joined_upload",
      "An upload that is joined from others takes no bytes of its own, and a token is for one upload, whose bytes are "
        + "sent in order; “Upload-Concat” needs a key.", parameter: "Upload-Concat")
  case .emptyUploadAnnounced:
    Problem("empty_body", "“Upload-Length” is 0; a recording has at least 1 byte.", parameter: "Upload-Length")
  case .uploadTooLarge(let limit): uploadTooLarge(limit)
  case .missingIfMatch:
    Problem(
      "precondition_required", "Send “If-Match” with the ETag of the version that this request changes.",
      parameter: "If-Match")

  // The body.
  case .malformedJSON(let fault): problem(for: fault)
  case .notAnObject: Problem("invalid_json", "The body is JSON, but not an object. Send a JSON object.")
  case .unknownMember(let name, let known):
    Problem(
      "unknown_member",
      "There is no member “\(name)”. " + (known.isEmpty ? "The object has none." : "Known: \(list(known))."),
      parameter: name)
  case .invalidMember(let name, .noiseDensity(let fault)):
    Problem("invalid_member", "The profile isn't valid: \(fault.words).", parameter: name)
  case .invalidMember(let name, let expected):
    Problem("invalid_member", "“\(name)” must be \(expected.words).", parameter: name)
  case .noBoundary: Problem("invalid_multipart", "The Content-Type has no valid boundary.", parameter: "Content-Type")
  case .unexpectedPart(let name):
    Problem(
      "invalid_multipart", "The form has a file “\(name)”; send exactly one file, named “file” or “files[]”.",
      parameter: name)
  case .longFormField(let name, let limit):
    Problem("invalid_multipart", "The field “\(name)” is longer than \(limit) bytes.", parameter: name)
  case .noFilePart: Problem("invalid_multipart", "The form has no part named “file”.", parameter: "file")

  // What the request wants done.
  case .windowOutside(let start, let duration, let parameter):
    Problem(
      "window_outside",
      "The window begins at \(Words.seconds(start)) s, but the recording lasts \(Words.seconds(duration)) s.",
      parameter: parameter)
  case .recordingTooShort(let frames, let needs):
    Problem(
      "recording_too_short",
      "The recording has \(Words.count(frames, "frame")); learning its noise takes \(needs.words).")
  case .noiseRegionOutside(let start, let end, let duration):
    Problem(
      "noise_region_outside",
      "The noise region \(Words.seconds(start))–\(Words.seconds(end)) s is not within the recording, which "
        + "lasts \(Words.seconds(duration)) s.", parameter: "noise")
  case .noiseRegionTooShort(let frames, let needs):
    Problem(
      "noise_region_too_short",
      "The noise region has \(Words.count(frames, "frame")); learning the noise takes \(needs.words).",
      parameter: "noise")
  case .tooManyChannelsForMP3(let channels, let limit):
    Problem(
      "unsupported_output",
      "The recording has \(channels) channels; at most \(limit) can be mixed down to mp3's two; wav can hold them.",
      parameter: "format")
  case .methodUnavailable:
    Problem(
      "method_unavailable",
      "The method “voice” isn't installed here. “\(VoiceFile.command)” installs it; /v1/methods lists those that are.",
      parameter: "method")
  case .webhooksAreOff:
    Problem(
      "webhooks_off", "This service sends no webhooks: it runs without --webhook-secret, which signs them.",
      parameter: "callback_url")
  case .privateCallback:
    Problem(
      "callback_refused", "“callback_url” is an address in a private network, which this service doesn't call.",
      parameter: "callback_url")
  case .converting(let job):
    Problem(
      "converting", "Job \(job) is converting the recording. Repeat the request when it has ended.",
      fields: ["Retry-After": "5"])
  case .decoding(let job):
    Problem(
      "converting", "Job \(job) is decoding the recording. Repeat the request when it has ended.",
      fields: ["Retry-After": "5"])
  case .measuring(let job):
    Problem(
      "measuring", "Job \(job) is measuring the recording's loudness. Repeat the request when it has ended.",
      fields: ["Retry-After": "5"])
  case .neverRead(let id):
    Problem(
      "waveform_failed",
      "Recording \(id) has not been read to its end, because building its waveform failed. Rebuild the "
        + "waveform (POST …/waveform), then repeat the request.")
  case .serviceUnready(let finding): problem(for: finding)
  // Only the log sees this.
  case .clientLeft: Problem("unavailable", "The client went away before its request's turn.")
  }
}

private func uploadTooLarge(_ limit: Int64) -> Problem {
  var problem = RequestBodyError.tooLarge(limit: limit).problem
  problem.fields["Tus-Max-Size"] = "\(limit)"
  return problem
}

private func problem(for fault: JSONFault) -> Problem {
  let (what, member): (String, String?) =
    switch fault {
    case .notUTF8: ("is not UTF-8", nil)
    case .malformed(let offset): ("is not valid JSON from byte \(offset) on", nil)
    case .tooDeep(let limit): ("nests arrays and objects more than \(limit) deep", nil)
    case .repeatedMember(let path): ("has “\(path)” more than once", "\(path)")
    case .longMarkRun: ("has a text with more than 256 combining marks in a row", nil)
    case .nameTooLong(let limit): ("has a member whose name is longer than \(limit) bytes", nil)
    }
  return Problem("invalid_json", "The body \(what). Send a JSON object in UTF-8.", parameter: member)
}

private func list(_ names: [String]) -> String { names.joined(separator: ", ") }

extension NoiseNeeds {
  fileprivate var words: String {
    "\(frames) at \(sampleRate) Hz, \(Words.seconds(Double(frames) / Double(sampleRate))) s"
  }
}

extension Expectation {
  /// What follows “must be”.
  fileprivate var words: String {
    switch self {
    case .given: "given"
    case .oneOf(let names) where names.count == 2: names.joined(separator: " or ")
    case .oneOf(let names): "one of \(list(names))"
    case .someOf(let names): "any of \(list(names)), separated by commas"
    case .wholeNumber(let range): "a whole number from \(range.lowerBound) to \(range.upperBound)"
    case .number(let range): "a number from \(number(range.lowerBound)) to \(number(range.upperBound))"
    case .decimal: "a decimal number"
    case .seconds: "a decimal number of seconds"
    case .secondsFromZero: "a number of seconds, 0 or more"
    case .beforeEnd(let duration): "a number of seconds from 0 to below \(number(duration)), the recording's length"
    case .afterStart(nil): "greater than start"
    case .afterStart(let limit?): "greater than start, by at most \(Words.seconds(limit)) s"
    case .window(let limit): "an object with start and end in seconds, at most \(Words.seconds(limit)) s apart"
    case .noise: "“auto” or an object with start and end in seconds, regions, quantile, or profile"
    case .givenWith(let other): "given together with \(other)"
    case .givenWithout(let other): "given, unless “\(other)” is true"
    case .givenWithoutAny(let others): "given, or else one of \(list(others))"
    case .leftOutWith(let other): "left out if “\(other)” is true"
    case .leftOutWithMethod(let method): "left out with the method “\(method)”"
    case .givenWithMethod(let method): "given with the method “\(method)”"
    case .above(let other): "greater than \(other)"
    case .leftOutUnlessAs(let form): "left out unless “as” is “\(form)”"
    case .objectWith(let names): "an object with any of \(list(names))"
    case .edit: "an object with boxes"
    case .boxes(let limit): "a list of 1 to \(limit) objects with start, end, min_hz, max_hz and gain_db"
    case .listOf(let names): "a list of any of \(list(names)), each once"
    case .startOfRegion: "given together with end"
    case .noiseRegions(let limit): "a list of 1 to \(limit) objects with start and end in seconds"
    case .afterPreviousRegion: "the end of the region before it or later: regions are sorted and don't overlap"
    case .alone(let names): "the only one of \(list(names)) that is given"
    case .noiseDensity(let fault): fault.words
    case .leftOutBeside(let other): "left out if “\(other)” is given, which sets it"
    case .recordingID: "the id of a recording"
    case .recordingIDs(let limit): "a list of 1 to \(limit) ids of recordings"
    case .object: "an object"
    case .jobID: "the id of a job"
    case .cursor: "the next_cursor of an earlier response"
    case .color(let names):
      "#rgb, #rrggbb or #rrggbbaa (with the # written %23 or left out), or a color's name: \(list(names))"
    case .amplitude(let factors): "auto or a number from \(number(factors.lowerBound)) to \(number(factors.upperBound))"
    case .channels: "mix, split, or the number of a channel, counted from 0"
    case .text(let limit): "a string of 1 to \(limit) bytes"
    case .visibleText: "a string with a visible character"
    case .labelsOfTrack(let unknown):
      "labels of this track, by their “id”; it has none with “\(unknown.prefix(40))”. Leave “id” out of new labels"
    case .distinctLabels(let repeated): "different labels; “\(repeated.prefix(40))” is named twice"
    case .labelsWithinLimits:
      "so few that the track has at most \(LabelLimits.labels) labels with \(LabelLimits.words) words, "
        + "\(LabelLimits.bytes >> 20) MiB in JSON"
    case .languageTag: "a language tag, such as en or pt-BR"
    case .callbackAddress: "an absolute http or https URL in ASCII, without a user name or a fragment"
    case .visibleASCII(let limit): "1 to \(limit) visible ASCII characters without spaces"
    case .byteCount: "a whole number of bytes"
    case .uploadMetadata: "a list of keys with values in base64, separated by commas"
    case .uniqueMetadataKey(let key): "a list with each key only once; “\(key)” occurs twice"
    case .base64Metadata(let key): "a list of values that are UTF-8 in base64; that of “\(key)” is not"
    case .checksum(let algorithms): "one of \(algorithms), a space, and the digest in base64"
    case .digest(let algorithm, let count): "\(algorithm), a space, and \(count) bytes in base64"
    case .deferredLength: "1, without “Upload-Length”, which is given later"
    case .lengthOnce(let offset): "given once, and at least \(max(offset, 1)), the number of bytes that are there"
    case .noLengthOfJoined: "left out, because the joined uploads have one"
    case .concatenation:
      "partial, or final; with the addresses of 1 to \(Concatenation.limit) different partial uploads, separated by "
        + "spaces, each of which has all of its bytes"
    case .methodPOST: "sent with POST"
    }
  }

  /// Whole numbers without a decimal point.
  private func number(_ value: Double) -> String { Int(exactly: value).map { "\($0)" } ?? "\(value)" }
}
