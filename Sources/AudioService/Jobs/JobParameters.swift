import AudioIO
import FoundationEssentials
import Processing
import Storage

/// What a conversion was asked to make, as it is kept in its row.
struct ConvertParameters: Codable, Sendable, Equatable {
  var format: OutputFormat
}

/// What a job brought, as it is kept in its row.
struct JobResult: Codable, Sendable, Equatable {
  var recording: RecordingID
  var noise: NoiseSource?
  var profile: NoiseSpectrum?
  var clippedSamples: Int64?
}

/// Why a job failed: the members of a problem document, but for its type, which follows from the code.
struct JobError: Codable, Sendable, Equatable {
  var title: String
  var status: Int
  var detail: String
  var code: String
}

/// The JSON that rows hold.
enum RowJSON {
  static func text(_ value: some Encodable) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let data = try? encoder.encode(value) else { return "{}" }
    return String(decoding: data, as: UTF8.self)
  }

  static func value<Value: Decodable>(_ type: Value.Type, from text: String?) -> Value? {
    guard let text else { return nil }
    return try? JSONDecoder().decode(type, from: Data(text.utf8))
  }
}
