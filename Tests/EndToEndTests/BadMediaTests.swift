import Foundation
import Testing

@testable import Sounds

/// Files of media that can't be used, or only in part.
@Suite(.serialized) struct BadMediaTests {
  @Test("videos without sound are rejected")
  func silentFilm() throws {
    let server = try TestServer()
    let path = server.folder.file("silent.mp4")
    try Tool.ffmpeg.run(
      ["-v", "error", "-f", "lavfi", "-i", "color=black:s=64x48:r=25:d=1"] + MediaClip.h264 + [path])
    let answer = try server.client.send("POST", "/v1/recordings", [:], .bytes(try contents(path)))
    expectProblem(answer, 415, "unsupported_media")
    #expect(answer.json["detail"].string?.contains("without an audio track") == true)
    try server.expectNothingKept()
  }

  @Test("without ffmpeg the answer says what to install, and all else works")
  func missing() throws {
    let server = try TestServer("--ffmpeg", "/nonexistent/ffmpeg")
    let path = try MediaUploadTests.memo.make(in: server.folder)
    let answer = try server.client.send("POST", "/v1/recordings", [:], .bytes(try contents(path)))
    expectProblem(answer, 415, "unsupported_media")
    #expect(answer.json["detail"].string?.contains("apt-get install ffmpeg") == true)
    _ = try server.client.uploadReady(Clip.tone.bytes)
  }

  @Test("the service's limits apply to files that ffmpeg reads")
  func limits() throws {
    let server = try TestServer("--max-duration", "2")
    let path = try MediaUploadTests.memo.make(in: server.folder)
    let answer = try server.client.send("POST", "/v1/recordings", [:], .bytes(try contents(path)))
    expectProblem(answer, 422, "unsupported_format")
    // Raw AAC doesn't contain its length, so its job finds it out.
    let raw = try MediaUploadTests.clip("raw.aac", "adts", "aac", ["-c:a", "aac"]).make(in: server.folder)
    let uploaded = try server.client.upload(contents(raw), name: "raw.aac")
    let job = try server.client.follow(try #require(uploaded["waveform"]["job"].string))
    #expect(job["state"].string == "failed" && job["error"]["code"].string == "unsupported_format")
  }

  @Test("samples in a video that aren't finite become silence, in its working copy too")
  func notFinite() throws {
    let server = try TestServer()
    let (raw, film) = (server.folder.file("raw"), server.folder.file("a.mkv"))
    var samples = (0..<30_000).map { Float($0 % 100) / 50 }
    for index in [0, 1500, 29_999] { samples[index] = .nan }
    samples[20_000] = -.infinity
    try write(
      samples.flatMap { sample in (0..<4).map { UInt8(truncatingIfNeeded: sample.bitPattern >> (8 * $0)) } }, to: raw)
    try Tool.ffmpeg.run(["-v", "error", "-f", "f32le", "-ar", "8000", "-ac", "1", "-i", raw, "-c:a", "pcm_f32le", film])
    let recording = try server.client.uploadReady(contents(film), name: "a.mkv")
    #expect(recording["warnings"].array?.contains { $0["code"].string == "non_finite_samples" } == true, "\(recording)")
    #expect(recording["warnings"].array?.first?["detail"].string?.contains("4") == true, "\(recording)")
    let id = try #require(recording["id"].string)
    let part = try WAVFile(reading: server.client.get("/v1/recordings/\(id)/audio?start=0&end=3.75").body)
    #expect(part.format == 3 && part.sound.channels[0].map(Float.init) == samples.map { $0.isFinite ? $0 : 0 })
  }
}
