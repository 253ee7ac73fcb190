import Foundation
import Synchronization

/// The service's promises to a client, and whether it has kept them.
final class KeptPromises: Sendable {
  private struct State {
    /// The hashes of uploads answered with 201.
    var uploads: [String: Int] = [:]
    /// The minimum offsets of uploads in pieces.
    var offsets: [String: Int] = [:]
    /// Recordings whose deletion was requested, with whether it was answered with 204.
    var deletions: [String: Bool] = [:]
    /// Waveforms seen finished, by hash.
    var waveforms: [String: String] = [:]
  }

  private let state = Mutex(State())

  /// The recordings that exist, as far as the client knows.
  var uploads: [String] { state.withLock { state in state.uploads.keys.filter { state.deletions[$0] == nil } } }

  func uploaded(_ id: String, _ bytes: [UInt8]) { state.withLock { $0.uploads[id] = bytes.hashValue } }

  /// Records that an upload in pieces, given by its address, was reported to be at `offset`.
  func told(_ upload: String, at offset: Int) { state.withLock { $0.offsets[upload] = offset } }

  func deleting(_ id: String) { state.withLock { $0.deletions[id] = false } }

  func deleted(_ id: String) { state.withLock { $0.deletions[id] = true } }

  /// Waits until no job runs, then compares everything. Returns descriptions of losses. Jobs may have failed only if
  /// they can't be done under the fault.
  func losses(_ server: TestServer, mayHaveFailed: Bool = false) throws -> [String] {
    // First, because asking for a complete upload makes its recording.
    var losses = try lostOffsets(server)
    let failed = try failedJobs(server)
    if !mayHaveFailed { losses += failed }
    let listed = try server.client.get("/v1/recordings?limit=1000").json["recordings"].array ?? []
    let ids = Set(listed.compactMap { $0["id"].string })
    let known = state.withLock { $0 }
    for (id, hash) in known.uploads {
      if known.deletions[id] == true {
        if ids.contains(id) { losses.append("recording \(id) came back") }
      } else if ids.contains(id) {
        let kept = try server.client.get("/v1/recordings/\(id)/audio").body
        if kept.hashValue != hash { losses.append("recording \(id) is not what was sent") }
      } else if known.deletions[id] == nil {
        losses.append("recording \(id) is gone")
      }
    }
    for recording in listed { losses += try self.losses(of: recording, server, mayHaveFailed) }
    losses += try strayFiles(server, ids, mayHaveFailed)
    if !eventually({ Processes.naming(server.data) == [server.processID] }) { losses.append("an orphan runs") }
    return losses
  }

  /// Checks that the reported offsets of uploads are kept, and that every part belongs to an upload that can continue.
  /// Then cancels all of them.
  private func lostOffsets(_ server: TestServer) throws -> [String] {
    let parts = try FileManager.default.contentsOfDirectory(atPath: server.data + "/uploads")
    var told = state.withLock { state in
      defer { state.offsets = [:] }
      return state.offsets
    }
    for part in parts { told["/v1/uploads/" + part.dropLast(".part".count), default: 0] += 0 }
    return try told.compactMap { upload, offset in
      let tus = ["Tus-Resumable": "1.0.0"]
      let now = try server.client.send("HEAD", upload, tus)
      let kept = now["Upload-Offset"].flatMap { Int($0) } ?? -1
      _ = try server.client.send("DELETE", upload, tus)
      return now.status == 200 && kept >= offset ? nil : "\(upload) was at \(offset) and is at \(kept): \(now.status)"
    }
  }

  private func failedJobs(_ server: TestServer) throws -> [String] {
    var losses: [String] = []
    for job in try server.client.get("/v1/jobs?limit=1000").json["jobs"].array ?? [] {
      guard let id = job["id"].string else { continue }
      let ended = try server.client.follow(id)
      if ended["state"].string == "failed" { losses.append("job \(id) failed: \(ended["error"])") }
    }
    return losses
  }

  private func losses(of recording: JSON, _ server: TestServer, _ mayHaveFailed: Bool) throws -> [String] {
    guard let id = recording["id"].string, let sha256 = recording["sha256"].string else {
      return ["a recording without a SHA-256: \(recording)"]
    }
    var losses: [String] = []
    let file = try files(of: id, server).first { $0.hasPrefix("audio") }
    if try file.map({ try EndToEndTests.sha256(ofFile: server.data + "/recordings/\(id)/" + $0) }) != sha256 {
      losses.append("recording \(id) has another SHA-256")
    }
    if mayHaveFailed, recording["waveform"]["state"].string == "failed" { return losses }
    guard recording["waveform"]["state"].string == "ready" else { return losses + ["the waveform of \(id) is missing"] }
    let answer = try server.client.get("/v1/recordings/\(id)/waveform.dat?scale=256")
    let waveform = "\(answer.status) \(answer.body.hashValue)"
    let before = state.withLock { state in
      defer { state.waveforms[id] = waveform }
      return state.waveforms[id]
    }
    if answer.status != 200 || (before ?? waveform) != waveform { losses.append("the waveform of \(id) has changed") }
    return losses
  }

  /// A recording's files, without the optional sound map, which can be lost and made again.
  private func files(of id: String, _ server: TestServer) throws -> [String] {
    try FileManager.default.subpathsOfDirectory(atPath: server.data + "/recordings/\(id)").filter {
      !($0.hasPrefix("audio") && $0.hasSuffix(".map"))
    }
  }

  /// Returns files that don't belong in the data folder: a recording has only its audio, its waveform, and its
  /// description.
  private func strayFiles(_ server: TestServer, _ ids: Set<String>, _ mayHaveFailed: Bool) throws -> [String] {
    var strays: [String] = []
    let isTidy = try eventually {
      strays = try server.leftovers().filter { path in
        let parts = path.split(separator: "/").map(String.init)
        guard parts.first == "recordings", parts.count >= 2, ids.contains(parts[1]) else { return true }
        return parts.count > 2 && !parts[2].hasPrefix("recording-") && !parts[2].hasPrefix("audio")
          && !parts[2].hasPrefix("waveform-")
      }
      for id in ids {
        let count = try files(of: id, server).count
        if count != 3 && !(mayHaveFailed && count == 2) { strays.append("\(count) files in recordings/\(id)") }
      }
      return strays.isEmpty
    }
    return isTidy ? [] : strays
  }
}
