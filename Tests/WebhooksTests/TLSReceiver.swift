import Foundation
import PresentRows
import Testing

typealias TemporaryFolder = PresentRows.TemporaryFolder

/// A receiver of webhooks over https: `openssl s_server` with a certificate for `host` from an unknown authority. It
/// accepts one connection, answers 204, and stores what was sent.
///
/// Foundation's `Process` won't do: in a process with many descriptors it reads beyond its memory now and then
/// (swift-corelibs-foundation #5472).
final class TLSReceiver {
  let url: String
  /// The certificate of the authority.
  let authority: String
  private let folder: TemporaryFolder
  private let process: pid_t
  private var hasEnded = false
  private let input: FileHandle
  private let output: String

  /// `subject` is the certificate's subject: "IP:127.0.0.1", "DNS:a.example".
  init(for subject: String) throws {
    let folder = try TemporaryFolder()
    self.folder = folder
    authority = folder.path + "/ca.pem"
    output = folder.path + "/output"
    let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-batch"]
    try Self.openssl(
      folder, ["req", "-x509"] + key + ["-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=Authority", "-days", "2"])
    try Self.openssl(folder, ["req"] + key + ["-keyout", "key.pem", "-out", "request", "-subj", "/CN=Receiver"])
    try "subjectAltName=\(subject)".write(toFile: folder.path + "/names", atomically: true, encoding: .utf8)
    try Self.openssl(
      folder,
      [
        "x509", "-req", "-in", "request", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
        "-extfile", "names", "-out", "certificate.pem",
      ])
    let pipe = Pipe()
    input = pipe.fileHandleForWriting
    process = try Self.spawn(
      folder, ["s_server", "-accept", "127.0.0.1:0", "-naccept", "1", "-cert", "certificate.pem", "-key", "key.pem"],
      input: pipe.fileHandleForReading.fileDescriptor, output: output)
    // Standard input is sent to the client that connects.
    try input.write(contentsOf: Data("HTTP/1.1 204 No Content\r\n\r\n".utf8))
    // "ACCEPT 127.0.0.1:41234" once it listens.
    let deadline = ContinuousClock.now + .seconds(60)
    var port: Substring?
    while port == nil, ContinuousClock.now < deadline {
      port = try? Self.text(output).firstMatch(of: /ACCEPT [^\n]*:([0-9]+)\n/)?.1
    }
    url = "https://127.0.0.1:\(try #require(port))/hook"
  }

  /// Foundation's own function leaks memory while the file is empty.
  private static func text(_ path: String) throws -> String {
    let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
    defer { try? file.close() }
    return String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
  }

  deinit {
    guard !hasEnded else { return }
    kill(process, SIGTERM)
    _ = Self.status(of: process)
  }

  /// Everything received, with s_server's messages about the connection. Call it once, after the connection has ended.
  func received() throws -> String {
    _ = Self.status(of: process)
    hasEnded = true
    return try Self.text(output)
  }

  private static func openssl(_ folder: TemporaryFolder, _ arguments: [String]) throws {
    try #require(status(of: try spawn(folder, arguments)) == 0, "openssl \(arguments)")
  }

  private static func spawn(
    _ folder: TemporaryFolder, _ arguments: [String], input: Int32? = nil, output: String = "/dev/null"
  ) throws -> pid_t {
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe _ = posix_spawn_file_actions_destroy(&actions) }
    if let input {
      unsafe posix_spawn_file_actions_adddup2(&actions, input, 0)
    } else {
      unsafe posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    }
    unsafe posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    unsafe posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
    let files = ["ca.key", "ca.pem", "key.pem", "request", "names", "certificate.pem"]
    let words =
      unsafe (["openssl"] + arguments.map { files.contains($0) ? folder.path + "/" + $0 : $0 }).map {
        unsafe strdup($0)
      }
      + [nil]
    defer { unsafe words.forEach { unsafe free($0) } }
    var process: pid_t = 0
    try #require(unsafe posix_spawn(&process, "/usr/bin/openssl", &actions, nil, words, environ) == 0)
    return process
  }

  private static func status(of process: pid_t) -> Int32 {
    var status: Int32 = -1
    while unsafe waitpid(process, &status, 0) < 0 && errno == EINTR {}
    return status
  }
}
