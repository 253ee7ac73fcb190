import Foundation
import HTTP
import Storage
import Testing

@testable import AudioService

/// For tests of one client's crowd of requests, and another's single one. What counts is the order, not the time: all
/// that the crowd has begun stands still until the test lets it go.
protocol CrowdFixture: Sendable {}

extension CrowdFixture {
  var crowd: String { "192.0.2.1:5000" }
  var other: String { "192.0.2.2:5000" }

  /// The child of a file with “HOLD” in it stands still.
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

  /// Sends so many requests at once; the task ends with their statuses.
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
  /// Children that stand still, or have.
  var heldCount: Int {
    ((try? String(contentsOfFile: folder.path + "/held", encoding: .utf8)) ?? "").count
  }

  /// Lets go all children that stand still, and those to come.
  func releaseAll() throws {
    let path = folder.path + "/hold"
    try Data().write(to: URL(fileURLWithPath: folder.path + "/go"))
    // Whoever opens it finds an end: this pipe's when it is closed, or the empty file's in its place.
    let pipe = unsafe open(path, O_RDWR)
    defer { close(pipe) }
    try Data().write(to: URL(fileURLWithPath: path + "-over"))
    guard unsafe rename(path + "-over", path) == 0 else { throw POSIXError(.EIO) }
  }

  /// Which of the children that were started was the job's, counted from 0.
  func order(of id: JobID) -> Int? { starts.firstIndex { $0.hasPrefix(id.text) } }

  /// A file for a child to look at.
  func file(_ text: String) throws -> String {
    let path = folder.path + "/file-\(text)"
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    return path
  }
}
