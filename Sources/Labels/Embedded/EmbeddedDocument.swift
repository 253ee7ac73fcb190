// How a worker hands over the tracks that it found:
//
//   {"tracks":[{"kind":"lyrics","name":"…","language":"…","labels":[…]}]}
//
// with labels as in the service's own JSON; `name` and `language` may be missing. The reader checks it like a client's
// file, because a decoder that a file has taken over may have written it.

extension EmbeddedLabels {
  /// Returns the tracks as JSON, which has at most 16 MiB; leaves out tracks that don't fit, with a fault.
  package mutating func document() -> [UInt8] {
    var written = WrittenLabels()
    written.write("{\"tracks\":[")
    var kept: [EmbeddedTrack] = []
    for track in tracks {
      let length = written.bytes.count
      if !kept.isEmpty { written.write(ASCII.comma) }
      written.write(track)
      if written.bytes.count < Self.documentLimit - 2 {
        kept.append(track)
      } else {
        written.bytes.removeSubrange(length...)
        note(.tooMuch(track.kind == .chapters ? .chapters : track.kind == .lyrics ? .lyrics : .subtitles))
      }
    }
    tracks = kept
    written.write("]}")
    return written.bytes
  }

  /// Parses what `document` returned. Throws if the bytes aren't that.
  package init(parsing bytes: [UInt8]) throws(LabelsError) {
    let source = try SourceText(bytes)
    guard bytes.count <= Self.documentLimit else {
      throw source.error(.tooMuchText(limit: Self.documentLimit), at: Self.documentLimit)
    }
    var scanner = JSONScanner(source)
    var found = EmbeddedLabels()
    try scanner.object { (scanner, name) throws(LabelsError) in
      guard name == "tracks" else { throw scanner.error(.unknownMember(name, known: ["tracks"])) }
      try scanner.array { (scanner) throws(LabelsError) in try found.addTrack(&scanner) }
    }
    try scanner.end()
    self = found
  }

  private mutating func addTrack(_ scanner: inout JSONScanner) throws(LabelsError) {
    var (kind, name, language): (EmbeddedTrack.Kind?, String?, String?) = (nil, nil, nil)
    var labels = LabelCollector(scanner.source)
    try scanner.object { (scanner, member) throws(LabelsError) in
      switch member {
      case "kind":
        let text = try scanner.normalLine()
        kind = text.utf8.count > 16 ? nil : EmbeddedTrack.Kind(rawValue: text)
      case "name": name = try scanner.normalLine()
      case "language": language = try scanner.normalLine()
      case "labels":
        try scanner.array { (scanner) throws(LabelsError) in
          let offset = scanner.position
          try labels.append(LabelsJSON.label(&scanner), at: offset)
        }
      default: throw scanner.error(.unknownMember(member, known: ["kind", "name", "language", "labels"]))
      }
    }
    guard let kind else { throw scanner.error(.missingMember("kind")) }
    add(.tags, kind, name: name, language: language, labels.sorted())
  }
}

extension WrittenLabels {
  fileprivate mutating func write(_ track: EmbeddedTrack) {
    write("{\"kind\":")
    write(json: track.kind.rawValue)
    if let name = track.name {
      write(",\"name\":")
      write(json: name)
    }
    if let language = track.language {
      write(",\"language\":")
      write(json: language)
    }
    write(",\"labels\":[")
    write(json: track.labels)
    write("]}")
  }
}
