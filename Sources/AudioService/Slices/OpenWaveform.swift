import AudioIO
import Glibc
import Processing
import Storage
import Waveform

/// A recording's waveform, as far as it is there.
struct OpenWaveform: Sendable {
  let recording: RecordingID
  let extent: WaveformExtent
  /// The finished pyramid's name in the recording's folder; nil while it grows.
  var file: String?
  /// nil while there is no point yet.
  var pyramid: PyramidFile?
  /// The samples, for what is finer than the pyramid; nil while the sound is still being made.
  var sound: RecordedSound?

  /// The same recording with nothing to show.
  var emptied: OpenWaveform {
    var extent = extent
    if extent.isComplete { extent.totalFrames = extent.availableFrames }
    (extent.availableFrames, extent.isComplete) = (0, false)
    return OpenWaveform(recording: recording, extent: extent)
  }

  /// A window's pixels, from the pyramid or from the samples. Blocks. Throws `SpoiledWaveform` where the disk has
  /// damaged what they are made of, `.audioMissing` or `.audioDamaged` where that is the recording's own file.
  func slice(_ window: WaveformWindow) throws -> WaveformSlice {
    guard window.pixelCount > 0 else { return WaveformSlice(window, samples: [Int16]().span) }
    if window.needsSamples, let sound {
      if let loss = try sound.loss() { throw SpoiledWaveform(waveform: self, loss: loss) }
      return try sound.slice(window)
    }
    return try read { (pyramid) throws(WaveformError) in try pyramid.slice(window) }
  }

  /// Reads all that a long answer will be made of: damage is found before its head is sent. Blocks. Throws as `slice`.
  func check(_ window: WaveformWindow) throws {
    guard window.pixelCount > 0, !window.needsSamples else { return }
    try read { (pyramid) throws(WaveformError) in try pyramid.verify(window) }
  }

  private func read<R>(_ body: (PyramidFile) throws(WaveformError) -> R) throws -> R {
    guard let pyramid else { preconditionFailure("pixels without a pyramid") }
    do throws(WaveformError) {
      return try body(pyramid)
    } catch {
      guard error.isDamage else { throw error }
      throw SpoiledWaveform(waveform: self, loss: file.map { .waveform(file: $0, error) })
    }
  }
}

/// The file that a recording's samples are read from, which the disk may have lost or cut since.
struct RecordedSound: Sendable {
  private let recording: RecordingID
  private let name: String
  /// nil: not known.
  private let bytes: Int64?
  private let isWorkingCopy: Bool
  private let samples: SampleWindow
  private let store: MediaStore

  /// nil while the sound is still being made.
  init?(of recording: Recording, in store: MediaStore) {
    guard let name = recording.soundFile else { return nil }
    self.recording = recording.id
    self.name = name
    self.store = store
    isWorkingCopy = recording.media != nil
    bytes = isWorkingCopy ? recording.workingBytes : recording.bytes
    samples = SampleWindow(recordingAt: store.folder(of: recording.id) + "/" + name)
  }

  /// What of it can be built again; nil where all is well. Throws where the recording's own file is not as it was.
  fileprivate func loss() throws(ServiceError) -> WaveformLoss? {
    switch store.look(at: name, of: recording) {
    case .unknown: return nil
    case .present(let found):
      guard let bytes, found != bytes else { return nil }
      guard isWorkingCopy else { throw .audioDamaged(recording) }
    case .absent: guard isWorkingCopy else { throw .audioMissing(recording) }
    }
    return .workingCopy(file: name)
  }

  /// Throws `.audioDamaged` for a file of the right length that can't be decoded, though it once was.
  fileprivate func slice(_ window: WaveformWindow) throws -> WaveformSlice {
    do throws(AudioIOError) {
      return try samples.slice(window)
    } catch {
      if case .system(_, let number) = error {
        if number == ENOENT { throw ServiceError.audioMissing(recording) }
        guard number == EIO else { throw error }
      }
      throw ServiceError.audioDamaged(recording)
    }
  }
}
