import Foundation

/// A stereo 16-bit WAV file of any length: voiced bursts with pauses in steady noise, from a fixed seed, as a repeated
/// block of ten seconds.
enum SyntheticRecording {
  static let sampleRate = 44_100
  /// From 0 to here, in seconds, there is only noise.
  static let noiseEnd = 1.5

  /// Writes `seconds` of sound, a multiple of ten, to `path`, unless a file of that length exists.
  static func write(seconds: Int, to path: String, sampleRate: Int = Self.sampleRate) throws {
    let dataBytes = UInt32(seconds * sampleRate * 4)
    let present = (try? FileManager.default.attributesOfItem(atPath: path)[.size] as? UInt64) ?? nil
    guard present != UInt64(dataBytes) + 44 else { return }
    _ = FileManager.default.createFile(atPath: path, contents: header(dataBytes: dataBytes, sampleRate: sampleRate))
    guard let file = FileHandle(forWritingAtPath: path) else { throw BenchmarkFailure(what: "can't write \(path)") }
    try file.seekToEnd()
    let block = Data(block(sampleRate))
    for _ in 0..<(seconds / 10) { try file.write(contentsOf: block) }
    try file.close()
  }

  static func header(dataBytes: UInt32, sampleRate: Int = Self.sampleRate) -> Data {
    func little(_ value: UInt32, _ bytes: Int) -> [UInt8] {
      (0..<bytes).map { UInt8(truncatingIfNeeded: value >> (8 * UInt32($0))) }
    }
    let riff = dataBytes.addingReportingOverflow(36)
    var bytes = Array("RIFF".utf8) + little(riff.overflow ? .max : riff.partialValue, 4) + Array("WAVEfmt ".utf8)
    bytes += little(16, 4) + little(1, 2) + little(2, 2) + little(UInt32(sampleRate), 4)
    bytes +=
      little(UInt32(sampleRate * 4), 4) + little(4, 2) + little(16, 2) + Array("data".utf8) + little(dataBytes, 4)
    return Data(bytes)
  }

  private static func block(_ sampleRate: Int) -> [UInt8] {
    var state: UInt64 = 0x5EED
    var bytes: [UInt8] = []
    bytes.reserveCapacity(sampleRate * 40)
    for frame in 0..<(sampleRate * 10) {
      let time = Double(frame) / Double(sampleRate)
      let isVoiced = time > noiseEnd && time.truncatingRemainder(dividingBy: 1) < 0.6
      let voice = isVoiced ? (1...8).reduce(0.0) { $0 + sin(2 * .pi * 140 * Double($1) * time) / Double($1) } * 0.15 : 0
      for channel in 0..<2 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        let noise = (Double(state >> 33) / Double(1 << 31) * 2 - 1) * 0.03
        let sample = Int16((voice * (channel == 0 ? 1 : 0.7) + noise) * 32767)
        bytes.append(UInt8(truncatingIfNeeded: sample))
        bytes.append(UInt8(truncatingIfNeeded: sample >> 8))
      }
    }
    return bytes
  }
}
