import Foundation
import Testing

@testable import Sounds

/// `POST …/trim`: a part of a recording as a new one.
@Suite(.serialized) struct TrimTests {
  private func trim(_ client: HTTPClient, _ id: String, _ json: String) throws -> JSON {
    let answer = try client.post("/v1/recordings/\(id)/trim", json: json)
    try #require(answer.status == 202, "\(answer.text)")
    try client.succeed(try #require(answer.json["id"].string))
    return try client.recording(try #require(answer.json["result"]["recording"].string))
  }

  /// A video, a part of it, and the part's file uploaded again.
  private struct Trimmed {
    let source, part: JSON
    let id, partID: String
    /// Path of the part's file, as users get it.
    let file: String
    let again: String
  }

  private func trimmed(_ path: String, _ json: String, on server: TestServer) throws -> Trimmed {
    let (client, name) = (server.client, String(path.split(separator: "/").last ?? ""))
    let source = try client.uploadReady(contents(path), name: name)
    let id = try #require(source["id"].string)
    let part = try trim(client, id, json)
    #expect(part["video"]["codec"] == source["video"]["codec"] && part["video"] != .null)
    let partID = try #require(part["id"].string)
    let file = server.folder.file("part-\(name)")
    let bytes = try client.get("/v1/recordings/\(partID)/video").body
    try write(bytes, to: file)
    let again = try #require(try client.uploadReady(bytes, name: name)["id"].string)
    return Trimmed(source: source, part: part, id: id, partID: partID, file: file, again: again)
  }

  /// The part from 1.373 to 4.219 s has the samples that the service reads there in the source.
  private func checkSound(of clip: Trimmed, _ client: HTTPClient) throws {
    let rate = try #require(clip.source["format"]["sample_rate"].double)
    #expect(clip.part["format"]["frames"].double == (4.219 * rate).rounded() - (1.373 * rate).rounded())
    let whole = try WAVFile(reading: client.conversion("/v1/recordings/\(clip.id)/audio?format=wav").body)
    let cut = try WAVFile(reading: client.conversion("/v1/recordings/\(clip.partID)/audio?format=wav").body)
    let (frame, first) = (whole.channels * whole.bits / 8, Int((1.373 * rate).rounded()))
    #expect(cut.data == Array(whole.data[first * frame..<first * frame + cut.data.count]))
  }

  /// A clip, and how much later than its flashes its beeps come.
  private static func clip(_ name: String) throws -> (MediaClip, Double) {
    try #require(MediaUploadTests.videos.first { $0.0.fileName == name })
  }

  @Test(
    "a part of a video has its pictures, not coded again, and the sound in step with them", .secondTier,
    arguments: ["phone.mp4", "phone.mov", "reordered.mp4", "fragmented.mp4", "browser.webm", "film-aac.mkv"])
  func video(_ name: String) throws {
    let server = try TestServer()
    let (clip, late) = try Self.clip(name)
    let path = try clip.make(in: server.folder)
    // Between two pictures, and between two key pictures.
    let clipped = try trimmed(path, #"{"start":1.373,"end":4.219}"#, on: server)
    try checkSound(of: clipped, server.client)
    // In the file that users get, beeps and flashes are where they were, less the start.
    let before = try flashes(in: path).map { $0 - 1.373 }.filter { (0..<2.846).contains($0) }
    // Those shown at the very beginning are the pictures that came before.
    let after = try flashes(in: clipped.file).filter { $0 > 0.1 }
    try #require(before.count == 3 && after.count == 3, "\(before) \(after)")
    let beeps = try server.client.beeps(in: clipped.again, near: before)
    for ((flash, beep), expected) in zip(zip(after, beeps), before) {
      #expect(abs(flash - expected) < 0.001, "\(flash) \(expected)")
      #expect(abs(beep - flash - late) < 0.0012, "\(beep) \(flash)")
    }
  }

  /// A clip of a kind of file that is cut at key pictures.
  private static func plainClip(_ name: String, keyEvery pictures: Int) throws -> MediaClip {
    let clip = try #require(MoreFormatsTests.clips.first { $0.0.fileName == name }).0
    return MediaClip(
      fileName: name, container: clip.container, codec: clip.codec, rate: clip.rate, hasVideo: true,
      words: clip.words + ["-g", "\(pictures)"])
  }

  @Test(
    "a part of AVI and Flash video begins with its first key picture, in step with the sound", .secondTier,
    arguments: ["film.avi", "camera.avi", "film.flv"])
  func keyPictures(_ name: String) throws {
    let server = try TestServer()
    let path = try Self.plainClip(name, keyEvery: 12).make(in: server.folder)
    let clipped = try trimmed(path, #"{"start":1.373,"end":4.219}"#, on: server)
    try checkSound(of: clipped, server.client)
    let before = try flashes(in: path).filter { (1.373..<4.219).contains($0) }
    let after = try flashes(in: clipped.file)
    try #require(before.count == 3 && after.count == 3, "\(before) \(after)")
    // AVI has a place for each picture, and no times.
    let tolerance = name.hasSuffix("avi") ? 0.0205 : 0.0012
    for (old, new) in zip(before, after) {
      #expect(abs(new + 1.373 - old) < tolerance, "\(new) \(old)")
      let late = try #require(try server.client.beeps(in: clipped.id, near: [old]).first) - old
      let beep = try #require(try server.client.beeps(in: clipped.again, near: [new]).first)
      #expect(abs(beep - new - late) < tolerance, "\(beep) \(new) \(late)")
    }
  }

  @Test(
    "a part from the very start has all pictures, in step with the sound", .secondTier,
    arguments: ["film.avi", "film.flv", "film.ts", "film.mpg"])
  func beginning(_ name: String) throws {
    let server = try TestServer()
    let path = try Self.plainClip(name, keyEvery: 250).make(in: server.folder)
    let clipped = try trimmed(path, #"{"start":0,"end":3.5}"#, on: server)
    let old = try server.client.lateness(of: clipped.id, at: path)
    let new = try server.client.lateness(of: clipped.again, at: clipped.file)
    try #require(old.count == 4 && new.count == 3, "\(old) \(new)")
    for (before, after) in zip(old, new) { #expect(abs(before - after) < 0.0012, "\(old) \(new)") }
  }

  @Test(
    "a part of such a file in which no key picture begins has no pictures, and says so",
    arguments: ["film.avi", "film.flv"])
  func noKeyPicture(_ name: String) throws {
    let server = try TestServer()
    let path = try Self.plainClip(name, keyEvery: 250).make(in: server.folder)
    let source = try server.client.uploadReady(contents(path), name: name)
    let part = try trim(server.client, try #require(source["id"].string), #"{"start":1.373,"end":4.219}"#)
    #expect(source["video"] != .null && part["video"] == .null)
    let left = part["warnings"].array?.first { $0["code"] == .string("tracks_left_out") }
    #expect(left?["detail"].string?.contains("no key picture begins in the part") == true, "\(part["warnings"])")
    let partID = try #require(part["id"].string)
    #expect(try server.client.get("/v1/recordings/\(partID)/video").status == 404)
    let bytes = try server.client.get("/v1/recordings/\(partID)/audio").body
    let again = try server.client.uploadReady(bytes, name: name)
    #expect(again["video"] == .null && again["format"]["container"] == source["format"]["container"])
    let (found, wanted) = (
      try #require(again["format"]["frames"].double), try #require(part["format"]["frames"].double)
    )
    // Coded with loss, it may end with silence.
    #expect(abs(found - wanted) < 2000, "\(again["format"])")
  }

  @Test("sound coded with loss becomes lossless and says so; lossless sound in MP4 stays what it is")
  func kinds() throws {
    let server = try TestServer()
    for (ending, words, codec, warning) in [
      ("m4a", ["-c:a", "aac"], "pcm_f32", "format_changed"), ("mp3", ["-c:a", "libmp3lame"], "flac", "format_changed"),
      ("m4a", ["-c:a", "alac"], "alac", nil), ("flac", [], "flac", nil),
    ] {
      let path = server.folder.file("a.\(ending)")
      try Tool.ffmpeg.run(["-v", "error", "-y", "-f", "lavfi", "-i", "sine=440:r=44100:d=3"] + words + [path])
      let id = try #require(try server.client.uploadReady(contents(path), name: "a.\(ending)")["id"].string)
      let part = try trim(server.client, id, #"{"start":1,"end":2}"#)
      #expect(part["format"]["codec"] == .string(codec) && part["format"]["frames"] == .number(44_100), "\(part)")
      #expect(part["warnings"].array?.first?["code"].string == warning, "\(part["warnings"])")
      let partID = try #require(part["id"].string)
      let whole = try WAVFile(reading: server.client.conversion("/v1/recordings/\(id)/audio?format=wav").body)
      let cut = try WAVFile(reading: server.client.conversion("/v1/recordings/\(partID)/audio?format=wav").body)
      let frame = whole.bits / 8
      #expect(cut.bits == whole.bits && cut.data == Array(whole.data[44_100 * frame..<88_200 * frame]), "\(ending)")
    }
  }

  @Test("the command and the service bring a recording to a loudness, which ffmpeg confirms")
  func loudness() throws {
    let server = try TestServer()
    let sound = Sound.noisy(rate: 48_000, channels: 2, seconds: 8) { time, channel in
      Sound.tone(time, channel) * (time.truncatingRemainder(dividingBy: 1) < 0.7 ? 1 : 0.02)
    }
    let source = server.folder.file("in.wav")
    try write(WAVFile(sound).bytes, to: source)
    let id = try #require(try server.client.uploadReady(contents(source))["id"].string)
    let before = try server.client.get("/v1/recordings/\(id)/loudness").json
    let reference = try Self.ebur128(source)
    #expect(abs(try #require(before["integrated_lufs"].double) - reference.integrated) < 0.11, "\(before) \(reference)")
    // libebur128 takes a short-term loudness once a second, ffmpeg ten times: few seconds have different percentiles.
    #expect(abs(try #require(before["range_lu"].double) - reference.range) < 0.5, "\(before) \(reference)")
    #expect(abs(try #require(before["true_peak_dbtp"].double) - reference.peak) < 0.21, "\(before) \(reference)")
    let job = try server.client.denoise(id, #"{"noise":{"start":0.1,"end":1.4},"loudness":-16}"#)
    let done = try server.client.succeed(try #require(job["id"].string))
    #expect(done["result"]["loudness"]["before"] == before)
    #expect(abs(try #require(done["result"]["loudness"]["after"]["integrated_lufs"].double) + 16) < 0.1)
    let levels = done["result"]["noise_level"]
    #expect(try #require(levels["before"].double) - (try #require(levels["after"].double)) > 12)
    let cleaned = server.folder.file("cleaned.wav")
    let result = try #require(done["result"]["recording"].string)
    try write(server.client.get("/v1/recordings/\(result)/audio").body, to: cleaned)
    let printed = server.folder.file("out.wav")
    let words = ["denoise", source, "-o", printed, "--noise", "0.1-1.4", "--loudness", "-16"]
    let finished = try Command(Program.path(), words).finish()
    try #require(finished.status == 0, "\(finished.errors)")
    #expect(try contents(printed) == contents(cleaned))
    let found = try Self.ebur128(cleaned)
    #expect(abs(found.integrated + 16) < 0.11 && found.peak <= -0.9, "\(found)")
  }

  /// What ffmpeg's filter measures, to a tenth.
  private static func ebur128(_ path: String) throws -> (integrated: Double, range: Double, peak: Double) {
    let finished = try Command(
      "/usr/bin/env",
      [
        "ffmpeg", "-hide_banner", "-nostdin", "-i", path, "-af", "ebur128=peak=true:framelog=verbose", "-f", "null",
        "-",
      ]
    ).finish()
    func value(_ name: String) throws -> Double {
      let line = finished.errors.split(separator: "\n").last { $0.trimmingCharacters(in: .whitespaces).hasPrefix(name) }
      return try #require(line?.split(separator: " ").compactMap { Double($0) }.first, "\(name): \(finished.errors)")
    }
    return (try value("I:"), try value("LRA:"), try value("Peak:"))
  }
}

extension HTTPClient {
  /// Returns how much later a recording's beeps come than the flashes of its file, on the file's clock.
  fileprivate func lateness(of id: String, at path: String) throws -> [Double] {
    let times = try flashes(in: path)
    // Transport and program streams don't begin at 0.
    let found = try Command(
      "/usr/bin/env", ["ffprobe", "-v", "error", "-show_entries", "format=start_time", "-of", "csv=p=0", path]
    ).finish().lines
    let hasClock = path.hasSuffix(".ts") || path.hasSuffix(".mpg")
    let zero = hasClock ? try #require(found.lazy.compactMap { Double($0) }.first) : 0
    return try zip(times, beeps(in: id, near: times.map { $0 - zero })).map { $1 + zero - $0 }
  }
}
