import Foundation
import Terms
import Testing

@testable import Media

/// Whether a file that ffmpeg encodes is complete. The programs stand in for ffmpeg and write to descriptor 4.
final class MediaEncodingTests {
  private let folder = FileManager.default.temporaryDirectory.appending(path: "encoding-\(UUID().uuidString)").path

  init() throws { try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false) }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  /// Encodes a tenth of a second with this program and returns the error.
  private func encode(
    into path: String, as codec: OutputFormat.Encoder = .mp3, with ffmpeg: FFmpeg
  ) throws -> MediaError? {
    let encoding = try MediaEncoding(
      path: path, codec: codec, sampleRate: 8000, channels: 1, with: ffmpeg, in: .none)
    do throws(MediaError) {
      try encoding.write([Float](repeating: 0.5, count: 800).span)
      try encoding.finish()
    } catch {
      return error
    }
    return nil
  }

  @Test(
    "a file is complete if the program succeeds and the file has as many bytes as the program says",
    arguments: [
      ("printf 12345 >&4; printf 'total_size=5\\nprogress=end\\n'", nil), ("printf 12345 >&4", nil),
      ("printf 12345 >&4; printf 'total_size=N/A\\nprogress=end\\n'", nil),
      ("printf 12345 >&4; printf 'total_size=4\\nprogress=end\\n'", .encoderFailed),
      ("printf 12345 >&4; printf 'total_size=6\\nprogress=end\\n'", .encoderFailed),
      ("printf 12345 >&4; printf 'total_size=5\\nprogress=end\\n'; exit 1", .encoderFailed),
      ("printf 12345 >&4; kill -KILL $$", .encoderFailed), ("exit 0", .encoderFailed),
    ] as [(String, MediaError?)])
  func complete(script: String, failure: MediaError?) throws {
    try ScriptedProgram.write("cat >/dev/null\n\(script)\n", as: ["ffmpeg", "ffprobe"], in: folder)
    #expect(try encode(into: "\(folder)/file", with: try #require(FFmpeg("\(folder)/ffmpeg"))) == failure)
  }

  @Test(
    "ffmpeg's report agrees with the file; a full disk is reported", .enabled(if: FFmpeg() != nil),
    arguments: OutputFormat.Encoder.allCases)
  func real(codec: OutputFormat.Encoder) throws {
    let ffmpeg = try #require(FFmpeg())
    #expect(try encode(into: "\(folder)/file", as: codec, with: ffmpeg) == nil)
    #expect(
      try encode(into: "/dev/full", as: codec, with: ffmpeg) == .system(operation: "write", errno: ENOSPC))
  }

  @Test(
    "the sizes that ffmpeg reports for the files of all muxers are theirs", .enabled(if: FFmpeg() != nil),
    arguments: [
      "ipod", "mp4", "mov", "matroska", "webm", "mpegts", "vob", "avi", "flv", "caf", "wv", "tta", "voc", "wav",
    ])
  func sizes(muxer: String) throws {
    let codec =
      switch muxer {
      case "webm": ["-c:a", "libopus"]
      case "voc", "wav": ["-c:a", "pcm_s16le"]
      case "caf": ["-c:a", "alac"]
      default: [] as [String]
      }
    let words = ["-f", "lavfi", "-i", "sine=d=1:r=48000", "-movflags", "+faststart"] + codec + ["-f", muxer]
    let run = try FencedRun(
      [try #require(FFmpeg()).path] + FFmpeg.quietly + words + MediaEncoding.outputWords(),
      writing: "\(folder)/file", in: .none)
    #expect(run.finishInput())
    #expect(run.finallyReportedBytes == run.outputSize && run.outputSize > 1000)
  }
}
