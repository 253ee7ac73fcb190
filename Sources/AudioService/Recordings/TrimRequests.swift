import HTTP
import Jobs
import Storage
import Terms
import Workers

/// `POST /v1/recordings/{id}/trim`: a job that makes a new recording of a part.
struct TrimRequests: Sendable {
  let context: Context

  @Sendable func create(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    try await DerivedRecordings(context: context).create(request, parameters, caller, known: ["start": [], "end": []]) {
      try Self.plan(Self.parameters($0), $1)
    }
  }

  static func parameters(_ members: JSONMembers) throws -> TrimJob.Parameters {
    guard let start = try members.number("start", in: 0...1e9) else { throw members.invalid("start", .given) }
    guard let end = try members.number("end", in: 0...1e9) else { throw members.invalid("end", .given) }
    guard end > start else { throw members.invalid("end", .afterStart(limit: nil)) }
    return TrimJob.Parameters(start: start, end: end)
  }

  static func plan(_ asked: TrimJob.Parameters, _ source: Recording) throws -> DerivedRecordings.Plan {
    let (start, end) = (asked.start, asked.end)
    guard let format = source.audioFormat else { throw ServiceError.notReady(source.id) }
    var length = SoundShape(
      container: source.format.container, codec: source.format.codec, sampleRate: format.sampleRate,
      channels: format.channels)
    var share = 1.0
    if let total = source.format.frames {
      guard let part = FramePart(start: start, end: end, sampleRate: format.sampleRate, total: total) else {
        throw RequestError.invalidMember("start", .beforeEnd(duration: source.format.duration ?? 0))
      }
      length.setLength(frames: Int64(part.frames.count))
      share = Double(part.frames.count) / Double(total)
    } else {
      length.estimatedFrames = Int64(Range(start: start, end: end, sampleRate: format.sampleRate).count)
    }
    let facts = source.mediaFacts
    let media = facts?.hasPartOfItsKind == true ? facts?.ofPart(from: start, frames: length.frames) : nil
    return DerivedRecordings.Plan(
      kind: .trim, parameters: RowJSON.text(asked), operation: "trim",
      target: try OutputFormat.trimmed(format), media: media, label: "trimmed", length: length,
      share: share)
  }
}
