import Denoise
import Foundation
import HTTP
import Randomness
import Testing
import Waveform

@testable import AudioService
@testable import Jobs

/// What clients may send in queries and JSON bodies, and how anything else is rejected.
@Suite struct RequestParsingTests {
  private func query(_ text: String, known: [String]) throws -> QueryParameters {
    try QueryParameters(try HTTPRequest(method: .get, target: "/?" + text), known: known)
  }

  private func problem(_ body: () async throws -> Void) async -> Problem? {
    do { try await body() } catch { return AudioService.problem(for: error) }
    return nil
  }

  @Test(
    "a decimal number has the value that its text has in Swift",
    arguments: [
      "0", "7", "007", "0.1", "1234.5678", "0.000000000000001", "999999999999999", "9.99999999999999",
      "123456789012345",
      "1234567890123456", "0.1234567890123456", "99999999999999999999", "1.5e3", "-2.25", "5e-324", "1E+2",
    ])
  func decimal(text: String) { #expect(Double(decimal: text) == Double(text)) }

  @Test(
    "what isn't a decimal number is refused",
    arguments: ["", ".", "..", "1..2", "1.2.3", "1,5", "0x10", "nan", "inf", "1e999", "1 ", "e", "1e", "½", "1_000"])
  func noDecimal(text: String) { #expect(Double(decimal: text) == nil) }

  @Test func randomDecimalsHaveTheValueThatTheirTextHasInSwift() {
    var random = TestRandom(for: 0)
    for _ in 0..<10_000 {
      let digits = (0..<Int.random(in: 1...17, using: &random)).map { _ in "\(Int.random(in: 0...9, using: &random))" }
      let point = Int.random(in: 1...digits.count, using: &random)
      let text = digits[..<point].joined() + (point < digits.count ? "." + digits[point...].joined() : "")
      #expect(Double(decimal: text) == Double(text), "\(text)")
    }
  }

  @Test func moreParametersThanAnythingHasAreRefused() throws {
    let query = (0..<65).map { "a\($0)=1" }.joined(separator: "&")
    #expect(throws: RequestError.unknownParameter("a2", known: ["a0", "a1"])) {
      try QueryParameters(HTTPRequest(method: .get, target: "/?\(query)"), known: ["a0", "a1"])
    }
  }

  @Test(
    "a bad value in a waveform's query is rejected with its parameter",
    arguments: [
      ("start=x", "start"), ("start=nan", "start"), ("start=inf", "start"), ("start=", "start"), ("end=1s", "end"),
      ("start=-1", "start"), ("end=-1", "end"), ("start=2&end=2", "end"), ("start=3&end=2", "end"),
      ("scale=0", "scale"), ("scale=16777217", "scale"), ("scale=1.5", "scale"),
      ("scale=99999999999999999999", "scale"),
      ("width=0", "width"), ("width=20001", "width"), ("scale=256&width=100", "width"), ("scale=1", "scale"),
      ("channels=stereo", "channels"), ("channels=-1", "channels"), ("channels=2", "channels"),
      ("channels=", "channels"), ("measures=", "measures"), ("measures=peak,", "measures"),
      ("measures=peak,mean", "measures"), ("bits=12", "bits"), ("bits=", "bits"), ("version=2", "version"),
      ("widht=3", "widht"), ("Scale=256", "Scale"), ("start=1&start=2", "start"),
      ("widht=5&scale=0", "widht"), ("scale=0&widht=5", "widht"), ("version=3&scale=0", "version"),
    ])
  func badWaveformQuery(text: String, parameter: String) async throws {
    let bench = try TestBench()
    let recording = try bench.recording()
    try bench.makeWaveform(of: recording)
    let response = try await bench.respond(.get, "/v1/recordings/\(recording.id)/waveform?\(text)")
    let body = String(decoding: try await response.body.collect(), as: UTF8.self)
    #expect(response.status == .badRequest)
    #expect(body.contains("\"parameter\":\"\(parameter)\""), "\(body)")
  }

  @Test func everyParameterOfAWaveformsQueryIsParsed() throws {
    let known = ["start", "end", "scale", "width", "channels", "measures", "bits"]
    let asked = try WaveformQuery(
      query("start=1.5&end=2e1&scale=512&channels=1&measures=rms,peak&bits=8", known: known))
    #expect(
      asked
        == WaveformQuery(
          start: 1.5, end: 20, resolution: .scale(512), channels: .channel(1), measures: [.peak, .rms], bits: .eight))
    #expect(try WaveformQuery(query("", known: known)) == WaveformQuery())
  }

  @Test func flagsAreZeroOrOne() async throws {
    let parameters = try query("a=1&b=0&c=true", known: ["a", "b", "c", "d"])
    #expect(try parameters.flag("a") && !parameters.flag("b") && !parameters.flag("d"))
    let refused = await problem { _ = try parameters.flag("c") }
    #expect(refused?.code == "invalid_parameter" && refused?.parameter == "c")
  }

  private func members(_ body: String, known: JSONMembers.Known = [:]) async throws -> JSONMembers {
    try await JSONMembers(bodyOf: HTTPRequest(method: .post, target: "/", body: Array(body.utf8)), known: known)
  }

  @Test(
    "a body that isn't a JSON object is rejected",
    arguments: ["[]", "1", "\"a\"", "null", "{", "{'a':1}", "\u{FEFF}x", "{} {}", "{\"name\":\"x\",}"])
  func noObject(body: String) async throws { try await refuse(Array(body.utf8)) }

  @Test func aBodyThatIsNotUTF8IsRefused() async throws {
    for encoding in [String.Encoding.utf16, .utf16LittleEndian, .utf16BigEndian, .utf32, .isoLatin1] {
      try await refuse(Array(try #require("{\"name\":\"ü\"}".data(using: encoding))))
    }
  }

  @Test func aDuplicateMemberIsRejectedByName() async throws {
    try await refuse(Array(#"{"name":"a","name":"b"}"#.utf8), parameter: "name")
    try await refuse(Array(#"{"name":"a","n\u0061me":null}"#.utf8), parameter: "name")
  }

  @Test func endlessNestingIsRejected() async throws {
    for opening in ["[", "{\"a\":", "{\"name\":[", " "] {
      try await refuse(Array(String(repeating: opening, count: 65_536 / opening.utf8.count).utf8))
    }
  }

  /// Tries to rename a recording with a body that isn't a JSON object.
  private func refuse(_ body: [UInt8], parameter: String? = nil) async throws {
    let bench = try TestBench()
    let request = try HTTPRequest(method: .patch, target: "/v1/recordings/\(bench.recording().id)", body: body)
    let response = try await bench.responder.respond(to: request).response
    let answer = String(decoding: try await response.body.collect(), as: UTF8.self)
    #expect(response.status == .badRequest && answer.contains("\"code\":\"invalid_json\""), "\(answer)")
    if let parameter { #expect(answer.contains("\"parameter\":\"\(parameter)\""), "\(answer)") }
  }

  @Test func anEmptyBodyIsAnEmptyObject() async throws {
    #expect(try await members("", known: ["a": []]).value("a") == nil)
  }

  @Test func aBodyOfMoreThan64KiBIsRefused() async {
    let refused = await problem { _ = try await members(String(repeating: " ", count: 65_537)) }
    #expect(refused?.status == .contentTooLarge)
  }

  @Test func membersThatAreNullCountAsLeftOut() async throws {
    let object = try await members("{\"a\":null,\"b\":null}", known: ["a": [], "b": []])
    #expect(try object.string("a") == nil && object.number("b", in: 0...1) == nil)
  }

  @Test(
    "a noise that changes is followed if asked, and with “auto” where that is certain",
    arguments: [
      ("{}", .ifCertain), ("{\"noise\":\"auto\",\"adapt\":null}", .ifCertain), ("{\"adapt\":false}", nil),
      ("{\"adapt\":true}", .always), ("{\"noise\":{\"start\":0,\"end\":1}}", nil),
      ("{\"noise\":{\"quantile\":0.2}}", nil),
      ("{\"noise\":{\"start\":0,\"end\":1},\"adapt\":true}", .always),
    ] as [(String, NoiseAdaptation?)])
  func adaptation(body: String, adaptation: NoiseAdaptation?) async throws {
    let asked = try DenoiseRequests.parameters(try await members(body, known: DenoiseRequests.known))
    #expect(asked.settings.adaptation == adaptation)
  }

  @Test func anUnknownMemberIsNamedWithItsPath() async {
    let refused = await problem {
      _ = try await members("{\"noise\":{\"start\":1,\"edn\":2}}", known: ["noise": ["start", "end"]])
    }
    #expect(refused?.code == "unknown_member" && refused?.parameter == "noise.edn")
  }

  @Test(
    "an invalid denoise request is rejected with the member at fault",
    arguments: [
      ("{\"methode\":1}", "methode", 400), ("{\"method\":\"magic\"}", "method", 400), ("{\"method\":1}", "method", 400),
      ("{\"strength\":\"natural\",\"reduction\":3}", "reduction", 400), ("{\"reduction\":61}", "reduction", 400),
      ("{\"reduction\":\"3\"}", "reduction", 400), ("{\"reduction\":true}", "reduction", 400),
      ("{\"sensitivity\":0.4}", "sensitivity", 400), ("{\"output\":\"noise\"}", "output", 400),
      ("{\"adapt\":1}", "adapt", 400), ("{\"adapt\":\"auto\"}", "adapt", 400),
      ("{\"format\":\"aac\"}", "format", 400), ("{\"name\":\"\"}", "name", 400), ("{\"noise\":\"car\"}", "noise", 400),
      ("{\"noise\":{}}", "noise.end", 400), ("{\"noise\":{\"start\":1}}", "noise.end", 400),
      ("{\"noise\":{\"end\":1}}", "noise.start", 400), ("{\"noise\":{\"start\":2,\"end\":1}}", "noise.end", 400),
      ("{\"noise\":{\"start\":-1,\"end\":1}}", "noise.start", 400),
      ("{\"noise\":{\"quantile\":0}}", "noise.quantile", 400),
      ("{\"noise\":{\"start\":0,\"end\":1,\"quantile\":0.2}}", "noise.start", 400),
      ("{\"noise\":{\"start\":0,\"end\":1,\"x\":0}}", "noise.x", 400),
      ("{\"noise\":{\"start\":0,\"end\":61}}", "noise", 422), ("{\"noise\":{\"start\":0,\"end\":0.001}}", "noise", 422),
      ("{\"format\":\"opus\"}", "format", 422),
      ("{\"strenght\":\"natural\",\"reduction\":99}", "strenght", 400),
      ("{\"noise\":{\"edn\":1},\"reduction\":99}", "noise.edn", 400),
      ("{\"noise\":{\"strat\":1,\"end\":-1}}", "noise.strat", 400),
      ("{\"noise.start\":1}", "noise.start", 400),
    ])
  func badDenoiseRequest(body: String, parameter: String, status: Int) async throws {
    let bench = try TestBench()
    let source = try bench.recording()
    let response = try await bench.respond(.post, "/v1/recordings/\(source.id)/denoise", body: body)
    let answer = String(decoding: try await response.body.collect(), as: UTF8.self)
    #expect(response.status.code == status && answer.contains("\"parameter\":\"\(parameter)\""), "\(answer)")
    #expect(try bench.catalog.jobs(limit: 1).isEmpty && bench.catalog.recordings(limit: 9).count == 1)
  }

  @Test(
    "a misspelled name is reported before other errors",
    arguments: [
      (HTTPMethod.patch, "", #"{"nam":"x"}"#, "unknown_member", "nam"),
      (.patch, "", #"{"nam":"x","name":""}"#, "unknown_member", "nam"),
      (.post, "/denoise/preview", #"{"windwo":{"start":1,"end":2}}"#, "unknown_member", "windwo"),
      (
        .post, "/denoise/preview", #"{"window":{"start":0,"end":99},"noise":{"edn":2}}"#, "unknown_member", "noise.edn"
      ),
      (.get, "/spectrum?strat=1", "", "unknown_parameter", "strat"),
      (.get, "/audio?format=aac&downlaod=1", "", "unknown_parameter", "downlaod"),
      (.get, "/noise-regions?limit=0&limt=3", "", "unknown_parameter", "limt"),
      (.get, "/waveform.png?heihgt=3&height=0", "", "unknown_parameter", "heihgt"),
    ])
  func misspelt(method: HTTPMethod, path: String, body: String, code: String, parameter: String) async throws {
    let bench = try TestBench()
    let source = try bench.recording()
    let response = try await bench.respond(method, "/v1/recordings/\(source.id)\(path)", body: body)
    let answer = String(decoding: try await response.body.collect(), as: UTF8.self)
    #expect(response.status == .badRequest)
    #expect(answer.contains("\"code\":\"\(code)\"") && answer.contains("\"parameter\":\"\(parameter)\""), "\(answer)")
  }
}
