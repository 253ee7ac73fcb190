import Foundation
import HTTP
import Storage
import Terms
import Testing

@testable import AudioService

@Suite struct CoverTests {
  @Test("tags are members of a recording, and its cover is the picture's bytes in the file, sandboxed")
  func cover() async throws {
    let bench = try TestBench()
    let recording = try bench.recording(containing: "RIFF-picture-")
    let path = "/v1/recordings/\(recording.id)"
    #expect(try await bench.send(.get, path, 200).text.contains(#""cover":null"#))
    #expect(try await bench.send(.get, "\(path)/cover", 404).text.contains(#""code":"no_cover""#))
    var tags = FileTags()
    (tags.title, tags.albumArtist, tags.timeReference) = ("A \"title\"", "B", 48_000)
    try bench.catalog.update(recording.id) { [tags] in $0.tags = tags }
    tags.cover = FileCover(type: "image/png", offset: 5, bytes: 7, width: 4, height: 3)
    try bench.catalog.update(recording.id) { [tags] in $0.tags = tags }
    let text = try await bench.send(.get, path, 200).text
    #expect(text.contains(#""tags":{"album_artist":"B","time_reference":48000,"title":"A \"title\""}"#), "\(text)")
    #expect(text.contains(#""cover":{"bytes":7,"height":3,"type":"image/png","width":4}"#), "\(text)")
    let answer = try await bench.respond(.get, "\(path)/cover")
    #expect(try await answer.body.collect() == Array("picture".utf8))
    #expect(answer.fields["Content-Type"] == "image/png")
    #expect(answer.fields["Content-Security-Policy"] == "sandbox")
    let again = try await bench.respond(
      .get, "\(path)/cover", fields: ["If-None-Match": #require(answer.fields["ETag"])])
    #expect(again.status.code == 304)
  }
}
