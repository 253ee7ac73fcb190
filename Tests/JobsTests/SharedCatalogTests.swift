import Foundation
import PresentRows
import Processing
import Randomness
import Terms
import Testing

@testable import Jobs
@testable import Storage

/// Two processes work on the jobs of one catalog without the data folder's lock, with renewed leases.
@Suite struct SharedCatalogTests {
  /// Each attempt writes its own name into its files, so that they show whose they are. None ends before there is a
  /// file `go`.
  private static let program = #"""
    #!/bin/sh
    read -r request
    member() { case $request in *"\"$1\":\""*) value=${request#*"\"$1\":\""}; value=${value%%\"*} ;; *) value= ;; esac; }
    member pyramid; pyramid=$value; name=${pyramid##*/}; name=${name%.pyramid}
    member output; output=$value
    until [ -e "${0%/*}/go" ]; do sleep 0.02; done
    echo "$name" > "$pyramid"
    case $request in
      *'"denoise":'*) echo "$name" > "$output"
        echo '{"denoised":{"frames":1000,"noise":{"quantile":0.2},"link":"all","clipped_samples":0,"warnings":[]}}' ;;
      *) echo '{"analysis":{"frames":1000,"warnings":[]}}' ;;
    esac

    """#

  private static let leaseSeconds = 3.0

  private let folder = NSTemporaryDirectory() + "stillwave-shared-" + RecordingID().text
  private var data: String { folder + "/data" }

  /// Starts a node that works until no job is left.
  private func startNode(_ name: String) throws -> Process {
    let bundle = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }?.bundlePath ?? CommandLine.arguments[0]
    let node = Process()
    node.executableURL = URL(fileURLWithPath: bundle).deletingLastPathComponent().appending(path: "LeaseNode")
    node.arguments = [data, folder + "/program", name, "\(Self.leaseSeconds)"]
    try node.run()
    return node
  }

  /// Inserts a recording with a file and its waveform's job, and a recording that is to be made of it, with its job.
  private func insertJobs(_ catalog: Catalog, _ store: MediaStore) throws {
    let file = try store.receive()
    try file.append(Array("RIFF".utf8).span)
    let (id, output) = (RecordingID(), RecordingID())
    let stored = try store.adopt(file, as: id, name: "audio.wav")
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

  @Test(
    "no job is lost and none finishes twice when a process is killed, and each result is its attempt's",
    .timeLimit(.minutes(2)))
  func killed() async throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try Data(Self.program.utf8).write(to: URL(fileURLWithPath: folder + "/program"))
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder + "/program")
    let store = try MediaStore(directory: data)
    // Not a node itself: it neither claims jobs nor ends leases. By its clock, all garbage is due.
    let catalog = try Catalog(
      path: store.catalogPath, holder: LeaseHolder(terms: LeaseHolder.Terms(), now: { .now + 3600 }))
    for _ in 0..<20 { try insertJobs(catalog, store) }
    let jobs = try catalog.unfinishedJobs()
    #expect(jobs.count == 40)

    let (one, two) = (try startNode("one"), try startNode("two"))
    // Killed while it works on jobs; its leases end by themselves.
    try await stop(one, "one", catalog)
    kill(one.processIdentifier, SIGKILL)
    // The other one stops for longer than a lease, while a third takes its jobs. Then it goes on with what it believes.
    try await stop(two, "two", catalog)
    // No job could end until now.
    try Data().write(to: URL(fileURLWithPath: folder + "/go"))
    let third = try startNode("three")
    try await eventually { try running(on: "two", catalog).isEmpty }
    kill(two.processIdentifier, SIGCONT)
    for node in [two, third] {
      try await eventually { !node.isRunning }
      #expect(node.terminationStatus == 0)
    }
    try check(jobs, catalog, store)
  }

  /// Stops a process while it runs jobs, and not within a transaction, which would keep the others from writing.
  private func stop(_ process: Process, _ name: String, _ catalog: Catalog) async throws {
    try await eventually {
      guard try !running(on: name, catalog).isEmpty else { return false }
      kill(process.processIdentifier, SIGSTOP)
      if try (try? catalog.check()) != nil && !running(on: name, catalog).isEmpty { return true }
      kill(process.processIdentifier, SIGCONT)
      return false
    }
  }

  private func running(on node: String, _ catalog: Catalog) throws -> [Job] {
    try catalog.jobs(state: .running, limit: 99).filter { $0.node?.hasPrefix(node + "/") == true }
  }

  /// Looks again and again at what other processes do, for a minute at most.
  private func eventually(_ condition: () throws -> Bool) async throws {
    for _ in 0..<6000 {
      if try condition() { return }
      try await Clock.system.sleep(0.01)
    }
    try #require(try condition(), "it never came")
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
    try GarbageCollection(catalog: catalog, store: store).run()
    for recording in try catalog.recordings(limit: 99) {
      let files = try FileManager.default.contentsOfDirectory(atPath: store.folder(of: recording.id)).sorted()
      // The process that was killed may not have described its last result, which the next start does.
      let results = files.filter { $0.hasPrefix("audio") || $0.hasPrefix("waveform") }
      #expect(results == [recording.audioFile, recording.waveformFile].compactMap { $0 }.sorted())
    }
  }
}
