import Dispatch
import Synchronization
import Terms

/// Copies the files that rows name from one place to another, those of several recordings at once.
struct ObjectMove: Sendable {
  let source: any MovedMedia
  let target: any MovedMedia
  /// Whether an earlier run may have put files already.
  let isResumed: Bool
  let clock: Clock
  /// Returns what is wrong with the waveform file at a path, or nil. No row has its SHA-256.
  let waveformFault: @Sendable (String) -> String?

  /// A recording and its conversions.
  typealias Group = (recording: Recording, conversions: [Conversion])

  /// What was done.
  struct Outcome: Sendable {
    var files = 0
    var bytes: Int64 = 0
    /// Files that an earlier run had put.
    var earlierFiles = 0
    var problems = DataCheck.Findings()
    /// The keys of conversions that are missing or damaged. They can be made again.
    var lostConversions: Set<String> = []
    /// How many waveforms the service has to build again, because they or working copies are missing or damaged. Their
    /// rows stay, and say which these are.
    var lostWaveforms = 0

    mutating func add(_ more: Self) {
      files += more.files
      bytes += more.bytes
      earlierFiles += more.earlierFiles
      problems.add(more.problems)
      lostConversions.formUnion(more.lostConversions)
      lostWaveforms += more.lostWaveforms
    }
  }

  /// Most of the time is spent waiting for a store or a disk.
  private static let width = 8
  private static let queue = DispatchQueue(label: "move", attributes: .concurrent)

  /// Copies the files of some recordings, and adds to `outcome`. Meanwhile calls `proceed` a few times per second with
  /// the bytes so far; it returns whether to continue.
  func run(
    _ groups: [Group], _ outcome: inout Outcome, proceed: (Int64) throws(StorageError) -> Bool
  ) throws(StorageError) {
    let work = Work(groups, outcome)
    let ended = DispatchGroup()
    for _ in 0..<min(Self.width, groups.count) {
      Self.queue.async(group: ended) {
        while let next = work.next() {
          do throws(StorageError) { work.add(try move(next)) } catch { work.stop(error) }
        }
      }
    }
    while !clock.wait(for: ended, seconds: 0.1) {
      do throws(StorageError) {
        if try !proceed(work.outcome.bytes) { work.stop(.cancelled) }
      } catch {
        work.stop(error)
      }
    }
    outcome = work.outcome
    if let failure = work.failure { throw failure }
  }

  /// What threads share.
  private final class Work: Sendable {
    private struct State {
      var left: ArraySlice<Group>
      var outcome: Outcome
      var failure: StorageError?
    }

    private let state: Mutex<State>

    init(_ groups: [Group], _ outcome: Outcome) { state = Mutex(State(left: groups[...], outcome: outcome)) }

    var outcome: Outcome { state.withLock(\.outcome) }
    var failure: StorageError? { state.withLock(\.failure) }

    func next() -> Group? { state.withLock { $0.failure == nil ? $0.left.popFirst() : nil } }

    func stop(_ failure: StorageError) { state.withLock { $0.failure = $0.failure ?? failure } }

    func add(_ more: Outcome) { state.withLock { $0.outcome.add(more) } }
  }

  // MARK: One recording

  private func move(_ group: Group) throws(StorageError) -> Outcome {
    var outcome = Outcome()
    let recording = group.recording
    // The job that produces it hasn't finished.
    guard let audio = recording.audioKey else { return outcome }
    let sound = ExpectedObject(key: audio, bytes: recording.bytes, sha256: recording.sha256)
    if let fault = try transfer(sound, &outcome) { outcome.add(fault, of: audio) }
    try moveParts(of: recording, &outcome)
    for key in [audio, recording.workingKey].compactMap({ $0?.map }) {
      _ = try transfer(ExpectedObject(key: key, bytes: nil, sha256: nil), &outcome)
    }
    for conversion in group.conversions {
      let file = ExpectedObject(key: conversion.key, bytes: conversion.bytes, sha256: conversion.sha256)
      if try transfer(file, &outcome) != nil { outcome.lostConversions.insert(conversion.key.description) }
    }
    if outcome.problems.isEmpty { try target.describe(recording) }
    return outcome
  }

  /// Copies the working copy and the waveform, as far as they are intact and the service hasn't given them up: it keeps
  /// the name of a waveform that it still has to build again.
  private func moveParts(of recording: Recording, _ outcome: inout Outcome) throws(StorageError) {
    var isWhole = true
    if let key = recording.workingKey {
      let working = ExpectedObject(key: key, bytes: recording.workingBytes, sha256: recording.workingSHA256)
      if try transfer(working, &outcome) != nil { isWhole = false }
    }
    if let key = recording.waveformKey {
      let isMoved = recording.waveformState == .ready ? try moveWaveform(key, &outcome) : false
      if !isMoved { isWhole = false }
    }
    if !isWhole, [.ready, .failed].contains(recording.waveformState) { outcome.lostWaveforms = 1 }
  }

  /// Copies a waveform, whose own checksums are compared: no row has its SHA-256. One of both places is a folder. A
  /// damaged one is left at neither place, where a later run would take it for the right one. Returns whether it is
  /// intact.
  private func moveWaveform(_ key: ObjectKey, _ outcome: inout Outcome) throws(StorageError) -> Bool {
    if let path = source.path(of: "\(key)") {
      guard try source.find("\(key)") != nil, waveformFault(path) == nil else { return false }
    }
    guard try transfer(ExpectedObject(key: key, bytes: nil, sha256: nil), &outcome) == nil else { return false }
    guard let path = target.path(of: "\(key)"), waveformFault(path) != nil else { return true }
    try FileSystem.remove(path)
    return false
  }

  /// Copies an object. Returns what is wrong with it at the source, if anything.
  private func transfer(_ object: ExpectedObject, _ outcome: inout Outcome) throws(StorageError) -> Fault? {
    if isResumed, try isThere(object) {
      outcome.earlierFiles += 1
      return nil
    }
    let found: FoundObject?
    do throws(StorageError) { found = try target.take(object, from: source) } catch {
      guard case .damagedObject = error else { throw error }
      return .content
    }
    guard let found else { return .missing }
    guard object.permits(found.bytes, found.sha256) else { return .differs(from: object, found) }
    outcome.files += 1
    outcome.bytes += found.bytes
    return nil
  }

  /// Whether an earlier run has put the object. A key is never used for two contents, so the length is enough where no
  /// row has the SHA-256.
  private func isThere(_ object: ExpectedObject) throws(StorageError) -> Bool {
    guard let there = try target.find(object.key.description), object.permits(there.bytes, there.sha256) else {
      return false
    }
    if object.bytes != nil { return true }
    return try source.find(object.key.description)?.bytes == there.bytes
  }

  /// What is wrong with a file of the source.
  fileprivate enum Fault {
    case missing
    case length(found: Int64, expected: Int64)
    case content

    static func differs(from object: ExpectedObject, _ found: FoundObject) -> Fault {
      if let expected = object.bytes, expected != found.bytes { return .length(found: found.bytes, expected: expected) }
      return .content
    }
  }
}

extension ObjectMove.Outcome {
  fileprivate mutating func add(_ fault: ObjectMove.Fault, of audio: ObjectKey) {
    let (code, detail) =
      switch fault {
      case .missing: ("audio_missing", "The audio is missing.")
      case .length(let found, let expected):
        ("audio_damaged", "The audio has \(found) bytes; the catalog says \(expected).")
      case .content: ("audio_damaged", "The audio's SHA-256 is not what the catalog says.")
      }
    problems.add(DataCheck.Finding(code: code, path: "\(audio)", detail: detail))
  }
}
