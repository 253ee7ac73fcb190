import Foundation
import PostgresServer
import Testing

@testable import Sounds

/// Clients that are sent to the bucket for whole files (`--s3-redirects`).
@Suite(.enabled(if: PostgresServer.TestServer.isInstalled, "PostgreSQL isn't installed: deploy/install postgres"))
struct RedirectTests {
  private let cluster: BucketCluster

  init() throws { cluster = try BucketCluster() }

  /// Requests a recording's audio and follows the redirect, as a client of the store that has no key.
  private func follow(
    _ node: TestServer, _ target: String, _ fields: [String: String] = [:]
  ) throws -> (location: String, answer: Answer) {
    let redirect = try node.client.get(target, fields)
    try #require(redirect.status == 307, "\(redirect.status) \(redirect.text)")
    #expect(redirect["cache-control"] == "no-store" && redirect.body.isEmpty)
    let location = try #require(redirect["location"])
    try #require(location.hasPrefix(cluster.store.endpoint + "/sounds/stillwave/recordings/"), "\(location)")
    return (location, try ask(location, fields))
  }

  private func ask(_ location: String, _ fields: [String: String] = [:]) throws -> Answer {
    let client = HTTPClient(port: try #require(UInt16(cluster.store.endpoint.split(separator: ":").last ?? "")))
    client.followsContract = false
    return try client.get(String(location.dropFirst(cluster.store.endpoint.count)), fields)
  }

  @Test func aWholeFileAndARangeOfItComeFromTheStoreAsTheNodeWouldSendThem() throws {
    let (node, plain) = (try cluster.node("one", "--s3-redirects", "60"), try cluster.node("two"))
    let bytes = Clip.tone.bytes
    let recording = try node.client.upload(bytes, name: #"Grüße "a".wav"#)
    let path = "/v1/recordings/\(try #require(recording["id"].string))/audio"
    for target in [path, "\(path)?download=1", "\(path)?format=wav"] {
      let (_, answer) = try follow(node, target)
      let expected = try plain.client.get(target)
      #expect(answer.status == 200 && answer.body == bytes && expected.body == bytes)
      for name in ["content-type", "content-disposition", "cache-control"] {
        #expect(answer[name] == expected[name], "\(target): \(name)")
      }
    }
    for range in ["bytes=10-4999", "bytes=100-", "bytes=0-0"] {
      let (answer, expected) = (
        try follow(node, path, ["Range": range]).answer, try plain.client.get(path, ["Range": range])
      )
      #expect(answer.status == 206 && answer.body == expected.body, "\(range)")
      #expect(answer["content-range"] == expected["content-range"])
    }
  }

  @Test func whatTheStoreCanNotAnswerComesFromTheNode() throws {
    let node = try cluster.node("one", "--s3-redirects", "60")
    let bytes = Clip.tone.bytes
    let recording = try node.client.upload(bytes, name: "tone.wav")
    let path = "/v1/recordings/\(try #require(recording["id"].string))/audio"
    let head = try node.client.send("HEAD", path)
    #expect(head.status == 200 && head["content-length"] == "\(bytes.count)")
    let tag = try #require(head["etag"])
    for fields in [
      ["Origin": "http://127.0.0.1:\(node.client.port)"], ["Sec-Fetch-Mode": "cors"], ["Sec-Fetch-Mode": "same-origin"],
      ["User-Agent": "Mozilla/5.0 (X11)"],
    ] {
      #expect(try node.client.get(path, fields).body == bytes, "a page's script may not read from the store")
    }
    for mode in ["navigate", "no-cors"] {
      #expect(try node.client.get(path, ["User-Agent": "Mozilla/5.0", "Sec-Fetch-Mode": mode]).status == 307)
    }
    #expect(try node.client.get(path, ["If-Match": tag]).status == 200, "the store has other tags")
    #expect(try node.client.get(path, ["Range": "bytes=0-4,9-12"]).status == 206)
    #expect(try node.client.get(path, ["Range": "bytes=5-9", "If-Range": tag]).body == Array(bytes[5...9]))
    #expect(try node.client.get(path, ["If-None-Match": tag]).status == 304)
    #expect(try node.client.get("\(path)?start=0&end=0.1").status == 200)
    // The object is another one, so the node says so, and no client is sent to it.
    let key = try #require(try cluster.rows("SELECT audio_key FROM recordings").first)
    try cluster.put([1, 2, 3], as: key)
    let cold = try cluster.node("two", "--s3-redirects", "60")
    #expect(try cold.client.get(path).status == 410)
  }

  @Test func aConversionComesFromTheStoreOnceItIsThere() throws {
    let node = try cluster.node("one", "--s3-redirects", "60")
    let recording = try node.client.upload(Clip.tone.bytes, name: "tone.wav")
    let path = "/v1/recordings/\(try #require(recording["id"].string))/audio?format=flac&download=1"
    let made = try node.client.conversion(path)
    #expect(made.status == 200 || made.status == 307, "\(made.text)")
    let (_, answer) = try follow(node, path)
    let expected = try node.client.get(path, ["Sec-Fetch-Mode": "cors"])
    #expect(expected.status == 200 && answer.body == expected.body)
    #expect(answer["content-type"] == expected["content-type"])
    #expect(answer["content-disposition"]?.contains("tone.flac") == true)
  }

  @Test func clientsAreSentToTheAddressThatTheyReachTheStoreAt() throws {
    let origin = "https://media.example.com:8443"
    let node = try cluster.node("one", "--s3-redirects", "60", "--s3-public-endpoint", origin)
    let recording = try node.client.upload(Clip.tone.bytes, name: "tone.wav")
    let answer = try node.client.get("/v1/recordings/\(try #require(recording["id"].string))/audio")
    #expect(answer.status == 307 && answer["location"]?.hasPrefix("\(origin)/sounds/stillwave/recordings/") == true)
    // The page plays sound from there, and nothing else comes from there.
    let policy = try #require(try node.client.get("/")["content-security-policy"])
    #expect(policy.contains("media-src 'self' \(origin);") && policy.contains("connect-src 'self';"), "\(policy)")
    #expect(try node.client.get("/metrics").text.contains("stillwave_store_redirects_total 1\n"))
  }

  @Test func keysAndTokensAreCheckedBeforeAndTheAuditLogHasNoAddress() throws {
    let (keys, secrets) = (cluster.folder.file("keys"), cluster.folder.file("secrets"))
    let adding = try Command(
      Program.path(), ["keys", "add", "app", "--tenant", "acme", "--scopes", "read,write", "--keys", keys])
    #expect(try adding.finish().status == 0)
    let key = try adding.output().trimmingCharacters(in: .newlines)
    try write(Array((String(repeating: "s", count: 40) + "\n").utf8), to: secrets)
    let audit = cluster.folder.file("audit.jsonl")
    let node = try cluster.node(
      "one", "--s3-redirects", "3600", "--keys", keys, "--token-secret-file", secrets, "--audit-log", audit)
    let bearer = ["Authorization": "Bearer \(key)"]
    let created = try node.client.send(
      "POST", "/v1/recordings?name=a.wav", bearer, .bytes(Clip.tone.bytes))
    let id = try #require(created.json["id"].string, "\(created.text)")
    for fields in [[:], ["Authorization": "Bearer \(String(repeating: "x", count: 40))"]] {
      let refused = try node.client.get("/v1/recordings/\(id)/audio", fields)
      #expect(refused.status == 401 && refused["location"] == nil)
    }
    #expect(try node.client.get("/v1/recordings/\(id)/audio", bearer).status == 307)
    let minted = try node.client.post("/v1/tokens", json: #"{"recording":"\#(id)","expires_in":60}"#, bearer)
    let token = try #require(minted.json["token"].string, "\(minted.text)")
    let location = try #require(try node.client.get("/v1/recordings/\(id)/audio?token=\(token)")["location"])
    let seconds = location.split(separator: "X-Amz-Expires=").last.flatMap { Int($0.prefix { $0.isNumber }) }
    #expect((1...60).contains(try #require(seconds)), "an address ends with its token: \(location)")
    try node.stop()
    let log = try String(contentsOfFile: audit, encoding: .utf8)
    #expect(log.contains("\"status\":307") && !log.contains("X-Amz-Signature"))
  }
}
