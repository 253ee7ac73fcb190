import AudioIO
import Dispatch
import Glibc
import Synchronization
import Waveform

/// Slices finer than a pyramid's finest level, computed from the samples. Safe to share between threads.
package final class SampleWindow: Sendable {
  /// The recording's audio file.
  package let path: String
  /// Where the file's sound map is stored; nil if it isn't.
  package let mapPath: String?
  /// The map of the audio in the file, once built: for a long MP3, building it takes longer than the slice.
  private let map = Mutex<SoundMap?>(nil)

  /// Creates slices of the audio file at `path`. Nothing is read before the first slice, which loads the map at
  /// `mapPath` or stores one there.
  package init(path: String, mapPath: String? = nil) {
    self.path = path
    self.mapPath = mapPath
  }

  /// Creates slices of one of the service's recordings, whose map is next to its audio file.
  package convenience init(recordingAt path: String) {
    self.init(path: path, mapPath: Self.mapPath(of: path))
  }

  /// Returns where the service stores the map of the audio file at `path`: in the recording's folder, so that it's
  /// deleted with it.
  package static func mapPath(of path: String) -> String { path + ".map" }

  deinit { IdleReaders.shared.close(of: ObjectIdentifier(self)) }

  /// Decodes only the window's frames, and whatever the codec needs to get there. Blocks.
  ///
  /// The first slice of an MP3 or Ogg file without a map reads the whole file, at the speed of the disk. The file may
  /// stay open for the next slice.
  package func slice(_ window: WaveformWindow) throws(AudioIOError) -> WaveformSlice {
    let (owner, now) = (ObjectIdentifier(self), FileState(path: path))
    let open =
      if let idle = IdleReaders.shared.take(of: owner), idle.file == now { idle } else {
        OpenReader(try AudioReader(path: path, limits: .none, map: soundMap()), of: now)
      }
    let slice = try slice(window, from: &open.reader)
    IdleReaders.shared.keep(open, of: owner)
    return slice
  }

  private func slice(
    _ window: WaveformWindow, from reader: inout AudioReader
  ) throws(AudioIOError) -> WaveformSlice {
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

  /// The minimum for using two cores: before its start, a second reader decodes up to 12,000 frames of Ogg for nothing.
  private static let framesWorthTwoCores = 65_536

  /// Returns the map of the file, loaded or built at the first call. Blocks.
  package func soundMap() throws(AudioIOError) -> SoundMap {
    if let known = map.withLock({ $0 }) { return known }
    let found = try foundMap()
    map.withLock { $0 = found }
    return found
  }

  private func foundMap() throws(AudioIOError) -> SoundMap {
    if let mapPath, let kept = try SoundMap(path: path, keptAt: mapPath) { return kept }
    let found = try SoundMap(path: path)
    // If it can't be stored, or the recording's folder has been removed, the next start builds it again.
    if let mapPath, found.isWorthKeeping { try? found.keep(at: mapPath) }
    return found
  }
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
    try seek(to: range.lowerBound)
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
    // A serial queue gets a thread at once, no matter how many other queues wait.
    DispatchQueue(label: "slice").async { [self] in
      let decoded = Result { () throws(AudioIOError) in try decode() }
      result.withLock { $0 = decoded }
      isDone.signal()
    }
  }

  /// Waits for the samples. Call it only once.
  func samples() throws(AudioIOError) -> [Int16] {
    isDone.wait()
    return try result.withLock { $0 }?.get() ?? []
  }
}

/// An open file. Used by one slice at a time.
private final class OpenReader: @unchecked Sendable {
  // Only the slice that took it from `IdleReaders` uses it.
  var reader: AudioReader
  /// The file when it was opened.
  let file: FileState?

  init(_ reader: consuming AudioReader, of file: FileState?) {
    self.reader = reader
    self.file = file
  }
}

/// What tells whether a path still leads to the same file, unchanged.
private struct FileState: Equatable {
  private let device: UInt
  private let number: UInt
  private let size: Int
  private let changed: [Int]

  /// nil if there is no file.
  init?(path: String) {
    var status = stat()
    guard unsafe stat(path, &status) == 0 else { return nil }
    (device, number, size) = (UInt(status.st_dev), UInt(status.st_ino), Int(status.st_size))
    changed = [status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec, status.st_ctim.tv_nsec]
  }
}

/// The files that were read last, of all recordings, because opening one takes longer than reading a short window. An
/// open file keeps half a megabyte of buffers, so there are few.
private final class IdleReaders: Sendable {
  static let shared = IdleReaders()

  private struct Entry {
    let owner: ObjectIdentifier
    let reader: OpenReader
  }

  private let entries = Mutex<[Entry]>([])
  private static let limit = 8

  /// Removes a reader of this `SampleWindow` and returns it, if there is one.
  func take(of owner: ObjectIdentifier) -> OpenReader? {
    entries.withLock { entries in
      entries.lastIndex { $0.owner == owner }.map { entries.remove(at: $0).reader }
    }
  }

  /// Adds a reader; closes the one that has been here longest if there are too many.
  func keep(_ reader: OpenReader, of owner: ObjectIdentifier) {
    let closed = entries.withLock { entries in
      entries.append(Entry(owner: owner, reader: reader))
      return entries.count > Self.limit ? entries.removeFirst() : nil
    }
    withExtendedLifetime(closed) {}
  }

  /// Closes the files of a `SampleWindow`.
  func close(of owner: ObjectIdentifier) {
    let closed = entries.withLock { entries in
      let closed = entries.filter { $0.owner == owner }
      entries.removeAll { $0.owner == owner }
      return closed
    }
    withExtendedLifetime(closed) {}
  }
}
