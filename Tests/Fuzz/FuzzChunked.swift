// A chunked body, against a decoder that has it whole and is written from the grammar (RFC 9112 §7.1).

import Terms

private let extensionLimit = 16
private let trailerLimit = 48

private struct Outcome: Equatable {
  var content: [UInt8] = []
  /// Where the next request begins; nil if the body isn't complete.
  var next: Int?
  var error: RequestBodyError?
}

func fuzzChunked(_ input: [UInt8]) {
  let whole = decode([input])
  for split in input.splits { check(decode(split) == whole, "the content depends on how the bytes are split") }
  check(decode([input], scansContent: false) == whole, "the content depends on whether it is scanned")
  check(whole.content.count <= input.count, "there is more content than input")
  var reference = Reference(input)
  let expected = reference.decode()
  if let expected {
    check(whole.error == nil && whole.next == expected.next, "a valid body ends elsewhere, or not at all")
    check(whole.content == expected.content, "a valid body has other content")
  } else {
    check(whole.next == nil, "a body that is not valid, or not whole, is taken for one")
  }
}

private func decode(_ pieces: [[UInt8]], scansContent: Bool = true) -> Outcome {
  var limits = HTTPLimits()
  (limits.chunkExtensionBytes, limits.trailerBytes) = (extensionLimit, trailerLimit)
  var framing = BodyFraming(.chunked, limits: limits)
  var outcome = Outcome()
  var before = 0
  do throws(RequestBodyError) {
    for piece in pieces {
      var position = 0
      steps: while true {
        if !scansContent, framing.contentAhead > 0 {
          let range = position..<position + min(piece.count - position, Int(clamping: framing.contentAhead))
          outcome.content += piece[range]
          framing.take(content: range.count)
          position = range.upperBound
        }
        switch try framing.step(piece, from: position, to: piece.count) {
        case .content(let range):
          outcome.content += piece[range]
          position = range.upperBound
        case .needsInput: break steps
        case .complete(let next):
          outcome.next = before + next
          return outcome
        }
      }
      before += piece.count
    }
  } catch {
    // The amount received before a fault depends on the reads, and may not be used.
    (outcome.content, outcome.error) = ([], error)
  }
  return outcome
}

/// Reads everything at once, line by line.
private struct Reference {
  private var rest: ArraySlice<UInt8>

  init(_ input: [UInt8]) { rest = input[...] }

  mutating func decode() -> (content: [UInt8], next: Int)? {
    var content: [UInt8] = []
    while let line = takeLine(), let size = Self.size(line) {
      if size == 0 { return takeTrailers() ? (content, rest.startIndex) : nil }
      guard rest.count >= size else { return nil }
      content += rest.prefix(size)
      rest = rest.dropFirst(size)
      guard takeLine()?.isEmpty == true else { return nil }
    }
    return nil
  }

  /// Up to CRLF, which must be the first CR and the first LF.
  private mutating func takeLine() -> ArraySlice<UInt8>? {
    guard let end = rest.firstIndex(of: 0x0A), end > rest.startIndex, rest[end - 1] == 0x0D else { return nil }
    let line = rest[..<(end - 1)]
    rest = rest[(end + 1)...]
    return line.contains(0x0D) ? nil : line
  }

  private mutating func takeTrailers() -> Bool {
    var taken = 0
    while let line = takeLine() {
      taken += line.count + 2
      guard taken <= trailerLimit else { return false }
      if line.isEmpty { return true }
      guard let colon = line.firstIndex(of: 0x3A), colon > line.startIndex,
        line[..<colon].allSatisfy(ASCII.isTokenByte), line[colon...].allSatisfy(ASCII.isFieldValueByte)
      else { return false }
    }
    return false
  }

  private static func size(_ line: ArraySlice<UInt8>) -> Int? {
    let digits = line.prefix { Hexadecimal.value($0) != nil }
    guard (1...16).contains(digits.count), let size = Int(String(decoding: digits, as: UTF8.self), radix: 16),
      line.count - digits.count <= extensionLimit, isExtensions(line[digits.endIndex...])
    else { return nil }
    return size
  }

  private static func isExtensions(_ bytes: ArraySlice<UInt8>) -> Bool {
    var rest = bytes
    while !rest.isEmpty {
      rest = rest.drop(while: ASCII.isBlank)
      guard rest.first == 0x3B else { return false }
      rest = rest.dropFirst().drop(while: ASCII.isBlank)
      let name = rest.prefix(while: ASCII.isTokenByte)
      guard !name.isEmpty else { return false }
      rest = rest.dropFirst(name.count)
      let value = rest.drop(while: ASCII.isBlank)
      guard value.first == 0x3D else { continue }
      guard let end = endOfValue(value.dropFirst().drop(while: ASCII.isBlank)) else { return false }
      rest = rest[end...]
    }
    return true
  }

  private static func endOfValue(_ text: ArraySlice<UInt8>) -> Int? {
    guard text.first == 0x22 else {
      let token = text.prefix(while: ASCII.isTokenByte)
      return token.isEmpty ? nil : token.endIndex
    }
    var index = text.startIndex + 1
    while index < text.endIndex, text[index] != 0x22 {
      index += text[index] == 0x5C ? 2 : 1
    }
    guard index < text.endIndex else { return nil }
    return text[..<index].allSatisfy(ASCII.isFieldValueByte) ? index + 1 : nil
  }
}
