import HTTP
import Storage

/// A response of oEmbed 1.0 (oembed.com) for an address that the service's pages show:
///
///     <service>/embed#recording=<id>&token=<token>…      an embedded waveform
///     <service>/#recording=<id>&token=<token>…           a link of the viewer, which shares a recording
///     <service>/#<id>…                                   a link of the viewer, for people with access
///
/// Nothing is looked up: a response says nothing about a recording that its address doesn't.
struct OEmbed: Encodable {
  enum Format: String, CaseIterable { case json }

  static let sizes = 1...10_000
  private static let usualSize = (width: 640, height: 200)

  let type = "rich"
  let version = "1.0"
  let title = "Stillwave"
  let providerName = "Stillwave"
  let providerURL: String
  let html: String
  let width, height: Int

  private enum CodingKeys: String, CodingKey {
    case type, version, title, html, width, height
    case providerName = "provider_name"
    case providerURL = "provider_url"
  }

  /// Fails unless `address` is one of the above, at the origin that the request was sent to.
  init?(of address: String, askedOf request: HTTPRequest, maximumWidth: Int, height maximumHeight: Int) {
    guard let scheme = address.firstRange(of: "://"), let mark = address.firstIndex(of: "#"),
      scheme.upperBound < mark,
      let slash = address[scheme.upperBound..<mark].firstIndex(of: "/"),
      request.isSent(toOrigin: String(address[..<slash]))
    else { return nil }
    let path = address[slash..<mark]
    guard let last = path.lastIndex(of: "/"), ["", "embed"].contains(path[path.index(after: last)...]),
      path.utf8.allSatisfy({ Self.isPlain($0) || $0 == UInt8(ascii: "/") }),
      let fragment = Self.fragment(address[address.index(after: mark)...])
    else { return nil }
    let base = address[...last]
    (width, height) = (min(Self.usualSize.width, maximumWidth), min(Self.usualSize.height, maximumHeight))
    providerURL = String(base)
    html = """
      <iframe src="\(base)embed#\(fragment)" width="\(width)" height="\(height)" title="Stillwave" loading="lazy" \
      referrerpolicy="no-referrer" style="border:0;max-width:100%"></iframe>
      """
  }

  /// Returns the fragment of the embedded page as HTML; nil if it names no recording.
  private static func fragment(_ text: Substring) -> String? {
    var fields = text.split(separator: "&", omittingEmptySubsequences: false)
    guard let first = fields.first else { return nil }
    if RecordingID(String(first)) != nil { fields[0] = "recording=" + first }
    guard fields[0].hasPrefix("recording="), RecordingID(String(fields[0].dropFirst(10))) != nil,
      text.utf8.allSatisfy({ isPlain($0) || "&=,%".utf8.contains($0) })
    else { return nil }
    return fields.joined(separator: "&amp;")
  }

  /// Whether a byte means the same in an address and in HTML.
  private static func isPlain(_ byte: UInt8) -> Bool {
    UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte || UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte
      || UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte || "-._~".utf8.contains(byte)
  }
}
