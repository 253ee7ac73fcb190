import HTTP
import Jobs
import Storage
import Workers

/// Decides what may be uploaded, directly or resumably, by length, free disk space, room in the queue, and content.
struct UploadAdmission: Sendable {
  let configuration: Configuration
  let scratch: Scratch
  let runner: JobRunner
  let probes: ProbeLane
  let work: WorkQueue

  /// Throws if an upload of this length can't be stored.
  func checkRoom(for bytes: Int64, of client: Client) async throws {
    try checkLength(bytes)
    try runner.checkRoom(for: client)
    try await checkDisk(for: bytes)
  }

  /// Throws like `checkRoom`, and reserves room for the recording's first job, so that only as many uploads succeed at
  /// once as the queue has room for.
  func reserveRoom(for bytes: Int64, of client: Client) async throws -> TallyPlace {
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

  /// Throws `.diskFull` if there is no room for this many bytes. Blocks.
  func checkDiskNow(for bytes: Int64) throws(ServiceError) {
    let free: Int64
    do throws(StorageError) { free = try scratch.freeBytes() } catch { throw .storage(error) }
    guard bytes <= free - configuration.reservedDiskBytes else { throw .diskFull }
  }

  /// Returns what is in the file, which has `bytes` bytes. Throws if it isn't a recording that may be stored.
  func probe(path: String, bytes: Int64, for client: Client) async throws -> Probe {
    let intake = try await probes.probe(path: path, bytes: bytes, for: client)
    try await checkDisk(for: ExpectedBytes.made(of: intake.probe.shape, intake.probe.media, bytes: bytes))
    return intake.probe
  }

  /// Maximum size of a file that may be short, in bytes: as much as the probe decodes, in 32 bits.
  private static let shortBytes: Int64 = 4 << 20

  /// Looks at a file like `probe`. If it is short, builds its waveform too, in a job that is created at `time`. `body`
  /// gets the result while the work folder exists.
  func takeIn<Result: Sendable>(
    _ file: IncomingFile, as id: RecordingID, for client: Client, at time: Timestamp,
    _ body: (Intake, EarlyWaveform?) async throws -> Result
  ) async throws -> Result {
    guard configuration.takesInShortUploads, file.byteCount <= Self.shortBytes, runner.mayWorkEarly(for: client) else {
      return try await body(Intake(probe: probe(path: file.path, bytes: file.byteCount, for: client)), nil)
    }
    let folder = try await work.run { [scratch] () throws(StorageError) in try scratch.disk.takeIntakeFolder() }
    defer { work.start { [scratch] in scratch.disk.giveBack(intakeFolder: folder) } }
    let early = EarlyWaveform(of: id, for: client, in: folder, at: time)
    let intake = try await probes.probe(path: file.path, bytes: file.byteCount, for: client, building: early)
    try await checkDisk(
      for: ExpectedBytes.made(of: intake.probe.shape, intake.probe.media, bytes: file.byteCount))
    return try await body(intake, early)
  }
}
