import Glibc
import HTTP
import Jobs
import Storage
import Synchronization
import Terms
import Workers

// `GET …/audio?start=&end=`: a part of a recording, exact to the frame, sent while it is decoded.
//
// As WAV, a reader decodes it, as fast as the client reads. The length is known in advance, so ranges of bytes work. In
// any other format, a worker encodes it into a file, which is sent as it grows; its length isn't known. If a client
// asks for a range of bytes, as Safari does, the file is encoded first. It isn't kept, because the next one has the
// same bytes.

/// How many parts may be on their way: each may hold a file on disk.
struct AudioPartLimits: Sendable {
  private let tally: ClientTally
  /// The children that encode parts. Clients take turns, and previews don't wait for them.
  let lane: WorkerLane

  init(_ configuration: Configuration, seconds: JobSecondsCounter?) {
    let (total, perClient) = (configuration.maximumOpenParts, configuration.maximumOpenPartsPerClient)
    tally = ClientTally(limit: total, clientLimit: { _ in perClient })
    lane = WorkerLane(
      configuration, label: "parts", waiting: .init(name: "open_parts", total: total, perClient: perClient),
      seconds: seconds)
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

    /// The whole recording.
    init() {}

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
    let start = asked.start ?? 0
    guard let part = Self(start: start, end: asked.end ?? .infinity, sampleRate: rate, total: total) else {
      throw RequestError.invalidParameter("start", value: "\(start)", .beforeEnd(duration: format.duration ?? 0))
    }
    self = part
  }

  /// The part between two times, in seconds, of a recording with `total` frames; nil if it ends before `start`.
  init?(start: Double, end: Double, sampleRate: Int, total: Int64) {
    let asked = Range(start: start, end: end, sampleRate: sampleRate)
    guard asked.lowerBound < total else { return nil }
    frames = asked.clamped(to: 0..<total)
  }

  /// The part's times for the name of a file: "1.5-2.25 s".
  func label(sampleRate: Int) -> String {
    let (start, end) = (Double(frames.lowerBound), Double(frames.upperBound))
    return "\(Words.seconds(start / Double(sampleRate)))-\(Words.seconds(end / Double(sampleRate))) s"
  }
}

/// A part as a WAV file. A reader decodes it, one piece at a time, in the client's turn.
final class WavePart: Sendable {
  /// Maximum length of a piece, in bytes.
  private static let pieceBytes: Int64 = 1 << 18

  private let part: FramePart
  private let recording: RecordingID
  private let room: TallyPlace
  private let context: Context
  private let client: Client
  private let local: LocalFile
  /// The same file, which stays readable when its recording is deleted.
  private let file: OpenFile
  /// The length of the WAV file, in bytes.
  let length: Int64
  /// What it has without `trailer`.
  private let soundLength: Int64
  /// The chunks behind the sound.
  private let trailer: [UInt8]
  /// The bytes of the header that say the length, by their offset.
  private let lengthBytes: [Int64: UInt8]

  /// Finds the length of a part of a recording's file, to which `chunks` are added.
  init(
    of local: LocalFile, _ part: FramePart, adding chunks: [UInt8] = [], of recording: RecordingID, room: TallyPlace,
    for client: Client, _ context: Context
  ) async throws {
    let mark: [UInt8]
    (file, soundLength, mark) = try await context.samples.run(for: client, of: recording, countsAsJob: true) {
      [readers = context.readers] in
      let file: OpenFile
      do throws(ReaderFailure) { file = try OpenFile(path: local.path) } catch {
        throw ServiceError(error, of: recording)
      }
      return try readers.read(file, of: recording, for: client) { (reader) throws(ReaderFailure) in
        (file, try reader.partLength(part.frames), try reader.part(part.frames, from: 0, limit: 4))
      }
    }
    trailer = [UInt8](repeating: 0, count: chunks.isEmpty ? 0 : Int(soundLength % 2)) + chunks
    length = soundLength + Int64(trailer.count)
    // RF64 says it in its chunk “ds64”.
    let (offset, count) = mark.starts(with: "RF64".utf8) ? (20, 8) : (4, 4) as (Int64, Int64)
    let stated = count == 4 ? min(length - 8, Int64(UInt32.max)) : length - 8
    lengthBytes = Dictionary(
      uniqueKeysWithValues: (0..<count).map { (offset + $0, UInt8(truncatingIfNeeded: stated >> (8 * $0))) })
    (self.local, self.part, self.recording) = (local, part, recording)
    (self.room, self.client, self.context) = (room, client, context)
  }

  /// Returns the bytes in `range` as the content of a response.
  func body(_ range: Range<Int64>) -> ResponseBody {
    let place = Mutex(range.lowerBound)
    return .stream(length: Int64(range.count)) { [self] in
      let from = place.withLock { $0 }
      guard from < range.upperBound else { return nil }
      guard from < soundLength else {
        place.withLock { $0 = range.upperBound }
        return Array(trailer[Int(from - soundLength)..<Int(range.upperBound - soundLength)])
      }
      let limit = min(min(range.upperBound, soundLength) - from, Self.pieceBytes)
      var piece = try await context.samples.run(for: client, of: recording, isUnderWay: true, countsAsJob: true) {
        [self] in
        try context.readers.read(file, of: recording, for: client) { (reader) throws(ReaderFailure) in
          try reader.part(part.frames, from: from, limit: limit)
        }
      }
      if !trailer.isEmpty, from < 28 {
        for (offset, byte) in lengthBytes where (from..<from + Int64(piece.count)).contains(offset) {
          piece[Int(offset - from)] = byte
        }
      }
      place.withLock { $0 = from + Int64(piece.count) }
      return piece
    }
  }
}
