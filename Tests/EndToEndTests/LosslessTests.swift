import Foundation
import Testing

/// Lossless audio stays lossless in the result, or a warning says otherwise.
@Suite(.serialized) struct LosslessTests {
  /// A file, the codec of the result, and the result's extension.
  static let rows: [(PositionRow, codec: String, ending: String)] = [
    (PositionRow("film with PCM", "mkvmerge", "a.mkv", "mkvmerge -q -o OUT -A FILM SOUND"), "pcm_s24", "mkv"),
    (PositionRow("floats", "ffmpeg", "c.mka", "ffmpeg -i SOUND -c:a pcm_f32le OUT"), "pcm_f32", "mka"),
    (PositionRow("WavPack", "ffmpeg", "d.mka", "ffmpeg -i SOUND -c:a wavpack OUT"), "flac", "mka"),
    (
      PositionRow("film with FLAC", "ffmpeg", "e.mp4", "ffmpeg -i FILM -c:v copy -c:a flac -strict -2 OUT"), "flac",
      "mp4"
    ),
    (PositionRow("film with ALAC", "ffmpeg", "f.mp4", "ffmpeg -i FILM -c:v copy -c:a alac OUT"), "alac", "mp4"),
    (PositionRow("film with PCM", "ffmpeg", "g.mov", "ffmpeg -i FILM -c:v copy -c:a pcm_s16be OUT"), "pcm_s24", "mov"),
    (PositionRow("floats", "ffmpeg", "h.mov", "ffmpeg -i FILM -c:v copy -c:a pcm_f32le OUT"), "pcm_f32", "mov"),
    (
      PositionRow("96 kHz", "ffmpeg", "j.mka", "ffmpeg -i SOUND -ar 96000 -ac 2 -c:a flac -sample_fmt s32 OUT"), "flac",
      "mka"
    ),
    (
      PositionRow("192 kHz", "ffmpeg", "k.mp4", "ffmpeg -i SOUND -ar 192000 -c:a flac -strict -2 OUT"), "flac", "mp4"
    ),
  ]

  /// The maximum error of a sample from the transforms and their inverses, in 24-bit steps: -134 dBFS.
  private static let rounding = 4

  @Test("lossless sound stays lossless, sample by sample, and names match the format", .secondTier)
  func kept() throws {
    let server = try TestServer("--workers", "2")
    let material = try PositionRow.Material(in: server.folder)
    for row in Self.rows {
      let path = try row.0.make(material)
      let (recording, file, before) = try clean(path, row.0.file, server)
      let told = "\(row.0.file), \(row.0.kind): \(recording)"
      #expect(recording["format"]["codec"].string == row.codec, "\(told)")
      let codes = recording["warnings"].array?.map { $0["code"].string }
      #expect(codes == (row.codec == before ? [] : ["format_changed"]), "\(told)")
      #expect(recording["name"].string?.hasSuffix(".\(row.ending)") == true, "\(told)")
      let (first, second) = (try samples(path), try samples(file))
      #expect(first.count == second.count && first.count > 100_000, "\(told)")
      let furthest = zip(first, second).map { abs($0 - $1) }.max() ?? .max
      #expect(furthest <= Self.rounding, "\(told)")
    }
  }

  @Test("a loss caused by the container is reported")
  func lost() throws {
    let server = try TestServer()
    let material = try PositionRow.Material(in: server.folder)
    let path = try PositionRow("", "", "a.mka", "ffmpeg -i SOUND -c:a flac OUT").make(material)
    var file = Data(try contents(path))
    // Matroska declared as WebM, which has only Opus and Vorbis.
    file.replaceSubrange(try #require(file.range(of: Data("matroska".utf8))), with: Data("webm\0\0\0\0".utf8))
    try write(Array(file), to: path)
    let (recording, _, _) = try clean(path, "a.webm", server)
    #expect(recording["format"]["codec"].string == "opus")
    #expect(recording["warnings"].array?.map { $0["code"].string } == ["lossy_result"])
  }

  /// Cleans without removing any noise. Returns the new recording, its file, and the source's codec.
  private func clean(
    _ path: String, _ name: String, _ server: TestServer
  ) throws -> (recording: JSON, path: String, codec: String?) {
    let source = try server.client.uploadReady(contents(path), name: name)
    let id = try #require(try server.client.cleaned(source)["id"].string)
    let out = server.folder.file("cleaned-\(name)")
    try write(try server.client.get("/v1/recordings/\(id)/audio").body, to: out)
    return (try server.client.recording(id), out, source["format"]["codec"].string)
  }

  /// The samples with 24 bits.
  private func samples(_ path: String) throws -> [Int] {
    let finished = try Command(
      "/usr/bin/env",
      ["ffmpeg", "-v", "error", "-nostdin", "-i", path, "-map", "0:a:0", "-c:a", "pcm_s32le", "-f", "s32le", "-"]
    ).finish()
    try #require(finished.status == 0, "\(path): \(finished.errors)")
    let bytes = finished.output
    return stride(from: 0, to: bytes.count - 3, by: 4).map { place in
      Int(Int32(bitPattern: bytes[place..<place + 4].reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) })) >> 8
    }
  }
}
