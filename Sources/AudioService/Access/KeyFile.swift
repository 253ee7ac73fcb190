import FoundationEssentials
import Glibc
import Storage
import Terms

/// Why a file of keys can't be used.
package enum KeyFileError: Error, Equatable, CustomStringConvertible {
  /// The line with this number, counted from 1, isn't valid; `reason` continues a sentence.
  case invalidLine(Int, reason: String)
  /// The file can't be read.
  case unreadable(errno: Int32)
  /// It's a pipe, a device, a folder, or something else without content of its own.
  case notAFile
  /// The file is longer than this many bytes.
  case tooLong(limit: Int)

  /// A sentence for operators.
  package var description: String {
    switch self {
    case .invalidLine(let number, let reason): "line \(number) \(reason)"
    case .unreadable(let number): "it can't be read (\(unsafe String(cString: strerror(number))))"
    case .notAFile: "it is not a regular file"
    case .tooLong(let limit): "it is longer than \(limit) bytes"
    }
  }
}

/// The keys in a file, JSON lines.
package struct KeyFile: Sendable {
  /// Maximum length of a file, in bytes: some 50,000 keys.
  package static let byteLimit = 16 << 20

  /// The keys, in the file's order.
  package private(set) var keys: [Key] = []

  /// Parses the content of a file. Throws at the first line that isn't a key or repeats an ID or a hash.
  package init(parsing bytes: [UInt8]) throws(KeyFileError) {
    var (ids, hashes): (Set<String>, Set<[UInt8]>) = ([], [])
    for (index, line) in bytes.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated() {
      guard !line.allSatisfy({ [0x20, 0x09, 0x0D].contains($0) }) else { continue }
      let key: Key
      do throws(KeyFault) { key = try Key(line: Array(line)) } catch {
        throw .invalidLine(index + 1, reason: error.words)
      }
      guard ids.insert(key.id).inserted else {
        throw .invalidLine(index + 1, reason: "repeats the id “\(key.id)” of an earlier line")
      }
      for secret in key.secrets where !hashes.insert(secret.hash).inserted {
        throw .invalidLine(index + 1, reason: "repeats the hash of another secret")
      }
      keys.append(key)
    }
  }

  /// Reads a file.
  package init(path: String) throws(KeyFileError) { try self.init(parsing: Self.contents(of: path)) }

  /// Returns the content of a file of keys or secrets. Blocks, but never for another process: opening a pipe would wait
  /// for one that writes, and no key could be revoked meanwhile.
  package static func contents(of path: String) throws(KeyFileError) -> [UInt8] {
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else { throw .unreadable(errno: errno) }
    defer { close(file) }
    var info = stat()
    guard unsafe fstat(file, &info) == 0 else { throw .unreadable(errno: errno) }
    guard info.st_mode & S_IFMT == S_IFREG else { throw .notAFile }
    var (bytes, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 65_536))
    while true {
      let count = unsafe buffer.withUnsafeMutableBytes { unsafe Glibc.read(file, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw .unreadable(errno: errno) }
      guard count > 0 else { return bytes }
      bytes += buffer.prefix(count)
      guard bytes.count <= byteLimit else { throw .tooLong(limit: byteLimit) }
    }
  }
}

// MARK: Writing

/// A key as a line of the file, with its members in the order of the description.
package struct KeyLine: Sendable {
  /// The line's members.
  package var id, hash, tenant: String
  /// The names of scopes.
  package var scopes: [String]
  /// Limits by name.
  package var limits: [String: Double]?
  /// RFC 3339.
  package var expiresAt: String?
  /// Text for people.
  package var note: String?
  /// The secret before, and when it ends.
  private var previous: (hash: String, expiresAt: String)?

  /// Creates a line for a secret.
  package init(
    id: String, secret: String, tenant: String, scopes: [String], limits: [String: Double]? = nil,
    expiresAt: String? = nil, note: String? = nil
  ) {
    hash = Hexadecimal.text(Key.digest(of: Array(secret.utf8)))
    (self.id, self.tenant, self.scopes, self.limits) = (id, tenant, scopes, limits)
    (self.expiresAt, self.note) = (expiresAt, note)
  }

  /// The line's bytes, without a newline.
  package var bytes: [UInt8] {
    var text = "{\"id\":\(Self.quoted(id)),\"hash\":\(Self.quoted(hash)),\"tenant\":\(Self.quoted(tenant)),\"scopes\":["
    text += scopes.map(Self.quoted).joined(separator: ",") + "]"
    if let limits, !limits.isEmpty {
      let members = limits.sorted { $0.key < $1.key }.map { name, value in
        "\(Self.quoted(name)):\(Int64(exactly: value).map { "\($0)" } ?? "\(value)")"
      }
      text += ",\"limits\":{\(members.joined(separator: ","))}"
    }
    if let expiresAt { text += ",\"expires_at\":\(Self.quoted(expiresAt))" }
    if let note { text += ",\"note\":\(Self.quoted(note))" }
    if let previous {
      text += ",\"previous\":{\"hash\":\(Self.quoted(previous.hash)),"
      text += "\"expires_at\":\(Self.quoted(previous.expiresAt))}"
    }
    return Array((text + "}").utf8)
  }

  /// Returns the line of a key with another secret and everything else as it was. The key's own secret stays valid
  /// until `end`, or ends at once; one before that always does.
  package static func rotating(_ key: Key, to secret: String, keepingOldUntil end: Timestamp? = nil) -> KeyLine {
    var line = KeyLine(
      id: key.id, secret: secret, tenant: key.tenant.name,
      scopes: Scope.allCases.filter(key.scopes.contains).map(\.rawValue), limits: key.limits.byName,
      expiresAt: key.expiresAt?.rfc3339, note: key.note)
    line.previous = end.map { (Hexadecimal.text(key.secrets[0].hash), $0.rfc3339) }
    return line
  }

  private static func quoted(_ text: String) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .withoutEscapingSlashes
    return (try? encoder.encode(text)).map { String(decoding: $0, as: UTF8.self) } ?? "\"\""
  }
}
