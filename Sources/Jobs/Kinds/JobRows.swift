import Denoise
import FoundationEssentials
import Processing
import Storage
import Terms

/// What a job brought, as it is kept in its row.
package struct JobResult: Codable, Sendable, Equatable {
  /// The recording that the job made, or worked on.
  package var recording: RecordingID
  /// What the noise was learned from.
  package var noise: NoiseSource?
  /// The noise as it was learned.
  package var profile: PowerSpectrum?
  /// Samples that had to be cut to full scale.
  package var clippedSamples: Int64?

  /// A result of known parts.
  package init(
    recording: RecordingID, noise: NoiseSource? = nil, profile: PowerSpectrum? = nil, clippedSamples: Int64? = nil
  ) {
    self.recording = recording
    self.noise = noise
    self.profile = profile
    self.clippedSamples = clippedSamples
  }
}

/// Why a job failed: the members of a problem document, but for its type, which follows from the code.
package struct JobError: Codable, Sendable, Equatable {
  /// Of the class of failures, in a few words.
  package var title: String
  /// An HTTP status.
  package var status: Int
  /// A sentence for the client.
  package var detail: String
  /// Stable, snake_case.
  package var code: String

  /// An error of known parts.
  package init(title: String, status: Int, detail: String, code: String) {
    self.title = title
    self.status = status
    self.detail = detail
    self.code = code
  }
}

/// The JSON that rows hold.
package enum RowJSON {
  /// A value as JSON.
  package static func text(_ value: some Encodable) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let data = try? encoder.encode(value) else { return "{}" }
    return String(decoding: data, as: UTF8.self)
  }

  /// The value of a JSON text; nil if it can't be read.
  package static func value<Value: Decodable>(_ type: Value.Type, from text: String?) -> Value? {
    guard let text else { return nil }
    return try? JSONDecoder().decode(type, from: Data(text.utf8))
  }
}
