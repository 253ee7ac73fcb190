import PresentRows
import Testing

@testable import AudioService
@testable import Storage

/// Uploads whose catalog another process uses too.
@Suite struct SharedUploadTests {
  private static let holder = LeaseHolder(name: "node", terms: LeaseHolder.Terms())

  @Test("HEAD and PATCH of an upload whose recording another node is making get 423, and afterward the recording")
  func beingFinished() async throws {
    let folder = try TemporaryFolder()
    // A second probe fails.
    let script = "[ $command != probe ] || [ ! -f $folder/probing ] || exit 7; \(TestBench.heldProbe)"
    let one = try TestBench(script: script, in: folder, holder: Self.holder)
    let two = try TestBench(script: script, in: folder, holder: LeaseHolder(name: "other", terms: .init()))
    try one.holdProbe()
    let upload = try await one.tus.create(4)
    async let made = one.tus.patch(upload, at: 0, "RIFF")
    try await one.eventually { one.isProbing }
    #expect(try await two.tus.head(upload).status == 423)
    let refused = try await two.tus.patch(upload, at: 4, "")
    #expect(refused.status == 423 && refused.says("upload_locked") && refused.fields["Retry-After"] != nil)
    try await one.releaseProbe()
    let recording = try #require(try await made.recording)
    #expect(try await two.tus.head(upload).recording == recording)
    #expect(try await two.tus.patch(upload, at: 4, "").recording == recording)
    #expect(try one.catalog.recordings(limit: 9).map(\.id) == [recording])
    await one.runner.stop()
    await two.runner.stop()
  }
}
