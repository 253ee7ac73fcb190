import AudioIO
import Glibc
import Waveform

/// The kinds of file a waveform is written to.
public enum WaveformFile: String, Sendable {
  case dat, json

  /// What the ending of a file's name asks for; nil where it says nothing known.
  public init?(path: String) {
    guard let ending = path.split(separator: ".").last else { return nil }
    self.init(rawValue: ending.lowercased())
  }
}

/// Writes one window of a finished pyramid to a file of its own.
public struct ExportWaveform: Sendable {
  /// The recording's sound file.
  public let source: String
  /// The recording's finished pyramid.
  public let pyramid: String
  /// The window to write.
  public let query: WaveformQuery

  /// `source` is read again where the scale is finer than the pyramid.
  public init(source: String, pyramid: String, query: WaveformQuery) {
    self.source = source
    self.pyramid = pyramid
    self.query = query
  }

  /// Throws `.waveform` where the query doesn't fit the recording; nothing is written then.
  public func write(_ kind: WaveformFile, to path: String) throws(ProcessingError) {
    let slice = try slice()
    switch kind {
    case .json: try writeFile(slice.strictJSON(), to: path)
    case .dat:
      // One channel is written as version 1, as the reference tool does.
      try writeFile(slice.dat(version: slice.lanes == 1 ? 1 : 2), to: path)
    }
  }

  private func slice() throws(ProcessingError) -> WaveformSlice {
    let file = try waveform { () throws(WaveformError) in try PyramidFile(path: pyramid) }
    let window = try waveform { () throws(WaveformError) in
      try WaveformWindow(query, of: WaveformExtent(finished: file))
    }
    guard window.needsSamples else { return try waveform { () throws(WaveformError) in try file.slice(window) } }
    return try audio { () throws(AudioIOError) in try SampleWindow(path: source).slice(window) }
  }

  private func writeFile(_ bytes: [UInt8], to path: String) throws(ProcessingError) {
    let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw .system(operation: "open", path: path, errno: errno) }
    defer { close(descriptor) }
    var rest = bytes[...]
    while !rest.isEmpty {
      let written = unsafe rest.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if written < 0 && errno == EINTR { continue }
      guard written > 0 else { throw .system(operation: "write", path: path, errno: errno) }
      rest = rest.dropFirst(written)
    }
    guard fsync(descriptor) == 0 else { throw .system(operation: "fsync", path: path, errno: errno) }
  }
}

/// Slices finer than a pyramid's finest level, from the samples themselves.
public struct SampleWindow: Sendable {
  /// The recording's sound file.
  public let path: String

  /// Slices of the recording whose sound file is at `path`.
  public init(path: String) { self.path = path }

  /// Decodes the window's frames and no others, but for what the codec needs to get there. Blocks.
  public func slice(_ window: WaveformWindow) throws(AudioIOError) -> WaveformSlice {
    let range = window.frameRange
    var reader = try AudioReader(path: path)
    var samples: [Int16] = []
    if !range.isEmpty {
      samples.reserveCapacity(range.count * reader.format.channels)
      try reader.seek(to: range.lowerBound)
      while reader.position < range.upperBound {
        let wanted = Int(range.upperBound - reader.position)
        let got = reader.readInt16(upTo: wanted) { span in
          for index in span.indices { samples.append(span[index]) }
        }
        guard got > 0 else { throw .seekFailed(frame: reader.position) }
      }
    }
    return WaveformSlice(window, samples: samples.span)
  }
}
