import CLinux
import Dispatch
import Glibc
import Storage
import Synchronization
import Terms
import Waveform

/// Compares the files of recordings and their working copies with their SHA-256, because disks lose bits silently.
///
/// Each file is read once in `Configuration.scrubSeconds`, slowly, on a thread that gets the processor and the disk
/// only while nothing else wants them. If a job's source was compared over a day ago, it is compared at once, beside
/// the job, because what is made from altered sound is wrong, too. An altered file gets a warning on its recording
/// until it is right again; a working copy is made again. A finished waveform is verified by the checksums of its pages
/// and rebuilt if it is damaged; a conversion that has changed is discarded.
///
/// Objects in a bucket are read past the cache. Waveforms there are verified only while the cache has them, and the
/// source of a job is compared when it is fetched.
final class Scrub: Sendable {
  /// The code of the warning.
  static let code = "audio_altered"
  static let bytesPerSecond = 5e6
  static let jobAgeSeconds = 86_400.0

  private static let batch = 100
  /// The time between two looks for files that are due.
  private static let pauseSeconds = 3600.0
  /// The number of sources of jobs that may wait; more are compared when they are due.
  private static let waitingLimit = 1000

  private let catalog: Catalog
  private let objects: any ObjectStore
  private let seconds: Double?
  private let log: ServiceLog
  private let giveUp: @Sendable (RecordingID, WaveformLoss) throws(StorageError) -> Void
  private let waiting = Mutex<[RecordingID]>([])
  private let isStopped = Atomic(false)
  private let wake = DispatchSemaphore(value: 0)
  private let writes = DispatchQueue(label: "scrub writes")
  private let counted = Atomic(0)
  private let isCounted = Atomic(false)

  /// `seconds` is the time in which each file is compared once; nil for never. `giveUp` discards a damaged waveform.
  init(
    _ catalog: Catalog, _ objects: any ObjectStore, every seconds: Double?, log: ServiceLog,
    giveUp: @escaping @Sendable (RecordingID, WaveformLoss) throws(StorageError) -> Void
  ) {
    (self.catalog, self.objects, self.seconds, self.log, self.giveUp) = (catalog, objects, seconds, log, giveUp)
  }

  func start() {
    _ = Threads.start { [self] in
      stillwave_idle_thread()
      while !isStopped.load(ordering: .relaxed) {
        if !runOnce() { _ = catalog.clock.wait(for: wake, seconds: Self.pauseSeconds) }
      }
    }
  }

  func stop() {
    isStopped.store(true, ordering: .relaxed)
    wake.signal()
  }

  /// Has a job's source compared if that was last done over a day ago. Doesn't block.
  func jobBegan(on id: RecordingID) {
    let isNew = waiting.withLock { waiting in
      guard waiting.count < Self.waitingLimit, !waiting.contains(id) else { return false }
      waiting.append(id)
      return true
    }
    if isNew { wake.signal() }
  }

  /// The number of recordings whose files have changed. Blocks if there are any.
  var alteredCount: Int {
    if isCounted.load(ordering: .relaxed), counted.load(ordering: .relaxed) == 0 { return 0 }
    return count()
  }

  @discardableResult
  private func count() -> Int {
    guard let count = try? catalog.count(withWarning: Self.code) else { return counted.load(ordering: .relaxed) }
    counted.store(count, ordering: .relaxed)
    isCounted.store(true, ordering: .relaxed)
    return count
  }

  /// Compares what waits, and some of the files that are due. Returns false if there is nothing more to do. Blocks.
  private func runOnce() -> Bool {
    do {
      try compareWaiting()
      // The clock may be wrong: then more is compared than is due.
      return try sweep(at: catalog.time) == Self.batch
    } catch {
      log.failure("files could not be compared with their SHA-256", ["error": logText(error)])
      return false
    }
  }

  /// Compares at most `batch` of the files that are due at a time. Returns their number. Blocks, for long.
  @discardableResult
  func sweep(at now: Timestamp) throws(StorageError) -> Int {
    count()
    guard let seconds else { return 0 }
    let due = try catalog.recordings(comparedBefore: now + -seconds, limit: Self.batch)
    // In another order on each node that shares the catalog, and not what one of them has compared meanwhile.
    for id in due.map(\.id).shuffled() where !isStopped.load(ordering: .relaxed) {
      guard let recording = try catalog.recording(id, comparedBefore: now + -seconds) else { continue }
      try compare(recording, at: now, slowly: true)
    }
    return due.count
  }

  /// Compares the sources of jobs. Blocks.
  func compareWaiting() throws(StorageError) {
    while !isStopped.load(ordering: .relaxed), let id = waiting.withLock({ $0.first }) {
      defer { waiting.withLock { $0.removeAll { $0 == id } } }
      let now = catalog.time
      guard let recording = try catalog.recording(id, comparedBefore: now + -Self.jobAgeSeconds) else { continue }
      try compare(recording, at: now, slowly: false)
    }
  }

  private func compare(_ recording: Recording, at now: Timestamp, slowly: Bool) throws(StorageError) {
    guard let key = recording.audioKey, let expected = recording.sha256 else { return }
    if let finding = try isAltered(key, from: expected, slowly: slowly) {
      try note(recording.id, isAltered: finding)
    }
    if let working = recording.workingKey, let expected = recording.workingSHA256,
      try isAltered(working, from: expected, slowly: slowly) == true
    {
      try write { [giveUp] () throws(StorageError) in try giveUp(recording.id, .workingCopy(working)) }
    }
    if slowly {
      try verifyWaveform(of: recording)
      for conversion in try catalog.conversions(of: recording.id)
      where try isAltered(conversion.key, from: conversion.sha256, slowly: true) == true {
        // It is made again when it is asked for.
        try write { [catalog] () throws(StorageError) in try catalog.forget(conversion) }
        log.failure("a conversion has changed on the disk and is discarded", ["file": "\(conversion.key)"])
      }
    }
    guard !isStopped.load(ordering: .relaxed) else { return }
    try write { [catalog] () throws(StorageError) in try catalog.note(comparisonOf: recording.id, at: now) }
  }

  /// Changes the catalog on another thread, and waits for it: this one gets little of the processor and the disk, and
  /// would keep others from writing for as long.
  private func write(_ change: @escaping @Sendable () throws(StorageError) -> Void) throws(StorageError) {
    let (outcome, isDone) = (FirstFailure(), DispatchSemaphore(value: 0))
    writes.async {
      do throws(StorageError) { try change() } catch { outcome.note(error) }
      isDone.signal()
    }
    isDone.wait()
    if let error = outcome.error { throw error }
  }

  /// Whether a file isn't what was stored; nil if it is missing, which is said elsewhere (`MissingFiles`), or if the
  /// service is about to end.
  private func isAltered(
    _ key: ObjectKey, from expected: String, slowly: Bool
  ) throws(StorageError) -> Bool? {
    do throws(StorageError) {
      guard slowly else {
        return try objects.fileAtHand(key)?.sha256(fromDisk: false) { _ in !isStopped.load(ordering: .relaxed) }
          .map { $0 != expected }
      }
      return try objects.sha256(of: "\(key)", inPieces: true) { (count) throws(StorageError) in
        catalog.clock.pause(Double(count) / Self.bytesPerSecond)
        try compareWaiting()
        return !isStopped.load(ordering: .relaxed)
      }.map { $0 != expected }
    } catch {
      // The next look goes on here.
      if case .storeUnreachable = error { throw error }
      if case .io(_, _, EIO) = error { return true }
      if case .io(_, _, ENOENT) = error { return nil }
      log.failure("a file can't be compared", ["file": "\(key)", "error": logText(error)])
      return nil
    }
  }

  private func note(_ id: RecordingID, isAltered: Bool) throws(StorageError) {
    guard let recording = try catalog.recording(id) else { return }
    guard recording.warnings.contains(where: { $0.code == Self.code }) != isAltered else { return }
    try write { [catalog] () throws(StorageError) in
      try catalog.update(id) { recording in
        recording.warnings.removeAll { $0.code == Self.code }
        if isAltered { recording.warnings.append(Self.warning) }
      }
    }
    count()
    if isAltered {
      log.failure("a recording's file has changed on the disk", ["recording": id.text])
    } else {
      log.notice("a recording's file is right again", ["recording": id.text])
    }
  }

  private static let warning = Warning(
    code: code,
    detail: """
      The recording's file has changed where the service keeps it: its SHA-256 isn't that of what was stored, or a part of \
      it can't be read. Parts of the sound may be wrong.
      """)

  private func verifyWaveform(of recording: Recording) throws(StorageError) {
    guard recording.waveformState == .ready, let key = recording.waveformKey, let file = objects.fileAtHand(key)
    else {
      return
    }
    let path = file.withPath { $0 }
    defer { withExtendedLifetime(file) {} }
    do throws(WaveformError) { try PyramidFile(path: path, cacheBytes: 0).verify() } catch {
      guard error.isDamage else { return }
      try write { [giveUp] () throws(StorageError) in try giveUp(recording.id, .waveform(key, error)) }
    }
  }
}
