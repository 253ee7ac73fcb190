import ArgumentParser
import AudioService
import Glibc
import Storage
import Terms

struct KeysCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "keys",
    abstract: "Writes the file of keys that opens a service to those who have one.",
    discussion: """
      The file has one key per line, with the SHA-256 of its secret, not the secret itself: that is shown once, when \
      the key is made. A service that runs with --keys FILE reads the file again when it changes.
      """,
    subcommands: [AddKeyCommand.self, ListKeysCommand.self, RevokeKeyCommand.self, RotateKeyCommand.self])
}

/// The option that names the file.
struct KeyFileOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The file of keys (default: STILLWAVE_KEYS).", valueName: "FILE"))
  var keys: String?

  func path() throws -> String {
    guard let path = setting("keys", keys), !path.isEmpty else {
      throw ValidationError("Name the file of keys with --keys FILE or STILLWAVE_KEYS.")
    }
    return path
  }
}

struct AddKeyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "add", abstract: "Adds a key and shows its secret, once.",
    discussion: """
      Example: stillwave keys add app --keys keys.jsonl --tenant acme --scopes read,write. The file is created if it \
      doesn't exist, readable only for its owner.
      """)

  @Argument(help: "The key's name in logs, 1 to 128 visible ASCII characters.")
  var id: String

  @OptionGroup var file: KeyFileOptions

  @Option(help: "Whose recordings the key gives access to; left out, those of a service without keys.")
  var tenant = ""

  @Option(help: "Any of read, write, delete, admin, separated by commas; admin only without a tenant.")
  var scopes = "read"

  @Option(
    name: .customLong("limit"),
    help: ArgumentHelp(
      "A limit of the tenant, such as stored_bytes=10000000000 or requests_per_second=20; may be repeated.",
      valueName: "NAME=VALUE"))
  var limits: [String] = []

  @Option(help: ArgumentHelp("When the key stops working, such as 2027-01-31T12:00:00Z.", valueName: "TIME"))
  var expiresAt: String?

  @Option(help: "Text for people.")
  var note: String?

  func run() throws {
    let secret = RandomText.secret()
    let line = KeyLine(
      id: id, secret: secret, tenant: tenant, scopes: scopes.split(separator: ",").map(String.init),
      limits: try parsedLimits(), expiresAt: expiresAt, note: note)
    try KeyFileEditor.edit(try file.path(), creating: true) { lines in lines.append(line.bytes) }
    StandardStreams.write(Array((secret + "\n").utf8))
  }

  private func parsedLimits() throws -> [String: Double]? {
    var parsed: [String: Double] = [:]
    for limit in limits {
      let parts = limit.split(separator: "=", maxSplits: 1)
      guard parts.count == 2, let value = Double(String(parts[1])), value.isFinite else {
        throw ValidationError("--limit takes NAME=VALUE, such as recordings=1000; it was “\(limit)”.")
      }
      parsed[String(parts[0])] = value
    }
    return parsed.isEmpty ? nil : parsed
  }
}

struct ListKeysCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "Lists the keys, without anything secret.")

  @OptionGroup var file: KeyFileOptions

  func run() throws {
    let path = try file.path()
    var text = "id\ttenant\tscopes\texpires\tnote\n"
    for key in try KeyFileEditor.read(path).keys {
      let scopes = Scope.allCases.filter(key.scopes.contains).map(\.rawValue).joined(separator: ",")
      text += "\(key.id)\t\(key.tenant)\t\(scopes)\t\(key.expiresAt?.rfc3339 ?? "")\t\(key.note ?? "")\n"
    }
    StandardStreams.write(Array(text.utf8))
  }
}

struct RevokeKeyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "revoke", abstract: "Removes a key. Requests with it, and with tokens it has minted, get 401.",
    discussion: """
      For a week, don't give another key of the tenant the same name: the tokens that the removed one minted would work \
      again until their time is over.
      """)

  @Argument(help: "The key's name.")
  var id: String

  @OptionGroup var file: KeyFileOptions

  func run() throws {
    try KeyFileEditor.edit(try file.path()) { lines in
      lines.remove(at: try KeyFileEditor.key(id, in: lines).index)
    }
  }
}

struct RotateKeyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rotate", abstract: "Gives a key another secret and shows that, once.",
    discussion: """
      The old secret stops working at once, or with --overlap some time later, so that clients can be changed without a \
      pause: stillwave keys rotate app --keys keys.jsonl --overlap 1h. A secret from before the old one stops in any \
      case. Tokens that the key has minted go on working: if its secret may be known to others, revoke the key.
      """)

  /// How long two secrets are valid.
  struct Overlap: ExpressibleByArgument {
    let seconds: Double

    private static let units: [Character: Int] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
    private static let longest = 365 * 86_400

    init?(argument: String) {
      guard let unit = argument.last.flatMap({ Self.units[$0] }), let count = Int(argument.dropLast()),
        (1...Self.longest / unit).contains(count)
      else { return nil }
      seconds = Double(count * unit)
    }
  }

  @Argument(help: "The key's name.")
  var id: String

  @OptionGroup var file: KeyFileOptions

  @Option(
    help: ArgumentHelp(
      "How long the old secret stays valid, such as 90s, 15m, 1h or 7d; at most 365d.", valueName: "TIME"))
  var overlap: Overlap?

  func run() throws {
    let secret = RandomText.secret()
    let end = overlap.map { Clock.system.time + $0.seconds }
    try KeyFileEditor.edit(try file.path()) { lines in
      let (index, key) = try KeyFileEditor.key(id, in: lines)
      lines[index] = KeyLine.rotating(key, to: secret, keepingOldUntil: end).bytes
    }
    StandardStreams.write(Array((secret + "\n").utf8))
  }
}
