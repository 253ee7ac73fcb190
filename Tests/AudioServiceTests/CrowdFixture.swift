import Foundation
import HTTP
import Storage
import Testing

@testable import AudioService
@testable import Jobs

/// For tests of one client's crowd of requests and another client's single one. Only the order counts, not the time:
/// everything that the crowd has started is held until the test releases it.
protocol CrowdFixture: Sendable {}

extension CrowdFixture {
  var crowd: String { "192.0.2.1:5000" }
  var other: String { "192.0.2.2:5000" }

  /// Holds the child of a file that contains “HOLD”.
  static var script: String {
    """
    ! grep -q HOLD "$source" || { echo >> $folder/held; read -r line < $folder/hold; }
    [ $command != spectrum ] || echo '{"spectrum":{"frequencies":[0],"power_db":[-81.2]}}'
    finish
    """
  }

  func bench(
    _ script: String = Self.script, _ change: @escaping (inout Configuration) -> Void = { _ in }
  ) throws -> TestBench {
    let bench = try TestBench(script: script) { configuration in
      configuration.workerCount = 2
      change(&configuration)
    }
    try bench.holdProbe()
    return bench
  }

  /// Sends `count` requests at once; the task returns their statuses.
  func crowd(
    _ count: Int, _ send: @escaping @Sendable (Int) async throws -> HTTPResponse
  ) -> Task<[Int], any Error> {
    Task {
      try await withThrowingTaskGroup(of: Int.self) { group in
        for number in 0..<count { group.addTask { try await send(number).status.code } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
    }
  }

  func code(_ response: HTTPResponse) async throws -> String {
    let text = String(decoding: try await response.body.collect(), as: UTF8.self)
    return text.split(separator: "\"code\":\"").dropFirst().first.map { String($0.prefix { $0 != "\"" }) } ?? text
  }

  func upload(_ bench: TestBench, _ text: String, isMedia: Bool, from peer: String) async throws -> HTTPResponse {
    let mark: [UInt8] = isMedia ? [0x1A, 0x45, 0xDF, 0xA3] : Array("RIFF".utf8)
    let request = try HTTPRequest(
      method: .post, target: "/v1/recordings", body: mark + Array(text.utf8), peer: peer)
    return try await bench.responder.respond(to: request).response
  }
}

extension TestBench {
  /// The number of children that are held, or were.
  var heldCount: Int {
    ((try? String(contentsOfFile: folder.path + "/held", encoding: .utf8)) ?? "").count
  }

  /// Releases all held children, and future ones.
  func releaseAll() throws {
    let path = folder.path + "/hold"
    try Data().write(to: URL(fileURLWithPath: folder.path + "/go"))
    // Any child that opens it reads the end: of this pipe when it's closed, or of the empty file in its place.
    let pipe = unsafe open(path, O_RDWR)
    defer { close(pipe) }
    try Data().write(to: URL(fileURLWithPath: path + "-over"))
    guard unsafe rename(path + "-over", path) == 0 else { throw POSIXError(.EIO) }
  }

  /// The position of the job's child among all started children, counted from 0.
  func order(of id: JobID) -> Int? { starts.firstIndex { $0.hasPrefix(id.text) } }

  /// Creates a file for a child to read.
  func file(_ text: String) throws -> String {
    let path = folder.path + "/file-\(text)"
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    return path
  }
}
