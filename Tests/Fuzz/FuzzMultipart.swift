// A multipart body with the boundary "b".

private struct Part: Equatable {
  var fields: HTTPFields
  var content: [UInt8] = []
}

private struct Outcome: Equatable {
  var parts: [Part] = []
  var hasEnded = false
  var error: MultipartError?
}

private var limits: MultipartLimits {
  var limits = MultipartLimits()
  (limits.partCount, limits.partHeadBytes, limits.preambleBytes) = (4, 64, 32)
  return limits
}

func fuzzMultipart(_ input: [UInt8]) {
  let whole = parse([input])
  for split in input.splits { check(parse(split) == whole, "the parts depend on how the bytes are split") }
  check(whole.parts.count <= limits.partCount, "there are too many parts")
  check(whole.parts.reduce(0) { $0 + $1.content.count } <= input.count, "there is more content than input")
  guard whole.hasEnded else { return }
  // A space after each colon may make a head longer than the small limit.
  let again = parse([write(whole.parts)], MultipartLimits())
  check(again.hasEnded && again.parts == whole.parts, "the parts change when they are written down and read again")
}

private func parse(_ pieces: [[UInt8]], _ limits: MultipartLimits = limits) -> Outcome {
  var parser = MultipartParser(boundary: "b", limits: limits)
  var outcome = Outcome()
  var isInPart = false
  do throws(MultipartError) {
    for piece in pieces {
      parser.append(piece)
      events: while true {
        switch try parser.next() {
        case .needsInput: break events
        case .part(let fields):
          check(!isInPart, "a part begins within another")
          isInPart = true
          outcome.parts.append(Part(fields: fields))
        case .content(let content):
          check(isInPart && !content.isEmpty, "content lies outside a part, or there is none")
          outcome.parts[outcome.parts.count - 1].content += content
        case .partEnded:
          check(isInPart, "a part ends that did not begin")
          isInPart = false
        case .ended:
          check(!isInPart, "the end comes within a part")
          outcome.hasEnded = true
          return outcome
        }
      }
    }
  } catch {
    // The amount of the last part that is returned before a fault depends on the reads.
    (outcome.parts, outcome.error) = ([], error)
  }
  // So does the amount of an incomplete part.
  if isInPart, outcome.error == nil { outcome.parts[outcome.parts.count - 1].content = [] }
  return outcome
}

private func write(_ parts: [Part]) -> [UInt8] {
  var bytes: [UInt8] = []
  for part in parts { bytes += Array("\r\n--b\r\n".utf8) + part.fields.lines + Array("\r\n".utf8) + part.content }
  return bytes + Array("\r\n--b--".utf8)
}
