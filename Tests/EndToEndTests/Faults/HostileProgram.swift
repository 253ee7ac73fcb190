import Foundation

@testable import Sounds

/// A program in place of ffmpeg that attacks the service, its files, and the system: see Tests/Fenced/hostile.c.
final class HostileProgram {
  /// The user that runs the service.
  enum User: String, CaseIterable {
    case same = "the user of the tests"
    case other = "a user without rights"

    /// Only root can start it as another user.
    static var available: [User] { geteuid() == 0 ? allCases : [.same] }

    /// A user id that is neither root's nor the one ffmpeg gets.
    static let otherID: uid_t = 65534

    var starter: [String] {
      switch self {
      case .same: []
      case .other: ["/usr/bin/setpriv", "--reuid=\(Self.otherID)", "--regid=\(Self.otherID)", "--clear-groups"]
      }
    }
  }

  /// System calls that a kernel without Landlock lacks.
  static let landlock = "landlock_create_ruleset,landlock_add_rule,landlock_restrict_self"

  let server: TestServer
  private let folder: TemporaryFolder
  private let victim: String
  private let victimBytes = Clip.tone.bytes

  /// Starts a service with this program as its ffmpeg, and uploads a recording for it to attack.
  init(user: User, withoutLandlock: Bool = false) throws {
    folder = try TemporaryFolder()
    // A place where every user can find the programs.
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder.path)
    for (name, source) in [
      ("ffmpeg", try Program.fenced()), ("ffprobe", try Program.fenced()), ("Fenced", try Program.fenced()),
      ("stillwave", try Program.path()),
    ] { try Program.copy(source, to: folder.file(name)) }
    let data = folder.file("data")
    try FileManager.default.createDirectory(
      atPath: data, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    if user == .other { unsafe _ = chown(data, User.otherID, User.otherID) }
    // A service may be started with more open descriptors than it knows of.
    let leaking = ["/bin/bash", "-c", #"exec "$0" "$@" 9</etc/passwd"#]
    let starter = leaking + (withoutLandlock ? [folder.file("Fenced"), "--without", Self.landlock] : [])
    server = try TestServer(
      "--ffmpeg", folder.file("ffmpeg"), dataDirectory: data, under: user.starter + starter,
      program: folder.file("stillwave"))
    let id = try server.client.uploadReady(victimBytes)["id"].string ?? ""
    victim = data + "/recordings/\(id)/audio.wav"
  }

  deinit { server.kill() }

  /// The result of each attack during an upload: an errno, or 0 if it succeeded.
  func outcomes() throws -> [String: Int] {
    let file = Self.file("service=\(server.processID)\ndata=\(server.data)\nother=\(victim)\n")
    let answer = try server.client.send("POST", "/v1/recordings?name=a.m4a", [:], .bytes(file))
    return Self.outcomes(in: answer.json["detail"].string ?? "")
  }

  /// Uploads a file on which the program hangs forever, without waiting for the answer.
  func hang() {
    let port = server.client.port
    DispatchQueue(label: "hanging upload").async {
      _ = try? HTTPClient(port: port).send("POST", "/v1/recordings?name=a.m4a", [:], .bytes(Self.file("hang=yes\n")))
    }
  }

  /// The processes that currently run the program.
  func processes() -> [pid_t] {
    Processes.naming(folder.file("ff")).filter {
      Processes.commandLine(of: $0).hasPrefix(folder.path)
        && !Processes.commandLine(of: $0).hasPrefix(folder.file("stillwave"))
    }
  }

  /// A file that looks like an m4a and contains commands for the program.
  static func file(_ text: String) -> [UInt8] { [0, 0, 0, 32] + Array("ftypM4A \n\(text)".utf8) }

  /// Parses `name=errno`, separated by spaces.
  static func outcomes(in text: String) -> [String: Int] {
    let pairs = text.split { " ()\"".contains($0) }.compactMap { word -> (String, Int)? in
      let parts = word.split(separator: "=")
      guard parts.count == 2, let number = Int(parts[1]) else { return nil }
      return (String(parts[0]), number)
    }
    return Dictionary(pairs, uniquingKeysWith: { $1 })
  }

  /// Returns descriptions of what has been harmed.
  func losses() throws -> [String] {
    var losses: [String] = []
    if try server.client.get("/healthz").status != 200 { losses.append("the service is gone") }
    if try contents(victim) != victimBytes { losses.append("another recording has changed") }
    if FileManager.default.fileExists(atPath: server.data + "/intruder") { losses.append("a file was made") }
    let modes = try FileManager.default.attributesOfItem(atPath: victim)[.posixPermissions] as? Int
    if let modes, modes & 0o007 != 0 { losses.append("another recording is open to all: \(modes)") }
    return losses
  }
}
