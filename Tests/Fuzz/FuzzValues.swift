// One text, parsed as everything that a field or a request line may contain.

import Glibc

func fuzzValues(_ input: [UInt8]) {
  checkHost(input)
  checkTarget(input)
  guard input.allSatisfy(ASCII.isFieldValueByte), let text = String(validating: input, as: UTF8.self) else { return }
  for length in [0, 1, 10, Int64.max] { checkRange(text, length) }
  checkParameters(text)
  checkDate(text)
  checkConditions(text)
}

/// A text accepted as an IPv6 address is one for the system too.
private func checkHost(_ input: [UInt8]) {
  guard !input.contains(0) else { return }
  var address = in6_addr()
  let isAddress = unsafe inet_pton(AF_INET6, input.map { CChar(bitPattern: $0) } + [0], &address) == 1
  check(IPv6Address.isValid(input[...]) == isAddress, "the system reads the IPv6 address otherwise")
  let bracketed = Array("[".utf8) + input + Array("]".utf8)
  check(RequestHead.isHost(bracketed[...]) == isAddress, "a host in brackets is not an address, or the reverse")
}

private func checkTarget(_ input: [UInt8]) {
  guard let target = try? RequestTarget(parsing: input[...], method: .options) else { return }
  if target.path == "*" { return check(input == [0x2A], "an asterisk came of something else") }
  let path = "/" + target.segments.map(escaped).joined(separator: "/")
  let query = target.query.map { escaped($0.name) + "=" + escaped($0.value) }.joined(separator: "&")
  let written = Array((path + "?" + query).utf8)
  guard let again = try? RequestTarget(parsing: written[...], method: .get) else {
    return check(false, "an accepted target is refused when it is written again")
  }
  check(again.segments == target.segments && again.query == target.query, "the target changes")
}

/// Ranges are inside the content, disjoint but in any order, and mean the same when they're written again.
private func checkRange(_ text: String, _ length: Int64) {
  guard case .ranges(let ranges) = ByteRangeRequest(text, length: length) else { return }
  check((1...8).contains(ranges.count), "there are no ranges, or too many")
  check(ranges.allSatisfy { !$0.isEmpty && $0.lowerBound >= 0 && $0.upperBound <= length }, "a range lies outside")
  for (index, range) in ranges.enumerated() {
    check(!ranges[..<index].contains { $0.overlaps(range) }, "ranges overlap")
  }
  let written = "bytes=" + ranges.map { "\($0.lowerBound)-\($0.upperBound - 1)" }.joined(separator: ",")
  check(ByteRangeRequest(written, length: length) == .ranges(ranges), "the ranges change")
}

private func checkParameters(_ text: String) {
  guard let value = ParameterizedValue(text) else { return }
  var written = value.value
  for parameter in value.parameters {
    // Compared by bytes, because a quote followed by a combining character is a different Character.
    var quoted: [UInt8] = []
    for byte in parameter.value.utf8 {
      if byte == ASCII.quote || byte == ASCII.backslash { quoted.append(ASCII.backslash) }
      quoted.append(byte)
    }
    written += ";\(parameter.name)=\"\(String(decoding: quoted, as: UTF8.self))\""
  }
  check(ParameterizedValue(written) == value, "the parameters change")
  check(
    value.filename?.utf8.contains { $0 == ASCII.slash || $0 == ASCII.backslash } != true, "a file name has a folder")
}

private func checkDate(_ text: String) {
  guard let date = HTTPDate(text) else { return }
  check(HTTPDate(date.text) == date, "the date changes")
}

private func checkConditions(_ text: String) {
  for name in ["If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range"] {
    guard let request = try? HTTPRequest(method: .get, target: "/", fields: [name: text]) else { continue }
    let judgement = Precondition(request, etag: "\"v1\"", lastModified: HTTPDate(seconds: 784_111_777))
    check(judgement != .failed || name == "If-Match" || name == "If-Unmodified-Since", "\(name) fails a GET")
    check(judgement != .notModified || name == "If-None-Match" || name == "If-Modified-Since", "\(name) gives 304")
    if name == "If-None-Match", judgement == .notModified {
      // The other two are tags of the same content, compressed.
      check(
        ["\"v1\"", "\"v1-gzip\"", "\"v1-zstd\"", "*"].contains(where: text.contains), "a tag matches that is not there")
    }
  }
}
