import Foundation
import Randomness
import Testing

@testable import Sounds

/// A finished waveform is truncated, removed, or gets flipped bits while the service runs. The service continues,
/// serves no wrong value, and rebuilds the waveform.
struct PyramidFaultTests {
  /// The number of places in the file, chosen by a seeded generator, for each kind of fault.
  private static var places: Int { max(FaultRecord.rounds, 4) }

  @Test func aWaveformTruncatedWhileTheServiceRunsIsRepaired() throws {
    try spoil("pyramid truncated", seed: 1401) { file, size, generator in
      try file.truncate(atOffset: UInt64(Int.random(in: 0..<size, using: &generator)))
    }
  }

  @Test func aFlippedBitInAWaveformIsNeverServedAndIsRepaired() throws {
    try spoil("pyramid flipped", seed: 1402) { file, size, generator in
      let offset = UInt64(Int.random(in: 0..<size, using: &generator))
      try file.seek(toOffset: offset)
      let byte = try file.read(upToCount: 1)?.first ?? 0
      try file.seek(toOffset: offset)
      try file.write(contentsOf: [byte ^ 1 << UInt8.random(in: 0..<8, using: &generator)])
    }
  }

  private func spoil(
    _ name: String, seed: UInt64, _ change: (FileHandle, Int, inout TestRandom) throws -> Void
  ) throws {
    var record = FaultRecord(name)
    defer { record.write("seed \(seed); slices in four forms, before, after and again") }
    var generator = TestRandom(state: seed)
    let server = try TestServer()
    defer { server.kill() }
    for place in 0..<Self.places {
      record.attempt("place \(place)") {
        // Every other time, the service starts after the damage, so that no page of the file is cached.
        let isFresh = place % 2 == 1
        let id = try #require(try server.client.uploadReady(Clip.tone.bytes)["id"].string)
        let before = try slices(of: id, server)
        if isFresh { try server.stop() }
        try withPyramid(of: id, server) { file, size in try change(file, size, &generator) }
        if isFresh { try server.restart() }
        return try losses(id, before, server)
      }
    }
  }

  private static let forms = [
    "waveform?scale=256&measures=peak,rms,average&channels=split", "waveform?scale=1000", "waveform.dat?scale=256",
    "waveform.png?scale=512",
  ]

  private func slices(of id: String, _ server: TestServer) throws -> [[UInt8]] {
    try Self.forms.map { form in
      let answer = try server.client.get("/v1/recordings/\(id)/\(form)")
      try #require(answer.status == 200, "\(answer.text)")
      return Array(answer.body)
    }
  }

  private func withPyramid(of id: String, _ server: TestServer, _ body: (FileHandle, Int) throws -> Void) throws {
    let folder = server.data + "/recordings/" + id
    let name = try #require(
      try FileManager.default.contentsOfDirectory(atPath: folder).first { $0.hasSuffix(".pyramid") })
    let file = try FileHandle(forUpdating: URL(fileURLWithPath: folder + "/" + name))
    try body(file, Int(try file.seekToEnd()))
    try file.close()
  }

  /// Returns descriptions of wrong answers, from the first after the damage until the waveform is ready again.
  private func losses(_ id: String, _ before: [[UInt8]], _ server: TestServer) throws -> [String] {
    var losses: [String] = []
    for (form, right) in zip(Self.forms, before) {
      let answer = try server.client.get("/v1/recordings/\(id)/\(form)")
      let isWhole = answer["Stillwave-Complete"] == "true"
      if answer.status != 200 { losses.append("\(form): \(answer.status) \(answer.text)") }
      if isWhole, Array(answer.body) != right { losses.append("\(form): a wrong value is served") }
      if !isWhole, answer["Cache-Control"] != "no-store" { losses.append("\(form): may be kept") }
    }
    // Cached pages are correct and were served; then nothing is due.
    let recording = try server.client.recording(id)
    if recording["waveform"]["state"].string != "ready" {
      try server.client.succeed(try #require(recording["waveform"]["job"].string))
    }
    let after = try slices(of: id, server)
    for (index, form) in Self.forms.enumerated() where after[index] != before[index] {
      losses.append("\(form): not as it was, built again")
    }
    return losses
  }
}
