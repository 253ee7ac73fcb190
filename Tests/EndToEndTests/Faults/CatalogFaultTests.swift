import Foundation
import Testing

@testable import Sounds

/// The catalog is lost, damaged, or older than the recordings. No audio is ever removed, and every recording is
/// restored at the start or by `stillwave check --repair`.
@Suite(.serialized) struct CatalogFaultTests {
  /// The damage done to the catalog while no service runs.
  enum Fault: String, CaseIterable, CustomTestStringConvertible {
    case removed, emptied
    case cutInHalf = "cut in half"
    case cutToOnePage = "cut to one page"
    case cutByAByte = "cut by a byte"
    case noise = "overwritten with noise"
    case headerLost = "its header overwritten"
    case anotherProgram = "replaced by another program's file"
    case older = "an older copy put back"
    case logRemoved = "its log removed after a crash"
    case logCut = "its log cut after a crash"
    case logNoise = "its log overwritten after a crash"

    var testDescription: String { rawValue }
    /// The log contains rows only after a crash.
    var needsCrash: Bool { [.logRemoved, .logCut, .logNoise].contains(self) }
  }

  @Test("a lost or damaged catalog loses no recording", .secondTier, arguments: Fault.allCases)
  func lostCatalog(fault: Fault) throws {
    var record = FaultRecord("catalog: \(fault.rawValue)")
    defer { record.write() }
    record.attempt {
      let library = try Library()
      let catalog = library.server.data + "/catalog.sqlite"
      let older = library.server.folder.file("older.sqlite")
      try library.server.stop()
      try FileManager.default.copyItem(atPath: catalog, toPath: older)
      try library.server.restart()
      try library.grow()
      if fault.needsCrash { try library.server.crash() } else { try library.server.stop() }
      let before = try library.audio()
      try apply(fault, to: catalog, older: older)
      return try library.lossesAfterStart(audioBefore: before)
    }
  }

  private func apply(_ fault: Fault, to catalog: String, older: String) throws {
    let length = try EndToEndTests.contents(catalog).count
    switch fault {
    case .removed: try FileManager.default.removeItem(atPath: catalog)
    case .emptied: try truncate(catalog, to: 0)
    case .cutInHalf: try truncate(catalog, to: length / 2)
    case .cutToOnePage: try truncate(catalog, to: 4096)
    case .cutByAByte: try truncate(catalog, to: length - 1)
    case .noise: try overwrite(catalog, at: 0, with: noise(length))
    case .headerLost: try overwrite(catalog, at: 0, with: noise(100))
    case .anotherProgram: try Data("PK\u{3}\u{4} not a catalog".utf8).write(to: URL(fileURLWithPath: catalog))
    case .older:
      try FileManager.default.removeItem(atPath: catalog)
      try FileManager.default.copyItem(atPath: older, toPath: catalog)
    case .logRemoved: try FileManager.default.removeItem(atPath: catalog + "-wal")
    case .logCut: try truncate(catalog + "-wal", to: try EndToEndTests.contents(catalog + "-wal").count / 3)
    case .logNoise: try overwrite(catalog + "-wal", at: 32, with: noise(20_000))
    }
  }

  @Test("flipped bits in the catalog lose no recording and end no process")
  func flippedBits() throws {
    var record = FaultRecord("catalog: 1 to 64 bits flipped")
    var refused = 0
    defer { record.write("\(refused) starts refused, then repaired") }
    let library = try Library()
    try library.server.stop()
    let before = try library.audio()
    let catalog = library.server.data + "/catalog.sqlite"
    let (intact, folders) = (try EndToEndTests.contents(catalog), try library.copyOfFolders())
    for seed in 0..<FaultRecord.flips {
      record.attempt("seed \(seed)") {
        var random = NoiseGenerator(seed: seed + 1000)
        var bytes = intact
        for _ in 0..<(1 << (seed % 7)) {
          let bit = Int(min(abs(random.next()), 0.999_999) * Double(bytes.count * 8))
          bytes[bit / 8] ^= 1 << UInt8(bit % 8)
        }
        try library.putBack(folders)
        try Data(bytes).write(to: URL(fileURLWithPath: catalog))
        let losses = try library.lossesAfterStart(audioBefore: before)
        if library.wasRefused { refused += 1 }
        try library.server.crash()
        return losses
      }
    }
  }

  @Test("an unexplained folder is kept aside and reported by /readyz and /metrics")
  func orphan() throws {
    let server = try TestServer()
    try server.stop()
    let id = "0199c0de-0000-7000-8000-000000000000"
    let folder = server.data + "/recordings/\(id)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try EndToEndTests.write(Library.clip(1), to: folder + "/somebody's.wav")
    try server.restart()
    #expect(try EndToEndTests.contents(server.data + "/orphaned/\(id)/somebody's.wav") == Library.clip(1))
    let ready = try server.client.get("/readyz")
    #expect(ready.status == 200)
    #expect(ready.json["warnings"].array?.map { $0["code"].string } == ["orphaned_files"])
    #expect(try server.client.get("/metrics").text.contains("\nstillwave_orphaned_files 1\n"))
  }

  @Test("removing or replacing the catalog or the lock of a running service stops uploads with 503")
  func replacedWhileRunning() throws {
    var record = FaultRecord("catalog or lock removed or replaced while the service runs")
    defer { record.write() }
    for name in ["catalog.sqlite", "catalog.sqlite-wal", "lock"] {
      for isReplaced in [false, true] {
        record.attempt("\(name) \(isReplaced ? "replaced" : "removed")") {
          let library = try Library()
          let path = library.server.data + "/" + name
          try FileManager.default.moveItem(atPath: path, toPath: path + ".away")
          if isReplaced { try FileManager.default.copyItem(atPath: path + ".away", toPath: path) }
          let answer = try library.server.client.send("POST", "/v1/recordings", [:], .bytes(Library.clip(99)))
          var losses = answer.status == 503 ? [] : ["an upload was answered \(answer.status)"]
          let isTold = try eventually { try library.server.client.get("/readyz").status == 503 }
          if !isTold { losses.append("/readyz says ready") }
          let before = try library.audio()
          try library.server.crash()
          try FileManager.default.removeItem(atPath: path + ".away")
          return try losses + library.lossesAfterStart(audioBefore: before)
        }
      }
    }
  }
}

/// A service with recordings of several kinds, and what must be restored of them.
private final class Library {
  let server: TestServer
  /// The hash of each recording's audio, by id.
  private var recordings: [String: Int] = [:]
  private var count = 0
  /// Whether the last start failed and needed a repair.
  private(set) var wasRefused = false

  init() throws {
    server = try TestServer()
    try grow()
    let noisy = try server.client.uploadReady(Self.clip(7), name: "noisy.wav")
    let source = try #require(noisy["id"].string)
    let cleaned = try #require(try server.client.cleaned(source, #"{"noise":{"start":0,"end":0.5}}"#)["id"].string)
    for id in [source, cleaned] { try note(id) }
  }

  static func clip(_ seed: Int) -> [UInt8] { WAVFile.noise(seconds: 1, seed: seed) }

  /// Uploads two more recordings and renames one.
  func grow() throws {
    for _ in 0..<2 {
      count += 1
      let id = try #require(try server.client.uploadReady(Self.clip(count), name: "clip \(count).wav")["id"].string)
      if count % 2 == 0 {
        #expect(
          try server.client.send(
            "PATCH", "/v1/recordings/\(id)", ["Content-Type": "application/json"],
            .bytes(Array(#"{"name":"renamed \#(count).wav"}"#.utf8))
          ).status == 200)
      }
      try note(id)
    }
  }

  private func note(_ id: String) throws {
    recordings[id] = try server.client.get("/v1/recordings/\(id)/audio").body.hashValue
  }

  /// The SHA-256 of each audio file anywhere in the data folder.
  func audio() throws -> Set<String> {
    var found: Set<String> = []
    for path in try FileManager.default.subpathsOfDirectory(atPath: server.data) where path.contains("/audio.") {
      if !path.hasSuffix(".map") { found.insert(try sha256(ofFile: server.data + "/" + path)) }
    }
    return found
  }

  func copyOfFolders() throws -> String {
    let copy = server.folder.file("copy")
    try FileManager.default.copyItem(atPath: server.data, toPath: copy)
    return copy
  }

  /// Replaces the data folder with a copy made earlier.
  func putBack(_ copy: String) throws {
    try FileManager.default.removeItem(atPath: server.data)
    try FileManager.default.copyItem(atPath: copy, toPath: server.data)
  }

  /// Starts the service, with a repair if it refuses. Returns descriptions of what is lost.
  func lossesAfterStart(audioBefore: Set<String>) throws -> [String] {
    var losses: [String] = []
    wasRefused = false
    do { try server.restart() } catch {
      wasRefused = true
      if !"\(error)".contains("check --data DIR --repair") { losses.append("refused with: \(error)") }
      losses += audioBefore.subtracting(try audio()).map { "audio \($0) is gone after a start that was refused" }
      let repair = try Command.stillwave("check", "--data", server.data, "--repair", "--json")
      let output = String(decoding: repair.output, as: UTF8.self)
      // Rows that no folder describes may be gone, which it says; recordings may not.
      if repair.status != (output.contains("\"lost\":[\"") ? 1 : 0) {
        losses.append("check --repair ended with \(repair.status): \(output) \(repair.errors)")
      }
      try server.restart()
    }
    losses += audioBefore.subtracting(try audio()).map { "audio \($0) is gone" }
    // A flipped bit in a row's text may be served until the folders have been checked.
    server.client.followsContract = false
    for (id, hash) in recordings {
      let answer = try server.client.get("/v1/recordings/\(id)/audio")
      if answer.status != 200 || answer.body.hashValue != hash {
        losses.append("recording \(id): \(answer.status)")
      }
      let isReady = try eventually { try server.client.recording(id)["waveform"]["state"].string == "ready" }
      if !isReady { losses.append("recording \(id) has no waveform") }
    }
    return losses
  }
}

extension FaultRecord {
  /// Rounds of flipped bits: 60 in `deploy/faults`, fewer in `deploy/test`.
  static let flips = ProcessInfo.processInfo.environment["FAULT_ROUNDS"] == nil ? 6 : 60
}

private func noise(_ count: Int) -> [UInt8] {
  var random = NoiseGenerator(seed: count)
  return (0..<count).map { _ in UInt8(truncatingIfNeeded: Int(random.next() * 100_000)) }
}

private func truncate(_ path: String, to length: Int) throws {
  let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
  try file.truncate(atOffset: UInt64(length))
}

private func overwrite(_ path: String, at offset: Int, with bytes: [UInt8]) throws {
  let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
  try file.seek(toOffset: UInt64(offset))
  try file.write(contentsOf: Data(bytes))
}
