import HTTP
import Processing
import Storage

/// What may be uploaded, directly or resumably: by its length, the room on the disk and in the queue, and its content.
struct UploadAdmission: Sendable {
  let configuration: Configuration
  let store: MediaStore
  let runner: JobRunner
  let probes: ProbeLane
  let work: WorkQueue

  /// Refuses by its length alone what can't be kept.
  func checkRoom(for bytes: Int64, of client: Client) async throws {
    try checkLength(bytes)
    try runner.checkRoom(for: client)
    try await checkDisk(for: bytes)
  }

  /// The same, and holds room for the job that the recording begins with: of many uploads that end together only so
  /// many come through.
  func reserveRoom(for bytes: Int64, of client: Client) async throws -> JobRoom {
    try checkLength(bytes)
    let room = try runner.reserve(for: client)
    try await checkDisk(for: bytes)
    return room
  }

  func checkLength(_ bytes: Int64) throws {
    let limit = configuration.maximumUploadBytes
    guard bytes <= limit else { throw RequestBodyError.tooLarge(limit: limit) }
  }

  func checkDisk(for bytes: Int64) async throws {
    let admission = self
    try await work.run { () throws(ServiceError) in try admission.checkDiskNow(for: bytes) }
  }

  /// The same on a queue that may block.
  func checkDiskNow(for bytes: Int64) throws(ServiceError) {
    let free: Int64
    do throws(StorageError) { free = try store.freeBytes() } catch { throw .storage(error) }
    guard bytes <= free - configuration.reservedDiskBytes else { throw .diskFull }
  }

  /// What the file holds, of `bytes` bytes; throws where it is no recording that may be kept.
  func probe(path: String, bytes: Int64, for client: Client) async throws -> Probe {
    let probe = try await probes.probe(path: path, bytes: bytes, for: client)
    // The working copy must fit beside it: four bytes a sample. Of a length that is a guess the job finds out.
    if let media = probe.media, media.promisesLength, let frames = probe.estimatedFrames {
      let (bytes, overflow) = frames.multipliedReportingOverflow(by: 4 * Int64(probe.channels))
      try await checkDisk(for: overflow ? .max : bytes)
    }
    return probe
  }
}
