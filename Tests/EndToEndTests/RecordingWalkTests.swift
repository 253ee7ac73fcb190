import Foundation
import Testing

@testable import Sounds

/// A recording's whole life, over the network, for every kind of clip: upload, waveform, noise removal, download,
/// deletion.
struct RecordingWalkTests {
  @Test(arguments: Clip.all)
  func aRecordingIsUploadedShownCleanedServedAndDeleted(_ clip: Clip) throws {
    let server = try TestServer()
    let (sound, path) = try clip.make(in: server.folder)
    let file = try contents(path)

    let recording = try upload(clip, sound, file, path: path, server.client)
    let id = try #require(recording["id"].string)
    let length = try #require(recording["format"]["frames"].int)
    if clip.isLossy {
      try expectLossyWaveform(id, length, sound, server.client)
    } else {
      #expect(length == sound.frames)
      let expected = ExpectedWaveform(sound)
      let lanes = (0..<expected.channels).map(expected.channel)
      for scale in [64, 32, 256, 1000] {
        let slice = try server.client.get("/v1/recordings/\(id)/waveform?scale=\(scale)&channels=split").json
        let known = expected.peaks(lanes, scale: scale, pixels: 0..<expected.length(scale))
        #expect(slice["data"].integers == known && slice["complete"] == .bool(true), "scale \(scale)")
      }
    }
    #expect(try server.client.get("/v1/recordings/\(id)/audio").body == file)
    let source = try decoded(file, server.folder)
    // The others have only digital silence there, from which no noise is learned.
    let hasNoise = ![.silence, .clicks].contains(clip.content)
    for noise in hasNoise ? [#"{"noise":{"start":0.2,"end":1.3}}"#, "{}"] : ["{}"] {
      try denoise(clip, recording, source, noise, server)
    }
    try delete(id, server)
  }

  // MARK: Upload

  /// Uploads raw and as a form; the two differ only in id, name, and job. Returns the raw one, analyzed.
  private func upload(_ clip: Clip, _ sound: Sound, _ file: [UInt8], path: String, _ client: HTTPClient) throws -> JSON
  {
    let form = try client.uploadForm(file, fileName: "Straße \(clip.fileName)")
    #expect(form.status == 201)
    #expect(form["location"] == "/v1/recordings/\(form.json["id"].string ?? "")")
    #expect(form.json["name"] == .string("Straße \(clip.fileName)"))
    let uploaded = try client.upload(file, name: clip.fileName)
    let sha256 = try sha256(ofFile: path)
    for document in [uploaded, form.json] {
      #expect(
        document.members == [
          "bytes", "cover", "created_at", "derived_from", "format", "id", "name", "sha256", "tags", "video", "warnings",
          "waveform",
        ])
      #expect(document["bytes"].int == file.count)
      #expect(document["sha256"].string == sha256)
      #expect(document["derived_from"] == .null && document["video"] == .null)
      #expect(document["warnings"] == .array([]))
      #expect(document["format"]["container"].string == clip.container)
      #expect(document["format"]["codec"].string == clip.codec)
      #expect(document["format"]["sample_rate"].int == clip.rate)
      #expect(document["format"]["channels"].int == clip.channels)
      #expect(["queued", "building", "ready"].contains(document["waveform"]["state"].string))
      let job = try client.succeed(try #require(document["waveform"]["job"].string))
      #expect(job["kind"] == .string("waveform") && job["recording"] == document["id"])
      #expect(job["attempts"] == .number(1))
    }
    #expect(uploaded["name"].string == clip.fileName)

    let ready = try client.recording(try #require(uploaded["id"].string))
    let frames = try #require(ready["format"]["frames"].int)
    let duration = try #require(ready["format"]["duration"].double)
    #expect(abs(duration - Double(frames) / Double(clip.rate)) < 1e-9)
    // A lossy codec may add its delay and a frame of padding.
    #expect((sound.frames - 1...sound.frames + (clip.kind == .mp3 ? 3456 : 960)).contains(frames))
    #expect(ready["waveform"]["state"] == .string("ready") && ready["waveform"]["progress"] == .number(1))
    #expect(ready["waveform"]["available"].double == duration)
    #expect(ready["waveform"]["scales"].integers?.starts(with: [256, 512]) == true)
    return ready
  }

  /// Checks what a lossy codec keeps of a waveform: its length and its outline.
  private func expectLossyWaveform(_ id: String, _ frames: Int, _ sound: Sound, _ client: HTTPClient) throws {
    let slice = try client.get("/v1/recordings/\(id)/waveform?scale=1024").json
    let expected = ExpectedWaveform(sound)
    #expect(slice["length"].int == ((frames + 255) / 256 * 256 + 1023) / 1024)
    #expect(slice["total_frames"].int == frames)
    let data = try #require(slice["data"].integers)
    let known = expected.peaks([expected.mix], scale: 1024, pixels: 0..<expected.length(1024))
    let (seen, wanted) = (data.reduce(0) { $0 + abs($1) }, known.reduce(0) { $0 + abs($1) })
    #expect(abs(Double(seen) / Double(wanted) - 1) < 0.15, "\(seen) against \(wanted)")
  }

  // MARK: Noise removal

  private func denoise(_ clip: Clip, _ source: JSON, _ before: Sound, _ request: String, _ server: TestServer) throws {
    let client = server.client
    let id = try #require(source["id"].string)
    let asked = try client.denoise(id, request)
    let job = try #require(asked["id"].string)
    let output = try #require(asked["result"]["recording"].string)
    #expect(try client.get("/v1/recordings").json["recordings"].array?.contains { $0["id"].string == output } == true)

    let finished = try client.succeed(job)
    #expect(finished["result"]["recording"].string == output)
    let noise = finished["result"]["noise"]
    if request == "{}" {
      expectNoise(noise, in: clip, before)
    } else {
      #expect(noise.members == ["adapted", "end", "start"] && noise["adapted"] == .bool(false))
    }
    let made = try client.recording(output)
    let stem = clip.fileName.split(separator: ".")[0]
    #expect(made["name"].string?.hasPrefix("\(stem) (denoised).") == true)
    #expect(made["derived_from"]["recording"].string == id && made["derived_from"]["job"].string == job)
    #expect(made["derived_from"]["operation"] == .string("denoise"))
    for member in ["container", "codec", "sample_rate", "channels", "frames", "duration"] {
      #expect(made["format"][member] == source["format"][member], "\(member)")
    }
    #expect(made["waveform"]["state"] == .string("ready"))

    let audio = try client.get("/v1/recordings/\(output)/audio")
    #expect(audio.status == 200)
    #expect(made["bytes"].int == audio.body.count)
    let file = server.folder.file("downloaded")
    try write(audio.body, to: file)
    #expect(try sha256(ofFile: file) == made["sha256"].string)
    try expectCleaned(clip, before, try decoded(audio.body, server.folder))
    #expect(try client.delete("/v1/recordings/\(output)").status == 204)
  }

  /// Checks the noise chosen automatically: in the first 1.5 s or the last second, where it's alone; anywhere in a clip
  /// of noise; or the quantile if there is no such section.
  private func expectNoise(_ noise: JSON, in clip: Clip, _ sound: Sound) {
    guard clip.isVoice || clip.content == .noise else {
      #expect(noise.members == ["adapted", "quantile"])
      return
    }
    guard let start = noise["start"].double, let end = noise["end"].double else {
      Issue.record("no region was found where there is one")
      return
    }
    // Speech has its own pauses.
    guard clip.content == .tone || clip.content == .sweep else { return }
    #expect(end <= 1.55 || start >= sound.seconds - 1.05, "\(start) to \(end) s is no noise alone")
  }

  private func expectCleaned(_ clip: Clip, _ before: Sound, _ after: Sound) throws {
    #expect(after.channels.count == before.channels.count)
    let slack = clip.isLossy ? 2400 : 0
    #expect(abs(after.frames - before.frames) <= slack, "\(after.frames) frames of \(before.frames)")
    #expect(after.channels.allSatisfy { $0.allSatisfy(\.isFinite) })
    let end = before.seconds
    for channel in before.channels.indices {
      if clip.content == .silence { #expect(Loudness.decibels(after.channels[channel]) < -90) }
      guard clip.isVoice || clip.content == .noise else { continue }
      let removed =
        Loudness.decibels(before.part(channel, end - 0.85, end - 0.15))
        - Loudness.decibels(after.part(channel, end - 0.85, end - 0.15))
      #expect(removed > 12, "noise turned down by \(removed) dB on channel \(channel)")
      guard clip.isVoice else { continue }
      let change =
        Loudness.decibels(after.part(channel, 1.6, end - 1.1)) - Loudness.decibels(before.part(channel, 1.6, end - 1.1))
      #expect(abs(change) < 1.5, "voice changed by \(change) dB on channel \(channel)")
      guard clip.content == .tone else { continue }
      let hertz = Sound.toneHertz(channel)
      let toneChange =
        Loudness.decibels(after.part(channel, 2, 3), atHertz: hertz, rate: after.rate)
        - Loudness.decibels(before.part(channel, 2, 3), atHertz: hertz, rate: before.rate)
      #expect(abs(toneChange) < 0.7, "tone changed by \(toneChange) dB on channel \(channel)")
    }
  }

  // MARK: The end

  /// Expects 204, then 404 everywhere, and no trace on disk.
  private func delete(_ id: String, _ server: TestServer) throws {
    let client = server.client
    for other in try client.get("/v1/recordings").json["recordings"].array ?? [] where other["id"].string != id {
      #expect(try client.delete("/v1/recordings/\(other["id"].string ?? "")").status == 204)
    }
    #expect(try server.leftovers().contains("recordings/\(id)"))
    #expect(try client.delete("/v1/recordings/\(id)").status == 204)
    for path in ["", "/audio", "/waveform", "/waveform.dat"] {
      #expect(try client.get("/v1/recordings/\(id)\(path)").status == 404)
    }
    #expect(try client.delete("/v1/recordings/\(id)").status == 404)
    try server.expectNothingKept(jobs: nil)
  }
}
