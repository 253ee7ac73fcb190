import Foundation
import Testing

@testable import Sounds

/// Disks that fill up or can't be written: new data is rejected with an explanation, and earlier data stays intact.
@Suite(.serialized) struct DiskTests {
  /// Uploads files without declaring their length until one is rejected; then everything must be as before.
  private func fill(_ server: TestServer, _ promises: KeptPromises, limit: Int) throws -> Answer? {
    for number in 0..<limit {
      let bytes = WAVFile.noise(seconds: 5, seed: number)
      var rest: ArraySlice<UInt8> = bytes[...]
      let answer = try server.client.send(
        "POST", "/v1/recordings?name=a.wav", [:],
        .pieces(length: nil) {
          guard !rest.isEmpty else { return nil }
          defer { rest = rest.dropFirst(100_000) }
          return Array(rest.prefix(100_000))
        })
      guard answer.status == 201, let id = answer.json["id"].string else { return answer }
      promises.uploaded(id, bytes)
    }
    return nil
  }

  private func refusal(_ answer: Answer?, _ statuses: Set<Int>) -> [String] {
    guard let answer else { return ["nothing was ever refused"] }
    return statuses.contains(answer.status) && answer.json["code"].string != nil
      ? [] : ["refused with \(answer.status) \(answer.text)"]
  }

  /// Deletes recordings to make room; then everything must work again.
  private func lossesAfterwards(_ server: TestServer, _ promises: KeptPromises) throws -> [String] {
    var losses = try promises.losses(server, mayHaveFailed: true)
    for id in promises.uploads.prefix(3) {
      promises.deleting(id)
      let answer = try server.client.delete("/v1/recordings/\(id)")
      if answer.status == 204 {
        promises.deleted(id)
      } else {
        losses.append("not deleted: \(answer.status) \(answer.text)")
      }
    }
    let bytes = Clip.tone.bytes
    let again = try server.client.send("POST", "/v1/recordings", [:], .bytes(bytes))
    if again.status != 201 { losses.append("after room was made: \(again.status) \(again.text)") }
    if let id = again.json["id"].string { promises.uploaded(id, bytes) }
    return losses + (try promises.losses(server, mayHaveFailed: true))
  }

  @Test(
    "a full disk refuses uploads and loses none",
    arguments: [("no room on the disk", "size=5m"), ("no inodes on the disk", "size=50m,nr_inodes=41")])
  func fullDisk(name: String, options: String) throws {
    guard let disk = Disk(options) else { return FaultRecord.skip(name, "mounting needs root") }
    var record = FaultRecord(name)
    defer { record.write("tmpfs \(options)") }
    withExtendedLifetime(disk) {
      record.attempt {
        let server = try TestServer("--reserve-bytes", "1", dataDirectory: disk.path + "/data")
        defer { server.kill() }
        let promises = KeptPromises()
        let refused = refusal(try fill(server, promises, limit: 60), [507])
        // Another program may use up the rest of the disk.
        disk.fill()
        return try refused + lossesAfterwards(server, promises)
      }
    }
  }

  @Test func aJobThatFillsTheDiskFailsWithAReasonAndLeavesNothing() throws {
    let name = "a job fills the disk"
    guard let disk = Disk("size=64m") else { return FaultRecord.skip(name, "mounting needs root") }
    var record = FaultRecord(name)
    defer { record.write("tmpfs, filled while the job runs") }
    withExtendedLifetime(disk) {
      record.attempt {
        let server = try TestServer("--reserve-bytes", "1", dataDirectory: disk.path + "/data")
        defer { server.kill() }
        let promises = KeptPromises()
        // Small as uploaded, large once decoded: a result that doesn't fit when it is asked for would be refused.
        let coded = server.folder.file("coded.mp3")
        try Tool.ffmpeg.run([
          "-v", "error", "-f", "lavfi", "-i", "anoisesrc=d=300:a=0.3:seed=1", "-c:a", "libmp3lame", "-b:a", "32k",
          coded,
        ])
        let bytes = try contents(coded)
        let id = try #require(try server.client.uploadReady(bytes)["id"].string)
        promises.uploaded(id, bytes)
        // The rest is full before the worker has written anything, so what it leaves makes no room for the catalog.
        disk.take(mebibytes: 30)
        let job = try server.client.denoise(id, #"{"noise":{"start":0,"end":2},"format":"wav"}"#)
        disk.fill()
        let ended = try server.client.follow(try #require(job["id"].string))
        var losses = try promises.losses(server, mayHaveFailed: true)
        if ended["error"]["code"].string != "disk_full" { losses.append("the job ended as \(ended)") }
        return losses
      }
    }
  }

  @Test func aReadOnlyDataFolderIsServedReadOnly() throws {
    let name = "a read-only data folder"
    guard let disk = Disk("size=50m") else { return FaultRecord.skip(name, "mounting needs root") }
    var record = FaultRecord(name)
    defer { record.write("a read-only bind mount over it") }
    withExtendedLifetime(disk) {
      record.attempt {
        let server = try TestServer("--reserve-bytes", "1", dataDirectory: disk.path + "/data")
        defer { server.kill() }
        let promises = KeptPromises()
        let bytes = Clip.tone.bytes
        let id = try #require(try server.client.uploadReady(bytes)["id"].string)
        promises.uploaded(id, bytes)
        guard disk.makeReadOnly() else { return ["the folder could not be made read-only"] }
        var losses: [String] = []
        let refused = try server.client.send("POST", "/v1/recordings", [:], .bytes(bytes))
        losses += refusal(refused, [503])
        losses += refusal(try server.client.delete("/v1/recordings/\(id)"), [503])
        let job = try server.client.denoise(id, #"{"noise":{"start":0,"end":1}}"#)
        let ended = try server.client.follow(try #require(job["id"].string))
        if ended["error"]["code"].string != "io_error" { losses.append("a job ended as \(ended)") }
        if try server.client.get("/v1/recordings/\(id)/audio").body != bytes { losses.append("audio is not served") }
        let slice = try server.client.get("/v1/recordings/\(id)/waveform?scale=256")
        if slice.status != 200 { losses.append("the waveform is answered \(slice.status)") }
        disk.makeWritable()
        return try losses + lossesAfterwards(server, promises)
      }
    }
  }

  @Test func aLimitOnTheLengthOfFilesRefusesTheUploadNotTheService() throws {
    var record = FaultRecord("RLIMIT_FSIZE on the service")
    defer { record.write() }
    record.attempt {
      let server = try TestServer(under: ["/bin/bash", "-c", "ulimit -f 1024; exec \"$0\" \"$@\""])
      defer { server.kill() }
      let promises = KeptPromises()
      let bytes = Clip.tone.bytes
      promises.uploaded(try #require(try server.client.uploadReady(bytes)["id"].string), bytes)
      let long = try server.client.send(
        "POST", "/v1/recordings", [:], .bytes(WAVFile.noise(seconds: 60, seed: 1)))
      return try refusal(long, [507]) + promises.losses(server)
    }
  }

  @Test(arguments: ["removed", "cut short", "emptied"])
  func aSourceLostDuringItsJobAtMostFailsTheJob(_ damage: String) throws {
    var record = FaultRecord("a source file \(damage) during its job")
    defer { record.write() }
    record.attempt {
      let server = try TestServer()
      defer { server.kill() }
      let source = try server.client.uploadReady(LongClip.wave())
      let id = try #require(source["id"].string)
      let job = try #require(try server.client.denoise(id, #"{"noise":{"start":1,"end":3}}"#)["id"].string)
      var worker: pid_t?
      _ = eventually {
        worker = server.workers().first { Processes.commandLine(of: $0).contains(job) }
        return worker != nil
      }
      let frozen = try #require(worker)
      _ = Glibc.kill(frozen, SIGSTOP)
      let path = server.data + "/recordings/\(id)/audio.wav"
      switch damage {
      case "removed": try FileManager.default.removeItem(atPath: path)
      case "cut short": unsafe _ = truncate(path, 100_000)
      default: unsafe _ = truncate(path, 0)
      }
      _ = Glibc.kill(frozen, SIGCONT)
      let ended = try server.client.follow(job)
      var losses: [String] = []
      if ended["state"].string == "failed", ended["error"]["detail"].string?.isEmpty != false {
        losses.append("the job failed without a reason")
      }
      if try server.client.get("/healthz").status != 200 { losses.append("the service is unwell") }
      let other = try server.client.uploadReady(Clip.tone.bytes)
      if other["waveform"]["state"].string != "ready" { losses.append("the next recording fails") }
      if !eventually({ server.workers().isEmpty }) { losses.append("a child goes on") }
      return losses
    }
  }
}
