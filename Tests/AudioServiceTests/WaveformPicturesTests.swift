import HTTP
import PresentRows
import Processing
import Storage
import Testing
import Waveform
import Workers

@testable import AudioService
@testable import Jobs

/// Pictures over HTTP. Drawing is tested in its module; this tests parameters, caching, and rejections.
@Suite struct WaveformPicturesTests {
  private static let immutable = "private, max-age=31536000, immutable"

  private func target(_ recording: Recording, _ rest: String) -> String { "/v1/recordings/\(recording.id)/\(rest)" }

  private func finished(_ bench: TestBench) throws -> Recording {
    let recording = try bench.recording()
    try bench.makeWaveform(of: recording)
    return recording
  }

  /// A recording of which a job has read the first 20,000 of 60,000 frames.
  private func growing(_ bench: TestBench) throws -> Recording {
    let id = JobID()
    let recording = try bench.recording(state: .building, job: id)
    let token = AttemptToken(job: id, attempt: 1, nonce: "0123456789abcdef")
    try bench.store.makeWorkFolder(of: id)
    let path = bench.growingPath(of: token)
    var writer = try PyramidWriter(creating: path, sampleRate: 1000, channels: 2)
    let samples = (0..<40_000).map { Int16(truncatingIfNeeded: $0 &* 7919) }
    try writer.append(samples.span)
    try writer.publish()
    var job = LiveJob(isRunning: true, tenant: .none, recording: recording.id, writer: token)
    job.progress = WorkerProgress(
      fraction: 0.3, readyFrames: writer.readyFrames, totalFrames: 60_000, estimatedFrames: nil)
    bench.runner.live.insert(id, job)
    return recording
  }

  @Test func aPictureOfAFinishedRecordingNeverChanges() async throws {
    let bench = try TestBench()
    let recording = try finished(bench)
    for (form, type, begin) in [
      ("png", "image/png", [0x89, 0x50, 0x4E, 0x47]), ("svg", "image/svg+xml", Array("<svg".utf8)),
    ] {
      let path = target(recording, "waveform.\(form)?width=150&height=80&axis=1&background=%23fff&pixel_ratio=1.5")
      let response = try await bench.respond(.get, path)
      let body = try await response.body.collect()
      #expect(response.status == .ok && Array(body.prefix(4)) == begin)
      #expect(response.fields["Content-Type"] == type && response.fields["Cache-Control"] == Self.immutable)
      #expect(response.fields["Stillwave-Complete"] == "true" && response.fields["Stillwave-Start-Frame"] == "0")
      let etag = try #require(response.fields["ETag"])
      #expect(
        etag.hasPrefix("\"\(form)3-") && etag.hasSuffix("\(recording.id)\"")
          && !etag.dropFirst().dropLast().contains("\""))
      #expect(try await bench.respond(.get, path).body.collect() == body)
      let head = try await bench.respond(.head, path)
      #expect(head.status == .ok && head.body.length == Int64(body.count) && head.fields["ETag"] == etag)
      let again = try await bench.respond(.get, path, fields: ["If-None-Match": etag])
      #expect(again.status == .notModified && again.body.length == 0 && again.fields["ETag"] == etag)
      #expect(again.fields["Cache-Control"] == Self.immutable)
      let other = try await bench.respond(.get, path + "&style=bars", fields: ["If-None-Match": etag])
      #expect(other.status == .ok)
    }
  }

  /// The picture is made from samples, but the recording's file has none: it couldn't be drawn.
  @Test func aPictureThatTheClientHasIsNotDrawn() async throws {
    let bench = try TestBench()
    let recording = try finished(bench)
    let extent = try await bench.context.waveforms.open(recording.id).extent
    let query = WaveformQuery(start: 1, end: 2, resolution: .width(100))
    #expect(try WaveformPicture(query, style: PictureStyle(), of: extent).window.needsSamples)
    let path = target(recording, "waveform.png?start=1&end=2&width=100")
    let known = try await bench.respond(.get, path, fields: ["If-None-Match": "*"])
    #expect(known.status == .notModified && known.fields["ETag"] != nil)
    let changed = try await bench.respond(.get, path, fields: ["If-Match": "\"another\""])
    #expect(changed.status == .preconditionFailed)
  }

  @Test func everyParameterIsPartOfThePicturesName() async throws {
    let bench = try TestBench()
    let (recording, other) = (try finished(bench), try finished(bench))
    var tags: Set<String> = []
    // At 256 frames per pixel or more, because the bench's recordings have no audio to decode.
    let queries = [
      "width=200", "width=199", "width=200&height=199", "width=100&pixel_ratio=2", "width=200&color=red",
      "width=200&background=white", "width=200&axis=1", "width=200&style=bars", "width=200&channels=split",
      "width=200&channels=1", "width=200&start=1", "width=100&end=30", "scale=512", "width=200&amplitude_scale=2",
      "width=200&amplitude_scale=auto", "width=200&overlay=\(other.id)", "width=200&overlay=\(recording.id)",
      "width=200&overlay=\(other.id)&overlay_color=0f08",
    ]
    for query in queries {
      for form in ["png", "svg"] {
        let response = try await bench.respond(.get, target(recording, "waveform.\(form)?\(query)"))
        #expect(response.status == .ok, "\(query)")
        tags.insert(try #require(response.fields["ETag"]))
      }
    }
    #expect(tags.count == 2 * queries.count)
    let same = try await bench.respond(.get, target(recording, "waveform.png?start=0&end=99&width=200&color=0d7a7e"))
    #expect(tags.contains(same.fields["ETag"] ?? ""))
  }

  @Test func growingWaveformsAreDrawnAsFarAsTheyAreAndNotCached() async throws {
    let bench = try TestBench()
    let (whole, growing) = (try finished(bench), try growing(bench))
    let waiting = try bench.recording(state: .queued)
    for (recording, query, complete, frames) in [
      (growing, "", "false", "19968"), (waiting, "", "false", "0"),
      (whole, "width=200&overlay=\(growing.id)", "true", "60000"),
      (growing, "width=200&overlay=\(whole.id)", "false", "19968"),
      (growing, "start=1&end=2&width=900", "false", "19968"),
    ] {
      for form in ["png", "svg"] {
        let response = try await bench.respond(
          .get, target(recording, "waveform.\(form)?\(query)"), fields: ["If-None-Match": "\"a\""])
        #expect(response.status == .ok && response.fields["Cache-Control"] == "no-store", "\(query)")
        #expect(response.fields["ETag"] == nil && response.fields["Stillwave-Complete"] == complete)
        #expect(response.fields["Stillwave-Available-Frames"] == frames)
      }
    }
    let svg = try await bench.respond(.get, target(growing, "waveform.svg?width=300")).body.collect()
    #expect(String(decoding: svg, as: UTF8.self).contains("<path d=\"M0 "))
    let nothing = try await bench.respond(.get, target(waiting, "waveform.svg?width=300")).body.collect()
    #expect(!String(decoding: nothing, as: UTF8.self).contains("<path"))
  }

  @Test func anInvalidOverlayIsNamed() async throws {
    let bench = try TestBench()
    let recording = try finished(bench)
    for (overlay, status, code) in [
      (RecordingID().text, 404, "not_found"), ("x", 400, "invalid_parameter"), ("", 400, "invalid_parameter"),
    ] {
      let response = try await bench.respond(.get, target(recording, "waveform.png?overlay=\(overlay)"))
      let body = String(decoding: try await response.body.collect(), as: UTF8.self)
      #expect(response.status.code == status && body.contains("\"code\":\"\(code)\""), "\(body)")
      #expect(body.contains("\"parameter\":\"overlay\""), "\(body)")
    }
  }

  @Test(
    "a bad value is rejected with its parameter and the expected values",
    arguments: [
      ("width=0", "width", "1 to 20000"), ("width=20001", "width", "1 to 20000"), ("width=1e3", "width", "1 to 20000"),
      ("width=10001&pixel_ratio=2", "width", "the limit is 20000"), ("scale=1", "scale", "the limit is 20000"),
      ("width=9&scale=512", "width", "Only one of"), ("scale=0", "scale", "1 to 16777216"),
      ("height=0", "height", "1 to 2000"), ("height=2001", "height", "1 to 2000"),
      ("height=tall", "height", "1 to 2000"),
      ("height=7&channels=split", "height", "8 to 2000: each lane needs 4 pixels"),
      ("height=25&axis=1", "height", "26 to 2000"),
      ("width=10000&height=1000", "height", "the limit is 8388608"),
      ("pixel_ratio=0.5", "pixel_ratio", "1 to 4"), ("pixel_ratio=5", "pixel_ratio", "1 to 4"),
      ("pixel_ratio=0x2", "pixel_ratio", "1 to 4"), ("color=pink", "color", "#rrggbb"),
      ("color=%23ff", "color", "#rrggbb"), ("color=", "color", "orange"),
      ("background=none", "background", "transparent"),
      ("overlay_color=rgb(1,2,3)", "overlay_color", "#rrggbb"), ("axis=yes", "axis", "0 or 1"),
      ("style=line", "style", "wave or bars"), ("amplitude_scale=0", "amplitude_scale", "auto or"),
      ("amplitude_scale=nan", "amplitude_scale", "auto or"), ("start=2&end=1", "end", "greater than"),
      ("start=-1", "start", "0 or more"), ("channels=2", "channels", "counted from 0"), ("bits=8", "bits", "no query"),
      ("measures=peak", "measures", "no query"), ("zoom=2", "zoom", "no query"),
    ])
  func badParameter(query: String, parameter: String, words: String) async throws {
    let bench = try TestBench()
    let recording = try finished(bench)
    for form in ["png", "svg"] {
      let response = try await bench.respond(.get, target(recording, "waveform.\(form)?\(query)"))
      let body = String(decoding: try await response.body.collect(), as: UTF8.self)
      #expect(response.status == .badRequest && body.contains("\"parameter\":\"\(parameter)\""), "\(body)")
      #expect(body.contains(words), "\(body)")
    }
  }
}
