import Testing

@testable import Sounds

/// The maximum age of recordings, tried on the real program.
struct RetentionSettingTests {
  @Test func aRecordingIsDeletedAtTheConfiguredAge() throws {
    let server = try TestServer("--max-age", "1")
    let uploaded = try server.client.upload(BadUploadTests.tone.bytes, name: "tone.wav")
    try server.client.succeed(try #require(uploaded["waveform"]["job"].string))
    let id = try #require(uploaded["id"].string)
    #expect(try eventually { try server.client.get("/v1/recordings/\(id)").status == 404 })
    try server.expectNothingKept(jobs: nil)
    try server.stop()
  }
}
