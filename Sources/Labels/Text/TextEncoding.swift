import Glibc

// The encodings of https://encoding.spec.whatwg.org in which subtitles are found, decoded by glibc's iconv. Only these
// names reach it: it looks for modules by name.

/// An encoding other than UTF-8.
struct TextEncoding: Hashable, Sendable {
  /// The name on the web.
  let name: String
  /// Its name for iconv.
  let systemName: String

  private init(_ name: String, _ systemName: String? = nil) {
    (self.name, self.systemName) = (name, systemName ?? name)
  }

  static let windows1252 = TextEncoding("windows-1252")

  private static let all =
    [
      ("UTF-8", nil), ("UTF-16LE", nil), ("UTF-16BE", nil), ("Shift_JIS", "CP932"), ("EUC-JP", "EUC-JP-MS"),
      ("ISO-2022-JP", nil), ("GB18030", nil), ("Big5", nil), ("EUC-KR", "CP949"), ("KOI8-R", nil),
      ("KOI8-U", nil), ("IBM866", nil), ("macintosh", nil), ("windows-874", "CP874"), ("windows-1252", nil),
    ].map { TextEncoding($0, $1) }
    + ([1250, 1251] + Array(1253...1258)).map { TextEncoding("windows-\($0)", "CP\($0)") }
    + [2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16].map { TextEncoding("ISO-8859-\($0)") }

  private static let otherLabels = [
    "utf8": "utf-8", "utf-16": "utf-16le", "sjis": "shift_jis", "shift-jis": "shift_jis", "ms_kanji": "shift_jis",
    "windows-31j": "shift_jis", "x-sjis": "shift_jis", "cp932": "shift_jis", "gb2312": "gb18030", "gbk": "gb18030",
    "gb_2312-80": "gb18030", "x-gbk": "gb18030", "cp936": "gb18030", "big5-hkscs": "big5", "cp950": "big5",
    "x-x-big5": "big5", "cp949": "euc-kr", "ks_c_5601-1987": "euc-kr", "windows-949": "euc-kr", "cp866": "ibm866",
    "koi8": "koi8-r", "tis-620": "windows-874", "iso-8859-11": "windows-874", "iso-8859-1": "windows-1252",
    "latin1": "windows-1252", "us-ascii": "windows-1252", "ascii": "windows-1252", "iso-8859-9": "windows-1254",
    "latin2": "iso-8859-2",
  ]

  /// Finds an encoding by a label that the web uses, of any case; fails for all others.
  init?(label: String) {
    guard label.utf8.count <= 40 else { return nil }
    let label = label.lowercased()
    let isCodePage = label.hasPrefix("cp125") || label.hasPrefix("x-cp125")
    let name = Self.otherLabels[label] ?? (isCodePage ? "windows-\(label.suffix(4))" : label)
    guard let found = Self.all.first(where: { $0.name.lowercased() == name }) else { return nil }
    self = found
  }

  /// Returns a text in UTF-8; what isn't in the encoding becomes U+FFFD. nil if the system lacks the encoding.
  func decoded(_ text: ArraySlice<UInt8>) -> [UInt8]? {
    if self == .windows1252 { return SourceText.utf8(windows1252: text) }
    guard let iconv = IconvHandle(from: systemName) else { return nil }
    return iconv.utf8(text)
  }
}

/// An open converter of glibc to UTF-8.
@safe private struct IconvHandle: ~Copyable {
  private let handle: iconv_t

  /// Fails if the system doesn't know the encoding.
  init?(from encoding: String) {
    guard let handle = unsafe iconv_open("UTF-8", encoding), Int(bitPattern: handle) != -1 else { return nil }
    unsafe self.handle = handle
  }

  deinit { unsafe _ = iconv_close(handle) }

  /// Converts a text. O(n).
  func utf8(_ text: ArraySlice<UInt8>) -> [UInt8] {
    var (bytes, converted, position) = (Array(text), [UInt8](), 0)
    converted.reserveCapacity(bytes.count * 2)
    while position < bytes.count {
      let piece = min(1 << 16, bytes.count - position)
      let isLast = position + piece == bytes.count
      converted += unsafe [UInt8](unsafeUninitializedCapacity: 4 * piece + 16) { buffer, count in
        unsafe bytes.withUnsafeMutableBytes { bytes in
          var (left, room) = (piece, buffer.count)
          var input = unsafe bytes.baseAddress?.advanced(by: position).assumingMemoryBound(to: CChar.self)
          var output = unsafe UnsafeMutableRawPointer(buffer.baseAddress)?.assumingMemoryBound(to: CChar.self)
          while left > 0, unsafe iconv(handle, &input, &left, &output, &room) == -1 {
            // The next piece begins with a character that this one cuts.
            if errno == EINVAL, !isLast, left < piece { break }
            for byte in "\u{FFFD}".utf8 {
              unsafe buffer[buffer.count - room] = byte
              room -= 1
            }
            unsafe output = output?.advanced(by: 3)
            unsafe input = input?.advanced(by: 1)
            left -= 1
          }
          position += piece - left
          count = buffer.count - room
        }
      }
    }
    return converted
  }
}
