import Foundation
import Testing

@testable import Sounds

/// `GET …/audio?start=&end=`: a part of a recording.
@Suite struct AudioPartTests {
  private static let sound = Sound(
    rate: 44_100, channels: (0..<2).map { channel in (0..<132_300).map { sin(0.03 * Double($0 + 7 * channel)) / 2 } })

  @Test("a part is a WAV file with exactly the samples of the whole, in any of its bytes, and immutable")
  func wav() throws {
    let server = try TestServer()
    let file = WAVFile(Self.sound)
    let id = try #require(try server.client.uploadReady(file.bytes, name: "a talk.wav")["id"].string)
    let path = "/v1/recordings/\(id)/audio"
    let part = try server.client.get("\(path)?start=0.5&end=1.25")
    #expect(part.status == 200 && part["content-type"] == "audio/wav")
    #expect(try WAVFile(reading: part.body).data == Array(file.data[22_050 * 4..<55_125 * 4]))
    #expect(part["content-length"] == "\(part.body.count)" && part["accept-ranges"] == "bytes")
    #expect(part["cache-control"] == "private, max-age=31536000, immutable")
    let tag = try #require(part["etag"])
    #expect(tag.hasPrefix("\""))
    #expect(try server.client.get("\(path)?start=0.5&end=1.25", ["If-None-Match": tag]).status == 304)
    #expect(try server.client.get("\(path)?start=0.5&end=1.26")["etag"] != tag)
    for range in [0..<10, 40..<51, 1001..<90_000, part.body.count - 3..<part.body.count] {
      let some = try server.client.get(
        "\(path)?start=0.5&end=1.25",
        ["Range": "bytes=\(range.lowerBound)-\(range.upperBound - 1)", "If-Range": tag])
      #expect(some.status == 206 && some.body == Array(part.body[range]), "\(range)")
      #expect(some["content-range"] == "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(part.body.count)")
    }
    #expect(try server.client.get("\(path)?start=0.5&end=1.25", ["Range": "bytes=999999-"]).status == 416)
    let head = try server.client.send("HEAD", "\(path)?start=0.5&end=1.25")
    #expect(head.status == 200 && head["content-length"] == "\(part.body.count)" && head["etag"] == tag)
    #expect(try WAVFile(reading: server.client.get("\(path)?start=2.5&end=99").body).frames == 22_050)
    #expect(try WAVFile(reading: server.client.get("\(path)?end=0.1").body).frames == 4410)
    #expect(try WAVFile(reading: server.client.get("\(path)?start=1&end=1.000001").body).frames == 1)
    let download = try server.client.get("\(path)?start=0.5&end=1.25&download=1")
    #expect(download["content-disposition"]?.contains("a talk (0.5-1.25 s).wav") == true)
  }

  @Test(
    "a part in another format is as long and in the same place, whether libsndfile or ffmpeg encodes it", .secondTier,
    arguments: ["flac", "mp3", "ogg", "opus"], [44_100, 96_000])
  func formats(format: String, rate: Int) throws {
    let server = try TestServer()
    // A tone in the middle of silence.
    let tone = (0..<3 * rate).map { (rate..<2 * rate).contains($0) ? 0.5 * sin(0.1 * Double($0)) : 0 }
    let bytes = WAVFile(Sound(rate: rate, channels: [tone])).bytes
    let id = try #require(try server.client.uploadReady(bytes)["id"].string)
    let answer = try server.client.get("/v1/recordings/\(id)/audio?start=0.75&end=1.5&format=\(format)")
    try #require(answer.status == 200, "\(answer.text.prefix(300))")
    #expect(answer["content-length"] == nil && answer["accept-ranges"] == "bytes")
    let some = try server.client.get(
      "/v1/recordings/\(id)/audio?start=0.75&end=1.5&format=\(format)",
      ["Range": "bytes=1-2999", "If-Range": answer["etag"] ?? ""])
    #expect(some.status == 206 && some.body == Array(answer.body[1..<3000]))
    #expect(some["content-range"] == "bytes 1-2999/\(answer.body.count)")
    #expect(answer["cache-control"] == "private, max-age=31536000, immutable" && answer["etag"] != nil)
    let sound = try decoded(answer.body, server.folder)
    #expect(abs(sound.seconds - 0.75) < (["mp3": 0.03, "ogg": 0.003][format] ?? 0.0001), "\(sound.seconds)")
    let loud = try #require(sound.channels[0].firstIndex { $0.magnitude > 0.1 })
    #expect(abs(Double(loud) / Double(sound.rate) - 0.25) < 0.001, "\(loud)")
    #expect(
      try server.client.send("HEAD", "/v1/recordings/\(id)/audio?start=0.75&end=1.5&format=\(format)").status == 200)
    let isEmpty = try eventually { try !server.leftovers().contains { $0.hasPrefix("jobs/") } }
    #expect(isEmpty)
  }

  @Test("a part of sound that ffmpeg reads is a part of the whole conversion, right after the 201")
  func media() throws {
    let server = try TestServer()
    let path = server.folder.file("a.m4a")
    try Tool.ffmpeg.run([
      "-v", "error", "-f", "lavfi", "-i", "sine=440:r=44100:d=3", "-c:a", "aac", path,
    ])
    let id = try #require(try server.client.upload(contents(path), name: "a.m4a")["id"].string)
    let part = try WAVFile(reading: server.client.get("/v1/recordings/\(id)/audio?start=1&end=2").body)
    let whole = try WAVFile(reading: server.client.conversion("/v1/recordings/\(id)/audio?format=wav").body)
    #expect(part.bits == whole.bits && part.data == Array(whole.data[44_100 * 4..<88_200 * 4]))
  }
}
