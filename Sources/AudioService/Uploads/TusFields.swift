// The fields of tus 1.0.0 (https://tus.io/protocols/resumable-upload), each read strictly:
//
//   Tus-Resumable     1.0.0, in every request but OPTIONS
//   Upload-Length     1*DIGIT
//   Upload-Offset     1*DIGIT
//   Upload-Metadata   [ key [ SP base64 ] *( "," key [ SP base64 ] ) ]       keys without blanks and commas, each once
//   Upload-Checksum   algorithm SP base64

import FoundationEssentials
import HTTP
import Storage

/// What a client says about the file it uploads.
struct UploadMetadata: Equatable {
  /// Names of the client's choice, values decoded.
  let values: [String: String]

  /// Throws the reason for which the text is none.
  init(_ text: String) throws(InvalidField) {
    var values: [String: String] = [:]
    let pairs = text.split(separator: ",", omittingEmptySubsequences: false)
    for pair in pairs where pairs.count > 1 || !pair.allSatisfy({ $0 == " " }) {
      let words = pair.split(separator: " ", omittingEmptySubsequences: true)
      guard let key = words.first, words.count <= 2 else {
        throw InvalidField("Upload-Metadata", "a list of keys with values in base64, by comma")
      }
      guard values[String(key)] == nil else {
        throw InvalidField("Upload-Metadata", "a list in which each key stands once; “\(key)” stands twice")
      }
      guard let bytes = words.count == 2 ? Data(base64Encoded: String(words[1])) : Data(),
        let value = String(validating: bytes, as: UTF8.self)
      else {
        throw InvalidField("Upload-Metadata", "a list whose values are UTF-8 in base64; that of “\(key)” is not")
      }
      values[String(key)] = value
    }
    self.values = values
  }

  /// The file's name: `filename` is tus's word for it, `name` Uppy's.
  var fileName: String? { values["filename"] ?? values["name"] }
}

/// A field of a request that is not as it must be.
struct InvalidField: Error, Equatable {
  let name: String
  let expected: String

  init(_ name: String, _ expected: String) { (self.name, self.expected) = (name, expected) }
}

extension HTTPRequest {
  /// Whether it is about uploads, so that the version is named even where there is no such upload or method.
  var isTus: Bool { target.segments.starts(with: ["v1", "uploads"]) }

  /// Throws 412 where the client speaks no version of tus that is spoken here.
  func requireTus() throws {
    guard let version = fields["Tus-Resumable"], version == Tus.version else {
      throw Problem(
        .preconditionFailed, code: "unsupported_tus_version",
        detail:
          "“Tus-Resumable” must be \(Tus.version); it is \(fields["Tus-Resumable"].map { "“\($0)”" } ?? "missing").",
        parameter: "Tus-Resumable", fields: ["Tus-Version": Tus.version])
    }
  }

  /// A field that is a number of bytes; one too large to be counted is larger than any limit.
  func byteCount(_ name: String) throws(InvalidField) -> Int64 {
    guard let text = fields[name], !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
      throw InvalidField(name, "a whole number of bytes")
    }
    return Int64(text) ?? .max
  }

  /// What the client says the body comes to, nil where it says nothing.
  func uploadChecksum() throws(InvalidField) -> UploadChecksum? {
    guard let text = fields["Upload-Checksum"] else { return nil }
    let words = text.split(separator: " ", omittingEmptySubsequences: false)
    guard words.count == 2, let algorithm = MessageDigest.Algorithm(rawValue: String(words[0])) else {
      throw InvalidField("Upload-Checksum", "one of \(Tus.checksumAlgorithms), a blank, and the digest in base64")
    }
    guard let bytes = Data(base64Encoded: String(words[1])), bytes.count == algorithm.byteCount else {
      throw InvalidField(
        "Upload-Checksum", "\(algorithm.rawValue), a blank, and \(algorithm.byteCount) bytes in base64")
    }
    return UploadChecksum(algorithm: algorithm, bytes: Array(bytes))
  }

  /// Throws 415 where the body is not what tus sends bytes as.
  func requireUploadBytes() throws {
    try requireNoCoding()
    let type = fields["Content-Type"].flatMap { ParameterizedValue($0)?.value }?.lowercased()
    guard type == Tus.contentType else {
      throw Problem(
        .unsupportedMediaType, code: "unsupported_content_type",
        detail: "The bytes of an upload are sent as \(Tus.contentType).", parameter: "Content-Type")
    }
  }

  /// Throws 400 where the request asks for what the extension “concatenation” would do: to a client that sends the
  /// parts of a file in parallel, each would otherwise look like an upload of its own.
  func refuseConcatenation() throws {
    guard fields.contains("Upload-Concat") else { return }
    throw Problem(
      .badRequest, code: "unsupported_tus_extension",
      detail:
        "The service doesn't join uploads (“Upload-Concat”); “Tus-Extension” lists what it does. Send the file as "
        + "one upload, in as many requests as you like, one after the other.",
      parameter: "Upload-Concat", fields: ["Tus-Extension": Tus.extensions])
  }

  /// The method that is meant: where an intermediary lets only GET and POST pass, a POST says which other one it is.
  /// POST alone, because every other is guarded by what it says on its face.
  func tusMethod() throws(InvalidField) -> HTTPMethod {
    guard let name = fields["X-HTTP-Method-Override"] else { return method }
    guard method == .post || name == method.rawValue else {
      throw InvalidField("X-HTTP-Method-Override", "sent with POST")
    }
    return HTTPMethod(rawValue: name)
  }
}

/// The words of the protocol.
enum Tus {
  static let version = "1.0.0"
  static let extensions = "creation,creation-with-upload,termination,expiration,checksum"
  static let contentType = "application/offset+octet-stream"
  static let checksumAlgorithms = MessageDigest.Algorithm.allCases.map(\.rawValue).joined(separator: ",")
}
