import HTTP
import Processing
import Storage

/// `GET …/noise-regions`: the regions best suited to learn a recording's noise from, as its waveform job found them.
struct NoiseRegions: Sendable {
  let context: Context

  private struct Answer: Encodable {
    struct Region: Encodable {
      let start, end, level, score: Double
    }

    let regions: [Region]
    let complete: Bool
  }

  @Sendable func list(_ request: HTTPRequest, _ parameters: PathParameters) async throws -> HTTPResponse {
    let query = try QueryParameters(request, known: ["limit"])
    let limit = try query.integer("limit", in: 1...NoiseSource.regionLimit) ?? 5
    let recording = try await context.recording(parameters)
    guard let found = recording.noiseRegions else {
      return try .json(.ok, Answer(regions: [], complete: false), fields: ["Cache-Control": "no-store"])
    }
    let regions = found.prefix(limit).map {
      Answer.Region(start: $0.start, end: $0.end, level: $0.level, score: $0.score)
    }
    return .changing(try JSONDocument(Answer(regions: regions, complete: true)), for: request)
  }
}
