import Glibc
import Jobs
import Storage
import Waveform
import Workers

/// The open pyramids. Once they're open, a slice costs no query.
final class WaveformTable: Sendable {
  /// Slices of finished waveforms, encoded as responses.
  let slices: SliceTable

  private let finished: Cache<Owned<Recording>, UInt64, OpenWaveform>
  /// By the attempt that writes, because another one writes another file.
  private let growing: Cache<Owned<Recording>, AttemptToken?, PyramidFile>
  private let catalog: Catalog
  private let objects: any ObjectStore
  private let disk: MediaStore
  private let live: LiveJobs
  private let work: StoreQueue
  /// For what needs the disk and the catalog only.
  private let localWork: WorkQueue
  private let repairs: WaveformRepairs
  private let readers: SampleReaders
  private let openFile: @Sendable (String) throws(WaveformError) -> PyramidFile

  /// `limit` is the maximum number of open files of each kind. `openFile` is for tests that change something at that
  /// moment.
  init(
    catalog: Catalog, objects: any ObjectStore, disk: MediaStore, live: LiveJobs, work: StoreQueue,
    localWork: WorkQueue, repairs: WaveformRepairs, readers: SampleReaders,
    limit: Int = 256,
    openFile: @escaping @Sendable (String) throws(WaveformError) -> PyramidFile = { path throws(WaveformError) in
      try PyramidFile(path: path)
    }
  ) {
    self.catalog = catalog
    self.objects = objects
    self.disk = disk
    self.live = live
    (self.work, self.localWork) = (work, localWork)
    self.repairs = repairs
    self.readers = readers
    self.openFile = openFile
    let version: @Sendable (RecordingID) -> UInt64 = { catalog.changeCount(of: $0) }
    slices = SliceTable(version: version)
    finished = Cache(limit: limit) { version($0.id) }
    growing = Cache(limit: limit) { live.job(writing: $0.id)?.writer }
  }

  /// Returns the finished waveform of a tenant's recording if it's open.
  func known(_ id: RecordingID, of tenant: Tenant) -> OpenWaveform? { finished[Owned(id, of: tenant)] }

  /// Returns the current waveform of a tenant's recording. Throws if there is no such recording.
  func open(_ id: RecordingID, of tenant: Tenant) async throws -> OpenWaveform {
    if let known = known(id, of: tenant) { return known }
    if work.isForOtherMachine, let local = try await localWork.run({ [self] in try loadAtHand(id, of: tenant) }) {
      return local
    }
    return try await work.run { [self] in try load(id, of: tenant) }
  }

  /// Brings what a window shows onto this machine, in the client's turn, so that making a response needn't wait for
  /// another one. Keep the result until then. Costs nothing if the store is a folder, and doesn't wait for others that
  /// wait for the store if the cache has all of it.
  func fetch(
    _ window: WaveformWindow, of waveform: OpenWaveform, for client: Client
  ) async throws -> LocalFile? {
    guard waveform.isApart(window), await !localWork.run({ waveform.isAtHand(window) }) else { return nil }
    let load: StoreQueue.Load = window.frameRange.count > Self.framesFetchedFirst ? .transfer(client) : .brief
    return try await work.run(as: load) { try waveform.fetch(window) }
  }

  /// Brings the file with a recording's samples onto this machine, like `fetch`.
  func fetchSound(of waveform: OpenWaveform, for client: Client) async throws -> LocalFile? {
    guard waveform.hasSoundApart else { return nil }
    return try await work.run(as: .transfer(client)) { try waveform.fetchSound() }
  }

  /// The longest window, in frames, that goes ahead of file transfers: about 6 minutes, 3 MB of a waveform.
  private static let framesFetchedFirst = 1 << 24

  /// Makes a response from a tenant's waveforms, which `answer` opens with the function passed to it. If one turns out
  /// to be damaged on disk, it's discarded and rebuilt by a job, and the response is made again with an empty waveform:
  /// damaged data is never served.
  func answer<R>(
    of tenant: Tenant,
    _ answer: (_ open: @escaping @Sendable (RecordingID) async throws -> OpenWaveform) async throws -> R
  ) async throws -> R {
    var given: [RecordingID: OpenWaveform] = [:]
    var (copied, compared) = (Set<ObjectKey>(), Set<ObjectKey>())
    while true {
      let emptied = given
      do {
        return try await answer { [self] id in
          if let known = emptied[id] { return known }
          return try await open(id, of: tenant)
        }
      } catch let spoiled as SpoiledWaveform where given[spoiled.waveform.recording] == nil {
        let id = spoiled.waveform.recording
        if case .waveform(let key, _)? = spoiled.loss {
          if !copied.contains(key) {
            if try await work.run({ [self] in renewCopy(of: key) }) {
              copied.insert(key)
              continue
            }
          } else if compared.insert(key).inserted, try await work.run({ [self] in try isStoredIntact(key) }) {
            continue
          }
        }
        if let loss = spoiled.loss { try await work.run { [self] in try giveUp(id, loss) } }
        given[id] = spoiled.waveform.emptied
      }
    }
  }

  /// Discards this machine's copy of a waveform, if it is one: perhaps only that is damaged.
  private func renewCopy(of key: ObjectKey) -> Bool {
    guard objects.discardCopy(of: key) else { return false }
    close(key.recording)
    return true
  }

  /// Whether the store still has a waveform as it was put, so that its pages were damaged on the way. If so, the next
  /// reader opens this machine's whole copy. Blocks. Throws if the store can't be reached.
  private func isStoredIntact(_ key: ObjectKey) throws(StorageError) -> Bool {
    do { _ = try objects.localFile(key) } catch .damagedObject { return false }
    close(key.recording)
    return true
  }

  /// Discards a recording's damaged file. Blocks.
  func giveUp(_ id: RecordingID, _ loss: WaveformLoss) throws(StorageError) {
    try repairs.giveUp(id, loss)
    close(id)
  }

  /// Frees the memory and the disk space of recordings that were deleted, which no request asks for again. Brief.
  func recordingsDeleted() {
    finished.removeOutdated()
    slices.removeOutdated()
  }

  /// Closes the files of a recording of which one was discarded.
  private func close(_ id: RecordingID) {
    finished.remove { $0.id == id }
    growing.remove { $0.id == id }
  }

  /// Closes the file that a job was writing: it has been moved or removed.
  func jobEnded(writing id: RecordingID) { growing.remove { $0.id == id } }

  /// A job that ends while its row is being read moves its file; a second look finds it.
  private func load(_ id: RecordingID, of tenant: Tenant) throws -> OpenWaveform {
    if let waveform = try look(at: id, of: tenant) ?? look(at: id, of: tenant) { return waveform }
    return unfinished(try recording(id, of: tenant), nil)
  }

  /// Returns a finished waveform if its beginning is on this machine. Returns nil if the store must be asked, or if the
  /// copy here is damaged. Throws if there is no such recording. Doesn't wait for the store.
  private func loadAtHand(_ id: RecordingID, of tenant: Tenant) throws -> OpenWaveform? {
    let version = finished.version(Owned(id, of: tenant))
    let recording = try recording(id, of: tenant)
    guard recording.waveformState == .ready, let key = recording.waveformKey,
      objects.isAtHand(key, [0..<PyramidFile.pageBytes]), let pyramid = try? opened(key)
    else { return nil }
    return keep(pyramid, key, of: recording, version: version)
  }

  private func keep(
    _ pyramid: PyramidFile, _ key: ObjectKey, of recording: Recording, version: UInt64
  ) -> OpenWaveform {
    let waveform = OpenWaveform(
      recording: recording.id, extent: WaveformExtent(finished: pyramid), key: key, pyramid: pyramid,
      sound: RecordedSound(of: recording, in: objects, by: readers),
      // A cache would not get back the room of a file that it gives up.
      keepsSoundOpen: !work.isForOtherMachine)
    let owned = Owned(recording.id, of: recording.tenant)
    growing.remove(owned)
    finished.keep(waveform, for: owned, version: version)
    return waveform
  }

  /// Reads the job first, then the row: a job that ends in between has its row finished before it leaves the table. nil
  /// if the file that the job was writing is gone.
  private func look(at id: RecordingID, of tenant: Tenant) throws -> OpenWaveform? {
    let version = finished.version(Owned(id, of: tenant))
    let job = live.job(writing: id)
    let recording = try recording(id, of: tenant)
    guard let key = recording.waveformKey, recording.waveformState == .ready else {
      if recording.waveformState == .failed, let key = recording.waveformKey { try giveUp(id, .owed(key)) }
      return try growing(recording, job)
    }
    do {
      return keep(try finishedPyramid(key), key, of: recording, version: version)
    } catch let error as WaveformError where error.isDamage {
      var isGone = false
      if case .io(_, _, ENOENT) = error { isGone = true }
      try giveUp(id, .waveform(key, isGone ? nil : error))
      return unfinished(recording, nil)
    }
  }

  /// Opens a finished waveform. If it is damaged, tries a fresh copy, since perhaps only this machine's was, and then
  /// one that was fetched whole and compared with its SHA-256, since perhaps the connection damages bytes.
  private func finishedPyramid(_ key: ObjectKey) throws -> PyramidFile {
    do { return try opened(key) } catch let error as WaveformError where error.isDamage {
      guard objects.discardCopy(of: key) else { throw error }
    }
    do { return try opened(key) } catch let error as WaveformError where error.isDamage {
      guard try isStoredIntact(key) else { throw error }
      return try opened(key)
    }
  }

  private func opened(_ key: ObjectKey) throws -> PyramidFile {
    do throws(WaveformError) {
      // One that this machine has all of is read without a cache between.
      let pyramid: PyramidFile
      if let file = objects.fileAtHand(key) {
        pyramid = try open(file)
      } else {
        pyramid = try PyramidFile(BlobPages(key: key, objects: objects))
      }
      guard pyramid.totalFrames != nil else { throw .malformedPyramid(field: "total frames") }
      return pyramid
    } catch {
      if case .unavailable(let failure) = error { throw failure.reason }
      throw error
    }
  }

  private func growing(_ recording: Recording, _ job: LiveJob?) throws -> OpenWaveform? {
    guard let job, (job.progress?.readyFrames ?? 0) > 0 else { return unfinished(recording, job?.progress) }
    guard let pyramid = try growingPyramid(recording, job) else { return nil }
    return unfinished(recording, job.progress, pyramid)
  }

  private func recording(_ id: RecordingID, of tenant: Tenant) throws -> Recording {
    guard let recording = try catalog.of(tenant).recording(id) else { throw ServiceError.noSuchRecording(id.text) }
    return recording
  }

  /// Returns a waveform that isn't finished, with the file that has its points, if there are any.
  private func unfinished(
    _ recording: Recording, _ progress: WorkerProgress?, _ pyramid: PyramidFile? = nil
  ) -> OpenWaveform {
    OpenWaveform(
      recording: recording.id, extent: extent(of: recording, progress), pyramid: pyramid,
      sound: RecordedSound(of: recording, in: objects, by: readers))
  }

  private func open(_ file: LocalFile) throws(WaveformError) -> PyramidFile {
    // Not by `withPath`: Swift 6.3 crashes when it is given the closure.
    defer { withExtendedLifetime(file) {} }
    return try openFile(file.path)
  }

  private func openIfThere(_ file: LocalFile) throws -> PyramidFile? {
    do { return try open(file) } catch WaveformError.io(_, _, let number) where number == ENOENT {
      return nil
    }
  }

  /// Returns the extent of a waveform that a job has built so far.
  private func extent(of recording: Recording, _ progress: WorkerProgress?) -> WaveformExtent {
    let isReliable = recording.audioFormat?.codec.hasReliableFrameCount ?? false
    let total = progress.map(\.totalFrames) ?? (isReliable ? recording.format.frames : nil)
    return WaveformExtent(
      sampleRate: recording.format.sampleRate, channels: recording.format.channels,
      availableFrames: progress?.readyFrames ?? 0, totalFrames: total,
      estimatedFrames: total == nil
        ? progress?.estimatedFrames ?? recording.format.frames ?? recording.format.estimatedFrames : nil,
      isComplete: false)
  }

  /// Returns the file that a job writes, under its temporary or its final name.
  private func growingPyramid(_ recording: Recording, _ job: LiveJob) throws -> PyramidFile? {
    guard let attempt = job.writer else { return nil }
    let owned = Owned(recording.id, of: recording.tenant)
    if let known = growing[owned] { return known }
    guard let file = disk.growingWaveform(of: attempt),
      let pyramid = try openIfThere(file)
        ?? openIfThere(try objects.localFile(attempt.waveformKey(of: recording.id)))
    else { return nil }
    growing.keep(pyramid, for: owned, version: attempt)
    return pyramid
  }
}
