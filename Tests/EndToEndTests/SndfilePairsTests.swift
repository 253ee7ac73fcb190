import Foundation
import Testing

@testable import Sounds

/// The service reads everything that libsndfile writes, zooms in to the sample, and cleans it, even if libsndfile can't
/// seek in it.
@Suite(.serialized) struct SndfilePairsTests {
  private static let noise = #""noise":{"start":0.1,"end":0.6}"#

  /// A tone over noise, beginning at 0.7 s.
  private static func samples(rate: Int) -> [Int16] {
    var noise = NoiseGenerator(seed: 11)
    return (0..<rate).map { frame in
      let tone = frame * 10 < rate * 7 ? 0 : sin(Double(frame) * 0.3)
      return Int16(tone * 9000 + noise.next() * 300)
    }
  }

  @Test("every container and codec of libsndfile can be zoomed into, previewed, and cleaned", .secondTier)
  func all() throws {
    let server = try TestServer()
    var walked = 0
    for pair in SndfilePair.all() {
      let path = server.folder.file("pair")
      try? FileManager.default.removeItem(atPath: path)
      guard pair.write(Self.samples(rate: pair.rate), to: path), try !contents(path).isEmpty else { continue }
      if pair.hasNoMark {
        let answer = try server.client.send("POST", "/v1/recordings", [:], .bytes(try contents(path)))
        #expect(answer.status == 415, "\(pair)")
        continue
      }
      try walk(pair, path, server.client)
      walked += 1
    }
    // libsndfile 1.2.0 has 127 of them; one without MP3 or the Xiph codecs writes fewer.
    #expect(walked >= 120, "\(walked)")
  }

  private func walk(_ pair: SndfilePair, _ path: String, _ client: HTTPClient) throws {
    let answer = try client.send("POST", "/v1/recordings", [:], .bytes(try contents(path)))
    guard answer.status == 201, let id = answer.json["id"].string, let job = answer.json["waveform"]["job"].string
    else {
      Issue.record("\(pair): \(answer.text)")
      return
    }
    #expect(try client.follow(job)["state"].string == "succeeded", "\(pair)")
    let recording = try client.recording(id)
    let codes = recording["warnings"].array?.map { $0["code"].string }
    let isVarying = recording["format"]["container"].string == "mp3"
    #expect(codes == (isVarying ? ["seeks_inexactly"] : []), "\(pair): \(recording["warnings"])")
    #expect(try client.get("/v1/recordings/\(id)/waveform?scale=256").status == 200, "\(pair)")
    let slice = try client.get("/v1/recordings/\(id)/waveform?start=0.8&end=0.9&scale=1")
    #expect(slice.status == 200, "\(pair): \(slice.text.prefix(300))")
    check(slice.json, against: pair.decode(path), pair)

    let preview = try client.post(
      "/v1/recordings/\(id)/denoise/preview", json: "{\(Self.noise),\"window\":{\"start\":0.2,\"end\":0.9}}")
    #expect(preview.status == 200, "\(pair): \(preview.text.prefix(300))")
    let cleaning = try client.post("/v1/recordings/\(id)/denoise", json: "{\(Self.noise)}")
    #expect(cleaning.status == 202, "\(pair): \(cleaning.text)")
    guard let cleaned = cleaning.json["id"].string else { return }
    let ended = try client.follow(cleaned)
    #expect(ended["state"].string == "succeeded", "\(pair): \(ended["error"])")
    guard let result = ended["result"]["recording"].string else { return }
    let document = try client.recording(result)
    #expect(document["format"]["container"] == recording["format"]["container"], "\(pair)")
    #expect(document["format"]["codec"] == recording["format"]["codec"], "\(pair)")
    #expect(try client.get("/v1/recordings/\(result)/waveform?start=0.8&end=0.9&scale=1").status == 200, "\(pair)")
    // The cleaned file itself, not only its working copy.
    let again = try client.send(
      "POST", "/v1/recordings", [:], .bytes(try client.get("/v1/recordings/\(result)/audio").body))
    #expect(again.status == 201 && again.json["format"]["codec"] == recording["format"]["codec"], "\(pair)")
  }

  /// Codecs that decode to integers give exactly the samples of decoding from the start.
  private func check(_ slice: JSON, against decoded: [Int16], _ pair: SndfilePair) {
    guard let data = slice["data"].integers, let start = slice["start_frame"].int, !data.isEmpty else {
      Issue.record("\(pair): no samples")
      return
    }
    // Vorbis, Opus, and MPEG are read as floats, which libsndfile rounds differently.
    guard ![0x60, 0x64, 0x80, 0x81, 0x82, 0x06, 0x07].contains(pair.codec) else { return }
    let wrong = (0..<data.count / 2).filter { pixel in
      let frame = start + pixel
      return !decoded.indices.contains(frame) || data[2 * pixel] != Int(decoded[frame])
    }
    #expect(wrong.isEmpty, "\(pair): \(wrong.count) of \(data.count / 2) samples differ")
  }
}
