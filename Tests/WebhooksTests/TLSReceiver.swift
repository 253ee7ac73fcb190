import Foundation
import Testing

/// A receiver of webhooks over https: `openssl s_server` with a certificate for `host` from an unknown authority. It
/// accepts one connection, answers 204, and stores what was sent.
final class TLSReceiver {
  let url: String
  /// The certificate of the authority.
  let authority: String
  private let folder: TemporaryFolder
  private let process = Process()
  private let input = Pipe()
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
    try #require(FileManager.default.createFile(atPath: output, contents: nil))
    Self.prepare(
      process, folder,
      ["s_server", "-accept", "127.0.0.1:0", "-naccept", "1", "-cert", "certificate.pem", "-key", "key.pem"])
    process.standardInput = input
    process.standardOutput = try FileHandle(forWritingTo: URL(fileURLWithPath: output))
    try process.run()
    // Standard input is sent to the client that connects.
    try input.fileHandleForWriting.write(contentsOf: Data("HTTP/1.1 204 No Content\r\n\r\n".utf8))
    // "ACCEPT 127.0.0.1:41234" once it listens.
    let deadline = ContinuousClock.now + .seconds(60)
    var port: Substring?
    while port == nil, ContinuousClock.now < deadline, process.isRunning {
      port = try Self.text(output).firstMatch(of: /ACCEPT [^\n]*:([0-9]+)\n/)?.1
    }
    url = "https://127.0.0.1:\(try #require(port))/hook"
  }

  /// Foundation's own function leaks memory while the file is empty.
  private static func text(_ path: String) throws -> String {
    let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
    defer { try? file.close() }
    return String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
  }

  deinit { process.terminate() }

  /// Everything received, with s_server's messages about the connection. Call it after the connection has ended.
  func received() throws -> String {
    process.waitUntilExit()
    return try Self.text(output)
  }

  private static func prepare(_ process: Process, _ folder: TemporaryFolder, _ arguments: [String]) {
    process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
    process.arguments = arguments
    process.currentDirectoryURL = URL(fileURLWithPath: folder.path)
    process.standardError = FileHandle.nullDevice
  }

  private static func openssl(_ folder: TemporaryFolder, _ arguments: [String]) throws {
    let process = Process()
    prepare(process, folder, arguments)
    try process.run()
    process.waitUntilExit()
    try #require(process.terminationStatus == 0, "openssl \(arguments)")
  }
}
