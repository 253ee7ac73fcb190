import Foundation
import Testing

@testable import Sounds

/// A recording's audio in the format that a player requests.
@Suite(.serialized) struct ConversionTests {
  /// Beeps at each second, in every kind of source, some with rates and channels that some formats lack.
  private static func source(_ kind: String, in folder: TemporaryFolder) throws -> String {
    let path = folder.file("source.\(kind.split(separator: "-")[0])")
    let clip = MediaClip(
      fileName: "", container: "", codec: "", rate: kind == "wav-96k" ? 96_000 : 44_100, hasVideo: false, words: [])
    let words =
      switch kind {
      case "m4a": ["-c:a", "aac"]
      case "wav-six": ["-af", "pan=5.1|c0=c0|c1=c0|c2=c0|c3=c0|c4=c0|c5=c0"]
      case "wav-96k": ["-c:a", "pcm_s24le"]
      default: [String]()
      }
    try Tool.ffmpeg.run(clip.inputWords + words + [path])
    return path
  }

  @Test(
    "sound in another format is where the waveform has it", .secondTier,
    arguments: ["wav", "wav-six", "wav-96k", "m4a"], ["wav", "flac", "mp3", "ogg", "opus"])
  func aligned(_ kind: String, format: String) throws {
    let server = try TestServer()
    let file = try contents(Self.source(kind, in: server.folder))
    let recording = try server.client.uploadReady(file, name: "a.\(kind)")
    let id = try #require(recording["id"].string)
    let answer = try server.client.conversion("/v1/recordings/\(id)/audio?format=\(format)")
    try #require(answer.status == 200, "\(answer.text)")
    let types = [
      "wav": "audio/wav", "flac": "audio/flac", "mp3": "audio/mpeg", "ogg": "audio/ogg", "opus": "audio/ogg",
    ]
    #expect(answer["content-type"] == types[format])
    let sound = try decoded(answer.body, server.folder)
    let rate = Double(sound.rate)
    for (second, beep) in zip([1.0, 4], try server.client.beeps(in: id, near: [1, 4])) {
      let start = Int((second - 0.05) * rate)
      let loud = try #require(sound.channels[0][start...].firstIndex { $0.magnitude > 4000.0 / 32768 })
      // A sample of the coarser of the two, and a lossy codec's change to the first sample of a beep.
      #expect(abs(Double(loud) / rate - beep) < 0.00012, "\(Double(loud) / rate) \(beep)")
    }
    let duration = try #require(recording["format"]["duration"].double)
    // At the end, ffmpeg's Vorbis decoder is off by half a block, its MP3 decoder by the padding.
    let slack = ["ogg": 0.003, "mp3": 0.06][format] ?? 0.0001
    #expect(abs(sound.seconds - duration) < slack, "\(sound.seconds) \(duration)")
  }

  @Test(
    "every channel keeps its place in Opus, even at a rate that Opus lacks", .secondTier,
    arguments: [(3, "3.0"), (4, "quad"), (6, "5.1"), (8, "7.1")])
  func channels(count: Int, layout: String) throws {
    let server = try TestServer()
    let path = server.folder.file("source.wav")
    // Low enough for a low-frequency channel, each louder than the one before.
    let tones = (1...count).map { "0.\($0)*sin(2*PI*60*t)" }.joined(separator: "|")
    try Tool.ffmpeg.run(["-v", "error", "-f", "lavfi", "-i", "aevalsrc=\(tones):c=\(layout):s=44100:d=2", path])
    let id = try #require(try server.client.uploadReady(contents(path))["id"].string)
    let answer = try server.client.conversion("/v1/recordings/\(id)/audio?format=opus")
    try #require(answer.status == 200, "\(answer.text)")
    let sound = try decoded(answer.body, server.folder)
    #expect(sound.channels.count == count)
    for (number, channel) in sound.channels.enumerated() {
      let peak = channel[24_000..<72_000].map(\.magnitude).max() ?? 0
      #expect(abs(Double(peak) - Double(number + 1) / 10) < 0.04, "channel \(number): \(peak)")
    }
    #expect(try server.client.conversion("/v1/recordings/\(id)/audio?format=mp3").status == 200)
  }

  @Test("if ffmpeg would mix up channels, Opus is rejected with an explanation")
  func mixedUp() throws {
    let server = try TestServer()
    let path = server.folder.file("source.wav")
    try Tool.ffmpeg.run(["-v", "error", "-f", "lavfi", "-i", "anullsrc=cl=5.0:r=44100:d=1", path])
    let id = try #require(try server.client.uploadReady(contents(path))["id"].string)
    expectProblem(try server.client.conversion("/v1/recordings/\(id)/audio?format=opus"), 422, "unsupported_output")
    #expect(try server.client.conversion("/v1/recordings/\(id)/audio?format=ogg").status == 200)
  }

  @Test("without ffmpeg, a format that lacks the rate is rejected with an explanation")
  func withoutFFmpeg() throws {
    let server = try TestServer("--ffmpeg", "/nonexistent/ffmpeg")
    let file = try contents(Self.source("wav", in: server.folder))
    let id = try #require(try server.client.uploadReady(file)["id"].string)
    expectProblem(try server.client.conversion("/v1/recordings/\(id)/audio?format=opus"), 422, "unsupported_output")
    #expect(try server.client.conversion("/v1/recordings/\(id)/audio?format=mp3").status == 200)
  }
}
