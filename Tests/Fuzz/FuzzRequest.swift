// A connection's bytes: heads and bodies in a row, up to a refusal.

/// Small enough for an input to reach each of them.
private var limits: HTTPLimits {
  var limits = HTTPLimits()
  (limits.requestLineBytes, limits.headBytes, limits.fieldCount) = (96, 256, 8)
  (limits.chunkExtensionBytes, limits.trailerBytes) = (16, 48)
  return limits
}

func fuzzRequest(_ input: [UInt8]) {
  let whole = WireReader([input], limits: limits)
  for split in input.splits {
    let reader = WireReader(split, limits: limits)
    check(reader.requests == whole.requests, "the requests depend on how the bytes are split")
    check(reader.refusal == whole.refusal, "the refusal depends on how the bytes are split")
    check(reader.isIncomplete == whole.isIncomplete, "the end depends on how the bytes are split")
  }
  let isSane = whole.refusedIdentifier?.utf8.allSatisfy { (0x21...0x7E).contains($0) }
  check(isSane != false, "a refusal would repeat an id that is not sane")
  check(whole.requests.reduce(0) { $0 + $1.body.utf8.count / 3 } <= input.count, "there is more content than input")
  for head in whole.heads { checkHead(head) }
}

/// An accepted request is within the limits, and means the same when it's written and parsed again.
private func checkHead(_ head: RequestHead) {
  check(head.fields.count <= limits.fieldCount + 1, "there are too many fields")
  check(head.fields.lines.count <= 2 * limits.headBytes, "the section is too long")
  check(head.version == .http10 || head.fields.values(of: "Host").count == 1, "there is no one Host")
  let again = WireReader([write(head)])
  check(again.heads.count == 1 && again.refusal == nil, "an accepted head is refused when it is written again")
  let copy = again.heads[0]
  check(copy.method == head.method && copy.version == head.version, "the method or the version changes")
  check(copy.target.segments == head.target.segments && copy.target.query == head.target.query, "the target changes")
  check(Array(copy.fields.lines) == head.fields.lines, "the fields change")
  check(copy.body == head.body && copy.isPersistent == head.isPersistent, "the framing changes")
}

/// In origin form, without a body but with its framing, and so with as many body bytes as needed.
private func write(_ head: RequestHead) -> [UInt8] {
  let target = head.target.path == "*" ? "*" : head.target.path + query(head.target.query)
  var bytes = Array("\(head.method.rawValue) \(target) HTTP/1.\(head.version == .http10 ? 0 : 1)\r\n".utf8)
  bytes += head.fields.lines + Array("\r\n".utf8)
  switch head.body {
  case .none: break
  case .chunked: bytes += Array("0\r\n\r\n".utf8)
  case .length(let length): if length < 1 << 16 { bytes += [UInt8](repeating: 0, count: Int(length)) }
  }
  return bytes
}

private func query(_ items: [QueryItem]) -> String {
  if items.isEmpty { return "" }
  return "?" + items.map { escaped($0.name) + "=" + escaped($0.value) }.joined(separator: "&")
}

func escaped(_ text: String) -> String {
  var out: [UInt8] = []
  for byte in text.utf8 {
    if ASCII.isLetterOrDigit(byte) {
      out.append(byte)
    } else {
      let digits = Array("0123456789ABCDEF".utf8)
      out += [ASCII.percent, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    }
  }
  return String(decoding: out, as: UTF8.self)
}
