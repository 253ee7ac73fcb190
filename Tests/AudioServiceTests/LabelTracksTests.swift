import Foundation
import HTTP
import Labels
import PresentRows
import Randomness
import Storage
import Testing

@testable import AudioService
@testable import Jobs

@Suite struct LabelTracksTests {
  private let bench: TestBench
  private let recording: Recording
  private var tracks: String { "/v1/recordings/\(recording.id)/labels" }

  private static let srt = "1\n00:00:05,000 --> 00:00:06,000\nSecond\n\n2\n00:00:01,000 --> 00:00:02,500\nFirst\n"
  private static let json =
    #"{"labels":[{"id":"1","start":1,"end":2.5,"text":"First"},{"id":"2","start":5,"end":6,"text":"Second"}]}"#

  init() throws {
    bench = try TestBench()
    recording = try bench.recording()
  }

  /// Adds a track and returns its path and tag.
  private func track(_ body: String = srt, query: String = "") async throws -> (path: String, etag: String) {
    let made = try await bench.send(.post, tracks + query, body: body, 201)
    return (try #require(made.fields["Location"]), try #require(made.fields["ETag"]))
  }

  private func labels(_ target: String) async throws -> String { try await bench.send(.get, target, 200).text }

  @Test("a file becomes a track, which is listed with its counts")
  func creating() async throws {
    #expect(try await bench.send(.get, tracks, 200).text == #"{"inherited":false,"tracks":[]}"#)
    let made = try await bench.send(.post, tracks + "?name=Ein%20Lied&kind=lyrics&language=de", body: Self.srt, 201)
    for part in [
      #""name":"Ein Lied""#, #""kind":"lyrics""#, #""language":"de""#, #""count":2"#, #""words":0"#, #""start":1"#,
      #""end":6"#, #""source":"upload""#, #""inherited":false"#, #""warnings":[]"#,
    ] { #expect(made.text.contains(part), "\(made.text)") }
    #expect(try await bench.send(.get, tracks, 200).text == #"{"inherited":false,"tracks":[\#(made.text)]}"#)
    #expect(try await labels(#require(made.fields["Location"])) == Self.json)
  }

  @Test("a window costs one read of the catalog, and none of the labels if the client has them")
  func oneRead() async throws {
    let (path, etag) = try await track()
    for (fields, status) in [([:], 200), (["If-None-Match": etag], 304)] as [(HTTPFields, Int)] {
      let reads = bench.catalog.readCount
      _ = try await bench.send(.get, path + "?start=1&end=2", fields: fields, status)
      #expect(bench.catalog.readCount == reads + 1)
    }
  }

  @Test("a track isn't found below another recording, nor once it or its recording is deleted")
  func elsewhere() async throws {
    let (path, etag) = try await track()
    let other = try bench.recording()
    let name = try #require(path.split(separator: "/").last)
    _ = try await bench.send(.get, "/v1/recordings/\(other.id)/labels/\(name)", 404)
    let (second, _) = try await track()
    _ = try await bench.send(.delete, path, fields: ["If-Match": etag], 204)
    _ = try await bench.send(.get, path, 404)
    _ = try await bench.send(.get, second, 200)
    _ = try await bench.send(.delete, "/v1/recordings/\(recording.id)", 204)
    _ = try await bench.send(.get, second, 404)
  }

  @Test("the encoding of a file is found, or that of the request, and named")
  func encodings() async throws {
    let cyrillic = [UInt8]("1\n00:01 --> 00:02\n".utf8) + [0xCF, 0xF0, 0xE8, 0xE2, 0xE5, 0xF2]
    for (type, encoding, text) in [
      ("application/octet-stream", "windows-1251", "Привет"), ("text/plain; charset=koi8-r", "KOI8-R", "оПХБЕР"),
    ] {
      let request = try HTTPRequest(
        method: .post, target: tracks, fields: ["Content-Type": type], body: cyrillic, peer: "in-process")
      let made = try await bench.responder.respond(to: request).response
      #expect(made.status.code == 201 && made.fields["Stillwave-Encoding"] == encoding)
      #expect(try await labels(#require(made.fields["Location"])).contains("\"text\":\"\(text)\""))
    }
    #expect(try await bench.send(.post, tracks, body: Self.srt, 201).fields["Stillwave-Encoding"] == "UTF-8")
  }

  @Test("name and language come from the file if the request has none")
  func defaults() async throws {
    #expect(
      try await bench.send(.post, tracks, body: "[ti:A Song]\n[la:fr]\n[00:01.00]a", 201).text.contains(
        #""name":"A Song""#))
    let made = try await bench.send(.post, tracks + "?kind=chapters", body: #"{"chapters":[{"startTime":1}]}"#, 201)
      .text
    #expect(made.contains(#""name":"Chapters""#) && made.contains(#""language":null"#))
    #expect(made.contains(#""end":60,"#), "the last chapter ends with the recording")
  }

  @Test("the query, the media type or the content decides the format of a body")
  func formats() async throws {
    let vtt: HTTPFields = ["Content-Type": "text/vtt; charset=utf-8"]
    #expect(try await bench.send(.post, tracks, fields: vtt, body: Self.srt, 400).text.contains("begins with “WEBVTT”"))
    _ = try await bench.send(.post, tracks + "?format=srt", fields: vtt, body: Self.srt, 201)
    for type in ["text/plain", "application/json", "application/octet-stream"] {
      _ = try await bench.send(.post, tracks, fields: ["Content-Type": type], body: Self.json, 201)
    }
    #expect(try await bench.send(.post, tracks + "?format=srt", body: Self.json, 400).text.contains("invalid_labels"))
    #expect(
      try await bench.send(.post, tracks + "?format=doc", body: Self.json, 400).text.contains("invalid_parameter"))
  }

  @Test("bad cues are left out and named in the answer to the file alone, and refused with strict=1")
  func badCues() async throws {
    let bad = "1\t2\tA\n2\t1\tB\n3\t4\t" + String(repeating: "x", count: 65_537) + "\n"
    let leftOut =
      #","left_out":{"count":2,"cues":[{"column":3,"line":2,"reason":"the end is before the start."},"#
      + #"{"column":1,"line":3,"reason":"a text has at most 65536 bytes."}]},"#
    let made = try await bench.send(.post, tracks, body: bad, 201)
    #expect(made.text.contains(leftOut) && made.text.contains(#""count":1,"#), "\(made.text)")
    #expect(try await !bench.send(.get, tracks, 200).text.contains("left_out"))
    let path = try #require(made.fields["Location"])
    let match: HTTPFields = ["If-Match": try #require(made.fields["ETag"])]
    let refused = try await bench.send(.put, path + "?strict=1", fields: match, body: bad, 400).text
    #expect(refused.contains(#""fault":"end_before_start""#) && refused.contains(#""line":2"#))
    _ = try await bench.send(.post, tracks + "?strict=1", body: bad, 400)
    _ = try await bench.send(.post, tracks, body: "2\t1\tB\n", 400)
    #expect(try await bench.send(.put, path, fields: match, body: bad, 200).text.contains(leftOut))
  }

  @Test("labels are sent in the format that the query or Accept asks for, and what it can't hold is named")
  func responses() async throws {
    let body =
      #"{"labels":[{"start":1,"end":2,"text":"a b","speaker":"S","words":[{"start":1,"end":2,"text":"a b"}]}]}"#
    let (path, etag) = try await track(body)
    for (format, type, leftOut) in [
      ("json", "application/json", nil), ("vtt", "text/vtt", nil), ("srt", "application/x-subrip", "speakers, words"),
      ("lrc", "text/x-lrc", "speakers"), ("audacity", "text/tab-separated-values", "speakers, words"),
      ("chapters", "application/json+chapters", "speakers, words"),
    ] {
      let byQuery = try await bench.send(.get, path + "?format=\(format)", fields: ["Accept": "text/html"], 200)
      let byType = try await bench.send(.get, path, fields: ["Accept": type], 200)
      for answer in [byQuery, byType] {
        #expect(answer.fields["Content-Type"] == type && answer.fields["Stillwave-Left-Out"] == leftOut)
        #expect(answer.fields["ETag"] == etag && answer.fields["Vary"]?.contains("Accept") == true)
      }
      #expect(byQuery.text == byType.text)
      _ = try await bench.send(.post, tracks + "?format=\(format)", body: byType.text, 201)
    }
    _ = try await bench.send(.get, path + "?format=whisper", 400)
    _ = try await bench.send(.get, path, fields: ["Accept": "image/png, */*;q=0"], 406)
  }

  @Test("a window has the labels that overlap it, and a search those with a text")
  func windows() async throws {
    let (path, _) = try await track("0\t10\tLong\n2\t2\tpoint\n2\t3\tShort one\n3\t4\tNext\n")
    for (query, texts) in [
      ("", ["Long", "point", "Short one", "Next"]), ("?start=2&end=3", ["Long", "point", "Short one"]),
      ("?start=2.5", ["Long", "Short one", "Next"]), ("?end=2", ["Long"]), ("?start=10", []),
      ("?start=2&end=2.0000001", ["Long", "point", "Short one"]),
      ("?q=O", ["Long", "point", "Short one"]),
      ("?q=short%20ONE&start=1&end=9", ["Short one"]), ("?q=short&start=3", []),
      ("?start=0&end=1000", ["Long", "point", "Short one", "Next"]),
    ] {
      let found = try await LabelFile(parsing: Array(labels(path + query).utf8), as: .json).labels
      #expect(found.map(\.text) == texts, "\(query)")
    }
    for query in [
      "?start=-1", "?start=x", "?start=2&end=2", "?end=0", "?start=1e99", "?q=a&q=b",
      "?q=" + String(repeating: "a", count: 257),
    ] {
      _ = try await bench.send(.get, path + query, 400)
    }
  }

  @Test("windows of a long track agree with its labels")
  func longTrack() async throws {
    let lines = (0..<2000).map { "\(Double($0) / 10)\t\(Double($0) / 10 + ($0 == 3 ? 150 : 0.25))\tline \($0)\n" }
    let (path, _) = try await track(lines.joined())
    let all = try await LabelFile(parsing: Array(labels(path).utf8), as: .json).labels
    #expect(all.count == 2000)
    for (start, end) in [(0.0, 0.1), (25.55, 25.65), (99.0, 101.0), (120.0, 199.95), (0.0, 200.0), (150.0, 150.31)] {
      let target = path + "?start=\(start)&end=\(end)"
      let found = try await LabelFile(parsing: Array(labels(target).utf8), as: .json).labels
      #expect(found == all.filter { $0.start.seconds < end && $0.end.seconds > start }, "\(start)–\(end)")
    }
    let found = try await LabelFile(parsing: Array(labels(path + "?q=NE%20199").utf8), as: .json).labels
    #expect(found.map(\.text) == ["line 199"] + (1990..<2000).map { "line \($0)" })
  }

  @Test("a change needs the version that it changes")
  func versions() async throws {
    let (path, etag) = try await track()
    let other = #"{"labels":[{"start":7,"end":8,"text":"x"}]}"#
    let stored = other.replacing("{\"start", with: "{\"id\":\"3\",\"start")
    for (method, body) in [(HTTPMethod.put, other), (.patch, "{\"name\":\"a\"}"), (.delete, "")] {
      #expect(try await bench.send(method, path, body: body, 428).text.contains("precondition_required"))
      _ = try await bench.send(method, path, fields: ["If-Match": "\"other\""], body: body, 412)
      _ = try await bench.send(method, tracks + "/\(LabelTrackID())", body: body, 404)
      _ = try await bench.send(method, tracks + "/nonsense", body: body, 404)
    }
    #expect(try await labels(path) == Self.json)
    let replaced = try await bench.send(.put, path, fields: ["If-Match": etag], body: other, 200)
    let second = try #require(replaced.fields["ETag"])
    #expect(second != etag && replaced.text.contains(#""count":1"#) && replaced.text.contains(#""start":7"#))
    #expect(try await bench.send(.get, path, fields: ["If-None-Match": etag], 200).text == stored)
    _ = try await bench.send(.get, path + "?start=3", fields: ["If-None-Match": second], 304)
    _ = try await bench.send(.put, path, fields: ["If-Match": etag], body: Self.json, 412)
    let renamed = try await bench.send(
      .patch, path, fields: ["If-Match": second], body: #"{"name":"N","kind":"lyrics","language":"en-GB"}"#, 200)
    for part in [#""name":"N""#, #""kind":"lyrics""#, #""language":"en-GB""#, #""count":1"#] {
      #expect(renamed.text.contains(part))
    }
    #expect(try await labels(path) == stored)
    let unknown = try await bench.send(
      .patch, path, fields: ["If-Match": try #require(renamed.fields["ETag"])], body: #"{"language":null}"#, 200)
    #expect(unknown.text.contains(#""language":null"#) && unknown.text.contains(#""name":"N""#))
    let third = try #require(unknown.fields["ETag"])
    for body in ["{}", "{\"kind\":\"x\"}", "{\"language\":\"a_b\"}", "{\"nam\":\"x\"}"] {
      _ = try await bench.send(.patch, path, fields: ["If-Match": third], body: body, 400)
    }
    _ = try await bench.send(.delete, path, fields: ["If-Match": third], 204)
    _ = try await bench.send(.get, path, 404)
    #expect(try await bench.send(.get, tracks, 200).text.contains("\"tracks\":[]"))
  }

  @Test("single labels are changed by their IDs, which they keep, all or none")
  func edits() async throws {
    var (path, etag) = try await track()
    func patch(_ body: String, _ status: Int) async throws -> String {
      let answer = try await bench.send(.patch, path, fields: ["If-Match": etag], body: body, status)
      etag = answer.fields["ETag"] ?? etag
      return answer.text
    }
    let changed = try await patch(
      #"{"set":[{"id":"2","start":0.5,"end":6,"text":"B"},{"start":7,"end":8,"text":"C"}],"remove":["1"],"name":"N"}"#,
      200)
    for part in [#""count":2"#, #""start":0.5"#, #""end":8"#, #""name":"N""#] { #expect(changed.contains(part)) }
    let now = #"{"labels":[{"id":"2","start":0.5,"end":6,"text":"B"},{"id":"3","start":7,"end":8,"text":"C"}]}"#
    #expect(try await labels(path) == now)
    let refusals = [
      (#"{"remove":["1"]}"#, "remove"), (#"{"remove":["2","2"]}"#, "remove"), (#"{"remove":["03"]}"#, "remove"),
      (#"{"set":[{"id":"9","start":1,"end":2,"text":""}],"remove":["2"]}"#, "set"), ("{}", "name"),
      (#"{"set":[{"id":"2","start":1,"end":2,"text":""}],"remove":["2"]}"#, "set"),
    ]
    for (body, member) in refusals {
      #expect(try await patch(body, 400).contains(#""parameter":"\#(member)""#), "\(body)")
    }
    #expect(try await patch(#"{"set":[{"start":2,"end":1,"text":""}]}"#, 400).contains("invalid_labels"))
    #expect(try await labels(path) == now)
    // A file keeps the IDs that it names; the others are new.
    let match: HTTPFields = ["If-Match": etag]
    let file = #"{"labels":[{"start":1,"end":1,"text":"D"},{"id":"3","start":7,"end":9,"text":"C"}]}"#
    _ = try await bench.send(
      .put, path, fields: match, body: #"{"labels":[{"id":"4","start":1,"end":1,"text":""}]}"#, 400)
    _ = try await bench.send(.put, path, fields: match, body: file, 200)
    #expect(
      try await labels(path)
        == #"{"labels":[{"id":"4","start":1,"end":1,"text":"D"},{"id":"3","start":7,"end":9,"text":"C"}]}"#)
  }

  @Test("after random changes of single labels, a track is what its labels were changed to")
  func randomEdits() async throws {
    var random = TestRandom(for: 91)
    func label(_ id: Int?) -> (id: Int?, start: Int, json: String) {
      let start = Int.random(in: 0..<3000, using: &random)
      let text = #""start":\#(start),"end":\#(start + 1),"text":"{\"id\":\"1\" \#(random.next() % 1000)""#
      return (id, start, text)
    }
    func json(_ label: (id: Int?, start: Int, json: String)) -> String {
      (label.id.map { #"{"id":"\#($0)","# } ?? "{") + label.json + "}"
    }
    var next = 1
    var model = (0..<700).map { _ in label(nil) }.sorted { $0.start < $1.start }
    var (path, etag) = try await track(#"{"labels":["# + model.map(json).joined(separator: ",") + "]}")
    for index in model.indices { (model[index].id, next) = (next, next + 1) }
    for round in 0..<60 {
      let gone = model.filter { _ in Int.random(in: 0..<60, using: &random) == 0 }.compactMap(\.id)
      var set = model.compactMap(\.id).filter { !gone.contains($0) && Int.random(in: 0..<60, using: &random) == 0 }.map(
        label)
      set += (0..<(round == 30 ? 600 : 9)).map { _ in label(nil) }
      let body = #"{"set":["# + set.map(json).joined(separator: ",") + #"],"remove":["#
      let removed = gone.map { #""\#($0)""# }.joined(separator: ",")
      let answer = try await bench.send(.patch, path, fields: ["If-Match": etag], body: body + removed + "]}", 200)
      etag = try #require(answer.fields["ETag"])
      model.removeAll { label in gone.contains(label.id ?? 0) || set.contains { $0.id == label.id } }
      set.sort { $0.start < $1.start }
      for index in set.indices where set[index].id == nil { (set[index].id, next) = (next, next + 1) }
      model += set
      #expect(answer.text.contains(#""count":\#(model.count)"#))
    }
    let expected = Set(model.map(json))
    let found = try await labels(path).dropFirst(#"{"labels":["#.count).dropLast(2)
    let pieces = found.replacing("},{", with: "}\u{0}{").split(separator: "\u{0}").map(String.init)
    #expect(pieces.count == model.count && Set(pieces) == expected)
    let starts = pieces.compactMap { $0.firstMatch(of: /"start":(\d+)/).flatMap { Int($0.1) } }
    #expect(starts == starts.sorted())
  }

  @Test("a bad file stores nothing and leaves the track as it was")
  func badFiles() async throws {
    let (path, etag) = try await track()
    let bad = Self.json.replacing("2.5", with: "0.5")
    let refused = try await bench.send(.put, path + "?strict=1", fields: ["If-Match": etag], body: bad, 400).text
    #expect(refused.contains("\"code\":\"invalid_labels\"") && refused.contains("Line 1, column 38: the end is before"))
    #expect(refused.contains("\"fault\":\"end_before_start\",\"line\":1,\"column\":38}"))
    _ = try await bench.send(.post, tracks + "?strict=1", body: bad, 400)
    _ = try await bench.send(.post, tracks, body: "", 400)
    _ = try await bench.send(.post, tracks, fields: ["Content-Encoding": "gzip"], body: Self.srt, 415)
    _ = try await bench.send(.post, tracks, body: String(repeating: " ", count: LabelLimits.bytes + 1), 413)
    #expect(try bench.catalog.labelTracks(of: recording.id).count == 1)
    #expect(try await labels(path) == Self.json)
  }

  @Test(
    "no kind of bad file is stored, whether it is new or replaces labels",
    arguments: [
      ("vtt", "WEBVTT\n\n00:02.000 --> 00:01.000\na", "Line 3, column 15"),
      ("vtt", "WEBVTT\n\n00:01 --> 00:02\na\n\nnan --> 00:03\nb", "Line 6, column 1"),
      ("srt", "1\n00:01 --> 00:02\n" + String(repeating: "<b>", count: 10_000), "Line 3, column 193"),
      ("srt", "1\n-00:01 --> 00:02\na\n", "Line 2, column 1"), ("srt", "\u{0}\u{1}\u{2}", "Line 1, column 1"),
      ("lrc", "[00:01.00]<00:03.00>a <00:02.00>b", "Line 1, column 24"), ("lrc", "[-00:01.00]a", "Line 1, column 2"),
      ("audacity", "1\t2\ta\nNaN\t3\tb\n", "Line 2, column 1"), ("audacity", "3\t2\ta", "Line 1, column 3"),
      ("json", #"{"labels":[{"start":1,"end":2,"text":"a"},{"start":-1,"end":2,"text":"b"}]}"#, "Line 1, column 52"),
      ("whisper", "{\"segments\":[\n{\"start\":NaN,\"end\":1}]}", "Line 2, column 10"),
      ("chapters", "{\"chapters\":[{\"startTime\":2,\"endTime\":1}]}", "Line 1, column 39"),
      ("chapters", "{\"chapters\":[],\"x\":" + String(repeating: "[", count: 10_000), "Line 1, column 83"),
    ])
  func badContents(format: String, body: String, place: String) async throws {
    let (path, etag) = try await track()
    let query = "?strict=1&format=\(format)"
    for (method, target, fields) in [
      (HTTPMethod.post, tracks + query, [:]), (.put, path + query, ["If-Match": etag]),
    ] as [(HTTPMethod, String, HTTPFields)] {
      let refused = try await bench.send(method, target, fields: fields, body: body, 400).text
      #expect(refused.contains("\"code\":\"invalid_labels\"") && refused.contains(place + ": "), "\(refused)")
      let numbers = place.matches(of: /\d+/).map(\.output)
      #expect(refused.contains("\"line\":\(numbers[0]),\"column\":\(numbers[1])}"), "\(refused)")
    }
    #expect(try bench.catalog.labelTracks(of: recording.id).count == 1)
    #expect(try await labels(path) == Self.json)
  }

  @Test("labels past the end are kept and reported")
  func pastTheEnd() async throws {
    let made = try await bench.send(.post, tracks, body: "59\t61.5\tlate\n", 201)
    #expect(made.text.contains("labels_past_end") && made.text.contains("61.5 s, but the recording until 60 s"))
    // Times of labels are rounded, by LRC to hundredths of a second.
    let last = try await bench.send(.post, tracks, body: "59\t60.005\tlast\n", 201)
    #expect(!last.text.contains("labels_past_end"))
  }

  @Test("a recording has at most 64 tracks")
  func trackLimit() async throws {
    for _ in 0..<64 { _ = try await track() }
    #expect(try await bench.send(.post, tracks, body: Self.srt, 409).text.contains("too_many_tracks"))
  }

  @Test("a cleaned recording has its source's tracks until it has its own")
  func inheritance() async throws {
    let (path, etag) = try await track()
    var cleaned = Recording(
      name: "clean.wav", format: recording.format,
      derivedFrom: Derivation(recording: recording.id, job: JobID(), operation: "denoise"))
    cleaned.waveformState = .ready
    try bench.catalog.insert(cleaned)
    let id = try #require(LabelTrackID(String(path.suffix(36))))
    let own = "/v1/recordings/\(cleaned.id)/labels"
    let list = try await bench.send(.get, own, 200).text
    #expect(list.contains("\"inherited\":true") && list.contains(id.text) && !list.contains("\"inherited\":false"))
    #expect(try await labels("\(own)/\(id)") == Self.json)
    let refused = try await bench.send(.delete, "\(own)/\(id)", fields: ["If-Match": etag], 404).text
    #expect(refused.contains("belongs to recording \(recording.id)"))
    _ = try await bench.send(.post, own, body: "1\t2\tx\n", 201)
    #expect(try await !bench.send(.get, own, 200).text.contains(id.text))
    _ = try await bench.send(.get, "\(own)/\(id)", 404)
    _ = try await bench.send(.get, path, 200)
  }

  @Test("another recording's track is not found")
  func foreignTrack() async throws {
    let (path, _) = try await track()
    let other = try bench.recording()
    _ = try await bench.send(.get, "/v1/recordings/\(other.id)/labels/\(path.suffix(36))", 404)
    _ = try await bench.send(.get, "/v1/recordings/\(RecordingID())/labels/\(path.suffix(36))", 404)
  }
}
