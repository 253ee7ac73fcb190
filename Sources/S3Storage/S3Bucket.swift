// The address of a bucket, as a setting:
//
//   s3://BUCKET[/PREFIX][?endpoint=URL][&region=NAME][&style=path|virtual][&encryption=AES256|aws:kms]
//
//   endpoint     http:// or https:// and a host, maybe with a port; by default Amazon's of the region
//   region       by default us-east-1, which stores other than Amazon's usually accept
//   style        path: https://HOST/BUCKET/KEY; virtual: https://BUCKET.HOST/KEY. By default virtual for Amazon and
//                path for an endpoint. At Amazon, the default is path for a bucket with a dot, whose name doesn't match
//                the wildcard of the certificate
//   encryption   sent as x-amz-server-side-encryption when objects are created
//
// Keys begin with "PREFIX/", so that several installations can share a bucket.

import Terms

/// A bucket and how to reach it.
package struct S3Bucket: Sendable, Equatable {
  /// Why an address can't be used.
  package enum Fault: Error, Sendable, Equatable {
    /// It doesn't begin with `s3://`.
    case scheme
    /// The bucket isn't 3 to 63 of a-z, 0-9, dot and hyphen, with a letter or digit at both ends.
    case bucket
    /// The prefix has an empty segment, `.` or `..`, or is longer than 512 bytes.
    case prefix
    /// The endpoint isn't http or https, a host and maybe a port.
    case endpoint
    /// The region isn't a name.
    case region
    /// An option is unknown, repeated or has an unknown value.
    case option(String)
  }

  /// The name of the bucket.
  package let name: String
  /// What all keys begin with; empty, or ends with a slash.
  package let prefix: String
  /// The region to sign for.
  package let region: String
  let encryption: String?
  private(set) var scheme: String
  /// The host and, unless it is the scheme's, the port: what `Host` says.
  private(set) var host: String
  /// What paths begin with: "/BUCKET" or nothing.
  let base: String

  /// What messages call the bucket.
  var address: String { "s3://\(name)/\(prefix)" }

  /// Parses an address; see above. `options` are further ones.
  package init(_ address: String, options: [(name: String, value: String)] = []) throws(S3Error) {
    do { try self.init(parsing: address, options) } catch { throw .invalidAddress(error) }
  }

  private init(parsing address: String, _ others: [(name: String, value: String)]) throws(Fault) {
    guard address.hasPrefix("s3://") else { throw .scheme }
    let parts = address.dropFirst(5).split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    let place = parts[0].split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    name = String(place[0])
    guard Self.isBucket(name) else { throw .bucket }
    prefix = try Self.prefix(place.count > 1 ? place[1] : "")
    let options = try Self.options(parts.count > 1 ? parts[1] : "", others)
    region = options["region"] ?? "us-east-1"
    guard Self.isName(region) else { throw .region }
    encryption = options["encryption"]
    let endpoint = options["endpoint"]
    let (scheme, host) = try Self.endpoint(endpoint ?? "https://s3.\(region).amazonaws.com")
    self.scheme = scheme
    let isVirtual = options["style"].map { $0 == "virtual" } ?? (endpoint == nil && !name.contains("."))
    self.host = isVirtual ? "\(name).\(host)" : host
    base = isVirtual ? "" : "/\(name)"
  }

  /// Whether the name of the bucket is in the host and not in the path.
  private var isVirtual: Bool { base.isEmpty }

  /// Returns the bucket by another address of its store. Throws if `endpoint` isn't one.
  package func reached(at endpoint: String) throws(S3Error) -> S3Bucket {
    var bucket = self
    do throws(Fault) { (bucket.scheme, bucket.host) = try Self.endpoint(endpoint) } catch {
      throw .invalidAddress(error)
    }
    if isVirtual { bucket.host = "\(name).\(bucket.host)" }
    return bucket
  }

  /// The path of an object or, for nil, of the bucket; not encoded.
  func path(of key: String?) -> String {
    guard let key else { return base.isEmpty ? "/" : base }
    return "\(base)/\(prefix)\(key)"
  }

  // MARK: Parsing

  private static func prefix(_ text: Substring) throws(Fault) -> String {
    let text = text.hasSuffix("/") ? text.dropLast() : text
    guard !text.isEmpty else { return "" }
    let isValid = text.split(separator: "/", omittingEmptySubsequences: false).allSatisfy {
      !$0.isEmpty && $0 != "." && $0 != ".." && isName(String($0))
    }
    guard isValid, text.utf8.count <= 512 else { throw .prefix }
    return text + "/"
  }

  private static func options(
    _ query: Substring, _ others: [(name: String, value: String)]
  ) throws(Fault) -> [String: String] {
    var given = others
    for item in query.split(separator: "&") {
      let pair = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard pair.count == 2, let value = URIEncoding.decoded(pair[1]) else { throw .option(String(pair[0])) }
      given.append((String(pair[0]), value))
    }
    var options: [String: String] = [:]
    for (name, value) in given {
      guard options[name] == nil else { throw .option(name) }
      switch (name, value) {
      case ("endpoint", _), ("region", _), ("style", "path"), ("style", "virtual"), ("encryption", "AES256"),
        ("encryption", "aws:kms"):
        options[name] = value
      default: throw .option(name)
      }
    }
    return options
  }

  private static func endpoint(_ text: String) throws(Fault) -> (scheme: String, host: String) {
    let parts = text.split(separator: "://", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, parts[0] == "http" || parts[0] == "https" else { throw .endpoint }
    var host = parts[1]
    if host.hasSuffix("/") { host.removeLast() }
    let isHost = host.utf8.allSatisfy { byte in isNameByte(byte) || [0x3A, 0x5B, 0x5D].contains(byte) }
    guard !host.isEmpty, isHost else { throw .endpoint }
    let usual = parts[0] == "http" ? ":80" : ":443"
    if host.hasSuffix(usual) { host.removeLast(usual.count) }
    // IPv6 addresses are in brackets; the rest is a name and at most one colon with a port.
    let bare = host.hasPrefix("[") ? host.drop { $0 != "]" }.dropFirst() : host.drop { $0 != ":" }
    guard bare.isEmpty || bare.hasPrefix(":") && UInt16(bare.dropFirst()) != nil, !host.hasPrefix(":") else {
      throw .endpoint
    }
    return (String(parts[0]), host.lowercased())
  }

  private static func isBucket(_ name: String) -> Bool {
    let isEnd: (UInt8) -> Bool = { (0x30...0x39).contains($0) || (0x61...0x7A).contains($0) }
    guard (3...63).contains(name.utf8.count), let first = name.utf8.first, let last = name.utf8.last else {
      return false
    }
    return isEnd(first) && isEnd(last) && name.utf8.allSatisfy { isEnd($0) || $0 == 0x2D || $0 == 0x2E }
  }

  private static func isName(_ text: String) -> Bool { !text.isEmpty && text.utf8.allSatisfy(isNameByte) }

  private static func isNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F: true
    default: false
    }
  }
}
