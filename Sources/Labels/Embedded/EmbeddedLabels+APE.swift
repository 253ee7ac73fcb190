// APE tags of version 2 (https://wiki.hydrogenaud.io/index.php?title=APEv2_specification), which MP3 may have at its
// end; all numbers little-endian:
//
//   tag = [header(32)] *item footer; footer = "APETAGEX" version(4) length(4) count(4) flags(4) 0(8)
//   length = of the items and the footer
//   item = length(4) flags(4) name NUL value; flags & 6: 0 for texts in UTF-8 with NUL between them, 2 for bytes
//   the value of "Cover Art (Front)" and "Cover Art (Back)" = name of a file, NUL, picture

extension EmbeddedLabels {
  private static let footerLength = 32

  /// Adds the APE tag that ends at `end`. Returns false without one.
  mutating func addAPE(_ file: inout some ByteSource, endingAt end: Int, _ clock: EmbeddedClock) -> Bool {
    guard let footer = file.whole(at: end - Self.footerLength, count: Self.footerLength),
      footer.starts(with: "APETAGEX".utf8)
    else { return false }
    func number(_ bytes: ArraySlice<UInt8>) -> Int { ID3Tag.number(bytes.prefix(4).reversed()) }
    let length = number(footer.dropFirst(12))
    guard length <= Self.tagLimit, (Self.footerLength...end).contains(length) else {
      note(length > Self.tagLimit ? .tooMuch(.tags) : .damaged(.tags))
      return true
    }
    let start = end - length
    let items = Array(file.bytes(at: start, count: length - Self.footerLength))
    var (comments, place) = (TaggedComments(), 0)
    while place < items.count {
      let (size, flags) = (number(items[place...]), number(items[place...].dropFirst(4)))
      guard let end = items[place...].dropFirst(8).firstIndex(of: 0), size < items.count - end else {
        note(.damaged(.tags))
        break
      }
      let (name, value) = (items[(place + 8)..<end], items[(end + 1)...].prefix(size))
      let isPicture = name.starts(with: "Cover Art (".utf8)
      if isPicture, let picture = value.firstIndex(of: 0).map({ value[($0 + 1)...] }) {
        addCover(
          &file, at: start + picture.startIndex, length: picture.count,
          isFront: name.elementsEqual("Cover Art (Front)".utf8))
      }
      let texts = flags & 6 == 0 ? value.split(separator: 0) : [[]]
      if !isPicture { for text in texts { comments.add(name, text) } }
      place = end + 1 + size
    }
    add(comments, clock)
    return true
  }
}
