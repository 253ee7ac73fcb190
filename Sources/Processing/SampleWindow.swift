import AudioIO
import Dispatch
import Synchronization
import Waveform

/// Slices finer than a pyramid's finest level, from the samples themselves. Safe to share between threads.
package final class SampleWindow: Sendable {
  /// The recording's sound file.
  package let path: String
  /// Where the file's sound map is kept; nil: nowhere.
  package let mapPath: String?
  /// Where in the file the sound is, once that was looked for: in a long MP3 it takes longer than the slice.
  private let map = Mutex<SoundMap?>(nil)

  /// Slices of the recording whose sound file is at `path`. Nothing is read before the first of them, which takes up
  /// the map at `mapPath`, or leaves one there.
  package init(path: String, mapPath: String? = nil) {
    self.path = path
    self.mapPath = mapPath
  }

  /// A recording of the service's, whose map is beside its sound file.
  package convenience init(recordingAt path: String) {
    self.init(path: path, mapPath: Self.mapPath(of: path))
  }

  /// Where the service keeps the map of the sound file at `path`: in the recording's folder, with which it goes.
  package static func mapPath(of path: String) -> String { path + ".map" }

  /// Decodes the window's frames and no others, but for what the codec needs to get there. Blocks.
  ///
  /// The first slice of an MP3 or Ogg file without a map reads all of it, at the speed of the disk.
  package func slice(_ window: WaveformWindow) throws(AudioIOError) -> WaveformSlice {
    let range = window.frameRange
    var reader = try AudioReader(path: path, limits: .none, map: soundMap())
    var samples: [Int16] = []
    if range.count >= Self.framesWorthTwoCores, reader.format.codec.isSlow {
      let middle = range.lowerBound + Int64(range.count / 2)
      let (path, map) = (path, reader.map)
      let rest = DecodedElsewhere { () throws(AudioIOError) in
        var reader = try AudioReader(path: path, limits: .none, map: map)
        var samples: [Int16] = []
        try reader.append(middle..<range.upperBound, to: &samples)
        return samples
      }
      try reader.append(range.lowerBound..<middle, to: &samples)
      samples += try rest.samples()
    } else {
      try reader.append(range, to: &samples)
    }
    return WaveformSlice(window, samples: samples.span)
  }

  /// A second reader decodes up to 12,000 frames of Ogg in vain on its way to where it begins.
  private static let framesWorthTwoCores = 65_536

  private func soundMap() throws(AudioIOError) -> SoundMap {
    if let known = map.withLock({ $0 }) { return known }
    let found = try foundMap()
    map.withLock { $0 = found }
    return found
  }

  private func foundMap() throws(AudioIOError) -> SoundMap {
    if let mapPath, let kept = try SoundMap(path: path, keptAt: mapPath) { return kept }
    let found = try SoundMap(path: path)
    // Where it can't be kept, or the recording's folder is gone meanwhile, the next start looks again.
    if let mapPath, found.isWorthKeeping { try? found.keep(at: mapPath) }
    return found
  }
}

extension AudioReader {
  /// Decodes a range of frames.
  fileprivate mutating func append(_ range: Range<Int64>, to samples: inout [Int16]) throws(AudioIOError) {
    guard !range.isEmpty else { return }
    samples.reserveCapacity(samples.count + range.count * format.channels)
    try seek(to: range.lowerBound)
    while position < range.upperBound {
      let got = readInt16(upTo: Int(range.upperBound - position)) { span in
        for index in span.indices { samples.append(span[index]) }
      }
      guard got > 0 else { throw .seekFailed(frame: position) }
    }
  }
}

/// Samples that are decoded on a thread of their own, from now on.
private final class DecodedElsewhere: Sendable {
  private let result = Mutex<Result<[Int16], AudioIOError>?>(nil)
  private let isDone = DispatchSemaphore(value: 0)

  init(_ decode: @escaping @Sendable () throws(AudioIOError) -> [Int16]) {
    // A serial queue has a thread at once, however many others wait.
    DispatchQueue(label: "slice").async { [self] in
      let decoded = Result { () throws(AudioIOError) in try decode() }
      result.withLock { $0 = decoded }
      isDone.signal()
    }
  }

  /// Waits for them; to be called once.
  func samples() throws(AudioIOError) -> [Int16] {
    isDone.wait()
    return try result.withLock { $0 }?.get() ?? []
  }
}
