import Foundation
import PresentRows
import Processing
import Randomness
import Terms
import Testing
import Workers

@testable import Jobs
@testable import Storage

/// Two processes work on the jobs of one catalog without the data folder's lock, with renewed leases.
@Suite struct SharedCatalogTests {
  /// Each attempt writes its own name into its files, so that they show whose they are. It says that it has begun, and
  /// doesn't end while the test has locked `gate`.
  private static let program = #"""
    #!/bin/sh
    read -r request
    member() { case $request in *"\"$1\":\""*) value=${request#*"\"$1\":\""}; value=${value%%\"*} ;; *) value= ;; esac; }
    member pyramid; pyramid=$value; name=${pyramid##*/}; name=${name%.pyramid}
    member output; output=$value
    echo begun > "$0-begun"
    flock -s "${0%/*}/gate" true
    echo "$name" > "$pyramid"
    case $request in
      *'"denoise":'*) echo "$name" > "$output"
        echo '{"denoised":{"frames":1000,"noise":{"quantile":0.2},"link":"all","clipped_samples":0,"warnings":[]}}' ;;
      *) echo '{"analysis":{"frames":1000,"warnings":[]}}' ;;
    esac

    """#

  /// Longer than the test, however busy the machine is: they end only by a node's clock that is ahead.
  private static let leaseSeconds = 1000.0

  private let folder = NSTemporaryDirectory() + "stillwave-shared-" + RecordingID().text
  private var data: String { folder + "/data" }

  /// A node that works until no job is left.
  private struct Node {
    let process = Process()
    /// Where its workers write when they begin.
    private let begun: FileHandle

    init(_ name: String, in folder: String, secondsAhead: Double = 0) throws {
      let program = folder + "/" + name
      try Data(SharedCatalogTests.program.utf8).write(to: URL(fileURLWithPath: program))
      try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program)
      #expect(unsafe mkfifo(program + "-begun", 0o600) == 0)
      begun = try #require(FileHandle(forUpdatingAtPath: program + "-begun"))
      let bundle =
        Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }?.bundlePath ?? CommandLine.arguments[0]
      process.executableURL = URL(fileURLWithPath: bundle).deletingLastPathComponent().appending(path: "LeaseNode")
      process.arguments = [folder + "/data", program, name, "\(leaseSeconds)", "\(secondsAhead)"]
      try process.run()
    }

    /// Stops the process while it runs jobs, and not within a transaction, which would keep the others from writing.
    func stop(_ catalog: Catalog) throws {
      _ = try begun.read(upToCount: 1)
      try catalog.write { [process] _ in
        kill(process.processIdentifier, SIGSTOP)
        var information = unsafe siginfo_t()
        _ = unsafe waitid(P_PID, id_t(process.processIdentifier), &information, WSTOPPED)
      }
    }

    func finish() {
      process.waitUntilExit()
      #expect(process.terminationStatus == 0)
    }
  }

  /// Inserts a recording with a file and its waveform's job, and a recording that is to be made of it, with its job.
  private func insertJobs(_ catalog: Catalog, _ store: MediaStore) throws {
    let file = try store.receive()
    try file.append(Array("RIFF".utf8).span)
    let (id, output) = (RecordingID(), RecordingID())
    let stored = try store.objects.adopt(file, as: id, name: "audio.wav")
    let format = SoundShape(container: "wav", codec: "pcm_s16", sampleRate: 1000, channels: 2, frames: 1000)
    let waveform = Job(kind: .waveform, recording: id)
    try catalog.insert(
      Recording(
        id: id, name: "a.wav", bytes: stored.bytes, sha256: stored.sha256, format: format, waveformState: .queued,
        waveformJob: waveform.id, audioKey: stored.key), jobs: [waveform])
    let denoise = Job(kind: .denoise, recording: id, output: output, parameters: RowJSON.text(DenoiseParameters()))
    let made = Derivation(recording: id, job: denoise.id, operation: "denoise")
    try catalog.insert(
      Recording(
        id: output, name: "b.wav", format: format, waveformState: .queued, waveformJob: denoise.id, derivedFrom: made),
      jobs: [denoise])
  }

  @Test("no job is lost and none finishes twice when a process is killed, and each result is its attempt's")
  func killed() throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let gate = unsafe open(folder + "/gate", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    #expect(flock(gate, LOCK_EX) == 0)
    let store = try MediaStore(directory: data)
    // Not a node itself: it neither claims jobs nor ends leases. By its clock, all garbage is due.
    let catalog = try Catalog(
      path: store.catalogPath,
      holder: LeaseHolder(terms: LeaseHolder.Terms(), now: { .now + 10 * Self.leaseSeconds }))
    for _ in 0..<20 { try insertJobs(catalog, store) }
    let jobs = try catalog.unfinishedJobs()
    #expect(jobs.count == 40)

    let (one, two) = (try Node("one", in: folder), try Node("two", in: folder))
    // Killed while it works on jobs; its leases end by themselves.
    try one.stop(catalog)
    kill(one.process.processIdentifier, SIGKILL)
    // The other one stops for longer than a lease, while a third takes its jobs. Then it goes on with what it believes.
    try two.stop(catalog)
    // No job could end until now.
    close(gate)
    try Node("three", in: folder, secondsAhead: 2 * Self.leaseSeconds).finish()
    kill(two.process.processIdentifier, SIGCONT)
    two.finish()
    try check(jobs, catalog, store)
  }

  private func check(_ jobs: [Job], _ catalog: Catalog, _ store: MediaStore) throws {
    var (attempts, losses) = (0, 0)
    for id in jobs.map(\.id) {
      let job = try #require(try catalog.job(id))
      #expect(job.state == .succeeded && job.failures == 1, "\(job)")
      attempts += job.attempts
      losses += job.interruptions
      // Exactly one attempt has succeeded, and the result's name and content are its own.
      let ends = try catalog.attempts(of: id)
      #expect(ends.filter { $0.ending == .succeeded }.map(\.token).allSatisfy(job.hasWon))
      #expect(ends.count == job.attempts && ends.count { $0.ending == .succeeded } == 1, "\(ends)")
      let token = try #require(ends.first { $0.ending == .succeeded }?.token)
      let recording = try #require(try catalog.recording(job.resultRecording))
      let results = [recording.waveformFile, job.output == nil ? nil : recording.audioFile].compactMap { $0 }
      #expect(recording.waveformState == .ready && results.count == (job.output == nil ? 1 : 2))
      for name in results {
        #expect(name.contains("-\(token.name)."))
        let text = try String(contentsOfFile: store.folder(of: recording.id) + "/" + name, encoding: .utf8)
        #expect(text == token.shortName + "\n")
      }
    }
    // That something was lost at all.
    #expect(losses > 0 && attempts == jobs.count + losses)
    try Blobs(store, of: catalog).removeGarbage(of: catalog)
    for recording in try catalog.recordings(limit: 99) {
      let files = try FileManager.default.contentsOfDirectory(atPath: store.folder(of: recording.id)).sorted()
      // The process that was killed may not have described its last result, which the next start does.
      let results = files.filter { $0.hasPrefix("audio") || $0.hasPrefix("waveform") }
      #expect(results == [recording.audioFile, recording.waveformFile].compactMap { $0 }.sorted())
    }
  }
}
