import AudioIO
import Glibc
import Terms
import Waveform
import Workers

/// The file formats of a waveform.
package enum WaveformFile: String, Sendable {
  case dat, json, png, svg

  /// Whether it's a picture.
  package var isPicture: Bool { self == .png || self == .svg }

  /// Creates a value from a file name's extension; nil if it's not a known one.
  package init?(path: String) {
    guard let ending = path.split(separator: ".").last else { return nil }
    self.init(rawValue: ending.lowercased())
  }
}

/// A recording's audio file and its finished pyramid.
package struct AnalyzedRecording: Sendable {
  /// The recording's audio file, read again if the scale is finer than the pyramid.
  package let source: String
  /// The recording's finished pyramid.
  package let pyramid: String

  /// Creates a value from these two files.
  package init(source: String, pyramid: String) {
    self.source = source
    self.pyramid = pyramid
  }

  /// Memory for the pyramid's pages that suffices for a document or picture, which is made in one pass.
  private static let cacheBytes = 1 << 18
  /// How many pixels of a picture are made at a time. In a long recording, each pixel reads whole pages for a few of
  /// their points.
  private static let picturePixels = 64

  func open() throws(ProcessingError) -> PyramidFile {
    try waveform { () throws(WaveformError) in try PyramidFile(path: pyramid, cacheBytes: Self.cacheBytes) }
  }

  func slice(_ window: WaveformWindow, of file: PyramidFile) throws(ProcessingError) -> WaveformSlice {
    guard window.needsSamples else {
      return try WaveformSlice(window, inPartsOf: Self.picturePixels) { (part) throws(ProcessingError) in
        try waveform { () throws(WaveformError) in try file.slice(part) }
      }
    }
    return try audio { () throws(AudioIOError) in try SampleWindow(path: source).slice(window) }
  }
}

/// Writes one window of a finished pyramid to a file.
package struct ExportWaveform: Sendable {
  /// The recording to show.
  package let recording: AnalyzedRecording
  /// The window to write.
  package let query: WaveformQuery
  /// The style of pictures.
  package let style: PictureStyle
  /// The recording drawn over the first one, in pictures.
  package let overlay: AnalyzedRecording?

  /// Creates a task for a window of a recording. `source` is its audio file, read again if the scale is finer than the
  /// pyramid.
  package init(
    source: String, pyramid: String, query: WaveformQuery, style: PictureStyle = PictureStyle(),
    overlay: AnalyzedRecording? = nil
  ) {
    recording = AnalyzedRecording(source: source, pyramid: pyramid)
    self.query = query
    self.style = style
    self.overlay = overlay
  }

  /// Throws `.waveform` without writing anything if the query doesn't fit the recording. Memory use is constant.
  package func write(_ kind: WaveformFile, to path: String) throws(ProcessingError) {
    switch kind {
    case .json: try writeDocument(path) { _ in .strictJSON }
    // One channel is written as version 1, like the reference tool does.
    case .dat: try writeDocument(path) { .dat(version: $0.lanes == 1 ? 1 : 2) }
    case .png, .svg:
      let picture = try picture(kind)
      try Self.writeFile(path) { (write) throws(ProcessingError) in try write(picture) }
    }
  }

  /// Numbers per piece of a document.
  private static let pieceNumbers = 1 << 14

  private func writeDocument(_ path: String, _ form: (WaveformWindow) -> WaveformForm) throws(ProcessingError) {
    let file = try recording.open()
    let window = try waveform { () throws(WaveformError) in
      try WaveformWindow(query, of: WaveformExtent(finished: file))
    }
    let sound = try audio { () throws(AudioIOError) in
      try window.needsSamples ? SampleWindow(path: recording.source) : nil
    }
    func slice(_ part: WaveformWindow) throws(ProcessingError) -> WaveformSlice {
      if part.needsSamples, let sound { return try audio { () throws(AudioIOError) in try sound.slice(part) } }
      return try waveform { () throws(WaveformError) in try file.slice(part) }
    }
    var pieces = WaveformDocument(window, as: form(window)).pieces(ofNumbers: Self.pieceNumbers)
    try Self.writeFile(path) { (write) throws(ProcessingError) in
      while let piece = try pieces.next({ (part) throws(ProcessingError) in try slice(part) }) { try write(piece) }
    }
  }

  private func picture(_ kind: WaveformFile) throws(ProcessingError) -> [UInt8] {
    let file = try recording.open()
    let overlayFile = try overlay.map { (overlay) throws(ProcessingError) in try overlay.open() }
    let picture = try waveform { () throws(WaveformError) in
      try WaveformPicture(
        query, style: style, of: WaveformExtent(finished: file), overlay: overlayFile.map(WaveformExtent.init))
    }
    let slice = try recording.slice(picture.window, of: file)
    var over: WaveformSlice?
    if let overlay, let overlayFile, let window = picture.overlayWindow {
      over = try overlay.slice(window, of: overlayFile)
    }
    guard kind == .png else { return picture.svg(slice, overlay: over) }
    return try waveform { () throws(WaveformError) in try picture.png(slice, overlay: over) }
  }

  /// Creates a file, calls `body` with a function that appends to it, and makes it durable.
  static func writeFile(
    _ path: String, _ body: (([UInt8]) throws(ProcessingError) -> Void) throws(ProcessingError) -> Void
  ) throws(ProcessingError) {
    let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw .system(operation: "open", path: path, errno: errno) }
    defer { close(descriptor) }
    try body { (bytes) throws(ProcessingError) in
      if let number = writeAll(bytes, to: descriptor) { throw .system(operation: "write", path: path, errno: number) }
    }
    guard fsync(descriptor) == 0 else { throw .system(operation: "fsync", path: path, errno: errno) }
  }
}
