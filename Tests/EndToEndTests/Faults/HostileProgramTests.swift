import Foundation
import Testing

/// A program in place of ffmpeg can access only the file it's given.
@Suite(.serialized) struct HostileProgramTests {
  /// The attacks in Tests/Fenced/hostile.c that must fail.
  static let attempts = [
    "write-memory", "read-memory", "environment", "descriptors", "trace", "signal", "signal-by-descriptor",
    "signal-group", "read-other", "write-other", "truncate-other", "remove-other", "read-catalog", "write-catalog",
    "write-data", "list-data", "passwords", "core-pattern", "connect", "fork", "program", "change-input", "cut-input",
    "expose-input", "map-shared", "map-stack", "inherited", "variables",
  ]

  @Test(arguments: HostileProgram.User.available)
  func aHostileFFmpegReachesNothing(_ user: HostileProgram.User) throws {
    var record = FaultRecord("a hostile ffmpeg in \(Self.attempts.count) ways, as \(user.rawValue)")
    defer { record.write() }
    try check(HostileProgram(user: user), &record, allowing: [])
  }

  /// Landlock is what closes files to a process of the same user. Without it, the rest of the fence still holds: the
  /// filter denies opening files for writing, the service's memory is closed, and under root, ffmpeg runs as another
  /// user.
  @Test(arguments: HostileProgram.User.available)
  func withoutLandlockAHostileFFmpegChangesNothing(_ user: HostileProgram.User) throws {
    var record = FaultRecord("a hostile ffmpeg without Landlock, as \(user.rawValue)")
    defer { record.write() }
    let hostile = try HostileProgram(user: user, withoutLandlock: true)
    let isRoot = user == .same && geteuid() == 0
    try check(hostile, &record, allowing: isRoot ? [] : ["read-other", "read-catalog", "list-data"])
    let ready = try hostile.server.client.get("/readyz").json
    #expect(ready["status"].string == "ready")
    #expect(ready["warnings"].array?.contains { $0["code"].string == "fence_incomplete" } == true, "\(ready)")
  }

  /// The kernel checks if a dying worker may kill another user's process.
  @Test(arguments: HostileProgram.User.available)
  func aHangingFFmpegIsKilledWithItsWorkerEvenWithoutTheService(_ user: HostileProgram.User) throws {
    let hostile = try HostileProgram(user: user)
    hostile.hang()
    #expect(eventually { hostile.processes().count == 2 }, "ffmpeg and ffprobe")
    hostile.server.kill()
    #expect(eventually { hostile.processes().isEmpty })
    for process in hostile.processes() { _ = Glibc.kill(process, SIGKILL) }
  }

  private func check(_ hostile: HostileProgram, _ record: inout FaultRecord, allowing allowed: Set<String>) throws {
    let outcomes = try hostile.outcomes()
    let isRoot = outcomes["user"] == 0
    #expect(!isRoot)
    // It did read the file it was given.
    #expect(outcomes["read-input"] == Int(EPERM), "\(outcomes)")
    // If it has a user of its own.
    if outcomes["user"] == 65_533 { #expect(outcomes["tasks"] == Int(EAGAIN), "\(outcomes)") }
    for name in Self.attempts where !allowed.contains(name) {
      record.attempt(name) {
        switch outcomes[name] {
        case nil: ["was not tried: \(outcomes)"]
        case 0: ["was done"]
        default: []
        }
      }
    }
    record.attempt("afterward") { try hostile.losses() }
  }
}
