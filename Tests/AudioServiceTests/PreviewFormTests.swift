import AudioIO
import Contract
import Foundation
import HTTP
import PresentRows
import Terms
import Testing

@testable import AudioService
@testable import Jobs
@testable import Storage

/// What previews show besides their sound. The child only copies its source.
@Suite struct PreviewFormTests {
  private static let script = #"""
    if [ "$command" = denoise ]; then report=$(finish); cp "$source" "$output"; echo "$report"; else finish; fi
    """#

  /// A recording of 60 s at 1,000 Hz with two channels.
  private func recording(_ bench: TestBench) throws -> Recording {
    let path = bench.folder.path + "/made.wav"
    var writer = try AudioWriter(
      creating: path, format: AudioFormat(container: .wav, codec: .pcmS16, sampleRate: 1000, channels: 2),
      expectedFrames: 60_000)
    var quantised: [Int16] = []
    let sound = (0..<120_000).map { Float($0 / 2 % 1000) / 2000 }
    try writer.write(sound.span, quantised: &quantised)
    try writer.finish(isDurable: false)
    let recording = try bench.recording()
    let data = try Data(contentsOf: URL(fileURLWithPath: path))
    try data.write(to: URL(fileURLWithPath: bench.store.path(of: try #require(recording.audioKey))))
    try bench.catalog.update(recording.id) { $0.bytes = Int64(data.count) }
    return recording
  }

  @Test func aPreviewIsShownInEachForm() async throws {
    let bench = try TestBench(script: Self.script)
    let path = "/v1/recordings/\(try recording(bench).id)/denoise/preview"
    // From the recording's start, because the child's file begins there.
    let window = #""window":{"start":0,"end":30}"#
    func answer(_ members: String, accept: String? = nil) async throws -> (HTTPResponse, [UInt8]) {
      let fields: HTTPFields = accept.map { ["Accept": $0] } ?? [:]
      let response = try await bench.respond(.post, path, fields: fields, body: "{\(window)\(members)}")
      let body = Array(try await response.body.collect())
      #expect(response.status == .ok, "\(members): \(String(decoding: body, as: UTF8.self))")
      return (response, body)
    }
    let (sound, _) = try await answer("")
    #expect(sound.fields["Content-Type"] == "audio/wav")
    #expect(try await answer("", accept: "audio/flac, */*;q=.5").0.fields["Content-Type"] == "audio/flac")
    let (points, binary) = try await answer(#","as":"points","width":30,"bits":8,"channels":1"#)
    #expect(points.fields["Content-Type"] == "application/vnd.stillwave.points")
    #expect(points.fields["Stillwave-Start-Frame"] == "0" && Array(binary[..<4]) == Array("SWPT".utf8))
    // 1,000 frames per pixel, of whole points, so the first pixel ends after frame 767.
    #expect(binary.count == 32 + 60 && binary[16] == 30 && binary[33] == 49 && binary[35] == 63)
    let (json, text) = try await answer(#","as":"points","measures":"peak,rms""#, accept: "application/json")
    #expect(json.fields["Content-Type"] == "application/json")
    #expect(String(decoding: text, as: UTF8.self).contains("\"samples_per_pixel\":15,"))
    let (tile, values) = try await answer(#","as":"spectrogram","spectrogram":{"scale":256,"height":9,"window":256}"#)
    #expect(tile.fields["Content-Type"] == "application/octet-stream" && values.count == 9 * 118)
    #expect(tile.fields["Stillwave-Columns"] == "118" && Set(values).count > 20)
    let (_, png) = try await answer(#","as":"spectrogram""#, accept: "image/png")
    #expect(Array(png[..<4]) == [0x89, 0x50, 0x4E, 0x47])
  }

  @Test(
    "a member that doesn't fit is named",
    arguments: [
      (#""as":"picture""#, "as"), (#""width":9"#, "width"), (#""as":"points","spectrogram":{}"#, "spectrogram"),
      (#""as":"points","bits":9"#, "bits"), (#""as":"points","channels":"all""#, "channels"),
      (#""as":"points","measures":"loud""#, "measures"), (#""as":"points","channels":2"#, "channels"),
      (#""as":"spectrogram","spectrogram":{"scale":65}"#, "scale"),
      (#""as":"spectrogram","spectrogram":{"start":1}"#, "spectrogram.start"),
      (#""as":"spectrogram","spectrogram":{"max_hz":501}"#, "max_hz"), (#""method":"none""#, "edit"),
      (#""method":"none","edit":{"boxes":[{"gain_db":-1}]},"strength":"gentle""#, "strength"),
      (#""method":"none","edit":{"boxes":[{"gain_db":-1}]},"noise":"auto""#, "noise"),
      (#""method":"none","edit":{"boxes":[{"gain_db":-1}]},"sensitivity":1"#, "sensitivity"),
      (#""edit":{"boxes":[]}"#, "edit.boxes"), (#""edit":{"boxes":[{}]}"#, "edit.boxes[0].gain_db"),
      (#""edit":{"boxes":[{"gain_db":-61}]}"#, "edit.boxes[0].gain_db"),
      (#""edit":{"boxes":[{"gain_db":-6},{"gain_db":-6,"max_hz":501}]}"#, "edit.boxes[1].max_hz"),
      (#""edit":{"boxes":[{"gain_db":-6,"start":2,"end":2}]}"#, "edit.boxes[0].end"),
      (#""edit":{"boxes":[{"gain_db":-6,"min_hz":9,"max_hz":8}]}"#, "edit.boxes[0].max_hz"),
      (#""edit":{"boxes":[{"gain_db":-6,"from":8}]}"#, "edit.boxes[0].from"),
    ])
  func badMember(members: String, parameter: String) async throws {
    let bench = try TestBench(script: Self.script)
    let recording = try bench.recording()
    let answer = try await bench.check(
      .post, "/v1/recordings/\(recording.id)/denoise/preview", body: "{\"window\":{\"start\":1,\"end\":2},\(members)}",
      400)
    #expect(answer.contains("\"parameter\":\"\(parameter)\""), "\(answer)")
  }

  @Test func anEditOfAThousandBoxesIsAJob() async throws {
    let bench = try TestBench(script: Self.script)
    let path = "/v1/recordings/\(try bench.recording().id)/denoise"
    let box =
      #"{"start":12.345678901,"end":23.456789012,"min_hz":123.456789,"max_hz":456.789012,"gain_db":-12.3456789}"#
    func body(_ count: Int) -> String {
      "{\"method\":\"none\",\"edit\":{\"boxes\":[\(Array(repeating: box, count: count).joined(separator: ","))]}}"
    }
    _ = try await bench.check(.post, path, body: body(1001), 400)
    _ = try await bench.check(.post, path, body: body(1000), 202)
    let job = try #require(try bench.catalog.jobs(limit: 1).first)
    #expect(try await bench.finished(job.id).state == .succeeded)
    let late = try await bench.check(
      .post, path, body: #"{"method":"none","edit":{"boxes":[{"start":60,"gain_db":-6}]}}"#, 422)
    #expect(late.contains("\"parameter\":\"edit.boxes[0].start\""), "\(late)")
    await bench.runner.stop()
  }
}
