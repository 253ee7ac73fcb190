import Foundation
import Testing

@testable import Sounds

/// Each hostile file leads to an explanation and affects nothing else.
struct HostileFileTests {
  @Test func everyHostileFileIsExplainedAndHarmless() throws {
    var record = FaultRecord("hostile files")
    defer { record.write("memory, descriptors and others' answers compared") }
    let server = try TestServer()
    defer { server.kill() }
    let folder = try TemporaryFolder()
    let bystander = try #require(try server.client.uploadReady(Clip.tone.bytes)["id"].string)
    let slice = "/v1/recordings/\(bystander)/waveform?scale=256&measures=peak,rms"
    let before = try server.client.get(slice).body
    let files = try HostileFile.all(folder)
    #expect(files.count >= 60)
    // The first file warms up one-time allocations.
    _ = try outcome(of: files[0], server)
    let (memory, descriptors) = (Processes.anonymousKilobytes(of: server.processID), descriptors(server))
    for file in files {
      record.attempt(file.name) {
        var losses = try outcome(of: file, server)
        if try server.client.get(slice).body != before { losses.append("another client's answer has changed") }
        return losses
      }
    }
    record.attempt("all together") {
      var losses: [String] = []
      let grown = Processes.anonymousKilobytes(of: server.processID) - memory
      if grown > 32_768 { losses.append("the service has grown by \(grown) KB") }
      if !eventually({ self.descriptors(server) <= descriptors + 4 }) {
        losses.append("\(self.descriptors(server)) descriptors are open, \(descriptors) were")
      }
      var kept: [String] = []
      let isTidy = try eventually {
        kept = try server.leftovers().filter { !$0.contains(bystander) }
        return kept.isEmpty
      }
      if !isTidy { losses.append("left over: \(kept)") }
      return losses
    }
  }

  private func descriptors(_ server: TestServer) -> Int {
    ((try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(server.processID)/fd")) ?? []).count
  }

  /// Uploads the file, follows its job, and deletes it. Returns descriptions of anything wrong.
  private func outcome(of file: HostileFile, _ server: TestServer) throws -> [String] {
    let client = server.client
    let answer = try client.send("POST", "/v1/recordings?name=a.wav", [:], .bytes(file.bytes))
    let words = answer.json
    guard answer.status == 201 else {
      let isClear =
        [400, 415, 422].contains(answer.status) && words["code"].string != nil
        && words["detail"].string?.isEmpty == false
      return isClear && file.verdict != .sound ? [] : ["answered \(answer.status) \(answer.text)"]
    }
    guard let id = words["id"].string, let job = words["waveform"]["job"].string else { return [answer.text] }
    let ended = try client.follow(job)
    let recording = try client.recording(id)
    guard try client.delete("/v1/recordings/\(id)").status == 204 else { return ["can't be deleted"] }
    let hasWarnings = recording["warnings"].array?.isEmpty == false
    let hasFailed = ended["state"].string == "failed" && ended["error"]["detail"].string?.isEmpty == false
    switch file.verdict {
    case .refused: return ["taken: \(recording)"]
    case .sound: return ended["state"].string == "succeeded" ? [] : ["failed: \(ended["error"])"]
    case .told: return hasWarnings || hasFailed ? [] : ["taken in silence: \(recording)"]
    }
  }
}
