import Denoise
import HTTP
import Storage
import Terms

/// `GET …/noise-regions`: the regions best suited to learn a recording's noise from, as its waveform job found them.
struct NoiseRegions: Sendable {
  let context: Context

  private struct Answer: Encodable {
    let regions: [NoiseRegion.Timed]
    let complete: Bool
  }

  @Sendable func list(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    let query = try QueryParameters(request, known: ["limit"])
    let limit = try query.integer("limit", in: 1...NoiseRegionFinder.regionLimit) ?? 5
    let recording = try await context.recording(parameters, caller)
    guard let found = recording.noiseRegions else {
      return try .json(.ok, Answer(regions: [], complete: false), fields: ["Cache-Control": "no-store"])
    }
    return .changing(try JSONDocument(Answer(regions: found.prefix(limit).map(\.timed), complete: true)), for: request)
  }
}
