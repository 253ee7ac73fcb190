import AudioIO
import Glibc
import HTTP
import Jobs
import Processing
import Storage
import Synchronization
import Terms

// `GET …/audio?start=&end=`: a part of a recording, exact to the frame, sent while it is decoded.
//
// As WAV, the service itself decodes it, as fast as the client reads: a worker has decoded the whole file before. The
// length is known in advance, so ranges of bytes work. In any other format, a worker encodes it into a file, which is
// sent as it grows; its length isn't known.

/// How many parts may be on their way: each holds an open decoder, or a file on disk.
struct AudioPartLimits: Sendable {
  private let tally: ClientTally
  /// The children that encode parts. Clients take turns, and previews don't wait for them.
  let lane: WorkerLane

  init(_ configuration: Configuration) {
    let (total, perClient) = (configuration.maximumOpenParts, configuration.maximumOpenPartsPerClient)
    tally = ClientTally(limit: total, clientLimit: { _ in perClient })
    lane = WorkerLane(
      configuration, label: "parts", waiting: .init(name: "open_parts", total: total, perClient: perClient))
  }

  /// Returns the client's room for one part. Throws `.limitReached` or `.workerUnavailable` if there are too many.
  func reserve(for client: Client) throws(ServiceError) -> TallyPlace {
    do throws(ClientTally.Refusal) { return try TallyPlace(of: client, in: tally) } catch {
      switch error {
      case .clientIsFull(let limit): throw .limitReached("open_parts", limit: limit, retryAfter: 5)
      case .full(let limit): throw .workerUnavailable(reason: "\(limit) parts are on their way already")
      }
    }
  }
}

/// The frames of a recording that a request asks for.
struct FramePart: Equatable {
  let frames: Range<Int64>

  /// `start` and `end` as a client gave them, in seconds.
  struct Asked {
    var start, end: Double?

    /// nil if the query has neither. Throws if they can't be a part of any recording.
    init?(_ query: QueryParameters) throws {
      (start, end) = (try query.number("start"), try query.number("end"))
      guard start != nil || end != nil else { return nil }
      if let start, start < 0 { throw query.invalid("start", "\(start)", .secondsFromZero) }
      if let end, end <= start ?? 0 { throw query.invalid("end", "\(end)", .afterStart(limit: nil)) }
    }
  }

  /// Rounds to the nearest frames, at least one. An end past the recording's end is clamped; a start there throws.
  init(_ asked: Asked, of format: SoundShape) throws {
    let (rate, total) = (format.sampleRate, format.frames ?? 0)
    let duration = Double(total) / Double(rate)
    guard let part = Self(start: asked.start ?? 0, end: asked.end ?? duration, sampleRate: rate, total: total) else {
      throw RequestError.invalidParameter("start", value: "\(asked.start ?? 0)", .beforeEnd(duration: duration))
    }
    self = part
  }

  /// The same for seconds of a recording with `total` frames; nil if it ends before `start`.
  init?(start: Double, end: Double, sampleRate: Int, total: Int64) {
    func frame(_ seconds: Double) -> Int64 { Int64(min(seconds * Double(sampleRate), 0x1p60).rounded()) }
    let first = frame(start)
    guard first < total else { return nil }
    frames = first..<min(max(frame(end), first + 1), total)
  }

  /// The part's times for the name of a file: "1.5-2.25 s".
  func label(sampleRate: Int) -> String {
    let (start, end) = (Double(frames.lowerBound), Double(frames.upperBound))
    return "\(Words.seconds(start / Double(sampleRate)))-\(Words.seconds(end / Double(sampleRate))) s"
  }
}

/// A part as a WAV file. Decodes on the drawing lane, one piece at a time, in the client's turn.
final class WavePart: @unchecked Sendable {
  // Every response has one producer, which asks for one piece at a time, and only one response uses a part.
  private var stream: WaveStream
  private let room: TallyPlace
  private let drawings: DrawingLane
  private let client: Client
  /// The recording's file, which the stream may open again.
  private let local: LocalFile
  /// The length of the WAV file, in bytes.
  let length: Int64

  /// Opens a recording's file. Blocks.
  init(of local: LocalFile, _ part: FramePart, room: TallyPlace, drawings: DrawingLane, client: Client)
    throws(AudioIOError)
  {
    let map = try SampleWindow(recordingAt: local.path).soundMap()
    stream = try WaveStream(path: local.path, map: map, frames: part.frames)
    length = stream.header.fileBytes
    (self.local, self.room, self.drawings, self.client) = (local, room, drawings, client)
  }

  /// Returns the bytes in `range` as the content of a response.
  func body(_ range: Range<Int64>) -> ResponseBody {
    let place = Mutex(range.lowerBound)
    return .stream(length: Int64(range.count)) { [self] in
      let from = place.withLock { $0 }
      guard from < range.upperBound else { return nil }
      let piece = try await drawings.run(for: client, isUnderWay: true) { try self.bytes(in: from..<range.upperBound) }
      place.withLock { $0 = from + Int64(piece.count) }
      return piece
    }
  }

  private func bytes(in range: Range<Int64>) throws(AudioIOError) -> [UInt8] {
    let piece = try stream.bytes(from: range.lowerBound)
    return piece.count > range.count ? Array(piece.prefix(range.count)) : piece
  }
}
