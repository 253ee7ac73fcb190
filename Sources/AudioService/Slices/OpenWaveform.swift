import AudioIO
import CLinux
import Glibc
import Processing
import Storage
import Synchronization
import Waveform

/// A recording's waveform, as far as it has been built. It is a class because all threads use the same ones, and would
/// wait for each other to count the references of a copy's members.
final class OpenWaveform: Sendable {
  let recording: RecordingID
  let tenant: Tenant
  let extent: WaveformExtent
  /// The finished pyramid's key; nil while it grows.
  let key: ObjectKey?
  /// nil until there is a point.
  let pyramid: PyramidFile?
  /// The samples, for scales finer than the pyramid's; nil while the audio is still being made.
  let sound: RecordedSound?

  init(
    recording: RecordingID, tenant: Tenant, extent: WaveformExtent, key: ObjectKey? = nil, pyramid: PyramidFile? = nil,
    sound: RecordedSound? = nil
  ) {
    (self.recording, self.tenant, self.extent, self.key) = (recording, tenant, extent, key)
    (self.pyramid, self.sound) = (pyramid, sound)
  }

  /// The same recording with nothing to show.
  var emptied: OpenWaveform {
    var extent = extent
    if extent.isComplete { extent.totalFrames = extent.availableFrames }
    (extent.availableFrames, extent.isComplete) = (0, false)
    return OpenWaveform(recording: recording, tenant: tenant, extent: extent)
  }

  /// Whether reading a window's samples takes no longer than a switch to another queue while many clients wait: they
  /// are few, needn't be decoded, and are in memory, as far as can be told without waiting for the disk.
  func readsSamplesAtOnce(_ window: WaveformWindow) -> Bool {
    guard let sound else { return false }
    let count = window.frameRange.count * extent.channels
    guard count <= sound.samplesReadAtOnce else { return false }
    return sound.isInMemory(window.frameRange, of: extent.availableFrames) ?? (count <= RecordedSound.samplesReadUnseen)
  }

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
  func slice(_ window: WaveformWindow) throws -> WaveformSlice {
    guard window.pixelCount > 0 else { return WaveformSlice(window, samples: [Int16]().span) }
    if window.needsSamples, let sound { return try intact(sound) { try $0.slice(window) } }
    return try read { (pyramid) throws(WaveformError) in try pyramid.slice(window) }
  }

  /// Returns a window's pixels if all of its points are in memory; nil also if there is any fault. Never waits for the
  /// disk.
  func sliceInMemory(_ window: WaveformWindow) -> WaveformSlice? {
    guard window.pixelCount > 0, !window.needsSamples else { return nil }
    return try? pyramid?.slice(window, waiting: false)
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
  /// The maximum number of samples read at once. 0 if what comes before them has to be decoded; 2 MB if they are read
  /// as they are, which is every window of 2,000 pixels of stereo; a tenth of a millisecond if they are converted.
  fileprivate let samplesReadAtOnce: Int
  /// The maximum number of samples read at once from a file system that doesn't say what is in memory.
  fileprivate static let samplesReadUnseen = 1 << 17
  private let samples = LazySamples()
  private let blobs: any Blobs

  /// nil while the audio is still being made.
  init?(of recording: Recording, in blobs: any Blobs) {
    guard let key = recording.soundKey else { return nil }
    self.key = key
    self.blobs = blobs
    isWorkingCopy = recording.media != nil
    samplesReadAtOnce =
      switch recording.audioFormat?.codec {
      case .pcmS16? where !isWorkingCopy: 1 << 20
      case let codec? where !isWorkingCopy && codec.isPlain: Self.samplesReadUnseen
      default: 0
      }
    bytes = isWorkingCopy ? recording.workingBytes : recording.bytes
  }

  /// Whether the file may have to be fetched from another machine.
  fileprivate var isApart: Bool { blobs.fileAtHand(key) == nil }

  fileprivate func fetch() throws -> LocalFile { try blobs.localFile(key) }

  /// Whether the system has a range of frames in memory; nil if the file system doesn't say (tmpfs). Looks at a byte of
  /// every 128 KB, where the frames would be if the file had nothing but samples; a header is short.
  fileprivate func isInMemory(_ range: Range<Int64>, of frames: Int64) -> Bool? {
    guard let bytes, frames > 0, let local = blobs.fileAtHand(key) else { return false }
    let file = local.withPath { unsafe open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }
    guard file >= 0 else { return false }
    defer { close(file) }
    let bytesPerFrame = bytes / frames
    let end = range.upperBound * bytesPerFrame
    for place in stride(from: range.lowerBound * bytesPerFrame, to: end, by: 128 * 1024) {
      var byte: UInt8 = 0
      let count = unsafe stillwave_read_cached(file, &byte, 1, off_t(place))
      guard count == 1 else { return count < 0 && errno == EOPNOTSUPP ? nil : false }
    }
    return true
  }

  /// Returns what has to be rebuilt; nil if the file is intact. Throws if the recording's own file has changed.
  fileprivate func loss() throws(ServiceError) -> WaveformLoss? {
    switch blobs.look(at: key) {
    case .unknown: return nil
    case .present(let found):
      guard let bytes, found != bytes else { return nil }
      guard isWorkingCopy else { throw .audioDamaged(key.recording) }
    case .absent: guard isWorkingCopy else { throw .audioMissing(key.recording) }
    }
    return .workingCopy(key)
  }

  /// Throws `.audioDamaged` if a file of the right length can't be decoded although it once could.
  fileprivate func slice(_ window: WaveformWindow) throws -> WaveformSlice {
    do { return try cut(window) } catch let fault as ServiceError {
      // Perhaps only this machine's copy is damaged.
      guard blobs.discardCopy(of: key) else { throw fault }
      samples.close()
      return try cut(window)
    }
  }

  private func cut(_ window: WaveformWindow) throws -> WaveformSlice {
    // What is here is read without asking the store for anything, its map included.
    let file = try blobs.fileAtHand(key) ?? blobs.localFile(key)
    do throws(AudioIOError) {
      return try file.withPath { path throws(AudioIOError) in try samples.of(path).slice(window) }
    } catch {
      if case .system(_, let number) = error {
        if number == ENOENT { throw ServiceError.audioMissing(key.recording) }
        guard number == EIO else { throw error }
      }
      throw ServiceError.audioDamaged(key.recording)
    }
  }
}

/// The slices of one audio file, from the first that is asked for: only then must the file be here.
private final class LazySamples: Sendable {
  private let made = Mutex<SampleWindow?>(nil)

  /// Closes the file, because another one takes its place.
  func close() { made.withLock { $0 = nil } }

  /// Returns the slices of the file at `path`, which is the same each time.
  func of(_ path: String) -> SampleWindow {
    made.withLock { made in
      let samples = made ?? SampleWindow(recordingAt: path)
      made = samples
      return samples
    }
  }
}
