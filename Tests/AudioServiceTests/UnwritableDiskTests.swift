import Foundation
import HTTP
import Storage
import Testing

@testable import AudioService
@testable import Jobs

/// A disk from which nothing can be removed, like one mounted read-only.
@Suite struct UnwritableDiskTests {
  /// Root may write to any folder, but not even root can if it's a file.
  private func spoil(_ bench: TestBench) throws {
    let folder = bench.store.directory + "/removed"
    try FileManager.default.removeItem(atPath: folder)
    #expect(FileManager.default.createFile(atPath: folder, contents: nil, attributes: [.posixPermissions: 0o600]))
  }

  @Test func aRecordingThatCannotBeRemovedStaysIntact() async throws {
    let bench = try TestBench()
    let recording = try bench.recording()
    try spoil(bench)
    let answer = try await bench.respond(.delete, "/v1/recordings/\(recording.id)")
    let text = String(decoding: try await answer.body.collect(), as: UTF8.self)
    #expect(answer.status == .serviceUnavailable && text.contains("\"disk_unwritable\""), "\(text)")
    #expect(answer.fields["Retry-After"] != nil)
    #expect(try await bench.respond(.get, "/v1/recordings/\(recording.id)/audio").status == .ok)
    #expect(try bench.catalog.recording(recording.id) != nil)
  }

  @Test func noRecordingIsTooOldForADiskItCanNotBeRemovedFrom() throws {
    let bench = try TestBench()
    let recording = try bench.recording()
    try spoil(bench)
    let later = Timestamp(milliseconds: Timestamp.now.milliseconds + 10)
    #expect(Retention(bench.context, bench.catalog).sweep(createdBefore: later) == 0)
    #expect(try bench.catalog.recording(recording.id) != nil)
  }
}
