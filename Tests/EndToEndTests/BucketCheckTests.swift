import Foundation
import PostgresServer
import Testing

@testable import Sounds

/// `stillwave check` of a catalog in PostgreSQL and a bucket.
@Suite(.enabled(if: PostgresServer.TestServer.isInstalled, "PostgreSQL isn't installed: deploy/install postgres"))
struct BucketCheckTests {
  private let cluster: BucketCluster
  private let node: TestServer
  private let id: String

  init() throws {
    cluster = try BucketCluster()
    node = try cluster.node("one")
    let recording = try node.client.upload(Clip.tone.bytes, name: "tone.wav")
    id = try #require(recording["id"].string)
    if let job = recording["waveform"]["job"].string { try node.client.succeed(job) }
  }

  private func codes(_ findings: JSON) -> [String] { (findings.array ?? []).compactMap { $0["code"].string } }

  /// The key of one of the recording's objects.
  private func key(_ start: String) throws -> String {
    try #require(try cluster.objects().first { $0.hasPrefix("recordings/\(id)/\(start)") && !$0.hasSuffix(".map") })
  }

  @Test func aSoundBucketHasNoFindingsWhileANodeUsesIt() throws {
    #expect(try node.client.conversion("/v1/recordings/\(id)/audio?format=flac").status == 200)
    let upload = try node.client.send("POST", "/v1/uploads", ["Tus-Resumable": "1.0.0", "Upload-Length": "99"])
    let part = try node.client.send(
      "PATCH", try #require(upload["location"]),
      ["Tus-Resumable": "1.0.0", "Content-Type": "application/offset+octet-stream", "Upload-Offset": "0"],
      .bytes([UInt8](repeating: 1, count: 50)))
    #expect(part.status == 204)
    for more in [[], ["--quick"]] {
      let (status, answer, errors) = try cluster.check(more)
      #expect(status == 0 && answer["ok"] == .bool(true), "\(answer) \(errors)")
      #expect(answer["recordings"].int == 1 && answer["bytes"].int == Clip.tone.bytes.count)
      #expect(codes(answer["problems"]) == [] && codes(answer["notes"]) == [], "\(answer)")
    }
  }

  @Test func aBucketThatCanNotBeComparedIsAnErrorAndNothingIsBound() throws {
    let server = try #require(PostgresServer.TestServer.shared)
    try write(
      Array("[default]\naws_access_key_id = \(BucketServer.accessKey)\naws_secret_access_key = no\n".utf8),
      to: cluster.folder.file("wrong"))
    let identity = try cluster.rows("SELECT id FROM media_folder")
    for (more, reason) in [
      (["--media", "s3://sounds/other"], "isn't the bucket whose recordings the catalog describes"),
      (["--media", "s3://silence"], "there is no such bucket"),
      (["--s3-credentials", cluster.folder.file("wrong")], "the key is refused (SignatureDoesNotMatch)"),
      (["--s3-credentials", cluster.folder.file("none")], "has no key"),
      (["--s3-endpoint", "http://127.0.0.1:1"], "The store of --media can't be reached"),
      (["--media", "s3://sounds?style=sideways"], "has the option “style”"),
      (["--catalog", server.url(database: try server.newDatabase())], "The catalog has no tables yet"),
      (["--repair"], "--repair is for the data folder of one machine"),
    ] {
      let found = try cluster.check(more)
      #expect(found.status != 0 && found.errors.contains(reason), "\(more): \(found.errors)")
    }
    #expect(try cluster.rows("SELECT id FROM media_folder") == identity)
    #expect(try cluster.objects().filter { !$0.contains("/") } == ["media-id"])
    try cluster.remove("media-id")
    #expect(try cluster.check().errors.contains("its object media-id is missing or another's"))
    #expect(try !cluster.objects().contains("media-id"))
  }

  @Test func aBackupOfANodesFolderIsRefusedBecauseItWouldLackTheRecordings() throws {
    let copy = cluster.folder.file("backup")
    let finished = try Command.stillwave("backup", "--data", node.data, "-o", copy)
    #expect(
      finished.status != 0 && finished.errors.contains("is the folder of one of several nodes"), "\(finished.errors)")
    #expect(!FileManager.default.fileExists(atPath: copy))
  }

  /// A server that refuses the key of the first client that it talks to.
  private func overTLS() throws -> (server: Command, endpoint: String) {
    let script = """
      cd "$1" || exit 1
      openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=store \\
        -addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out ca.pem 2>/dev/null || exit 1
      body='<Error><Code>InvalidAccessKeyId</Code></Error>'
      mkfifo answers
      { printf 'HTTP/1.1 403 Forbidden\\r\\nContent-Length: %d\\r\\n\\r\\n%s' ${#body} "$body"; exec sleep 60; } >answers &
      exec openssl s_server -accept 127.0.0.1:0 -cert ca.pem -key key.pem <answers
      """
    let server = try Command("/bin/sh", ["-c", script, "sh", cluster.folder.path])
    var port: Substring?
    let isListening = try eventually {
      port = try server.output().firstMatch(of: /ACCEPT [^\n]*:([0-9]+)\n/)?.1
      return port != nil
    }
    #expect(isListening)
    return (server, "https://127.0.0.1:\(try #require(port))")
  }

  @Test func aStoreIsTrustedOnlyWithACertificateFromAKnownAuthority() throws {
    let (server, endpoint) = try overTLS()
    defer { server.signal(SIGTERM) }
    let known = try cluster.check(["--s3-endpoint", endpoint, "--s3-ca", cluster.folder.file("ca.pem")])
    #expect(known.status == 1 && known.errors.contains("the key is refused (InvalidAccessKeyId)"), "\(known.errors)")
    let strange = try cluster.check(["--s3-endpoint", endpoint])
    #expect(
      strange.status == 1 && strange.errors.contains("The store of --media can't be reached"), "\(strange.errors)")
  }
}
