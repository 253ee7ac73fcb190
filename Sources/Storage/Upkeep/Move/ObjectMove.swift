import Dispatch
import Synchronization
import Terms

/// Copies the files that rows name from one place to another, those of several recordings at once.
struct ObjectMove: Sendable {
  let source: any ObjectStore
  let target: any ObjectStore
  /// Whether an earlier run may have put files already.
  let isResumed: Bool
  let clock: Clock
  /// Returns what is wrong with the waveform file at a path, or nil. No row has its SHA-256.
  let waveformFault: @Sendable (String) -> String?

  /// Most of the time is spent waiting for a store or a disk.
  private static let width = 8
  private static let queue = DispatchQueue(label: "move", attributes: .concurrent)

  /// What threads share.
  private struct Work {
    var left: ArraySlice<InventoryEntry>
    var report: Move.Report
    var failure: StorageError?

    mutating func stop(_ error: StorageError) {
      failure = failure ?? error
      left = []
    }
  }

  /// Copies the files of some recordings, and adds to `report`. Meanwhile calls `proceed` a few times per second with
  /// the bytes so far; it returns whether to continue.
  func run(
    _ entries: [InventoryEntry], _ report: inout Move.Report, proceed: (Int64) throws(StorageError) -> Bool
  ) throws(StorageError) {
    let work = Holder(Work(left: entries[...], report: report))
    let ended = DispatchGroup()
    for _ in 0..<min(Self.width, entries.count) {
      Self.queue.async(group: ended) {
        while let next = work.state.withLock({ $0.left.popFirst() }) {
          do throws(StorageError) {
            let moved = try move(next)
            work.state.withLock { $0.report.add(moved) }
          } catch {
            work.state.withLock { $0.stop(error) }
          }
        }
      }
    }
    while !clock.wait(for: ended, seconds: 0.1) {
      do throws(StorageError) {
        if try !proceed(work.state.withLock { $0.report.bytes }) { throw .cancelled }
      } catch {
        work.state.withLock { $0.stop(error) }
      }
    }
    let done = work.state.withLock { $0 }
    report = done.report
    if let failure = done.failure { throw failure }
  }

  private final class Holder: Sendable {
    let state: Mutex<Work>

    init(_ work: Work) { state = Mutex(work) }
  }

  // MARK: One recording

  private func move(_ entry: InventoryEntry) throws(StorageError) -> Move.Report {
    let recording = entry.recording
    var report = Move.Report()
    // The service keeps the name of a waveform that it still has to build again.
    var isWhole = recording.waveformState == .ready || recording.waveformKey == nil
    for item in entry.items {
      let fault = try item.kind == .waveform ? moveWaveform(item.object, &report) : transfer(item.object, &report)
      guard let fault else { continue }
      switch item.kind {
      case .audio: report.foundProblems.add(DataCheck.Finding(fault, of: item))
      case .workingCopy, .waveform: isWhole = false
      case .conversion: report.omitted.insert("\(item.key)")
      }
    }
    for key in entry.maps { _ = try transfer(ExpectedObject(key: key, bytes: nil, sha256: nil), &report) }
    if !isWhole, [.ready, .failed].contains(recording.waveformState) { report.lostWaveforms = 1 }
    if report.foundProblems.isEmpty, recording.audioKey != nil {
      try target.put(recording.describedJSON, as: "\(recording.descriptionKey)")
    }
    return report
  }

  /// Copies a waveform, whose own checksums are compared. One of both places is a folder. A damaged one is left at
  /// neither place, where a later run would take it for the right one.
  private func moveWaveform(
    _ object: ExpectedObject, _ report: inout Move.Report
  ) throws(StorageError) -> ObjectFault? {
    let key = "\(object.key)"
    if let path = source.path(of: key) {
      guard try source.look(key) != nil else { return .missing }
      if let reason = waveformFault(path) { return .damaged(reason: reason) }
    }
    if let fault = try transfer(object, &report) { return fault }
    guard let path = target.path(of: key), let reason = waveformFault(path) else { return nil }
    try target.delete(key)
    return .damaged(reason: reason)
  }

  /// Copies an object. Returns what is wrong with it at the source, if anything.
  private func transfer(_ object: ExpectedObject, _ report: inout Move.Report) throws(StorageError) -> ObjectFault? {
    if isResumed, try isThere(object) {
      report.earlierFiles += 1
      return nil
    }
    let found: FoundObject?
    do throws(StorageError) {
      let key = "\(object.key)"
      found = try target.take([ObjectPiece(key)], of: source, as: key) { object.fault(of: $0) == nil }
    } catch {
      guard case .damagedObject = error else { throw error }
      return .content
    }
    guard let found else { return .missing }
    if let fault = object.fault(of: found) { return fault }
    report.files += 1
    report.bytes += found.bytes
    return nil
  }

  /// Whether an earlier run has put the object. A key is never used for two contents, so the length is enough where no
  /// row has the SHA-256.
  private func isThere(_ object: ExpectedObject) throws(StorageError) -> Bool {
    guard let there = try target.look("\(object.key)"), object.fault(of: there) == nil else { return false }
    if object.bytes != nil { return true }
    return try source.look("\(object.key)")?.bytes == there.bytes
  }
}
