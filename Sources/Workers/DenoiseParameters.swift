import Denoise
import Terms

/// The parameters of noise removal: the same value in a job's row, in a worker's request, and on the command line.
///
///     {"format":"same","method":"mmse_lsa","noise":{"end":2.75,"start":1.25},"output":"denoised","reduction":18,
///     "sensitivity":1}
package struct DenoiseParameters: Codable, Sendable, Equatable {
  /// Where to learn the noise profile from; nil for the best region found.
  package var noise: NoiseSource?
  /// The settings of the noise removal.
  package var settings: DenoiseSettings
  /// The file format to write.
  package var format: OutputFormat
  /// The integrated loudness of the result in LUFS, −70 … −5; nil to leave it.
  package var loudness: Double?

  /// The version of the weights of the method `voice`; nil with other methods.
  package var weights: String?
  /// What to turn down besides the noise; nil for nothing.
  package var edit: SoundEdit?

  /// The allowed values of `loudness`.
  package static let loudnessRange = -70.0 ... -5.0

  private enum CodingKeys: String, CodingKey {
    case noise, format, loudness, weights, edit
  }

  /// Creates parameters from their parts.
  package init(
    noise: NoiseSource? = nil, settings: DenoiseSettings = DenoiseSettings(), format: OutputFormat = .same,
    loudness: Double? = nil, edit: SoundEdit? = nil
  ) {
    self.noise = noise
    self.edit = edit
    self.loudness = loudness
    self.settings = settings
    self.format = format
    weights = settings.method == .voice ? VoiceFile.version : nil
  }

  /// Whether any noise is turned down.
  package var removesNoise: Bool { settings.method != .editOnly && settings.reductionDB > 0 }

  /// Returns when to follow a noise that changes: as the client asked, or else, with `auto`, where the change is
  /// certain. A hum that switches on isn't: a sustained tone that begins in the middle looks the same, and would lose
  /// up to 9 dB.
  package static func adaptation(asked: Bool?, noise: NoiseSource?) -> NoiseAdaptation? {
    guard let asked else { return noise == nil ? .ifCertain : nil }
    return asked ? .always : nil
  }

  /// Decodes the members of the settings next to the others.
  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    noise = try container.decodeIfPresent(NoiseSource.self, forKey: .noise)
    format = try container.decode(OutputFormat.self, forKey: .format)
    loudness = try container.decodeIfPresent(Double.self, forKey: .loudness)
    weights = try container.decodeIfPresent(String.self, forKey: .weights)
    edit = try container.decodeIfPresent(SoundEdit.self, forKey: .edit)
    settings = try DenoiseSettings(from: decoder)
  }

  /// Encodes the same form as `init(from:)` decodes.
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encodeIfPresent(noise, forKey: .noise)
    try container.encode(format, forKey: .format)
    try container.encodeIfPresent(loudness, forKey: .loudness)
    try container.encodeIfPresent(weights, forKey: .weights)
    try container.encodeIfPresent(edit, forKey: .edit)
    try settings.encode(to: encoder)
  }
}
