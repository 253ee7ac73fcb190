import Foundation
import Testing

@testable import Sounds

/// Noise profiles over the network and on the command line, and noise that differs from place to place.
struct NoiseProfileTests {
  /// White noise of the given density, in dB relative to full scale² per Hz, for one second each.
  private static func noise(_ densities: [Double], rate: Int, channels: Int = 1, seed: Int = 1) -> Sound {
    Sound(
      rate: rate,
      channels: (0..<channels).map { channel in
        var noise = NoiseGenerator(seed: seed + channel)
        return densities.flatMap { density in
          // Uniform noise of amplitude a has a²/3.
          let amplitude = (3 * pow(10, density / 10) * Double(rate) / 2).squareRoot()
          return (0..<rate).map { _ in noise.next() * amplitude }
        }
      })
  }

  private func removed(_ source: Sound, _ result: Sound, _ start: Double, _ end: Double, channel: Int = 0) -> Double {
    Loudness.decibels(source.part(channel, start, end)) - Loudness.decibels(result.part(channel, start, end))
  }

  @Test func threeNoisesAreRemovedAroundTheirRegions() throws {
    let folder = try TemporaryFolder()
    let sound = Self.noise([-90, -90, -90, -75, -75, -75, -85, -85, -85], rate: 16_000)
    try write(WAVFile(sound).bytes, to: folder.file("in.wav"))
    let regions = "0.5-1.5,3.5-5,7-8.5"
    let finished = try Command.stillwave(
      "denoise", folder.file("in.wav"), "-o", folder.file("out.wav"), "--noise", regions)
    try #require(finished.status == 0, "\(finished.errors)")
    let result = try WAVFile(reading: contents(folder.file("out.wav"))).sound
    for (start, end) in [(0.5, 1.5), (3.5, 5), (7, 8.5)] { #expect(removed(sound, result, start, end) > 14) }

    let server = try TestServer()
    let id = try #require(try server.client.uploadReady(WAVFile(sound).bytes)["id"].string)
    let list = #"{"regions":[{"end":1.5,"start":0.5},{"end":5,"start":3.5},{"end":8.5,"start":7}]}"#
    let job = try server.client.denoise(id, #"{"noise":\#(list)}"#)
    let done = try server.client.succeed(try #require(job["id"].string))
    #expect(done["result"]["noise"]["regions"].array?.count == 3)
    #expect(done["result"]["noise"]["adapted"].bool == false)
    let cleaned = try #require(done["result"]["recording"].string)
    let audio = try WAVFile(reading: server.client.get("/v1/recordings/\(cleaned)/audio").body).sound
    #expect(audio.samples16 == result.samples16, "the service and the command give the same samples")
    let preview = try server.client.send(
      "POST", "/v1/recordings/\(id)/denoise/preview", [:],
      .json(#"{"noise":\#(list),"window":{"start":5.25,"end":7.25}}"#))
    let window = try WAVFile(reading: preview.body).sound.samples16
    #expect(window == Array(audio.samples16[Int(5.25 * 16_000)..<Int(7.25 * 16_000)]))
  }

  @Test func oneCommandCleansAFolderWithOneProfile() throws {
    let folder = try TemporaryFolder()
    try FileManager.default.createDirectory(atPath: folder.file("in"), withIntermediateDirectories: false)
    try write(WAVFile(Self.noise([-85, -85], rate: 44_100)).bytes, to: folder.file("noise.wav"))
    let profile = folder.file("hiss.json")
    let learned = try Command.stillwave("noise-profile", folder.file("noise.wav"), "--noise", "0.1-1.9", "-o", profile)
    try #require(learned.status == 0, "\(learned.errors)")
    #expect(learned.output.isEmpty && learned.errors.isEmpty)
    let rates = [("a.wav", 16_000), ("b.wav", 44_100), ("c.wav", 48_000)]
    for (name, rate) in rates {
      try write(WAVFile(Self.noise([-85, -85], rate: rate, seed: 9)).bytes, to: folder.file("in/\(name)"))
    }
    let out = folder.file("out/")
    let finished = try Command.stillwave(
      "denoise", folder.file("in"), "--noise", profile, "-o", out, "--reduction", "12")
    try #require(finished.status == 0, "\(finished.errors)")
    #expect(finished.errors.contains("c.wav: warning: The noise profile ends at 22050 Hz"))
    for (name, rate) in rates {
      let result = try WAVFile(reading: contents(out + name)).sound
      let source = try WAVFile(reading: contents(folder.file("in/\(name)"))).sound
      #expect(removed(source, result, 0.2, 1.8) > (rate == 48_000 ? 8 : 10), "\(name)")
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: out).sorted() == rates.map(\.0))

    let one = folder.file("in/a.wav"), manifest = folder.file("manifest.jsonl")
    let again = try Command.stillwave(
      "denoise", one, folder.file("in/b.wav"), "--noise", profile, "-o", out, "--manifest", manifest)
    #expect(again.status == 0 && again.errors.contains("2 skipped"), "\(again.errors)")
    try FileManager.default.setAttributes([.modificationDate: Date.distantFuture], ofItemAtPath: one)
    let changed = try Command.stillwave("denoise", one, "--noise", profile, "-o", out)
    #expect(changed.status == 1 && changed.errors.contains("--force"), "\(changed.errors)")
    let same = try Command.stillwave("denoise", one, "--noise", profile, "-o", folder.file("in/"), "--force")
    #expect(same.status == 1 && same.errors.contains("would be replaced"))
    try write(Array("not sound".utf8), to: folder.file("in/d.wav"))
    let forced = try Command.stillwave(
      "denoise", folder.file("in"), "--noise", profile, "-o", out, "--force", "--progress", "json", "--jobs", "1",
      "--manifest", manifest)
    #expect(forced.status == 1)
    let states = String(decoding: try contents(manifest), as: UTF8.self).split(separator: "\n").map {
      $0.contains(#""state":"skipped""#) ? "s" : $0.contains(#""state":"cleaned""#) ? "c" : "f"
    }
    #expect(states.joined() == "ss" + String(repeating: "c", count: rates.count) + "f")
    let lines = String(decoding: forced.output, as: UTF8.self)
    #expect(lines.contains(#""code":"unsupported_media""#) && lines.contains("d.wav"))
    #expect(try FileManager.default.contentsOfDirectory(atPath: out).sorted() == rates.map(\.0))

    let drawn = try Command.stillwave(
      "waveform", folder.file("in"), "-o", folder.file("drawn/"), "--jobs", "2", "--manifest", manifest)
    #expect(drawn.status == 1 && drawn.errors.contains("3 drawn, 1 failed"), "\(drawn.errors)")
    let waves = try FileManager.default.contentsOfDirectory(atPath: folder.file("drawn")).sorted()
    #expect(waves == ["a.dat", "b.dat", "c.dat"])
    let watch = try Command(
      Program.path(), ["watch", folder.file("in"), "--to", folder.file("watched"), "--noise", profile])
    let isClean = eventually {
      let names = try? FileManager.default.contentsOfDirectory(atPath: folder.file("watched"))
      return names?.sorted() == rates.map(\.0)
    }
    // Another sound in its place, which is older than the result.
    let result = folder.file("watched/a.wav"), source = folder.file("in/a.wav")
    let cleaned = try contents(result)
    try write(WAVFile(Self.noise([-55, -55], rate: 8000)).bytes, to: source)
    try FileManager.default.setAttributes([.modificationDate: Date(timeIntervalSince1970: 0)], ofItemAtPath: source)
    let isCleanedAgain = eventually { (try? contents(result)) != cleaned }
    watch.signal(SIGTERM)
    #expect(isClean && isCleanedAgain)
    #expect(try watch.finish().status == 128 + SIGTERM)
  }

  @Test("a profile or stretches that can't be used are refused before any work")
  func badArguments() throws {
    let folder = try TemporaryFolder()
    let input = folder.file("in.wav"), output = folder.file("out.wav")
    try write(WAVFile(Self.noise([-85, -85], rate: 8000)).bytes, to: input)
    try write(Array(#"{"frequencies":[0,1],"power_db":[[0,1],[2]]}"#.utf8), to: folder.file("bad.json"))
    for (noise, words) in [
      (folder.file("missing.json"), "No such file"), (folder.file("bad.json"), "channel 1"),
      ("0-1,0.5-1.5", "in order"),
      ("0-1,", "START-END"), ("quantile:2", "0.01"),
      ((0..<33).map { "\($0)-\($0).5" }.joined(separator: ","), "at most 32"),
      ("0-1,1.99-1.999", "at least"), ("0-1,5-6", "not within"),
    ] {
      let finished = try Command.stillwave("denoise", input, "-o", output, "--noise", noise)
      #expect(finished.status != 0 && finished.errors.contains(words), "\(noise): \(finished.errors)")
    }
    for arguments in [
      [input, "-o", folder.file("p.wav"), "--noise", "0-1"], [input, "-o", folder.file("p.json"), "--noise", "x.json"],
      [input, input, "-o", folder.file("p.json")],
    ] { #expect(try Command(Program.path(), ["noise-profile"] + arguments).finish().status != 0) }
    #expect(try Command.stillwave("denoise", input, input, "-o", output).status != 0)
    #expect(try Command.stillwave("denoise", input, input, "-o", folder.file("out/")).errors.contains("named twice"))
    #expect(try folder.names() == ["bad.json", "in.wav"])
  }
}
