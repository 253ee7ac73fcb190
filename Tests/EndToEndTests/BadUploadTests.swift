import Glibc
import Testing

@testable import Sounds

/// A file that isn't a recording is rejected with the problem given in openapi.yaml and leaves nothing behind; a
/// damaged recording is used as far as it can be read.
struct BadUploadTests {
  struct Case: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let bytes: [UInt8]
    let status: Int
    let code: String

    init(_ name: String, _ bytes: [UInt8], _ status: Int, _ code: String) {
      (testDescription, self.bytes, self.status, self.code) = (name, bytes, status, code)
    }
  }

  static let tone = WAVFile(Sound.noisy(rate: 8000, channels: 1, seconds: 3, voice: Sound.tone))

  private static func wave(_ change: (inout WAVFile) -> Void) -> [UInt8] {
    var file = tone
    change(&file)
    return file.bytes
  }

  private static let random: [UInt8] = {
    var noise = NoiseGenerator(seed: 7)
    return (0..<40_000).map { _ in UInt8(truncatingIfNeeded: Int(noise.next() * 1e6)) }
  }()

  static let refused = [
    Case("an empty body", [], 400, "empty_body"),
    Case("text", Array("This is no sound at all.\n".utf8), 415, "unsupported_media"),
    Case("one byte", [82], 415, "unsupported_media"),
    Case("random bytes", random, 415, "unsupported_media"),
    Case("a PNG's first bytes", [137, 80, 78, 71, 13, 10, 26, 10] + random, 415, "unsupported_media"),
    Case("a WAV's header alone", wave { $0.data = [] }, 415, "unsupported_media"),
    Case("half a WAV's header", Array(tone.bytes.prefix(20)), 415, "unsupported_media"),
    Case("FLAC's mark before noise", Array("fLaC".utf8) + random, 415, "unsupported_media"),
    Case("Ogg's mark before noise", Array("OggS".utf8) + random, 415, "unsupported_media"),
    Case("no channels", wave { $0.channels = 0 }, 422, "unsupported_format"),
    Case("255 channels", wave { $0.channels = 255 }, 422, "unsupported_format"),
    Case("a sample rate of 2 MHz", wave { $0.rate = 2_000_000 }, 422, "unsupported_format"),
  ]

  @Test(arguments: refused)
  func isRefusedAndLeavesNothing(_ bad: Case) throws {
    let server = try TestServer()
    for kind in ["raw", "form"] {
      let answer =
        kind == "raw"
        ? try server.client.send("POST", "/v1/recordings", ["Content-Type": "audio/wav"], .bytes(bad.bytes))
        : try server.client.uploadForm(bad.bytes, fileName: "a.wav")
      expectProblem(answer, bad.status, bad.code)
    }
    try server.expectNothingKept()
    try server.stop()
  }

  @Test func aFormWithoutExactlyOneFileIsRefused() throws {
    let server = try TestServer()
    expectProblem(
      try server.client.uploadForm(Self.tone.bytes, fileName: "a.wav", part: "sound"), 400, "invalid_multipart",
      parameter: "sound")
    let type = "multipart/form-data"
    expectProblem(
      try server.client.send("POST", "/v1/recordings", ["Content-Type": type], .bytes(Self.tone.bytes)), 400,
      "invalid_multipart", parameter: "Content-Type")
    let cut = Array("--b\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n".utf8) + Self.tone.bytes
    let answer = try server.client.send("POST", "/v1/recordings", ["Content-Type": "\(type); boundary=b"], .bytes(cut))
    expectProblem(answer, 400, "malformed_multipart")
    try server.expectNothingKept()
  }

  @Test func oversizedUploadsAreRejectedAsSoonAsPossible() throws {
    let server = try TestServer("--max-upload-bytes", "20000")
    let piece = [UInt8](repeating: 0, count: 8192)
    let declared = try server.client.send(
      "POST", "/v1/recordings", [:], .pieces(length: 1 << 30) { piece })
    #expect(declared.status == 413)
    // Without a length, as in this body, the limit is noticed when it's exceeded, not at the end.
    let chunked = try server.client.send("POST", "/v1/recordings", [:], .pieces(length: nil) { piece })
    #expect(chunked.status == 413)
    try server.expectNothingKept()
  }

  /// A chunked upload doesn't declare its length, so using up the reserve is noticed on the way.
  @Test func anUploadLeavesTheReserveOfTheDiskFree() throws {
    let folder = try TemporaryFolder()
    var disk = statvfs()
    #expect(unsafe statvfs(folder.path, &disk) == 0)
    let free = Int(disk.f_bavail) * Int(disk.f_frsize)
    let server = try TestServer("--reserve-bytes", "\(free - (24 << 20))")
    let piece = [UInt8](repeating: 0, count: 1 << 20)
    let answer = try server.client.send("POST", "/v1/recordings", [:], .pieces(length: nil) { piece })
    expectProblem(answer, 507, "disk_full")
    try server.expectNothingKept()
    try server.stop()
  }

  @Test func theServicesLimitsApplyToUploads() throws {
    let server = try TestServer("--max-duration", "2", "--max-channels", "1", "--max-sample-rate", "8000")
    let stereo = WAVFile(Sound.noisy(rate: 8000, channels: 2, seconds: 1.5, voice: Sound.tone)).bytes
    let fast = WAVFile(Sound.noisy(rate: 16_000, channels: 1, seconds: 1.5, voice: Sound.tone)).bytes
    for bytes in [Self.tone.bytes, stereo, fast] {
      expectProblem(try server.client.send("POST", "/v1/recordings", [:], .bytes(bytes)), 422, "unsupported_format")
    }
    try server.expectNothingKept()
  }

  // MARK: Damaged, but sound

  @Test(arguments: ["cut short", "claiming too much", "claiming the most there is", "of odd length"])
  func aDamagedFileIsAcceptedWithAWarning(_ damage: String) throws {
    let server = try TestServer()
    var bytes = Self.tone.bytes
    switch damage {
    case "cut short": bytes = Array(bytes.prefix(20_044))
    case "claiming too much": bytes = Self.wave { $0.claimedBytes = 9_000_000 }
    case "claiming the most there is": bytes = Self.wave { $0.claimedBytes = .max }
    default: bytes = Array(bytes.prefix(20_045))
    }
    let frames = (bytes.count - 44) / 2
    let recording = try server.client.uploadReady(bytes, name: "damaged.wav")
    #expect(recording["format"]["frames"].int == frames)
    let warnings = recording["warnings"].array ?? []
    #expect(!warnings.isEmpty && warnings.allSatisfy { $0["code"].string != nil && $0["detail"].string != nil })
    let code = damage == "claiming the most there is" ? "length_unknown" : "truncated"
    #expect(warnings.first?["code"].string == code)
    let id = try #require(recording["id"].string)
    let slice = try server.client.get("/v1/recordings/\(id)/waveform?scale=256").json
    #expect(slice["length"].int == (frames + 255) / 256 && slice["complete"] == .bool(true))
    #expect(try server.client.get("/v1/recordings/\(id)/audio").body == bytes)
    let job = try server.client.denoise(id, #"{"noise":{"start":0.1,"end":1}}"#)
    try server.client.succeed(try #require(job["id"].string))
    let cleaned = try server.client.recording(try #require(job["result"]["recording"].string))
    #expect(cleaned["format"]["frames"].int == frames)
  }

  @Test func nonFiniteSamplesCountAsSilence() throws {
    let server = try TestServer()
    var samples = Self.tone.sound.channels[0].map(Float.init)
    for index in stride(from: 100, to: samples.count, by: 97) {
      samples[index] = [Float.nan, .infinity, -.infinity, .greatestFiniteMagnitude][index % 4]
    }
    let recording = try server.client.uploadReady(WAVFile(floats: samples, rate: 8000).bytes, name: "nan.wav")
    #expect(recording["warnings"].array?.contains { $0["code"].string == "non_finite_samples" } == true)
    let id = try #require(recording["id"].string)
    for query in ["scale=256&measures=peak,rms,average", "scale=16&measures=peak,rms,average"] {
      let slice = try server.client.get("/v1/recordings/\(id)/waveform?\(query)").json
      let data = try #require(slice["data"].integers)
      #expect(data.allSatisfy { (-32768...32767).contains($0) } && data.contains { $0 > 5000 })
      #expect(slice["rms"].integers?.count == slice["length"].int)
    }
    let job = try server.client.denoise(id, #"{"noise":{"quantile":0.2}}"#)
    try server.client.succeed(try #require(job["id"].string))
    let output = try #require(job["result"]["recording"].string)
    let cleaned = try WAVFile(reading: server.client.get("/v1/recordings/\(output)/audio").body)
    #expect(cleaned.format == 3 && cleaned.frames == samples.count)
    let isFinite = cleaned.sound.channels[0].allSatisfy(\.isFinite)
    #expect(isFinite)
  }
}

/// Expects a problem document (RFC 9457) with the members that openapi.yaml gives every error.
func expectProblem(
  _ answer: Answer, _ status: Int, _ code: String, parameter: String? = nil,
  sourceLocation: SourceLocation = #_sourceLocation
) {
  #expect(answer.status == status, "\(answer.text)", sourceLocation: sourceLocation)
  #expect(answer["content-type"] == "application/problem+json", sourceLocation: sourceLocation)
  let problem = answer.json
  #expect(problem["code"].string == code, sourceLocation: sourceLocation)
  #expect(problem["status"].int == status, sourceLocation: sourceLocation)
  for member in ["type", "title", "detail"] {
    #expect(problem[member].string?.isEmpty == false, "\(member)", sourceLocation: sourceLocation)
  }
  if let parameter { #expect(problem["parameter"].string == parameter, sourceLocation: sourceLocation) }
  #expect(answer["x-request-id"] != nil, sourceLocation: sourceLocation)
}
