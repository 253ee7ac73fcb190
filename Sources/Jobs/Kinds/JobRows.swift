import Denoise
import FoundationEssentials
import Storage
import Terms
import Workers

/// The result of a job, as stored in its row.
package struct JobResult: Codable, Sendable, Equatable {
  /// The recording that the job produced, or worked on.
  package var recording: RecordingID
  /// The source that the noise was learned from, and whether it was tracked.
  package var noise: NoiseUsed?
  /// The learned noise profile.
  package var profile: PowerSpectrum?
  /// Which channels shared one gain.
  package var link: ChannelLink?
  /// The number of samples that were clipped to full scale.
  package var clippedSamples: Int64?
  /// The level of the noise before and after it was removed.
  package var noiseLevel: NoiseLevels?
  /// What the method `voice` has kept of the classical result, and its weights.
  package var voice: VoiceUsed?
  /// The loudness before and after, if there was a target.
  package var loudness: LoudnessChange?
  /// What the result lacks or should be looked at for; also in the new recording.
  package var warnings: [Warning]?
  /// The loudness of the recording, as a job of kind `loudness` measured it.
  package var measured: MeasuredLoudness?

  /// Creates a result.
  package init(
    recording: RecordingID, noise: NoiseUsed? = nil, profile: PowerSpectrum? = nil,
    link: ChannelLink? = nil, clippedSamples: Int64? = nil, noiseLevel: NoiseLevels? = nil,
    voice: VoiceUsed? = nil, loudness: LoudnessChange? = nil, warnings: [Warning]? = nil,
    measured: MeasuredLoudness? = nil
  ) {
    self.warnings = warnings
    self.voice = voice
    (self.noiseLevel, self.loudness, self.measured) = (noiseLevel, loudness, measured)
    self.recording = recording
    self.noise = noise
    self.profile = profile
    self.link = link
    self.clippedSamples = clippedSamples
  }
}

/// Why a job failed: the members of a problem document except the type, which follows from the code.
package struct JobError: Codable, Sendable, Equatable {
  /// A short title for this class of failures.
  package var title: String
  /// The HTTP status.
  package var status: Int
  /// A sentence for the client.
  package var detail: String
  /// A stable code in snake_case.
  package var code: String

  /// Creates an error.
  package init(title: String, status: Int, detail: String, code: String) {
    self.title = title
    self.status = status
    self.detail = detail
    self.code = code
  }
}

/// Encodes and decodes the JSON in rows.
package enum RowJSON {
  /// Returns a value as JSON.
  package static func text(_ value: some Encodable) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let data = try? encoder.encode(value) else { return "{}" }
    return String(decoding: data, as: UTF8.self)
  }

  /// Returns the value of a JSON text; nil if it can't be decoded.
  package static func value<Value: Decodable>(_ type: Value.Type, from text: String?) -> Value? {
    guard let text else { return nil }
    return try? JSONDecoder().decode(type, from: Data(text.utf8))
  }
}
