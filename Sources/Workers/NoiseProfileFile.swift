import Denoise
import FoundationEssentials
import Glibc
import Terms

// A noise profile as a file, which `stillwave noise-profile` writes, `denoise --noise` reads and the service accepts:
//
//   {"channels":2,"frequencies":[0,21.53,…],"name":"interview.wav","noise":{"end":2.75,"start":1.25},
//    "power_db":[[-98.2,…],[…]],"sample_rate":44100,"steadiness":[0.97,1]}
//
// `power_db[channel][i]` is in dB relative to full scale² per Hz at `frequencies[i]`; see NoiseDensity.
// `steadiness[channel]` is from 0 to 1; see Hiss.swift. Only `frequencies` and `power_db` are needed, and unknown
// members are ignored: a profile of the service can be read as well.

/// A noise profile with what is known about where it was learned.
package struct NoiseProfileFile: Sendable, Equatable {
  /// Why a file isn't a profile.
  package enum Fault: Error, Equatable {
    /// It can't be read: errno.
    case unreadable(Int32)
    case tooLong(limit: Int)
    /// It isn't a JSON object with `frequencies` and `power_db`.
    case malformed
    case density(NoiseDensity.Fault)
  }

  /// Maximum length of a file, in bytes: 32 channels of a recording at 768 kHz.
  package static let byteLimit = 8 << 20

  /// The name of the recording that it was learned from, if known.
  package var name: String?
  /// Where it was learned, if known.
  package var noise: NoiseSource?
  /// The sample rate of that recording in Hz, if known.
  package var sampleRate: Int?
  /// The noise.
  package var density: NoiseDensity

  /// Creates a profile from its parts.
  package init(name: String? = nil, noise: NoiseSource? = nil, sampleRate: Int? = nil, density: NoiseDensity) {
    (self.name, self.noise, self.sampleRate, self.density) = (name, noise, sampleRate, density)
  }

  /// Reads a file. Blocks.
  package init(path: String) throws(Fault) {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .unreadable(errno) }
    defer { close(descriptor) }
    try self.init(descriptor)
  }

  /// Reads an open file, from its position on. Blocks.
  package init(_ descriptor: Int32) throws(Fault) {
    var bytes: [UInt8] = []
    while true {
      let piece = unsafe [UInt8](unsafeUninitializedCapacity: 1 << 20) { buffer, count in
        count = unsafe read(descriptor, buffer.baseAddress, buffer.count)
        if count < 0 { count = 0 }
      }
      if piece.isEmpty { break }
      bytes += piece
      guard bytes.count <= Self.byteLimit else { throw .tooLong(limit: Self.byteLimit) }
    }
    try self.init(bytes)
  }

  /// Parses the content of a file.
  package init(_ bytes: [UInt8]) throws(Fault) {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    guard let members = try? decoder.decode(Members.self, from: Data(bytes)) else { throw .malformed }
    do {
      density = try NoiseDensity(
        frequencies: members.frequencies, powerDB: members.powerDb, steadiness: members.steadiness)
    } catch {
      throw .density(error)
    }
    (name, noise, sampleRate) = (members.name, members.noise, members.sampleRate)
  }

  /// Returns the content of a file.
  package func bytes() -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let members = Members(
      name: name, noise: noise, sampleRate: sampleRate, channels: density.powerDB.count,
      frequencies: density.frequencies, powerDb: density.powerDB, steadiness: density.steadiness)
    guard let data = try? encoder.encode(members) else { preconditionFailure("a profile's numbers are finite") }
    return Array(data) + [UInt8(ascii: "\n")]
  }

  private struct Members: Codable {
    var name: String?
    var noise: NoiseSource?
    var sampleRate, channels: Int?
    var frequencies: [Double]
    var powerDb: [[Double]]
    var steadiness: [Double]?
  }
}

extension NoiseDensity.Fault {
  /// What a profile must have, as a sentence without a period.
  package var words: String {
    let (count, range) = (NoiseDensity.frequencyCount, NoiseDensity.frequencyRange)
    switch self {
    case .frequencies:
      return "“frequencies” must be \(count.lowerBound) to \(count.upperBound) ascending numbers from "
        + "\(Int(range.lowerBound)) to \(Int(range.upperBound)) Hz"
    case .channels:
      return "“power_db” must have a list for each of \(NoiseDensity.channelCount.lowerBound) to "
        + "\(NoiseDensity.channelCount.upperBound) channels"
    case .power(let channel):
      return "“power_db” of channel \(channel) must have a number from \(Int(NoiseDensity.powerRange.lowerBound)) to "
        + "\(Int(NoiseDensity.powerRange.upperBound)) for each frequency"
    case .steadiness:
      return "“steadiness” must have a number from 0 to 1 for each channel"
    case .silent:
      return "“power_db” must have a channel with noise, which is more than \(Int(NoiseDensity.none)) dB"
    }
  }
}
