import Foundation
import Testing

@testable import Labels

/// The encodings that files of labels have.
@Suite struct EncodingTests {
  struct Case: Sendable, CustomTestStringConvertible {
    let encoding: String
    /// The name that glibc's iconv has for it.
    let systemName: String
    let text: String
    var testDescription: String { "\(encoding): \(text.prefix(24))" }

    init(_ encoding: String, _ systemName: String, _ text: String) {
      (self.encoding, self.systemName, self.text) = (encoding, systemName, text)
    }

    /// The text in its encoding.
    var bytes: [UInt8] {
      get throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/iconv")
        process.arguments = ["-f", "UTF-8", "-t", systemName]
        let (input, output) = (Pipe(), Pipe())
        (process.standardInput, process.standardOutput) = (input, output)
        try process.run()
        try input.fileHandleForWriting.write(contentsOf: Data(text.utf8))
        try input.fileHandleForWriting.close()
        let bytes = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return Array(bytes)
      }
    }
  }

  private static let cases = [
    Case("Shift_JIS", "CP932", "こん"), Case("Shift_JIS", "CP932", "今日は、とても良い天気ですね。カメラを持って行きましょう。"),
    Case("Shift_JIS", "CP932", "日本語"), Case("EUC-JP", "EUC-JP", "今日は、とても良い天気ですね。カメラを持って行きましょう。"),
    Case("GB18030", "GB2312", "今天天气很好，我们一起去公园吧。"), Case("GB18030", "GB2312", "你好吗？我们走吧"),
    Case("Big5", "BIG5", "今天天氣很好，我們一起去公園吧。"), Case("EUC-KR", "EUC-KR", "안녕하세요. 오늘 날씨가 정말 좋네요."),
    Case("windows-1251", "CP1251", "Привет, как дела? Всё хорошо."), Case("windows-1251", "CP1251", "Да"),
    Case("windows-1251", "CP1251", "Їжак і єнот живуть у лісі."),
    Case("windows-1251", "CP1251", "Здравей, как си днес?"),
    Case("KOI8-R", "KOI8-R", "Привет, как дела? Всё хорошо."), Case("IBM866", "IBM866", "Привет, как дела?"),
    Case("windows-1250", "CP1250", "Zażółć gęślą jaźń."),
    Case("windows-1250", "CP1250", "Příliš žluťoučký kůň úpěl ďábelské ódy"),
    Case("windows-1250", "CP1250", "Árvíztűrő tükörfúrógép"),
    Case("windows-1250", "CP1250", "Să mâncăm împreună, vă rog frumos, şi pâine"),
    Case("windows-1250", "CP1250", "Što je ovo, čovječe? Žao mi je."),
    Case("ISO-8859-2", "ISO-8859-2", "Zażółć gęślą jaźń."),
    Case("windows-1252", "CP1252", "Où est l’été ? Ça va très bien, merci à tous, même à Noël."),
    Case("windows-1252", "CP1252", "Grüße aus München – schön, daß ihr da seid"),
    Case("windows-1252", "CP1252", "¿Dónde está el niño? ¡Aquí, señor!"),
    Case("windows-1252", "CP1252", "Não sei, talvez amanhã à tarde você já possa dançar."),
    Case("windows-1252", "CP1252", "Blåbærsyltetøy og rømmegrøt på fjellet"),
    Case("windows-1252", "CP1252", "Perché no? È già finita così, più o meno."),
    Case("windows-1252", "CP1252", "Þetta er ágætt, en ég veit það ekki"),
    Case("windows-1252", "CP1252", "Hyvää yötä, äiti"),
    Case("windows-1252", "CP1252", "“Don’t” — he said…"),
    Case("windows-1254", "CP1254", "Işık söndü, çocuk ağlıyor. Güneş doğmuş."),
    Case("windows-1257", "CP1257", "Ačiū, aš gerai. Kaip laikaisi šiandien? Ąžuolų"),
    Case("windows-1253", "CP1253", "Καλημέρα σας, τι κάνετε;"),
    Case("windows-1255", "CP1255", "שלום, מה שלומך היום? אני בסדר גמור."),
    Case("windows-1256", "CP1256", "مرحبا، كيف حالك اليوم؟ أنا بخير."),
    Case("windows-874", "CP874", "สวัสดีครับ วันนี้อากาศดีมาก"),
  ]

  @Test("the encoding of a text is found, or named by the client", arguments: cases)
  func detection(_ example: Case) throws {
    let bytes = Array("1\n00:00:01,000 --> 00:00:02,000\n".utf8) + (try example.bytes)
    for charset in [nil, example.encoding, example.encoding.uppercased()] {
      let file = try LabelFile(parsing: bytes, charset: charset)
      #expect(file.labels == [Label(1000, 2000, example.text)])
      #expect(file.encoding == example.encoding)
    }
  }

  @Test("a mark comes before the client's word, and that before UTF-8")
  func order() throws {
    let text = Array("00:01 --> 00:02\n\u{E9}".utf8)
    #expect(try LabelFile(parsing: [0xEF, 0xBB, 0xBF] + text, charset: "cp1251").encoding == "UTF-8")
    let file = try LabelFile(parsing: text, charset: "cp1251")
    #expect(file.encoding == "windows-1251" && file.labels[0].text == "Г©")
    for unknown in ["", "../../x", "UTF-7", "cp1251//TRANSLIT", String(repeating: "x", count: 1 << 20)] {
      #expect(try LabelFile(parsing: text, charset: unknown).encoding == "UTF-8")
    }
  }

  @Test("UTF-16 is found without a mark", arguments: [true, false])
  func utf16(isBigEndian: Bool) throws {
    let bytes = "00:01 --> 00:02\näb".utf16.flatMap {
      isBigEndian ? [UInt8($0 >> 8), UInt8($0 & 0xFF)] : [UInt8($0 & 0xFF), UInt8($0 >> 8)]
    }
    let file = try LabelFile(parsing: bytes)
    #expect(file.labels == [Label(1000, 2000, "äb")] && file.encoding == (isBigEndian ? "UTF-16BE" : "UTF-16LE"))
  }

  @Test("tokens that cut characters of UTF-8 are joined")
  func cutCharacters() throws {
    let (head, tail) = (#"{"transcription":[{"offsets":{"from":0,"to":9},"text":"é","tokens":[{"text":" "#, #"}]}]}"#)
    let bytes =
      Array(head.utf8) + [0xC3] + Array(#"","offsets":{"from":0,"to":4}},{"text":""#.utf8) + [0xA9]
      + Array((#"","offsets":{"from":4,"to":9}"# + tail).utf8)
    let file = try LabelFile(parsing: bytes)
    #expect(file.labels == [Label(0, 9, "é", words: [TimedWord(0, 9, "é")])] && file.encoding == "UTF-8")
  }

  @Test("what isn't in the encoding becomes U+FFFD, also where a long text is converted in pieces")
  func pieces() throws {
    let encoding = try #require(TextEncoding(label: "sjis"))
    #expect(
      encoding.decoded([0x82, 0xA0, 0xFD, 0x41, 0x82]).map { String(decoding: $0, as: UTF8.self) }
        == "あ\u{FFFD}A\u{FFFD}")
    let long: [UInt8] = [0x41] + (0..<200_000).map { $0 % 2 == 0 ? 0x82 : 0xA0 }
    #expect(encoding.decoded(long[...])?.count == 300_001)
    #expect(encoding.decoded([UInt8](repeating: 0xFD, count: 100_000)[...])?.count == 300_000)
  }
}
