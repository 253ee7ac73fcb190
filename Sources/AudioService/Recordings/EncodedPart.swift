import Glibc
import HTTP
import Jobs
import Storage
import Terms
import Workers

/// A part of a recording that a child encodes into a file while the file is sent. Canceled, with its files removed,
/// when the response no longer needs it.
final class EncodedPart: Sendable {
  /// The content's piece at a time, in bytes.
  private static let pieceBytes: Int64 = 65_536

  private let context: Context
  private let folder: JobID
  private let path: String
  private let frames: Int64
  private let sampleRate: Int
  private let room: TallyPlace
  private let child: Task<WorkerReport?, any Error>
  /// A value for each of the child's reports; ends with the child.
  private let steps: AsyncStream<Void>

  /// Starts the child that encodes a part of `source`, whose sound is in the file `local`, and holds it until the
  /// child has ended.
  init(
    _ part: FramePart, of source: Recording, in local: LocalFile, as format: Conversions.Format, room: TallyPlace,
    for client: Client, _ context: Context
  ) async throws {
    guard let sound = source.audioFormat else { throw ServiceError.notReady(source.id) }
    let (scratch, id, reserved) = (context.scratch, JobID(at: context.time), context.configuration.reservedDiskBytes)
    let made = try await context.work.run { () throws(StorageError) in
      guard try scratch.freeBytes() > reserved else { throw StorageError.diskFull }
      return try scratch.makeWorkFolder(of: id)
    }
    let needsFFmpeg = (try? format.outputFormat.encoder(for: sound)) != nil
    let work = ConvertWork(
      output: made + "/part", format: format.outputFormat, resampled: needsFFmpeg ? sound : nil, frames: part.frames)
    let settings = context.configuration.workerSettings
    let request = WorkerRequest(
      .convert(work), on: local.path, in: made, fence: .job(on: source, settings), settings)
    // A release build encodes a hundred times faster than the sound lasts.
    let seconds = 60 + Double(part.frames.count) / Double(sound.sampleRate)
    let (steps, report) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    child = Task { [lane = context.parts.lane] in
      defer { withExtendedLifetime(local) { report.finish() } }
      return try await lane.run(
        request, for: client, timeoutSeconds: seconds, endsWithCaller: true, onReport: { _ in report.yield() }
      ).success()
    }
    (self.steps, self.context, folder, self.path, self.room) = (steps, context, id, work.output, room)
    (frames, sampleRate) = (Int64(part.frames.count), sound.sampleRate)
  }

  deinit {
    child.cancel()
    // Not before the child has ended, because it would write the file again.
    Task { [child, context, folder] in
      _ = await child.result
      context.work.start { context.scratch.disk.removeWorkFolder(of: folder) }
    }
  }

  /// Returns the content of the response. Waits until its beginning is there, so that an error still gets a status.
  func body() async throws -> ResponseBody {
    let start = try await start()
    let cursor = Cursor(at: 0)
    return .stream(length: nil) { [self] in
      let place = cursor.place
      let piece = place == 0 ? start : try await piece(at: place)
      cursor.place += Int64(piece.count)
      return piece.isEmpty ? nil : piece
    }
  }

  /// Waits until the whole part is encoded, and returns its length in bytes.
  func length() async throws -> Int64 {
    while try await grows() {}
    let path = path
    return try await context.work.run { () throws(FileContentError) in try FileContent(path: path).length }
  }

  /// Returns some bytes of the whole part, the same as in `body()`.
  func body(_ range: Range<Int64>) -> ResponseBody {
    let cursor = Cursor(at: range.lowerBound)
    return .stream(length: Int64(range.count)) { [self] in
      let place = cursor.place
      guard place < range.upperBound else { return nil }
      let start = place < StreamedHeader.byteCount ? try await start().dropFirst(Int(place)) : []
      let piece = try await (start.isEmpty ? bytes(at: place)[...] : start).prefix(Int(range.upperBound - place))
      cursor.place += Int64(piece.count)
      return Array(piece)
    }
  }

  /// The position in one response, which has one producer that asks for one piece at a time.
  private final class Cursor: @unchecked Sendable {
    var place: Int64

    init(at place: Int64) { self.place = place }
  }

  private func start() async throws -> [UInt8] {
    var start = try await bytes(at: 0)
    while start.count < StreamedHeader.byteCount, try await grows() { start = try await bytes(at: 0) }
    if start.count < StreamedHeader.byteCount { start = try await bytes(at: 0) }
    StreamedHeader.complete(&start, frames: frames, sampleRate: sampleRate)
    return start
  }

  /// Returns the next bytes, none at the end. Throws the child's problem if it failed.
  private func piece(at place: Int64) async throws -> [UInt8] {
    while true {
      let found = try await bytes(at: place)
      if !found.isEmpty { return found }
      guard try await grows() else { return try await bytes(at: place) }
    }
  }

  /// Waits for the child's next report. Returns false if it has succeeded, and throws its problem if it failed.
  private func grows() async throws -> Bool {
    for await _ in steps { return true }
    try Task.checkCancellation()
    _ = try await child.value
    return false
  }

  private func bytes(at place: Int64) async throws -> [UInt8] {
    let path = path
    return try await context.work.run { () throws(FileContentError) in
      do throws(FileContentError) {
        let file = try FileContent(path: path)
        return try file.read(min(place, file.length)..<min(place + Self.pieceBytes, file.length))
      } catch {
        // The child hasn't created it yet.
        if case .io("open", _, ENOENT) = error { return [] }
        throw error
      }
    }
  }
}
