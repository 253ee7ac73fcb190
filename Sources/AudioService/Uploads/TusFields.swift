// The fields of tus 1.0.0 (https://tus.io/protocols/resumable-upload), each read strictly:
//
//   Tus-Resumable     1.0.0, in every request but OPTIONS
//   Upload-Length     1*DIGIT
//   Upload-Offset     1*DIGIT
//   Upload-Metadata   [ key [ SP base64 ] *( "," key [ SP base64 ] ) ]       keys without blanks and commas, each once
//   Upload-Checksum   algorithm SP base64
//   Upload-Concat     "partial" / "final;" address *( SP address )

import FoundationEssentials
import HTTP
import Storage

/// The metadata that a client sends about its file.
struct UploadMetadata: Equatable {
  /// The decoded values, by keys that the client chose.
  let values: [String: String]

  /// Parses the field; throws if it isn't valid.
  init(_ text: String) throws(RequestError) {
    var values: [String: String] = [:]
    let pairs = text.split(separator: ",", omittingEmptySubsequences: false)
    for pair in pairs where pairs.count > 1 || !pair.allSatisfy({ $0 == " " }) {
      let words = pair.split(separator: " ", omittingEmptySubsequences: true)
      guard let key = words.first, words.count <= 2 else {
        throw RequestError.invalidField("Upload-Metadata", .uploadMetadata)
      }
      guard values[String(key)] == nil else {
        throw RequestError.invalidField("Upload-Metadata", .uniqueMetadataKey(String(key)))
      }
      guard let bytes = words.count == 2 ? Data(base64Encoded: String(words[1])) : Data(),
        let value = String(validating: bytes, as: UTF8.self)
      else {
        throw RequestError.invalidField("Upload-Metadata", .base64Metadata(key: String(key)))
      }
      values[String(key)] = value
    }
    self.values = values
  }

  /// The file's name: tus clients call it `filename`, Uppy calls it `name`.
  var fileName: String? { values["filename"] ?? values["name"] }
}

/// What an upload has to do with others: a client sends the parts of a file in parallel, and joins them.
enum Concatenation: Equatable {
  case partial
  /// Joined from these, in order.
  case final([UploadID])

  /// Maximum number of parts.
  static let limit = 100
  static let partialName = "partial"
  static let finalMark = "final;"

  /// Parses the field. Of an address, only the last segment of its path matters.
  init?(_ text: String) {
    if text == Self.partialName {
      self = .partial
      return
    }
    guard text.hasPrefix(Self.finalMark) else { return nil }
    let addresses = text.dropFirst(Self.finalMark.count).split(separator: " ")
    let parts = addresses.compactMap { address in
      let path = address.prefix { $0 != "?" }
      return UploadID(String(path[(path.lastIndex(of: "/").map(path.index(after:)) ?? path.startIndex)...]))
    }
    guard (1...Self.limit).contains(addresses.count), Set(parts).count == addresses.count else { return nil }
    self = .final(parts)
  }
}

extension HTTPRequest {
  /// Whether the request is about uploads, so that its answer has the version even if the upload or method doesn't
  /// exist.
  var isTus: Bool { target.segments.starts(with: ["v1", "uploads"]) }

  /// Throws 412 if the client doesn't use a supported version of tus.
  func requireTus() throws {
    guard let version = fields["Tus-Resumable"], version == Tus.version else {
      throw RequestError.unsupportedTusVersion(fields["Tus-Resumable"])
    }
  }

  /// Parses a field that is a number of bytes. A number too large for Int64 becomes the largest one, which exceeds any
  /// limit.
  func byteCount(_ name: String) throws(RequestError) -> Int64 {
    guard let text = fields[name], !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
      throw .invalidField(name, .byteCount)
    }
    return Int64(text) ?? .max
  }

  /// Parses the client's checksum of the body; nil if there is none.
  func uploadChecksum() throws(RequestError) -> UploadChecksum? {
    guard let text = fields["Upload-Checksum"] else { return nil }
    let words = text.split(separator: " ", omittingEmptySubsequences: false)
    guard words.count == 2, let algorithm = MessageDigest.Algorithm(rawValue: String(words[0])) else {
      throw .invalidField("Upload-Checksum", .checksum(algorithms: Tus.checksumAlgorithms))
    }
    guard let bytes = Data(base64Encoded: String(words[1])), bytes.count == algorithm.byteCount else {
      throw .invalidField(
        "Upload-Checksum", .digest(algorithm: algorithm.rawValue, byteCount: algorithm.byteCount))
    }
    return UploadChecksum(algorithm: algorithm, bytes: Array(bytes))
  }

  /// Throws 415 if the body doesn't have the content type that tus prescribes.
  func requireUploadBytes() throws {
    try requireNoCoding()
    let type = fields["Content-Type"].flatMap { ParameterizedValue($0)?.value }?.lowercased()
    guard type == Tus.contentType else {
      throw RequestError.notUploadBytes
    }
  }

  /// Parses what the upload has to do with others; nil if nothing. A token is for one upload, so it can't begin parts.
  func concatenation(_ caller: Caller) throws(RequestError) -> Concatenation? {
    guard let text = fields["Upload-Concat"] else { return nil }
    guard caller.uploadToken == nil else { throw .joinedUploads }
    guard let found = Concatenation(text) else { throw .invalidField("Upload-Concat", .concatenation) }
    return found
  }

  /// The effective method: behind an intermediary that passes only GET and POST, a POST can name a different one. Only
  /// a POST may, because the checks of other methods rely on the method in the request line.
  func tusMethod() throws(RequestError) -> HTTPMethod {
    guard let name = fields["X-HTTP-Method-Override"] else { return method }
    guard method == .post || name == method.rawValue else {
      throw .invalidField("X-HTTP-Method-Override", .methodPOST)
    }
    return HTTPMethod(rawValue: name)
  }
}

/// Constants of the protocol.
enum Tus {
  static let version = "1.0.0"
  static let extensions =
    "creation,creation-with-upload,creation-defer-length,concatenation,termination,expiration,checksum"
  static let contentType = "application/offset+octet-stream"
  static let checksumAlgorithms = MessageDigest.Algorithm.allCases.map(\.rawValue).joined(separator: ",")
}
