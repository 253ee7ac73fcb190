import Denoise
import Waveform

// What the service and a reader send each other over a pair of sockets. A reader is a child that has one recording
// open (see `SampleReader`). The numbers are little-endian.
//
// The service first sends a message with two descriptors, those of the recording's file and of its sound map; its text
// is a `WorkerFence`, a space, and 1 if there is a map; else 0, and the second descriptor is another one of the file;
// a space, the path of the weights of `voice`, and a newline. Then it sends requests, one at a time:
//
//   0  number of bytes that follow, 32 bits
//   4  kind, one byte:
//      1  pixels of a window         its words (see WaveformWindow)
//      2  length of a part as WAV    first frame, end: 64 bits each
//      3  bytes of a part as WAV     first frame, end, first byte, maximum number of bytes: 64 bits each
//      4  a tile of a spectrogram    its words (see SpectrogramTile)
//      5  pixels of a part           the window's words, and the frame of the recording that the file begins with
//      6  the place of plain samples none
//
// The reader answers each with
//
//   0  1, one byte
//   1  number of bytes that follow, 32 bits
//   5  the pixels, the length as 64 bits, the bytes (as many as are decoded at once, none at the end), the values, or
//      the place in the file as 64 bits, −1 for none
//
// or with the line of a `WorkerReport` that says why it failed. That is also what a reader without memory writes before
// it crashes. It ends when the service closes the pair.
//
// A request may also be the line of a `WorkerRequest`, whose first byte, {, no number above begins with: for a preview,
// a spectrum or a noise profile of the recording. If the work writes a file, two descriptors come with it, of that file
// and of the file of the noise profile, or of the first one again. The answer is the line of the `WorkerReport`.

/// What a reader is asked for.
package enum ReaderRequest: Equatable {
  /// The pixels of a window that needs samples.
  case pixels(WaveformWindow)
  /// The length in bytes of the WAV file with these frames.
  case partLength(Range<Int64>)
  /// Bytes of that file from `place` on, at most `limit`.
  case part(Range<Int64>, from: Int64, limit: Int64)
  /// The values of a tile.
  case tile(SpectrogramTile)
  /// The pixels of a window of a recording of which the file has only a part, beginning with frame `from`.
  case partPixels(WaveformWindow, from: Int64)
  /// Where the file's frames begin, if they are stored as plain numbers, in eight bytes; then how many bytes a sample
  /// has, and 1 for big-endian ones (see `AudioReader.plainLayout`). Nothing for any other file.
  case plainLayout

  /// Returns the name under which the service stores the map of the audio file with this name: in the recording's
  /// folder, so that it's deleted with it.
  package static func mapPath(of path: String) -> String { path + ".map" }

  /// Maximum number of bytes of a request, without the first number.
  package static let byteLimit = 256
  /// Maximum number of bytes of an answer, without its head.
  package static let answerLimit = 1 << 26
  /// The first byte of an answer that isn't a failure.
  package static let isAnswer: UInt8 = 1
  /// The number of bytes before those of an answer.
  package static let answerHeadBytes = 5

  /// The request as it is sent, with the number of its bytes.
  package var bytes: [UInt8] {
    let (kind, words): (UInt8, [Int64]) =
      switch self {
      case .pixels(let window): (1, window.words)
      case .partLength(let frames): (2, [frames.lowerBound, frames.upperBound])
      case .part(let frames, let place, let limit): (3, [frames.lowerBound, frames.upperBound, place, limit])
      case .tile(let tile): (4, tile.words)
      case .partPixels(let window, let start): (5, window.words + [start])
      case .plainLayout: (6, [])
      }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(5 + 8 * words.count)
    bytes.append(little: UInt32(1 + 8 * words.count))
    bytes.append(kind)
    for word in words { bytes.append(little: word) }
    return bytes
  }

  /// Parses a request without the number of its bytes; nil if it's invalid.
  package init?(_ bytes: ArraySlice<UInt8>) {
    guard let kind = bytes.first, bytes.count % 8 == 1 else { return nil }
    let words = stride(from: bytes.startIndex + 1, to: bytes.endIndex, by: 8).map { place in
      Int64(little: bytes[place..<place + 8])
    }
    func frames() -> Range<Int64>? {
      words.count >= 2 && words[0] >= 0 && words[0] < words[1] ? words[0]..<words[1] : nil
    }
    switch (kind, words.count) {
    case (1, _):
      guard let window = WaveformWindow(words: words) else { return nil }
      self = .pixels(window)
    case (2, 2):
      guard let frames = frames() else { return nil }
      self = .partLength(frames)
    case (3, 4):
      guard let frames = frames(), words[2] >= 0, words[3] > 0 else { return nil }
      self = .part(frames, from: words[2], limit: words[3])
    case (4, _):
      guard let tile = SpectrogramTile(words: words) else { return nil }
      self = .tile(tile)
    case (5, WaveformWindow.wordCount + 1):
      guard let window = WaveformWindow(words: words.dropLast(), ofAnyScale: true), let start = words.last, start >= 0,
        start <= window.startFrame
      else { return nil }
      self = .partPixels(window, from: start)
    case (6, 0): self = .plainLayout
    default: return nil
    }
  }
}

extension [UInt8] {
  /// Creates the bytes of a number, the lowest first.
  package init(little number: some FixedWidthInteger) {
    self = []
    append(little: number)
  }

  /// Appends the bytes of a number, the lowest first.
  package mutating func append(little number: some FixedWidthInteger) {
    unsafe Swift.withUnsafeBytes(of: number.littleEndian) { unsafe append(contentsOf: $0) }
  }
}

extension FixedWidthInteger {
  /// Creates a number from all of its bytes, the lowest first.
  package init(little bytes: ArraySlice<UInt8>) { self = bytes.reversed().reduce(Self(0)) { $0 << 8 | Self($1) } }
}
