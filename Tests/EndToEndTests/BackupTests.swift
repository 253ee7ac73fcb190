import Foundation
import Testing

@testable import Sounds

/// `stillwave backup`, `restore`, and `check`, and copies that operators make by hand.
struct BackupTests {
  private static let clips = (1...4).map { WAVFile.noise(seconds: 1, seed: $0) }

  /// The ids of recordings with the hash of their audio.
  private func uploads(_ server: TestServer, _ clips: ArraySlice<[UInt8]>) throws -> [String: Int] {
    var made: [String: Int] = [:]
    for clip in clips {
      let id: String = try #require(try server.client.uploadReady(clip)["id"].string)
      made[id] = clip.hashValue
    }
    return made
  }

  /// Uploads bytes of an unfinished upload; returns its address.
  private func beginUpload(_ server: TestServer, _ bytes: [UInt8]) throws -> String {
    let made = try server.client.send("POST", "/v1/uploads", ["Tus-Resumable": "1.0.0", "Upload-Length": "999"])
    let address = try #require(made["Location"])
    let fields = [
      "Tus-Resumable": "1.0.0", "Upload-Offset": "0", "Content-Type": "application/offset+octet-stream",
    ]
    #expect(try server.client.send("PATCH", address, fields, .bytes(bytes)).status == 204)
    return address
  }

  /// Starts a service on `data`; returns descriptions of anything that has changed.
  private func losses(of recordings: [String: Int], in data: String) throws -> [String] {
    let server = try TestServer(dataDirectory: data)
    let listed = try server.client.get("/v1/recordings?limit=1000").json["recordings"].array ?? []
    let ids = Set(listed.compactMap { $0["id"].string })
    var losses = ids.symmetricDifference(recordings.keys).map {
      "recording \($0) is there and should not be, or the reverse"
    }
    for (id, hash) in recordings where ids.contains(id) {
      let audio = try server.client.get("/v1/recordings/\(id)/audio")
      if audio.body.hashValue != hash { losses.append("recording \(id) is not what it was") }
      let isReady = try eventually { try server.client.recording(id)["waveform"]["state"].string == "ready" }
      if !isReady { losses.append("recording \(id) has no waveform") }
    }
    if try server.client.get("/readyz").json["warnings"].array?.count != 0 { losses.append("/readyz has a warning") }
    try server.stop()
    return losses
  }

  /// Runs one row of the table of faults.
  private func tried(_ name: String, _ attempt: () throws -> [String]) {
    var record = FaultRecord(name)
    record.attempt("", attempt)
    record.write()
  }

  @Test(
    "a restored backup of a running service has everything from then and nothing newer", arguments: [true, false])
  func roundTrip(byLinks: Bool) throws {
    let server = try TestServer()
    let kept = try uploads(server, Self.clips[..<3])
    let upload = try beginUpload(server, Array("RIFF".utf8))
    let (backup, restored) = (server.folder.file("backup"), server.folder.file("restored"))
    let made = try Command(
      try Program.path(),
      ["backup", "--data", server.data, "-o", backup] + (byLinks ? [] : ["--copy", "--progress", "json"])
    ).finish()
    try #require(made.status == 0, "\(made.errors)")
    if !byLinks {
      #expect(try JSON(Array(made.lines[0].utf8)).members == ["progress"])
      #expect(try JSON(Array(made.lines[made.lines.count - 1].utf8))["recordings"] == .number(3))
    }
    // Recordings added after the backup aren't in it; those deleted afterward are.
    _ = try uploads(server, Self.clips[3...])
    let gone = try #require(kept.keys.first)
    #expect(try server.client.delete("/v1/recordings/\(gone)").status == 204)
    try server.stop()

    let sums = try Command("/usr/bin/env", ["-C", backup, "sha256sum", "-c", "--quiet", "SHA256SUMS"]).finish()
    #expect(sums.status == 0, "\(sums.errors)")
    let back = try Command.stillwave("restore", backup, "--data", restored)
    try #require(back.status == 0, "\(back.errors)")
    let check = try Command.stillwave("check", "--data", restored, "--json")
    #expect(check.status == 0, "\(String(decoding: check.output, as: UTF8.self))")
    tried("backup of a running service by \(byLinks ? "links" : "copies"), restored") {
      try losses(of: kept, in: restored)
    }

    let again = try TestServer(dataDirectory: restored)
    let offset = try again.client.send("HEAD", upload, ["Tus-Resumable": "1.0.0"])["Upload-Offset"]
    #expect(offset == "4", "an upload goes on where it was")
    try again.stop()
  }

  @Test("a copy of the data folder of a stopped service is a backup")
  func copyOfAStoppedService() throws {
    let server = try TestServer()
    let kept = try uploads(server, Self.clips[...])
    try server.stop()
    let copy = server.folder.file("copy")
    try FileManager.default.createDirectory(atPath: copy, withIntermediateDirectories: true)
    for name in ["catalog.sqlite", "recordings"] {
      try FileManager.default.copyItem(atPath: server.data + "/" + name, toPath: copy + "/" + name)
    }
    tried("copy of a stopped service's folder") { try losses(of: kept, in: copy) }
  }

  @Test("an older catalog beside newer recordings loses none")
  func olderCatalog() throws {
    let server = try TestServer()
    var kept = try uploads(server, Self.clips[..<2])
    let (backup, copy) = (server.folder.file("backup"), server.folder.file("copy"))
    #expect(try Command.stillwave("backup", "--data", server.data, "-o", backup).status == 0)
    try kept.merge(uploads(server, Self.clips[2...])) { $1 }
    try FileManager.default.createDirectory(atPath: copy, withIntermediateDirectories: true)
    try FileManager.default.copyItem(atPath: backup + "/catalog.sqlite", toPath: copy + "/catalog.sqlite")
    try FileManager.default.copyItem(atPath: server.data + "/recordings", toPath: copy + "/recordings")
    try server.stop()
    tried("older catalog beside newer recordings") { try losses(of: kept, in: copy) }
  }

  @Test(
    "root repairs and restores as the user who owns the folder, also where only root can find it, from root's files",
    .enabled(if: geteuid() == 0))
  func ownership() throws {
    let owner: uid_t = 54_321
    let folder = try TemporaryFolder()
    let (hidden, backup, restored) = (folder.file("private"), folder.file("backup"), folder.file("restored"))
    // As systemd keeps the folder of a dynamic user.
    #expect(unsafe mkdir(hidden, 0o700) == 0)
    let data = hidden + "/data"
    let server = try TestServer(dataDirectory: data)
    let kept = try uploads(server, Self.clips[..<2])
    try #require(try Command.stillwave("backup", "--data", data, "-o", backup).status == 0)
    try server.stop()
    func paths(_ root: String) throws -> [String] {
      try [root] + FileManager.default.subpathsOfDirectory(atPath: root).map { root + "/" + $0 }
    }
    func isOwned(_ path: String) -> Bool {
      var info = stat()
      return unsafe lstat(path, &info) == 0 && info.st_uid == owner && info.st_gid == owner
    }
    for path in try [folder.path] + paths(data) { #expect(unsafe lchown(path, owner, owner) == 0) }
    try write(Array("damaged".utf8), to: data + "/catalog.sqlite")
    #expect(unsafe lchown(data + "/catalog.sqlite", owner, owner) == 0)
    let first = data + "/recordings/\(kept.keys.sorted()[0])"
    for name in try FileManager.default.contentsOfDirectory(atPath: first) where name.hasPrefix("recording-") {
      try FileManager.default.removeItem(atPath: first + "/" + name)
    }

    let repaired = try Command.stillwave("check", "--data", data, "--repair")
    // Which rows the catalog had besides the recordings can't be known.
    #expect(repaired.status == 1, "\(repaired.errors)")
    let back = try Command.stillwave("restore", backup, "--data", restored)
    #expect(back.status == 0, "\(back.errors)")
    for path in try paths(data) + paths(restored) { #expect(isOwned(path), "\(path)") }
  }

  @Test("backup and restore never overwrite anything, and explain errors")
  func refusals() throws {
    let server = try TestServer()
    _ = try uploads(server, Self.clips[..<1])
    let file = server.folder.file("file")
    try write([1, 2, 3], to: file)
    let cases: [([String], String)] = [
      (["backup", "--data", server.data, "-o", server.data], "File exists"),
      (["backup", "--data", server.data, "-o", file], "File exists"),
      (["backup", "--data", server.folder.file("nothing"), "-o", server.folder.file("backup")], "catalog"),
      (["backup", "-o", server.folder.file("backup")], "--data"),
      (["restore", server.folder.file("nothing"), "--data", server.folder.file("restored")], "SHA256SUMS"),
      (["restore", server.data, "--data", server.folder.file("restored")], "SHA256SUMS"),
      (["check", "--data", server.folder.file("nothing")], "no folder"),
      (["check", "--data", server.data, "--repair"], "Another service uses"),
    ]
    for (arguments, words) in cases {
      let finished = try Command(try Program.path(), arguments).finish()
      #expect(finished.status != 0, "\(arguments)")
      #expect(finished.errors.contains(words), "\(arguments): \(finished.errors)")
    }
    #expect(try server.folder.names() == ["data", "file"])
    #expect(try contents(file) == [1, 2, 3])
  }
}
