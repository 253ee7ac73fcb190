import Foundation
import HTTP
import Storage
import Testing

@testable import AudioService
@testable import Jobs

/// Uploads in pieces that aren't recordings, and parts of tus that the service doesn't support.
@Suite struct RefusedUploadTests {
  private static let script = "[ $command != probe ] || failure unsupported_media false; finish"

  @Test func repeatedRequestsForARejectedUploadGetTheSameAnswer() async throws {
    let bench = try TestBench(script: Self.script)
    let upload = try await bench.tus.create(4)
    let refused = try await bench.tus.patch(upload, at: 0, "RIFF")
    #expect(refused.status == 415 && refused.says("unsupported_media"))
    // Its last request, the right one, an empty one, and another type: the upload's end takes precedence.
    for (offset, body) in [(0, "RIFF"), (4, ""), (2, "FF")] {
      let again = try await bench.tus.patch(upload, at: offset, body)
      #expect(again.status == 415 && again.text == refused.text, "\(offset): \(again.text)")
    }
    #expect(try await bench.tus.head(upload).status == 415)
    try bench.expectNothingLeft()
  }

  @Test(
    "a rejection and its code survive a restart", arguments: [("unsupported_media", 415), ("unsupported_format", 422)])
  func restart(code: String, status: Int) async throws {
    let bench = try TestBench(script: "[ $command != probe ] || failure \(code) false; finish")
    let upload = try await bench.tus.create(4)
    let refused = try await bench.tus.patch(upload, at: 0, "RIFF")
    #expect(refused.status == status && refused.says(code))
    let later = Context(
      bench.configuration, access: bench.context.access, catalog: bench.catalog,
      media: MediaPlaces(bench.store, bench.catalog),
      work: WorkQueue(label: "later"),
      log: ServiceLog(bench.logged.logger))
    let answer = try await AudioService.responder(later) { error, _ in problem(for: error).response() }.respond(
      to: HTTPRequest(
        method: .patch, target: upload,
        fields: ["Tus-Resumable": "1.0.0", "Upload-Offset": "0", "Content-Type": Tus.contentType],
        body: Array("RIFF".utf8))
    ).response
    #expect(answer.status.code == status)
    #expect(String(decoding: try await answer.body.collect(), as: UTF8.self) == refused.text)
  }

  @Test func aRefusalIsForgottenAfterADayOrWhenItIsDeleted() async throws {
    let bench = try TestBench(script: Self.script)
    for _ in 0..<2 {
      let upload = try await bench.tus.create(4)
      #expect(try await bench.tus.patch(upload, at: 0, "RIFF").status == 415)
      let id = try bench.tus.id(upload)
      #expect(try UploadRefusal(of: id, in: bench.catalog.of(.none)) != nil)
      #expect(try await bench.tus.send(.delete, upload).status == 204)
      #expect(try await bench.tus.head(upload).status == 404)
      #expect(try UploadRefusal(of: id, in: bench.catalog.of(.none)) == nil)
    }
    let upload = try await bench.tus.create(4)
    #expect(try await bench.tus.patch(upload, at: 0, "RIFF").status == 415)
    let tomorrow = Timestamp(milliseconds: Timestamp.now.milliseconds + 86_400_001)
    await bench.context.uploads.removeExpired(now: tomorrow)
    #expect(try await bench.tus.head(upload).status == 404)
  }

  @Test func anUploadRejectedAtItsCreationIsNotRemembered() async throws {
    let bench = try TestBench(script: Self.script)
    let answer = try await bench.tus.send(
      .post, "/v1/uploads", ["Upload-Length": "4", "Content-Type": Tus.contentType], body: "RIFF")
    #expect(answer.status == 415)
    #expect(try bench.catalog.removeAnswers(before: Timestamp(milliseconds: .max / 2)) == 0)
    try bench.expectNothingLeft()
  }
}
