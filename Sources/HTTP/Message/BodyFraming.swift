// Where a body ends (RFC 9112 §6, §7.1):
//
//   Content-Length   exactly that many bytes
//   chunked          *( size [ext] CRLF data CRLF )  1*"0" [ext] CRLF  *( trailer CRLF )  CRLF
//   size             1 to 16 hexadecimal digits;  ext of at most 256 bytes, see ChunkExtension
//
// Lines must end in exactly CRLF. A size is only counted down; nothing is ever allocated from it.

import Terms

/// How the length of a request's body is given.
enum BodyLength: Sendable, Equatable {
  case none
  case length(Int64)
  case chunked
}

/// Finds the content in the bytes after a head, which may arrive in pieces of any size.
struct BodyFraming {
  /// What comes next in the input.
  enum Step: Equatable {
    /// These bytes of the input are content; continue at the range's end.
    case content(Range<Int>)
    /// All input has been consumed.
    case needsInput
    /// The body is complete; bytes from `next` on belong to the next request.
    case complete(next: Int)
  }

  private enum Part {
    case content(Int64)
    case chunkSize(digits: Int, value: Int64)
    case chunkExtension(ChunkExtension)
    case chunkSizeLineFeed
    case chunkData(Int64)
    case chunkDataReturn
    case chunkDataLineFeed
    case trailerLine
    case complete
  }

  private var part: Part
  private var chunkSize: Int64 = 0
  private var extensionBytes = 0
  private var trailer: [UInt8] = []
  private var trailerBytes = 0
  private let limits: HTTPLimits

  init(_ length: BodyLength, limits: HTTPLimits) {
    self.limits = limits
    part =
      switch length {
      case .none: .complete
      case .length(let length): length == 0 ? .complete : .content(length)
      case .chunked: .chunkSize(digits: 0, value: 0)
      }
  }

  /// Whether the end of the body was reached.
  var isComplete: Bool {
    if case .complete = part { return true }
    return false
  }

  /// Number of bytes still to come, or nil for a chunked body.
  var remaining: Int64? {
    switch part {
    case .content(let count): count
    case .complete: 0
    default: nil
    }
  }

  /// Number of bytes that come next and are certainly content: the rest of a body of known length, or of a chunk.
  var contentAhead: Int64 {
    switch part {
    case .content(let count), .chunkData(let count): count
    default: 0
    }
  }

  /// Counts content that was received without a scan; at most `contentAhead` bytes.
  mutating func take(content count: Int) {
    precondition(0...contentAhead ~= Int64(count), "bytes that may not be content have to be scanned")
    let rest = contentAhead - Int64(count)
    switch part {
    case .content: part = rest == 0 ? .complete : .content(rest)
    case .chunkData: part = rest == 0 ? .chunkDataReturn : .chunkData(rest)
    default: break
    }
  }

  /// Scans `input[start..<end]` up to and including the next stretch of content.
  mutating func step(_ input: [UInt8], from start: Int, to end: Int) throws(RequestBodyError) -> Step {
    var position = start
    while position < end {
      switch part {
      case .content, .chunkData:
        let taken = Int(min(contentAhead, Int64(end - position)))
        take(content: taken)
        return .content(position..<position + taken)
      case .complete:
        return .complete(next: position)
      default:
        try take(input[position])
        position += 1
      }
    }
    return isComplete ? .complete(next: position) : .needsInput
  }

  /// Returns the error in the chunks that arrived together with the head, if any. A request known to be malformed is
  /// rejected before routing: a handler that doesn't read the body would answer it with something milder.
  func fault(in input: [UInt8], from start: Int) -> RequestBodyError? {
    guard case .chunkSize = part else { return nil }
    var ahead = self
    var position = start
    do throws(RequestBodyError) {
      while case .content(let range) = try ahead.step(input, from: position, to: input.count) {
        position = range.upperBound
      }
      return nil
    } catch {
      return error
    }
  }

  /// Handles one byte between stretches of content.
  private mutating func take(_ byte: UInt8) throws(RequestBodyError) {
    switch part {
    case .chunkSize(let digits, let value): try takeSizeByte(byte, digits, value)
    case .chunkExtension(let chunkExtension): try takeExtensionByte(byte, chunkExtension)
    case .chunkSizeLineFeed:
      guard byte == ASCII.lineFeed else { throw .malformed(.chunkSize) }
      part = chunkSize == 0 ? .trailerLine : .chunkData(chunkSize)
    case .chunkDataReturn:
      guard byte == ASCII.carriageReturn else { throw .malformed(.chunkEnd) }
      part = .chunkDataLineFeed
    case .chunkDataLineFeed:
      guard byte == ASCII.lineFeed else { throw .malformed(.chunkEnd) }
      part = .chunkSize(digits: 0, value: 0)
    case .trailerLine: try takeTrailerByte(byte)
    case .content, .chunkData, .complete: break
    }
  }

  private mutating func takeSizeByte(_ byte: UInt8, _ digits: Int, _ value: Int64) throws(RequestBodyError) {
    if let digit = Hexadecimal.value(byte) {
      guard digits < 16, value <= Int64.max >> 4 else { throw .malformed(.chunkSize) }
      part = .chunkSize(digits: digits + 1, value: value << 4 | Int64(digit))
      return
    }
    guard digits > 0 else { throw .malformed(.chunkSize) }
    chunkSize = value
    if byte == ASCII.carriageReturn {
      part = .chunkSizeLineFeed
    } else if let chunkExtension = ChunkExtension(byte) {
      extensionBytes = 1
      part = .chunkExtension(chunkExtension)
    } else {
      throw .malformed(.chunkSize)
    }
  }

  private mutating func takeExtensionByte(
    _ byte: UInt8, _ sofar: ChunkExtension
  ) throws(RequestBodyError) {
    var chunkExtension = sofar
    if byte == ASCII.carriageReturn, chunkExtension.mayEnd {
      part = .chunkSizeLineFeed
      return
    }
    extensionBytes += 1
    guard extensionBytes <= limits.chunkExtensionBytes, chunkExtension.take(byte) else {
      throw .malformed(.chunkExtension)
    }
    part = .chunkExtension(chunkExtension)
  }

  /// Trailers are validated like fields and discarded. Nothing here uses them, and a trailer that became a header would
  /// bypass every check on headers (RFC 9110 §6.5.1).
  private mutating func takeTrailerByte(_ byte: UInt8) throws(RequestBodyError) {
    trailerBytes += 1
    guard trailerBytes <= limits.trailerBytes else { throw .malformed(.trailer) }
    trailer.append(byte)
    guard byte == ASCII.lineFeed else { return }
    guard trailer.count >= 2, trailer[trailer.count - 2] == ASCII.carriageReturn else { throw .malformed(.trailer) }
    let line = trailer
    trailer = []
    guard line.count > 2 else {
      part = .complete
      return
    }
    var dropped = FieldSection()
    do { try FieldLine.parse(line.dropLast(2), into: &dropped) } catch { throw .malformed(.trailer) }
  }
}
