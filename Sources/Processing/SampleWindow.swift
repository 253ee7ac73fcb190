import AudioIO
import Dispatch
import Synchronization
import Terms
import Waveform

/// Slices finer than a pyramid's finest level, computed from the samples of a file that stays open. Use it from one
/// thread at a time.
package final class SampleWindow {
  private let path: String
  var reader: AudioReader

  /// Opens the audio file at `path`. `map` is the map of the same file, if already known; otherwise an MP3, Ogg, or
  /// FLAC file is first read in full.
  package init(path: String, map: SoundMap? = nil) throws(AudioIOError) {
    self.path = path
    reader = try AudioReader(path: path, limits: .none, map: map)
  }

  /// Decodes only the window's frames, and whatever the codec needs to get there. Blocks.
  package func slice(_ window: WaveformWindow) throws(AudioIOError) -> WaveformSlice {
    let range = window.frameRange
    var slice = SlicedSamples(window)
    if range.count >= Self.framesWorthTwoCores, reader.format.codec.isSlow {
      let middle = range.lowerBound + Int64(range.count / 2)
      let (path, map) = (path, reader.map)
      let rest = DecodedElsewhere { () throws(AudioIOError) in
        var reader = try AudioReader(path: path, limits: .none, map: map)
        var samples: [Int16] = []
        try reader.append(middle..<range.upperBound, to: &samples)
        return samples
      }
      try reader.append(range.lowerBound..<middle, to: &slice)
      let samples = try rest.samples()
      slice.append(samples.span)
    } else {
      try reader.append(range, to: &slice)
    }
    return slice.finish()
  }

  /// Returns a slice of any scale of a recording of which the file has only a part, beginning with frame `start`.
  func slice(_ window: WaveformWindow, ofFileFrom start: Int64) throws(AudioIOError) -> WaveformSlice {
    guard reader.format.channels == window.extent.channels else { throw .unsupportedMedia(found: nil) }
    return try WaveformSlice(window) { (frames) throws(AudioIOError) in
      var samples: [Int16] = []
      try reader.append(frames.lowerBound - start..<frames.upperBound - start, to: &samples)
      return samples
    }
  }

  /// The minimum for using two cores: before its start, a second reader decodes up to 12,000 frames of Ogg for nothing.
  private static let framesWorthTwoCores = 65_536
}

extension AudioReader {
  /// Decodes a range of frames.
  fileprivate mutating func append(_ range: Range<Int64>, to slice: inout SlicedSamples) throws(AudioIOError) {
    guard !range.isEmpty else { return }
    try seek(to: range.lowerBound)
    while position < range.upperBound {
      let got = readInt16(upTo: Int(range.upperBound - position)) { slice.append($0) }
      guard got > 0 else { throw .seekFailed(frame: position) }
    }
  }

  /// Decodes a range of frames.
  fileprivate mutating func append(_ range: Range<Int64>, to samples: inout [Int16]) throws(AudioIOError) {
    guard !range.isEmpty else { return }
    samples.reserveCapacity(samples.count + range.count * format.channels)
    if position != range.lowerBound { try seek(to: range.lowerBound) }
    while position < range.upperBound {
      let got = readInt16(upTo: Int(range.upperBound - position)) { span in
        unsafe span.withUnsafeBufferPointer { unsafe samples.append(contentsOf: $0) }
      }
      guard got > 0 else { throw .seekFailed(frame: position) }
    }
  }
}

/// Samples decoded on a thread of their own.
private final class DecodedElsewhere: Sendable {
  private let result = Mutex<Result<[Int16], AudioIOError>?>(nil)
  private let isDone = DispatchSemaphore(value: 0)

  init(_ decode: @escaping @Sendable () throws(AudioIOError) -> [Int16]) {
    let work = { @Sendable [self] in
      let decoded = Result { () throws(AudioIOError) in try decode() }
      result.withLock { $0 = decoded }
      isDone.signal()
    }
    if !Threads.shared.run(work) { work() }
  }

  /// Waits for the samples. Call it only once.
  func samples() throws(AudioIOError) -> [Int16] {
    isDone.wait()
    return try result.withLock { $0 }?.get() ?? []
  }
}
