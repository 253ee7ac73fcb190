import Foundation
import HTTP
import Media
import PresentRows
import Terms
import Testing
import Waveform

@testable import AudioService
@testable import Jobs
@testable import Storage

/// A waveform damaged on disk: it's never served, and rebuilt once.
@Suite struct WaveformRepairTests {
  /// What happens to a finished pyramid, and whether the recording then has a warning about it.
  enum Damage: CaseIterable {
    case removed, emptied, cut, headerFlipped, pageFlipped, checksumFlipped, replacedByFolder, ofTheFirstVersion

    func happen(to path: String) throws {
      let files = FileManager.default
      switch self {
      case .removed: try files.removeItem(atPath: path)
      case .replacedByFolder:
        try files.removeItem(atPath: path)
        try files.createDirectory(atPath: path, withIntermediateDirectories: false)
      case .emptied: try change(path) { $0.removeAll() }
      case .cut: try change(path) { $0.removeLast(5000) }
      case .headerFlipped: try change(path) { $0[33] ^= 1 }
      case .pageFlipped: try change(path) { $0[4096 * 4 + 80] ^= 64 }
      case .checksumFlipped: try change(path) { $0[4096 * 5 - 1] ^= 1 }
      case .ofTheFirstVersion: try change(path) { $0[8] = 1 }
      }
    }

    /// Changes the file in place, so that those who have it open see the change.
    private func change(_ path: String, _ body: (inout Data) -> Void) throws {
      let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
      var data = try #require(try file.readToEnd())
      body(&data)
      try file.truncate(atOffset: 0)
      try file.seek(toOffset: 0)
      try file.write(contentsOf: data)
    }
  }

  /// A service whose waveform jobs restore the recording's previous pyramid.
  private func bench(
    script: String = "cp \"$folder/good\" \"$pyramid\"; echo '{\"analysis\":{\"frames\":60000,\"warnings\":[]}}'",
    _ change: (inout Configuration) -> Void = { _ in }
  ) throws -> (bench: TestBench, recording: Recording, path: String) {
    let bench = try TestBench(script: "[ $command = waveform ] && { \(script); exit; }; finish", change)
    let recording = try bench.recording()
    try bench.makeWaveform(of: recording)
    let path = bench.store.folder(of: recording.id) + "/waveform.pyramid"
    try FileManager.default.copyItem(atPath: path, toPath: bench.folder.path + "/good")
    return (bench, recording, path)
  }

  private struct Answer {
    let status: Int
    let text: String
    let fields: HTTPFields

    /// Whether the answer says that nothing is available yet.
    var isEmpty: Bool {
      status == 200 && fields["Stillwave-Complete"] == "false" && fields["Stillwave-Available-Frames"] == "0"
        && fields["Cache-Control"] == "no-store" && fields["ETag"] == nil
    }
  }

  private func get(_ bench: TestBench, _ target: String, _ method: HTTPMethod = .get) async throws -> Answer {
    let response = try await bench.respond(method, target)
    let bytes = try await response.body.collect()
    return Answer(
      status: response.status.code, text: String(decoding: bytes, as: UTF8.self), fields: response.fields)
  }

  private static let forms = [
    "/waveform?scale=256", "/waveform?width=50&measures=peak,rms", "/waveform.dat?scale=256",
    "/waveform.json?scale=512",
    "/peaks.json?scale=300",
    "/waveform.png?scale=256", "/waveform.svg?scale=256",
    "/waveform?scale=256&channels=split&measures=peak,rms,average",
  ]

  @Test(
    "a damaged waveform is served like one being built, in every form, and is rebuilt",
    arguments: Damage.allCases, [forms[0], forms[2], forms[5]])
  func spoiled(damage: Damage, form: String) async throws {
    let (bench, recording, path) = try bench()
    let target = "/v1/recordings/\(recording.id)"
    try damage.happen(to: path)
    let met = try await get(bench, target + form)
    #expect(met.isEmpty, "\(met)")
    let job = try #require(try bench.catalog.jobs(limit: 9).first)
    #expect(job.kind == .waveform && job.recording == recording.id)
    #expect(try bench.catalog.recording(recording.id)?.waveformJob == job.id)
    #expect(try await bench.finished(job.id).state == .succeeded)
    let row = try #require(try bench.catalog.recording(recording.id))
    #expect(row.waveformState == .ready && row.warnings.isEmpty)
    let after = try await get(bench, target + form)
    #expect(after.status == 200 && after.fields["Stillwave-Complete"] == "true")
    // Nothing is left of the damaged file, and no second job was started.
    #expect(!FileManager.default.fileExists(atPath: path))
    #expect(try bench.catalog.jobs(limit: 9).count == 1)
  }

  @Test("damage to an open file is found by the first slice that needs that part", arguments: forms)
  func spoiledWhileOpen(form: String) async throws {
    let (bench, recording, path) = try bench()
    let target = "/v1/recordings/\(recording.id)"
    // Reads only the upper block and the header.
    let coarse = try await get(bench, target + "/waveform?scale=65536")
    #expect(coarse.status == 200)
    try Damage.cut.happen(to: path)
    let met = try await get(bench, target + "/waveform?scale=256&channels=1")
    #expect(met.isEmpty, "\(met)")
    #expect(
      try await get(bench, target + form).isEmpty || bench.catalog.recording(recording.id)?.waveformState == .ready)
    let job = try #require(try bench.catalog.jobs(limit: 9).first)
    #expect(try await bench.finished(job.id).state == .succeeded)
    let again = try await get(bench, target + "/waveform?scale=65536")
    #expect(again.text == coarse.text && again.fields["ETag"] == coarse.fields["ETag"])
    #expect(try bench.catalog.jobs(limit: 9).count == 1)
  }

  @Test("the Recording says why its waveform is rebuilt, and by which job")
  func reason() async throws {
    for (damage, code) in [
      (Damage.pageFlipped, "waveform_damaged"), (.removed, "waveform_damaged"), (.ofTheFirstVersion, nil),
    ] {
      let (bench, recording, path) = try bench()
      try damage.happen(to: path)
      #expect(try await get(bench, "/v1/recordings/\(recording.id)/waveform?scale=256").isEmpty)
      let row = try #require(try bench.catalog.recording(recording.id))
      let job = try #require(try bench.catalog.jobs(limit: 1).first)
      #expect(row.waveformJob == job.id && row.waveformState != .failed)
      if row.waveformState != .ready { #expect(row.warnings.map(\.code) == (code.map { [$0] } ?? [])) }
      _ = try await bench.finished(job.id)
    }
  }

  @Test("one that is damaged again at once stays failed until a client requests a rebuild")
  func damagedAgain() async throws {
    let (bench, recording, path) = try bench(
      script: "echo x > \"$pyramid\"; echo '{\"analysis\":{\"frames\":60000,\"warnings\":[]}}'")
    let target = "/v1/recordings/\(recording.id)"
    try Damage.pageFlipped.happen(to: path)
    for _ in 0..<3 {
      #expect(try await get(bench, target + "/waveform?scale=256").isEmpty)
      for job in try bench.catalog.jobs(limit: 9) { _ = try await bench.finished(job.id) }
    }
    #expect(try bench.catalog.jobs(limit: 9).count == 1)
    let row = try #require(try bench.catalog.recording(recording.id))
    #expect(row.waveformState == .failed && row.warnings.map(\.code) == ["waveform_damaged"])
    #expect(try await get(bench, target + "/waveform", .post).status == 202)
  }

  @Test("of many simultaneous requests to rebuild a failed one, only one starts a job")
  func requestsTogether() async throws {
    let bench = try TestBench(script: "exec sleep 1000")
    let recording = try bench.recording(state: .failed)
    let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<20 {
        group.addTask { try await bench.respond(.post, "/v1/recordings/\(recording.id)/waveform").status.code }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(statuses.sorted() == [202] + [Int](repeating: 409, count: 19))
    #expect(try bench.catalog.jobs(limit: 99).count == 1)
    await bench.runner.stop()
  }

  @Test("while the queue is full it stays failed; the next request starts the job")
  func queueFull() async throws {
    let (bench, recording, path) = try bench { $0.maximumQueuedJobs = 1 }
    let target = "/v1/recordings/\(recording.id)/waveform?scale=256"
    var room: TallyPlace? = try bench.runner.reserve(for: Client(key: "another"))
    try Damage.pageFlipped.happen(to: path)
    for _ in 0..<2 {
      #expect(try await get(bench, target).isEmpty)
      #expect(try bench.catalog.recording(recording.id)?.waveformState == .failed)
      #expect(try bench.catalog.recording(recording.id)?.warnings.map(\.code) == ["waveform_damaged"])
    }
    #expect(room != nil)
    room = nil
    #expect(try await get(bench, target).isEmpty)
    let job = try #require(try bench.catalog.jobs(limit: 9).first)
    #expect(try await bench.finished(job.id).state == .succeeded)
    #expect(try await get(bench, target).fields["Stillwave-Complete"] == "true")
  }

  @Test("without the audio it can't be rebuilt")
  func withoutAudio() async throws {
    let (bench, recording, path) = try bench()
    try FileManager.default.removeItem(atPath: bench.store.folder(of: recording.id) + "/audio.wav")
    try Damage.pageFlipped.happen(to: path)
    let target = "/v1/recordings/\(recording.id)"
    #expect(try await get(bench, target + "/waveform?scale=256").isEmpty)
    #expect(try bench.catalog.jobs(limit: 9).isEmpty)
    let row = try #require(try bench.catalog.recording(recording.id))
    #expect(row.waveformState == .failed && Set(row.warnings.map(\.code)) == ["waveform_damaged", "audio_missing"])
    #expect(try await get(bench, target + "/waveform", .post).status == 410)
  }

  @Test("the start rebuilds missing ones")
  func atTheStart() async throws {
    let (bench, recording, path) = try bench()
    try Damage.removed.happen(to: path)
    let report = try bench.context.files.sweep(giveUp: bench.context.waveforms.giveUp)
    #expect(report == MissingFiles.Report(sounds: 0, waveforms: 1))
    let job = try #require(try bench.catalog.jobs(limit: 9).first)
    #expect(try await bench.finished(job.id).state == .succeeded)
    #expect(try bench.catalog.recording(recording.id)?.waveformState == .ready)
  }

  @Test("a denoised result's waveform is rebuilt by a separate job and keeps its warnings")
  func denoised() async throws {
    let (bench, recording, path) = try bench()
    try bench.catalog.update(recording.id) {
      $0.derivedFrom = Derivation(recording: RecordingID(), job: JobID(), operation: "denoise")
      $0.warnings = [Warning(code: "tracks_left_out", detail: "One.")]
    }
    try Damage.pageFlipped.happen(to: path)
    #expect(try await get(bench, "/v1/recordings/\(recording.id)/waveform?scale=256").isEmpty)
    let job = try #require(try bench.catalog.jobs(limit: 9).first)
    #expect(try await bench.finished(job.id).state == .succeeded)
    let row = try #require(try bench.catalog.recording(recording.id))
    #expect(row.waveformState == .ready && row.warnings.map(\.code) == ["tracks_left_out"])
  }

  @Test(
    "in a picture with an overlay, either may be damaged", arguments: [[true, false], [false, true], [true, true]])
  func overlay(spoiled: [Bool]) async throws {
    let (bench, first, path) = try bench()
    let second = try bench.recording()
    try bench.makeWaveform(of: second)
    if spoiled[0] { try Damage.pageFlipped.happen(to: path) }
    if spoiled[1] {
      try Damage.pageFlipped.happen(to: bench.store.folder(of: second.id) + "/waveform.pyramid")
    }
    let target = "/v1/recordings/\(first.id)/waveform.png?overlay=\(second.id)&scale=256"
    let met = try await get(bench, target)
    #expect(met.status == 200 && met.fields["Cache-Control"] == "no-store", "\(met.status) \(met.fields)")
    let jobs = try bench.catalog.jobs(limit: 9)
    #expect(jobs.count == spoiled.count { $0 })
    for job in jobs { #expect(try await bench.finished(job.id).state == .succeeded) }
    #expect(try await get(bench, target).fields["ETag"] != nil)
  }

  // MARK: Working copies

  /// A recording that ffmpeg reads, with its working copy.
  private func mediaRecording(_ bench: TestBench) throws -> Recording {
    let recording = try bench.recording()
    try bench.makeWaveform(of: recording)
    try Data("copy".utf8).write(
      to: URL(fileURLWithPath: bench.store.folder(of: recording.id) + "/working.wav"))
    return try #require(
      try bench.catalog.update(recording.id) {
        let facts = MediaFacts(
          decodedInOrder: .m4a, codec: "aac", sampleRate: 1000, channels: 2, frames: 60_000, sampleBits: nil)
        ($0.media, $0.workingKey, $0.workingBytes) = (facts.json, ObjectKey($0.id, "working.wav"), 4)
      })
  }

  @Test(
    "a missing or truncated working copy is rebuilt with its waveform", arguments: [nil, "cop", ""], [true, false])
  func workingCopy(content: String?, isFoundAtTheStart: Bool) async throws {
    let (bench, _, _) = try bench(
      script: """
        cp "$folder/good" "$pyramid"; printf copy > "${pyramid%.pyramid}.working"
        echo '{"analysis":{"frames":60000,"warnings":[]}}'
        """)
    let recording = try mediaRecording(bench)
    let path = bench.store.folder(of: recording.id) + "/working.wav"
    if let content {
      try Data(content.utf8).write(to: URL(fileURLWithPath: path))
    } else {
      try FileManager.default.removeItem(atPath: path)
    }
    if isFoundAtTheStart {
      #expect(try bench.context.files.sweep(giveUp: bench.context.waveforms.giveUp).waveforms == 1)
    } else {
      #expect(try await get(bench, "/v1/recordings/\(recording.id)/waveform?scale=16&end=1").isEmpty)
    }
    let job = try #require(try bench.catalog.jobs(limit: 9).first)
    #expect(try await bench.finished(job.id).state == .succeeded)
    let row = try #require(try bench.catalog.recording(recording.id))
    #expect(row.waveformState == .ready && row.workingBytes == 4 && row.warnings.isEmpty)
    #expect(!bench.context.files.hasLostWorkingCopy(row))
  }
}
