// Finds the encoding of a text that isn't UTF-8. Each candidate is an encoding and a language with its letters, from
// the most frequent one to the rarest. The text is decoded and scored from 0 to 1, by the bytes that aren't ASCII
// alone:
//
//   score = mean over all characters above 7F of
//     1 … ½     a letter of the language, by its place in the list; half of that if a capital follows a small letter
//     0         another letter, one beside a Latin letter in another script, a sign within a word, a mathematical
//               sign or a line, or what the encoding doesn't have
//     nothing   punctuation between words, which most encodings have at the same places
//
// In East Asian encodings, it is the mean over bytes: 1 for kana, .85 for Hangul, .9 for punctuation, .8 (.7 in Japan,
// where kana are more frequent) for the first level of characters of each standard, which has the common ones, .1 for
// others. The best one wins; of equals, the first. Western European comes first: where a text has the same letters in
// several encodings, they are the same bytes.

/// The encoding that a text which isn't UTF-8 probably has.
struct EncodingGuess {
  private(set) var encoding = TextEncoding.windows1252

  /// How much of a text is examined, in bytes.
  private static let sampleLimit = 32 << 10

  init(_ file: [UInt8]) {
    var (sample, lines) = ([UInt8](), TextLines(file[...]))
    while sample.count < Self.sampleLimit, let line = lines.next() {
      guard file[line].contains(where: { $0 >= 0x80 }) else { continue }
      sample += file[line].prefix(Self.sampleLimit) + [ASCII.lineFeed]
    }
    var best = 0.0
    for (label, languages) in Self.alphabets {
      guard let encoding = TextEncoding(label: label), let text = encoding.decoded(sample[...]) else { continue }
      let scalars = Array(String(decoding: text, as: UTF8.self).unicodeScalars)
      for language in languages.split(separator: " ") {
        let score = Self.score(scalars, Alphabet(language))
        if score > best { (best, self.encoding) = (score, encoding) }
      }
    }
    for (label, standard) in Self.standards {
      let score = Self.score(sample, standard)
      if score > best, let encoding = TextEncoding(label: label) { (best, self.encoding) = (score, encoding) }
    }
  }

  // MARK: Alphabets

  private static let alphabets = [
    (
      "windows-1252",
      "éèàêçôûîâùïëœ äüößé óáíéñúü¿¡ ãçáéêíóõâàúô èàòìùéó åäöøæéó áðíéþóæöýú éëïöüèóá àéèíóòçúïü"
    ),
    ("windows-1250", "łęąóżśćńź íáěéřčžýšůúťóďň áéíčúýšžľťóôňďĺŕä áéöóőüíúű ăîâşţ čšžćđ"),
    ("windows-1254", "ıüşğçöâî"), ("windows-1257", "ėšųžįąūčę āīēšūļņžčģķ äõüöšž"),
    (
      "windows-1251",
      "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё оанивіетрслкудмпзяьбгйчхцїжєшюфщґ аиоетнрсвлкдпмзгяъубчцщжхшюйфь "
        + "аиоенрсјтукдвмплзбгшчцњљхћжђџф"
    ),
    ("KOI8-R", "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё"), ("KOI8-U", "оанивіетрслкудмпзяьбгйчхцїжєшюфщґ"),
    ("IBM866", "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё"), ("windows-1253", "αοιετσνηυρπκμλςωάίόδέγχθήφβύξζώψϊ"),
    ("windows-1255", "יוהלארתבמשנםעקדפחטצגזסןךףכץ"), ("windows-1256", "المينوترهبدعكسةفقحجأشطصخزذىثضغءظئإؤآپچژگ"),
    ("windows-874", "านรอเกง่ม้ยลวดัทสตีะปบคิหแ็จพชขใูไโุผซถึืศญธณฟ์ษภฉำ"), ("ISO-8859-2", "łęąóżśćńź íáěéřčžýšůúťóďň ăîâşţ čšžćđ"),
  ]

  private struct Alphabet {
    var weights: [Unicode.Scalar: Double] = [:]
    /// Whether a letter beside one of ASCII is odd.
    var isForeign = false

    init(_ letters: Substring) {
      let scalars = Array(letters.unicodeScalars)
      isForeign = (scalars.first?.value ?? 0) >= 0x370
      for (place, letter) in scalars.enumerated() {
        let weight = 1 - Double(place) / Double(2 * scalars.count)
        weights[letter] = weight
        if letter.properties.uppercaseMapping.unicodeScalars.count == 1 {
          for capital in letter.properties.uppercaseMapping.unicodeScalars where capital != letter {
            weights[capital] = weight
          }
        }
      }
    }
  }

  private static func score(_ text: [Unicode.Scalar], _ alphabet: Alphabet) -> Double {
    var (sum, count, before) = (0.0, 0, " " as Unicode.Scalar)
    for (index, scalar) in text.enumerated() {
      defer { before = scalar }
      guard !scalar.isASCII else { continue }
      let after = index + 1 < text.count ? text[index + 1] : " "
      let isMixed = alphabet.isForeign && [before, after].contains { $0.isASCII && $0.properties.isAlphabetic }
      if let weight = alphabet.weights[scalar], !isMixed {
        let isOdd = before.properties.isLowercase && scalar.properties.isUppercase
        sum += isOdd ? weight / 2 : weight
      } else {
        let isWithinWord = before.properties.isAlphabetic && after.properties.isAlphabetic
        let isText =
          scalar.properties.isAlphabetic || scalar.value < 0xA0 || scalar == "\u{FFFD}"
          || (0x2200...0x25FF).contains(scalar.value)
        guard isText || isWithinWord && scalar != "’" else { continue }
      }
      count += 1
    }
    // Of punctuation alone.
    return count == 0 ? 0.5 : sum / Double(count)
  }

  // MARK: Double bytes

  /// Weighs the character at the beginning of some bytes; the first is 80 or more.
  private typealias Standard = @Sendable (_ lead: UInt8, _ trail: UInt8) -> (length: Int, weight: Double)

  private static let standards: [(label: String, standard: Standard)] = [
    (
      "Shift_JIS",
      { lead, trail in
        if (0xA1...0xDF).contains(lead) { return (1, 0.2) }
        guard (0x81...0xFC).contains(lead), (0x40...0xFC).contains(trail), trail != 0x7F else { return (1, 0) }
        switch (lead, trail) {
        case (0x82, 0x9F...0xF1), (0x83, 0x40...0x96): return (2, 1)
        case (0x81, _), (0x82, _): return (2, 0.9)
        case (0x88...0x97, _): return (2, 0.7)
        default: return (2, 0.1)
        }
      }
    ),
    (
      "EUC-JP",
      { lead, trail in
        guard lead >= 0xA1, (0xA1...0xFE).contains(trail) else { return (1, 0) }
        switch lead {
        case 0xA4, 0xA5: return (2, 1)
        case 0xA1, 0xA3: return (2, 0.9)
        case 0xB0...0xCF: return (2, 0.7)
        default: return (2, 0.1)
        }
      }
    ),
    (
      "GB18030",
      { lead, trail in
        guard (0x81...0xFE).contains(lead), (0x40...0xFE).contains(trail), trail != 0x7F else { return (1, 0) }
        guard trail >= 0xA1 else { return (2, 0.05) }
        switch lead {
        case 0xA1, 0xA3: return (2, 0.9)
        case 0xB0...0xD7: return (2, 0.8)
        default: return (2, 0.1)
        }
      }
    ),
    (
      "Big5",
      { lead, trail in
        guard (0x81...0xFE).contains(lead), (0x40...0x7E).contains(trail) || (0xA1...0xFE).contains(trail) else {
          return (1, 0)
        }
        switch lead {
        case 0xA1...0xA3: return (2, 0.9)
        case 0xA4...0xC6: return (2, 0.8)
        default: return (2, 0.1)
        }
      }
    ),
    (
      "EUC-KR",
      { lead, trail in
        guard (0x81...0xFE).contains(lead), (0x41...0xFE).contains(trail) else { return (1, 0) }
        guard trail >= 0xA1 else { return (2, 0.1) }
        switch lead {
        case 0xA1, 0xA3: return (2, 0.9)
        case 0xB0...0xC8: return (2, 0.85)
        default: return (2, 0.1)
        }
      }
    ),
  ]

  private static func score(_ text: [UInt8], _ standard: Standard) -> Double {
    var (sum, count, position) = (0.0, 0, 0)
    while position < text.count {
      guard text[position] >= 0x80 else {
        position += 1
        continue
      }
      let (length, weight) = standard(text[position], position + 1 < text.count ? text[position + 1] : 0)
      sum += weight * Double(length)
      count += length
      position += length
    }
    return count == 0 ? 0 : sum / Double(count)
  }
}
