import Foundation

extension HTTPLoad {
  /// What Chromium and Firefox send; zstd is what they get.
  private static let chromium = ["Accept-Encoding: gzip, deflate, br, zstd"]
  /// What Safari sends.
  private static let safari = ["Accept-Encoding: gzip, deflate, br"]
  private static let words = 20_000
  private static let secondsPerWord = 0.3

  /// Rows for what browsers and the viewer ask for. `plainMicroseconds`: the processor time of JSON with 2,000 pixels
  /// without a coding.
  func browserRows(_ server: Server, _ id: String, plainMicroseconds: Double) throws -> [ComparedLoad.Row] {
    let wav = "\(root)/audio.wav"
    try? FileManager.default.removeItem(atPath: wav)
    try FileManager.default.createSymbolicLink(atPath: wav, withDestinationPath: recording)
    let hours = Double(seconds)
    func distinct(
      _ name: String, _ target: String, of length: Double = hours, window: ClosedRange<Double>,
      _ goal: ComparedLoad.Goal, _ fields: [String] = Self.chromium
    ) -> ComparedLoad.Row {
      let windows = DistinctWindows(
        kinds: [.init(target: target, seconds: length, window: window)], folder: root)
      return .init(name: name, requests: .distinct(windows), connections: 64, goal: goal, fields: fields)
    }
    func ranges(_ name: String, _ length: Int, _ rate: Double) -> ComparedLoad.Row {
      let ranges = RandomRanges(length: length, fileBytes: Self.bytes(seconds), folder: root)
      return .init(
        name: name, requests: .ranges(ranges, of: "/v1/recordings/\(id)/audio", file: "audio.wav"), connections: 64,
        goal: .init(rate: rate), fields: Self.chromium)
    }
    let coded = ComparedLoad.Goal(microseconds: plainMicroseconds + 200)
    let json = "/v1/recordings/\(id)/waveform?width=2000&"
    let tile = 1024 * 1024 / Double(SyntheticRecording.sampleRate)
    let points = "/v1/recordings/\(id)/waveform.points?measures=peak,rms&channels=mix&scale=1024&"
    try uploadShort(server)
    return [
      distinct("JSON, 2,000 px, zstd", json, window: 12...hours, coded),
      distinct("JSON, 2,000 px, gzip", json, window: 12...hours, coded, Self.safari),
      distinct("tile of 1,024 points", points, window: tile...tile, .init(rate: 0.5)),
      .init(
        name: "list of 50", requests: .same("/v1/recordings?limit=50"), connections: 64,
        goal: .init(microseconds: 500), fields: Self.chromium),
      distinct(
        "60 s of 20,000 words", try uploadWords(server, id) + "?", of: Double(Self.words) * Self.secondsPerWord,
        window: 60...60, .init(microseconds: 300)),
      ranges("range of 64 KB", 64 << 10, 0.6),
      ranges("range of 1 MB", 1 << 20, 0.8),
    ]
  }

  /// Uploads recordings of a tenth of a second for a list.
  private func uploadShort(_ server: Server) throws {
    let sound = [UInt8](repeating: 0, count: SyntheticRecording.sampleRate / 10 * 4)
    let file = Array(SyntheticRecording.header(dataBytes: UInt32(sound.count))) + sound
    for number in 0..<60 {
      let answer = try server.client.send(
        "POST", "/v1/recordings?name=recording%20\(number).wav", length: Int64(file.count)
      ) { try $0(file) }
      guard answer.status == 201, let job = answer.member("job") else {
        throw BenchmarkFailure(what: "a short upload was answered \(answer.status)")
      }
      _ = try server.finish(job: job)
    }
  }

  /// Uploads a track of words and returns its target.
  private func uploadWords(_ server: Server, _ id: String) throws -> String {
    let words = ["the", "noise", "of", "rain", "on", "an", "old", "roof", "Grüße", "again"]
    let labels = (0..<Self.words).map { index in
      let start = Double(index * 3) / 10
      return #"{"start":\#(start),"end":\#(start + 0.25),"text":"\#(words[(index * 7 + index / 10) % 10])"}"#
    }
    let body = Array(#"{"labels":[\#(labels.joined(separator: ","))]}"#.utf8)
    let answer = try server.client.send(
      "POST", "/v1/recordings/\(id)/labels?kind=transcript", length: Int64(body.count),
      fields: ["Content-Type: application/json"]
    ) { try $0(body) }
    guard answer.status == 201, let track = answer.field("location") else {
      throw BenchmarkFailure(what: "the words were answered \(answer.status)")
    }
    return track
  }
}
