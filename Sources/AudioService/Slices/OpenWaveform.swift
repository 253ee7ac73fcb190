import Denoise
import Glibc
import Jobs
import Storage
import Synchronization
import Terms
import Waveform
import Workers

/// A recording's waveform, as far as it has been built. It is a class because all threads use the same ones, and would
/// wait for each other to count the references of a copy's members.
final class OpenWaveform: Sendable {
  let recording: RecordingID
  let extent: WaveformExtent
  /// The finished pyramid's key; nil while it grows.
  let key: ObjectKey?
  /// nil until there is a point.
  let pyramid: PyramidFile?
  /// The samples, for scales finer than the pyramid's; nil while the audio is still being made.
  let sound: RecordedSound?

  /// What is known of samples that are stored as plain numbers.
  private enum Plain {
    case unknown
    /// nil if they are encoded or not to be kept open.
    case known(PlainSamples?)
  }

  private let plain: Mutex<Plain>

  /// `keepsSoundOpen`: whether the file with the samples may stay open as long as this waveform.
  init(
    recording: RecordingID, extent: WaveformExtent, key: ObjectKey? = nil, pyramid: PyramidFile? = nil,
    sound: RecordedSound? = nil, keepsSoundOpen: Bool = false
  ) {
    (self.recording, self.extent, self.key) = (recording, extent, key)
    (self.pyramid, self.sound) = (pyramid, sound)
    plain = Mutex(keepsSoundOpen ? .unknown : .known(nil))
  }

  /// The same recording with nothing to show.
  var emptied: OpenWaveform {
    var extent = extent
    if extent.isComplete { extent.totalFrames = extent.availableFrames }
    (extent.availableFrames, extent.isComplete) = (0, false)
    return OpenWaveform(recording: recording, extent: extent)
  }

  /// Whether a window is made from samples, which a reader reads.
  func needsReader(_ window: WaveformWindow) -> Bool { window.needsSamples && sound != nil }

  /// Whether what a window shows may have to be fetched from another machine.
  func isApart(_ window: WaveformWindow) -> Bool {
    guard window.pixelCount > 0 else { return false }
    if window.needsSamples, let sound { return sound.isApart }
    return pyramid?.isApart ?? false
  }

  /// Whether all that a window shows of the pyramid is on this machine's disk or in memory. Blocks, but waits for no
  /// other machine. False for a window that needs samples, and if there is any fault.
  func isAtHand(_ window: WaveformWindow) -> Bool {
    guard !window.needsSamples || sound == nil, let pyramid else { return false }
    return (try? pyramid.isAtHand(window)) ?? false
  }

  /// Fetches what a window shows; returns the file with the samples if it needs them. Blocks. Throws like `slice`.
  func fetch(_ window: WaveformWindow) throws -> LocalFile? {
    if window.needsSamples, let sound { return try intact(sound) { try $0.fetch() } }
    try read { (pyramid) throws(WaveformError) in try pyramid.fetch(window) }
    return nil
  }

  /// Returns a window's pixels, from the pyramid or from the samples. Blocks. Throws `SpoiledWaveform` if the file
  /// they're made from is damaged on disk, `.audioMissing` or `.audioDamaged` if that is the recording's own file.
  func slice(_ window: WaveformWindow, for client: @autoclosure () -> Client) throws -> WaveformSlice {
    guard window.pixelCount > 0 else { return WaveformSlice(window, samples: [Int16]().span) }
    if window.needsSamples, let sound { return try slice(window, of: sound, for: client()) }
    return try read { (pyramid) throws(WaveformError) in try pyramid.slice(window) }
  }

  /// How much of the recording a spectrogram can show: all that has been read, unless the file with the samples is
  /// still being made.
  var spectrogramExtent: SpectrogramExtent {
    SpectrogramExtent(
      sampleRate: extent.sampleRate, channels: extent.channels,
      availableFrames: sound == nil ? 0 : extent.availableFrames,
      length: extent.knownFrames ?? extent.estimatedFrames ?? extent.availableFrames,
      isComplete: extent.isComplete && sound != nil)
  }

  /// Whether the samples may have to be fetched from another machine.
  var hasSoundApart: Bool { sound?.isApart ?? false }

  /// Fetches the file with the samples. Blocks. Throws like `slice`.
  func fetchSound() throws -> LocalFile? { try sound.map { try intact($0) { try $0.fetch() } } }

  /// Returns the values of a tile of `spectrogramExtent`. Blocks. Throws like `slice`.
  func values(of tile: SpectrogramTile, for client: Client) throws -> [UInt8] {
    guard tile.columnCount > 0, let sound else { return [] }
    return try intact(sound) { sound in
      try sound.read(for: client) { (reader) throws(ReaderFailure) in try reader.values(of: tile) }
    }
  }

  /// Returns a window's pixels if all of its points or samples are in memory; nil also if there is any fault. Never
  /// waits for the disk.
  func sliceInMemory(_ window: WaveformWindow) -> WaveformSlice? {
    guard window.pixelCount > 0 else { return nil }
    guard window.needsSamples else { return try? pyramid?.slice(window, waiting: false) }
    guard case .known(let plain?) = plain.withLock({ $0 }) else { return nil }
    if let slice = plain.sliceInMemory(window) { return slice }
    // The file is opened again, if it's still there.
    if !plain.isUnchanged { self.plain.withLock { $0 = .unknown } }
    return nil
  }

  /// Returns the pixels of a window that needs samples, from a reader, which also tells whether they're plain.
  private func slice(
    _ window: WaveformWindow, of sound: RecordedSound, for client: Client
  ) throws -> WaveformSlice {
    try intact(sound) { sound in
      try sound.read(for: client) { (reader) throws(ReaderFailure) in
        let slice = try reader.slice(window)
        if case .unknown = plain.withLock({ $0 }) {
          let samples = try reader.plainSamples()
          plain.withLock { $0 = .known(samples) }
        }
        return slice
      }
    }
  }

  /// Reads everything that a long response needs, so that damage is found before its head is sent. Blocks. Throws like
  /// `slice`.
  func check(_ window: WaveformWindow) throws {
    guard window.pixelCount > 0, !window.needsSamples else { return }
    try read { (pyramid) throws(WaveformError) in try pyramid.verify(window) }
  }

  /// Returns what `body` makes of a sound; throws `SpoiledWaveform` if it is a working copy that must be made again.
  private func intact<R>(_ sound: RecordedSound, _ body: (RecordedSound) throws -> R) throws -> R {
    if let loss = try sound.loss() { throw SpoiledWaveform(waveform: self, loss: loss) }
    do { return try body(sound) } catch StorageError.damagedObject where sound.isWorkingCopy {
      throw SpoiledWaveform(waveform: self, loss: .workingCopy(sound.key))
    }
  }

  private func read<R>(_ body: (PyramidFile) throws(WaveformError) -> R) throws -> R {
    guard let pyramid else { preconditionFailure("pixels without a pyramid") }
    do throws(WaveformError) {
      return try body(pyramid)
    } catch {
      if case .unavailable(let failure) = error { throw failure.reason }
      guard error.isDamage else { throw error }
      throw SpoiledWaveform(waveform: self, loss: key.map { .waveform($0, error) })
    }
  }
}

/// The file that a recording's samples are read from, which may have been lost or truncated since.
struct RecordedSound: Sendable {
  fileprivate let key: ObjectKey
  /// nil if unknown.
  private let bytes: Int64?
  fileprivate let isWorkingCopy: Bool
  private let objects: any ObjectStore
  private let readers: SampleReaders

  /// nil while the audio is still being made.
  init?(of recording: Recording, in objects: any ObjectStore, by readers: SampleReaders) {
    guard let key = recording.soundKey else { return nil }
    (self.key, self.objects, self.readers) = (key, objects, readers)
    isWorkingCopy = recording.media != nil
    bytes = isWorkingCopy ? recording.workingBytes : recording.bytes
  }

  /// Whether the file may have to be fetched from another machine.
  fileprivate var isApart: Bool { objects.fileAtHand(key) == nil }

  fileprivate func fetch() throws -> LocalFile { try objects.localFile(key) }

  /// Returns what has to be rebuilt; nil if the file is intact. Throws if the recording's own file has changed.
  fileprivate func loss() throws(ServiceError) -> WaveformLoss? {
    switch objects.look(at: key) {
    case .unknown: return nil
    case .present(let found):
      guard let bytes, found != bytes else { return nil }
      guard isWorkingCopy else { throw .audioDamaged(key.recording) }
    case .absent: guard isWorkingCopy else { throw .audioMissing(key.recording) }
    }
    return .workingCopy(key)
  }

  /// Throws `.audioDamaged` if a file of the right length can't be decoded although it once could.
  fileprivate func read<R>(
    for client: Client, _ body: (SampleReader) throws(ReaderFailure) -> R
  ) throws -> R {
    do { return try readOnce(for: client, body) } catch ServiceError.audioDamaged(let id) {
      // Perhaps only this machine's copy is damaged.
      guard objects.discardCopy(of: key) else { throw ServiceError.audioDamaged(id) }
      return try readOnce(for: client, body)
    }
  }

  private func readOnce<R>(
    for client: Client, _ body: (SampleReader) throws(ReaderFailure) -> R
  ) throws -> R {
    // What is here is read without asking the store for anything, its map included.
    let file = try objects.fileAtHand(key) ?? objects.localFile(key)
    return try readers.read(file, of: key.recording, for: client, body)
  }
}

extension SampleReaders {
  /// Returns what `body` makes of a reader of a recording's file. Throws `.audioMissing`, `.audioDamaged` if the file
  /// can't be decoded although it once could, and `.workerUnavailable` if the reader fails or takes too long.
  func read<R>(
    _ file: LocalFile, of id: RecordingID, for client: Client, _ body: (SampleReader) throws(ReaderFailure) -> R
  ) throws(ServiceError) -> R {
    defer { withExtendedLifetime(file) {} }
    do throws(ReaderFailure) { return try read(file.path, for: client, body) } catch {
      throw ServiceError(error, of: id)
    }
  }

  /// Does that with an open file, which may have been deleted since.
  func read<R>(
    _ file: OpenFile, of id: RecordingID, for client: Client, _ body: (SampleReader) throws(ReaderFailure) -> R
  ) throws(ServiceError) -> R {
    do throws(ReaderFailure) { return try read(file, for: client, body) } catch { throw ServiceError(error, of: id) }
  }
}

extension ServiceError {
  /// Creates the error for a recording whose reader gave no answer.
  init(_ failure: ReaderFailure, of id: RecordingID) {
    switch failure {
    case .unopened(ENOENT): self = .audioMissing(id)
    case .unopened(EIO): self = .audioDamaged(id)
    case .unopened(let number): self = .workerUnavailable(reason: "a recording can't be opened (errno \(number))")
    case .refused(let failure) where failure.retry || failure.code == "unsupported_output": self.init(failure)
    case .refused: self = .audioDamaged(id)
    case .died(let reason): self = .workerUnavailable(reason: "the reader of \(id) failed: \(reason)")
    case .slow: self = .workerUnavailable(reason: "the reader of \(id) takes too long")
    }
  }
}
