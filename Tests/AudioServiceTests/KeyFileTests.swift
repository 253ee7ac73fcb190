import Foundation
import Jobs
import Storage
import Synchronization
import Testing

@testable import AudioService

@Suite struct KeyFileTests {
  private static let hash = String(repeating: "0f", count: 32)

  private func line(
    id: String = "\"k\"", hash: String = "\"\(hash)\"", tenant: String = "\"t\"", scopes: String = "[\"read\"]",
    more: String = ""
  ) -> [UInt8] {
    Array("{\"id\":\(id),\"hash\":\(hash),\"tenant\":\(tenant),\"scopes\":\(scopes)\(more)}".utf8)
  }

  @Test func everyMemberOfALineIsRead() throws {
    let limits = ",\"limits\":{\"recordings\":0,\"requests_per_second\":0.5}"
    let rest = ",\"expires_at\":\"2027-01-31T13:00:00+01:00\",\"note\":\"the app\""
    let file = try KeyFile(parsing: [0x0A] + line(scopes: "[\"write\",\"read\"]", more: limits + rest) + [0x0A, 0x20])
    let key = try #require(file.keys.first)
    #expect(file.keys.count == 1 && key.id == "k" && key.tenant.name == "t" && key.scopes == [.read, .write])
    #expect(key.limits[.recordings] == 0 && key.limits[.requestsPerSecond] == 0.5 && key.limits[.queuedJobs] == nil)
    #expect(key.expiresAt?.rfc3339 == "2027-01-31T12:00:00.000Z" && key.note == "the app")
  }

  @Test(
    "a line that isn't a key is named",
    arguments: [
      ("text", "no key"), ("an array", "[]"), ("cut off", "{\"id\":\"k\""),
      ("no id", "{\"hash\":\"\(hash)\",\"tenant\":\"\",\"scopes\":[\"read\"]}"),
      ("no hash", "{\"id\":\"k\",\"tenant\":\"\",\"scopes\":[\"read\"]}"),
      ("no tenant", "{\"id\":\"k\",\"hash\":\"\(hash)\",\"scopes\":[\"read\"]}"),
      ("no scopes", "{\"id\":\"k\",\"hash\":\"\(hash)\",\"tenant\":\"\"}"),
    ])
  func missingMembers(name: String, text: String) {
    let bytes = Array("\n".utf8) + Array(text.utf8)
    #expect(performing: { try KeyFile(parsing: bytes) }, throws: { "\($0)".hasPrefix("line 2 ") })
  }

  @Test(
    "an invalid value of a member is named",
    arguments: [
      ("id", ["\"id\":\"\"", "\"id\":\"a b\"", "\"id\":7"]),
      ("hash", ["\"hash\":\"00\"", "\"hash\":\"\(hash.uppercased())\""]),
      ("tenant", ["\"tenant\":\"a\\u0000\"", "\"tenant\":null"]),
      (
        "scopes",
        [
          "\"scopes\":[]", "\"scopes\":\"read\"", "\"scopes\":[\"root\"]", "\"scopes\":[\"read\",\"read\"]",
          "\"scopes\":[\"admin\"]",
        ]
      ),
      (
        "limits",
        [
          "\"limits\":{\"recordings\":-1}", "\"limits\":{\"recordings\":1.5}", "\"limits\":{\"cats\":1}",
          "\"limits\":[]", "\"limits\":{\"recordings\":1e999}",
        ]
      ),
      ("expires_at", ["\"expires_at\":\"tomorrow\"", "\"expires_at\":0", "\"expires_at\":\"2027-02-29T00:00:00Z\""]),
      ("note", ["\"note\":1"]),
      (
        "previous",
        [
          "\"previous\":{}", "\"previous\":{\"hash\":\"\(String(repeating: "1f", count: 32))\"}",
          "\"previous\":{\"hash\":\"\(hash)\",\"expires_at\":\"2027-01-01T00:00:00Z\",\"note\":\"\"}",
        ]
      ), ("colour", ["\"colour\":\"red\""]),
    ])
  func invalidMembers(member: String, texts: [String]) {
    for text in texts {
      var members = [
        "id": "\"id\":\"k\"", "hash": "\"hash\":\"\(Self.hash)\"", "tenant": "\"tenant\":\"t\"",
        "scopes": "\"scopes\":[\"read\"]",
      ]
      members[member] = text
      let line = Array("{\(members.values.joined(separator: ","))}".utf8)
      #expect(performing: { try KeyFile(parsing: line) }, throws: { "\($0)".contains(member) })
    }
  }

  @Test func noTwoKeysHaveTheSameIDOrSecret() {
    let other = "\"\(String(repeating: "1f", count: 32))\""
    #expect(
      performing: { try KeyFile(parsing: line() + [0x0A] + line(hash: other)) },
      throws: { "\($0)".contains("line 2 repeats the id") })
    #expect(
      performing: { try KeyFile(parsing: line() + [0x0A] + line(id: "\"l\"")) },
      throws: { "\($0)".contains("line 2 repeats the hash") })
    for id in ["k", "l"] {
      let previous = ",\"previous\":{\"hash\":\"\(Self.hash)\",\"expires_at\":\"2027-01-01T00:00:00Z\"}"
      let lines =
        (id == "k" ? [] : line() + [0x0A])
        + line(id: "\"\(id)\"", hash: id == "k" ? "\"\(Self.hash)\"" : other, more: previous)
      #expect(performing: { try KeyFile(parsing: lines) }, throws: { "\($0)".contains("repeats the hash") })
    }
  }

  @Test("reading a file of keys never waits for another process, and what isn't a file is an error")
  func pipe() throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/keys"
    let isMade = unsafe mkfifo(path, 0o600) == 0
    try #require(isMade)
    for path in [path, folder.path, "/dev/zero"] {
      #expect(throws: KeyFileError.notAFile) { try KeyFile(path: path) }
    }
    #expect(throws: KeyFileError.unreadable(errno: ENXIO)) { try AuditLog(path: path) }
  }

  @Test("what can't be read for the moment is tried again, and is an error once")
  func unreadable() throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/keys"
    try "".write(toFile: path, atomically: true, encoding: .utf8)
    let fault = Mutex<Int32?>(nil)
    let file = try WatchedFile(path: path) { path in
      if let number = fault.withLock({ $0 }) { throw KeyFileError.unreadable(errno: number) }
      return try KeyFile(path: path).keys.count
    }
    try Data(line()).write(to: URL(filePath: path))
    fault.withLock { $0 = EMFILE }
    #expect(throws: KeyFileError.unreadable(errno: EMFILE)) { try file.reload() }
    #expect(try !file.reload())
    fault.withLock { $0 = nil }
    #expect(try file.reload() && file.content == 1)
    #expect(try !file.reload())
  }

  @Test func aWrittenLineIsReadAsItWas() throws {
    let line = KeyLine(
      id: "k", secret: "a secret of thirty-two characters", tenant: "t\"ä/", scopes: ["read", "delete"],
      limits: ["recordings": 10, "requests_per_second": 0.25], expiresAt: "2027-01-31T12:00:00Z", note: "n")
    let key = try #require(try KeyFile(parsing: line.bytes).keys.first)
    func has(_ secret: String, _ key: Key, until end: String? = nil) -> Bool {
      let found = key.secret(with: Key.digest(of: Array(secret.utf8)))
      return found != nil && found?.expiresAt?.rfc3339 == end
    }
    #expect(has("a secret of thirty-two characters", key))
    #expect(key.tenant.name == "t\"ä/" && key.scopes == [.read, .delete] && key.limits[.requestsPerSecond] == 0.25)
    let end = try #require(Timestamp(rfc3339: "2027-01-01T00:00:00Z"))
    for end in [nil, end] {
      let line = KeyLine.rotating(key, to: "another", keepingOldUntil: end).bytes
      let rotated = try #require(try KeyFile(parsing: line).keys.first)
      #expect(has("another", rotated) && rotated.secrets.count == (end == nil ? 1 : 2))
      if let end { #expect(has("a secret of thirty-two characters", rotated, until: end.rfc3339)) }
      #expect(rotated.tenant == key.tenant && rotated.scopes == key.scopes && rotated.limits == key.limits)
      #expect(rotated.expiresAt == key.expiresAt && rotated.note == key.note)
      let again = try KeyFile(parsing: KeyLine.rotating(rotated, to: "the third").bytes).keys.first
      #expect(again?.secrets.count == 1)
    }
  }

  @Test func ofSeveralKeysOfATenantTheHighestLimitCounts() throws {
    var (low, high) = (TenantLimits(), TenantLimits())
    low[.recordings] = 1
    high[.recordings] = 5
    high[.queuedJobs] = 0
    var joined = low
    joined.join(high)
    #expect(joined[.recordings] == 5 && joined[.queuedJobs] == 0 && joined[.storedBytes] == nil)
  }

  @Test func expiryDoesNotFollowAClockThatMovesBackward() throws {
    let times = [1_700_000_000_000, 1_900_000_000_000, 1_600_000_000_000].map { Timestamp(milliseconds: $0) }
    let next = Counter()
    let clock = AccessClock {
      next.add(1)
      return times[min(Int(next.value), times.count) - 1]
    }
    #expect(clock.now == times[0] && clock.now == times[1] && clock.now == times[1])
  }

  @Test func refusalsAfterTheFirstOnesWait() {
    var failures = FailedAttempts()
    let (guesser, other) = (Client(key: "guesser"), Client(key: "other"))
    for _ in 0..<50 { #expect(failures.wait(for: guesser, at: 0) == 0) }
    #expect(abs(failures.wait(for: guesser, at: 0) - 0.1) < 1e-9)
    #expect(abs(failures.wait(for: guesser, at: 0) - 0.2) < 1e-9)
    #expect(failures.wait(for: other, at: 0) == 0)
    for _ in 0..<100 { _ = failures.wait(for: guesser, at: 0) }
    // Those that aren't waited for don't make the wait longer.
    #expect(failures.wait(for: guesser, at: 0) > FailedAttempts.longestWait)
    #expect(failures.wait(for: guesser, at: 1) < FailedAttempts.longestWait)
    #expect(failures.wait(for: guesser, at: 1000) == 0)
  }
}
