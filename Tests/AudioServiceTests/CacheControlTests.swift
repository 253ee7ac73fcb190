import Foundation
import HTTP
import Testing

@testable import AudioService
@testable import Storage

/// What caches may keep, and by which fields of requests they must tell responses apart.
@Suite struct CacheControlTests {
  private static let unchanging = [
    "/audio", "/audio?download=1", "/audio?start=0&end=0.1", "/audio?format=flac", "/waveform?width=9",
    "/waveform.dat?width=9", "/waveform.json?width=9", "/peaks.json?width=9", "/waveform.png", "/waveform.svg",
  ]

  private func recording(_ bench: TestBench) throws -> String {
    let recording = try bench.recording()
    try bench.makeWaveform(of: recording)
    try bench.makeSound(of: recording)
    return "/v1/recordings/\(recording.id)"
  }

  @Test("a shared cache may keep what never changes, and nothing else")
  func sharedCaches() async throws {
    let bench = try TestBench { $0.cacheScope = .public }
    let path = try recording(bench)
    func control(_ target: String, _ status: Int, _ fields: HTTPFields = [:]) async throws -> String? {
      let answer = try await bench.respond(.get, target, fields: fields)
      #expect(answer.status.code == status, "\(target)")
      return answer.fields["Cache-Control"]
    }
    for target in Self.unchanging {
      for (fields, status) in [([:], 200), (["If-None-Match": "*"], 304)] as [(HTTPFields, Int)] {
        #expect(
          try await control(path + target, status, fields) == "public, max-age=31536000, s-maxage=3600, immutable",
          "\(target)")
      }
    }
    for target in [path, "/v1/recordings", "/v1/jobs", "\(path)/labels", "/"] {
      #expect(try await control(target, 200) == "no-cache", "\(target)")
    }
    #expect(try await control("/v1/recordings/\(RecordingID())/audio", 404) == "no-store")
    #expect(try await control("\(path)/audio?x=1", 400) == "no-store")
    #expect(try await control("/healthz", 200) == "no-store")
  }

  @Test("only a response that Accept chooses varies by it")
  func variation() async throws {
    let bench = try TestBench { $0.corsOrigins = .only([Origin("https://app.example")!]) }
    let path = try recording(bench)
    let dat: HTTPFields = ["Accept": "application/vnd.bbc.audiowaveform"]
    // Twice, because the second answer may be kept for the third.
    for _ in 0..<3 {
      for (target, fields, names) in [
        ("/waveform", [:], ["accept", "accept-encoding"]), ("/waveform", dat, ["accept"]), ("/waveform.dat", [:], []),
        ("/waveform.json", [:], ["accept-encoding"]), ("/peaks.json", [:], ["accept-encoding"]),
        ("/waveform.png", [:], []), ("/waveform.svg", [:], ["accept-encoding"]), ("/audio", [:], []),
      ] as [(String, HTTPFields, [String])] {
        let answer = try await bench.respond(.get, "\(path)\(target)", fields: fields)
        #expect(
          answer.fields.list("Vary").map { $0.lowercased() }.sorted() == names + ["origin", "referer"],
          "\(target) \(fields)")
      }
    }
  }

  @Test(
    "a part's window that no recording has is rejected with the parameter at fault",
    arguments: [
      ("start=2&end=2", "end"), ("start=2&end=1", "end"), ("start=-1&end=1", "start"), ("start=nan", "start"),
      ("end=inf", "end"), ("start=0x1", "start"), ("start=60&end=61", "start"), ("end=0", "end"),
      ("start=1e300", "start"),
    ], ["", "&format=mp3"])
  func badPart(_ bad: (query: String, parameter: String), suffix: String) async throws {
    let bench = try TestBench()
    let answer = try await bench.check(.get, "\(recording(bench))/audio?\(bad.query)\(suffix)", 400)
    #expect(answer.contains("invalid_parameter") && answer.contains("\"parameter\":\"\(bad.parameter)\""), "\(answer)")
  }

  @Test("a part that has to be encoded answers ranges of its bytes")
  func encodedPart() async throws {
    let bench = try TestBench()
    let target = "\(try recording(bench))/audio?start=0.25&end=0.75&format=mp3"
    let whole = try await bench.send(.get, target, 200)
    #expect(whole.text == "sound\n" && whole.fields["Accept-Ranges"] == "bytes")
    let tag = try #require(whole.fields["ETag"])
    for (range, text) in [("1-2", "ou"), ("0-", "sound\n"), ("-3", "nd\n")] {
      let some = try await bench.send(.get, target, fields: ["Range": "bytes=\(range)", "If-Range": tag], 206)
      #expect(some.text == text && some.fields["Content-Range"]?.hasSuffix("/6") == true, "\(range)")
    }
    try await bench.send(.get, target, fields: ["Range": "bytes=6-"], 416)
  }

  @Test("labels are in a WAV file and its parts as cue points, within its length and its ranges")
  func cuePoints() async throws {
    let bench = try TestBench()
    let path = try recording(bench)
    let labels = #"{"labels":[{"start":1,"end":2,"text":"one","speaker":"S"},{"start":5,"end":5,"text":"two"}]}"#
    let made = try await bench.send(.post, path + "/labels", body: labels, 201)
    let track = try #require(made.fields["Location"]?.split(separator: "/").last)
    func wave(_ query: String, _ fields: HTTPFields = [:]) async throws -> (HTTPResponse, [UInt8]) {
      let response = try await bench.respond(.get, "\(path)/audio?\(query)labels=\(track)", fields: fields)
      return (response, try await response.body.collect())
    }
    func number(_ bytes: ArraySlice<UInt8>) -> Int { bytes.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) } }
    var tags: Set<String?> = []
    for (query, positions, leftOut) in [
      ("format=wav&", [1000, 5000], "speakers"), ("start=0.5&end=3&", [500], "speakers"), ("start=3&", [2000], nil),
    ] {
      let (whole, bytes) = try await wave(query)
      #expect(whole.status == .ok && whole.fields["Stillwave-Left-Out"] == leftOut, "\(query) \(whole.fields)")
      #expect(number(bytes[4...]) == bytes.count - 8)
      let cue = try #require(bytes.indices.last { bytes[$0...].starts(with: "cue ".utf8) })
      #expect(number(bytes[(cue + 8)...]) == positions.count)
      #expect(positions.indices.map { number(bytes[(cue + 12 + 24 * $0 + 20)...]) } == positions)
      let (part, end) = try await wave(query, ["Range": "bytes=-99"])
      #expect(part.status == .partialContent && end == bytes.suffix(99))
      tags.insert(whole.fields["ETag"])
    }
    let target = "\(path)/labels/\(track)"
    try await bench.send(.put, target, fields: ["If-Match": try #require(made.fields["ETag"])], body: labels, 200)
    tags.insert(try await wave("format=wav&").0.fields["ETag"])
    #expect(tags.count == 4 && !tags.contains(nil))
    let other = try await bench.check(.get, "\(path)/audio?format=mp3&labels=\(track)", 400)
    #expect(other.contains("\"parameter\":\"format\""))
    try await bench.send(.get, "\(path)/audio?format=wav&labels=\(UUID().uuidString.lowercased())", 404)
  }

  @Test("a conversion is made once, served like a file, and deleted with its recording")
  func conversion() async throws {
    let bench = try TestBench()
    let path = try recording(bench)
    let target = "\(path)/audio?format=flac&download=1"
    let made = try await bench.send(.get, target, 200)
    #expect(made.text == "sound\n" && made.fields["Content-Disposition"]?.contains("talk.flac") == true)
    let part = try await bench.send(
      .get, target, fields: ["Range": "bytes=1-2", "If-Range": try #require(made.fields["ETag"])], 206)
    #expect(part.text == "ou")
    #expect(try bench.catalog.jobs(limit: 9).count { $0.kind == .convert } == 1)
    #expect(try await bench.check(.get, "\(path)/audio?format=wav", 200).hasPrefix("RIFF"), "which it is already")
    #expect(try await bench.check(.get, "\(path)/audio?format=aiff", 400).contains("\"parameter\":\"format\""))
    try await bench.send(.delete, path, 204)
    #expect(!FileManager.default.fileExists(atPath: bench.store.recordings + path.dropFirst("/v1/recordings".count)))
  }

  @Test("the audio of a result that isn't finished isn't ready")
  func unfinished() async throws {
    let bench = try TestBench()
    let result = try bench.recording()
    try bench.catalog.update(result.id) { ($0.bytes, $0.sha256, $0.audioKey) = (nil, nil, nil) }
    for query in ["", "?start=1"] {
      let answer = try await bench.check(.get, "/v1/recordings/\(result.id)/audio\(query)", 409)
      #expect(answer.contains("\"code\":\"not_ready\""), "\(answer)")
    }
  }
}
