import Foundation
import Testing

@testable import Sounds

/// Noise removal on real noisy speech, if STILLWAVE_NOISY_SPEECH names a folder of it: clips, the clean speech in each,
/// and a manifest.csv that gives for each clip a section of noise to learn from and another to judge by.
struct RealSpeechTests {
  struct Clip {
    let name, noiseType: String
    let noise, judged: ClosedRange<Double>
    let signalToNoise: Double

    /// A line of manifest.csv: id, noisy, clean, noise_start, noise_end, eval_start, eval_end, snr, noise_type, …
    init?(_ line: Substring) {
      let columns = line.split(separator: ",", omittingEmptySubsequences: false)
      guard columns.count > 8, let noiseStart = Double(columns[3]), let noiseEnd = Double(columns[4]),
        let start = Double(columns[5]), let end = Double(columns[6]), let ratio = Double(columns[7])
      else { return nil }
      (name, noiseType) = (String(columns[0]), String(columns[8]))
      (noise, judged, signalToNoise) = (noiseStart...noiseEnd, start...end, ratio)
    }
  }

  private static let folder = ProcessInfo.processInfo.environment["STILLWAVE_NOISY_SPEECH"] ?? ""

  @Test(.enabled(if: !folder.isEmpty, "STILLWAVE_NOISY_SPEECH names no folder"))
  func noisySpeechBecomesClearerAndStaysWhole() throws {
    let manifest = try String(contentsOfFile: "\(Self.folder)/manifest.csv", encoding: .utf8)
    let clips = manifest.split(whereSeparator: \.isNewline).compactMap(Clip.init)
    try #require(!clips.isEmpty)
    let server = try TestServer()
    var gains: [Double] = []
    for clip in clips { gains.append(try walk(clip, server)) }
    let mean = gains.reduce(0, +) / Double(gains.count)
    print("\(gains.count) clips of noisy speech: signal to noise up by \((mean * 100).rounded() / 100) dB in the mean")
    #expect(mean > 6)
    try server.expectNothingKept(jobs: nil)
  }

  /// Returns by how many dB the clip came closer to the clean speech.
  private func walk(_ clip: Clip, _ server: TestServer) throws -> Double {
    let client = server.client
    let bytes = try contents("\(Self.folder)/\(clip.name).wav")
    let noisy = try WAVFile(reading: bytes)
    let source = try client.uploadReady(bytes, name: "\(clip.name).wav")
    let id = try #require(source["id"].string)
    #expect(source["warnings"] == .array([]) && source["format"]["frames"].int == noisy.frames)
    let samples = ExpectedWaveform(noisy.sound16)
    let slice = try client.get("/v1/recordings/\(id)/waveform?scale=512").json
    #expect(slice["data"].integers == samples.peaks([samples.mix], scale: 512, pixels: 0..<samples.length(512)))

    let region = #"{"noise":{"start":\#(clip.noise.lowerBound),"end":\#(clip.noise.upperBound)}}"#
    let output = try #require(try client.cleaned(id, region)["id"].string)
    let cleaned = try WAVFile(reading: client.get("/v1/recordings/\(output)/audio").body)
    #expect(cleaned.frames == noisy.frames && cleaned.rate == noisy.rate && cleaned.bits == 16, "\(clip.name)")

    let clean = try decoded(contents("\(Self.folder)/\(clip.name)_clean.flac"), server.folder).channels[0]
    let (before, after) = (noisy.sound, cleaned.sound)
    let removed =
      Loudness.decibels(before.part(0, clip.judged.lowerBound, clip.judged.upperBound))
      - Loudness.decibels(after.part(0, clip.judged.lowerBound, clip.judged.upperBound))
    #expect(removed > 3, "\(clip.name): noise turned down by \(removed) dB")
    let kept = Loudness.decibels(after.channels[0]) - Loudness.decibels(clean)
    #expect(kept > -4, "\(clip.name): \(kept) dB of the clean speech's energy")
    for recording in [id, output] { #expect(try client.delete("/v1/recordings/\(recording)").status == 204) }
    return Loudness.signalToNoise(after.channels[0], reference: clean)
      - Loudness.signalToNoise(before.channels[0], reference: clean)
  }
}

extension WAVFile {
  /// The samples scaled so that `Sound.samples16` returns a 16-bit file's own values.
  fileprivate var sound16: Sound {
    var sound = sound
    sound.channels = sound.channels.map { $0.map { $0 * 32768 / 32767 } }
    return sound
  }
}
