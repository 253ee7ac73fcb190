import Foundation
import HTTP
import Processing
import Storage
import Testing
import Workers

@testable import AudioService
@testable import Jobs

/// Work that requests wait for: probes, previews, and pictures.
@Suite struct CrowdTests: CrowdFixture {
  // MARK: Probes

  @Test func filesForFFmpegDelayNoOtherFileOrClient() async throws {
    let bench = try bench()
    let held = crowd(20) { [crowd] _ in try await upload(bench, "HOLD", isMedia: true, from: crowd) }
    try await bench.eventually { bench.heldCount == 1 && bench.context.probes.media.figures.waiting == 19 }
    // Audio has a lane of its own, also for the crowd's client, and ffmpeg's has a place for another client's file.
    for (isMedia, peer) in [(false, crowd), (false, other), (true, other)] {
      #expect(try await upload(bench, "sound", isMedia: isMedia, from: peer).status == .created)
    }
    #expect(bench.heldCount == 1 && bench.context.probes.media.figures.waiting == 19)
    // A second client's crowd leaves a place for a third client, too.
    let second = crowd(9) { _ in try await upload(bench, "HOLD", isMedia: true, from: "192.0.2.7:1") }
    try await bench.eventually { bench.heldCount == 2 && bench.context.probes.media.figures.waiting == 27 }
    #expect(try await upload(bench, "sound", isMedia: true, from: other).status == .created)
    try bench.releaseAll()
    #expect(try await held.value == [Int](repeating: 201, count: 20))
    #expect(try await second.value == [Int](repeating: 201, count: 9))
    await bench.runner.stop()
  }

  @Test func waitingProbesHaveAnEnd() async throws {
    let bench = try bench {
      $0.maximumWaitingProbes = 5
      $0.maximumWaitingProbesPerClient = 3
    }
    let lane = bench.context.probes.sounds
    let held = crowd(5) { [crowd] _ in try await upload(bench, "HOLD", isMedia: false, from: crowd) }
    try await bench.eventually { bench.heldCount == 2 && lane.figures.waiting == 3 }
    let refused = try await upload(bench, "HOLD", isMedia: false, from: crowd)
    #expect(refused.status == .tooManyRequests && refused.fields["Retry-After"] == "5")
    #expect(try await code(refused) == "limit_waiting_probes")
    // The places that the crowd doesn't get, then two that wait; the queue is full.
    let others = crowd(5) { number in try await upload(bench, "HOLD", isMedia: false, from: "192.0.2.\(number + 10):1")
    }
    try await bench.eventually { bench.heldCount == 5 && lane.figures.waiting == 5 }
    let full = try await upload(bench, "sound", isMedia: false, from: other)
    #expect(full.status == .serviceUnavailable && full.fields["Retry-After"] == "5")
    try bench.releaseAll()
    #expect(try await held.value + others.value == [Int](repeating: 201, count: 10))
    // Rejected uploads leave nothing behind.
    #expect(try bench.catalog.recordings(limit: 99).count == 10)
    #expect(try FileManager.default.contentsOfDirectory(atPath: bench.store.directory + "/incoming").isEmpty)
    await bench.runner.stop()
  }

  @Test func aClientThatDisconnectsLosesItsTurn() async throws {
    let bench = try bench()
    let lane = bench.context.probes.sounds
    let held = crowd(2) { [crowd] _ in try await upload(bench, "HOLD", isMedia: false, from: crowd) }
    try await bench.eventually { bench.heldCount == 2 }
    let gone = crowd(4) { [crowd] _ in try await upload(bench, "HOLD", isMedia: false, from: crowd) }
    try await bench.eventually { lane.figures.waiting == 4 }
    gone.cancel()
    #expect(try await gone.value == [503, 503, 503, 503] && lane.figures.waiting == 0)
    try bench.releaseAll()
    #expect(try await held.value == [201, 201])
    #expect(try bench.catalog.recordings(limit: 9).count == 2)
    await bench.runner.stop()
  }

  @Test(
    "a file that takes too much processor time is rejected; one that only waited isn't",
    arguments: [
      ("kill -XCPU $$", 422, "probe_too_slow"), ("failure probe_too_slow false", 422, "probe_too_slow"),
      ("failure unsupported_media false", 415, "unsupported_media"),
    ])
  func slowFile(script: String, status: Int, code expected: String) async throws {
    let bench = try TestBench(script: script)
    let response = try await upload(bench, "sound", isMedia: true, from: crowd)
    #expect(response.status.code == status)
    #expect(try await code(response) == expected)
    #expect(try bench.catalog.recordings(limit: 9).isEmpty)
  }

  @Test func aProbeThatTimesOutIsNotTheFilesFault() async throws {
    let bench = try bench { $0.childPatience = 1 }
    let lane = bench.context.probes.sounds
    let client = Client(key: "a")
    let ending = try await lane.run(
      WorkerRequest(.probe, on: try bench.file("HOLD")), for: client, timeoutSeconds: 0.01)
    #expect(ending.tookTooLong && ending.exit == .signal(SIGKILL))
    // A caller's wait for its turn doesn't count.
    let quick = try await lane.run(WorkerRequest(.probe, on: try bench.file("sound")), for: client, timeoutSeconds: 60)
    guard !quick.tookTooLong, case .probed = quick.report else {
      Issue.record("\(quick)")
      return
    }
  }

  @Test("a file on which the probe runs out of time twice, unlike on a known sound, is too slow to probe")
  func timedOut() async throws {
    let verdict = ProbeVerdict(.init(report: nil, exit: .signal(SIGKILL), tookTooLong: true), isMedia: true)
    #expect(verdict.isWorthAnother)
    for (works, status) in [(true, 422), (false, 503)] {
      let error = await #expect(throws: ServiceError.self) { try await verdict.intake { works } }
      #expect(error.map { AudioService.problem(for: $0).status.code } == status)
    }
  }

  // MARK: Previews and spectra

  @Test func aCrowdsPreviewsDelayNoOtherClient() async throws {
    let bench = try bench()
    let (source, slow) = (try bench.recording(), try bench.recording(containing: "RIFFHOLD"))
    @Sendable func spectrum(_ recording: Recording, from peer: String) async throws -> HTTPResponse {
      try await bench.respond(.get, "/v1/recordings/\(recording.id)/spectrum?start=1&end=2", from: peer)
    }
    let held = crowd(9) { [crowd] _ in try await spectrum(slow, from: crowd) }
    try await bench.eventually { bench.heldCount == 1 && bench.context.previews.figures.waiting == 8 }
    let refused = try await spectrum(slow, from: crowd)
    #expect(refused.status == .tooManyRequests && refused.fields["Retry-After"] != nil)
    #expect(try await code(refused) == "limit_waiting_previews")
    #expect(try await spectrum(source, from: other).status == .ok)
    #expect(bench.heldCount == 1 && bench.context.previews.figures.waiting == 8)
    try bench.releaseAll()
    #expect(try await held.value == [Int](repeating: 200, count: 9))
  }

  @Test func aPreviewsChildEndsWhenItsClientDisconnects() async throws {
    let bench = try bench()
    let slow = try bench.recording(containing: "RIFFHOLD")
    let gone = crowd(1) { [crowd] _ in
      try await bench.respond(.get, "/v1/recordings/\(slow.id)/spectrum?start=1&end=2", from: crowd)
    }
    try await bench.eventually { bench.heldCount == 1 }
    gone.cancel()
    // The child is never released.
    #expect(try await gone.value == [503])
  }

  // MARK: Pictures

  @Test func aCrowdsPicturesDelayNoOtherClient() async throws {
    let bench = try bench {
      $0.maximumWaitingPictures = 3
      $0.maximumWaitingPicturesPerClient = 2
    }
    let recording = try bench.recording()
    try bench.makeWaveform(of: recording)
    let target = "/v1/recordings/\(recording.id)/waveform"
    let (lane, gate) = (bench.context.drawings, DispatchSemaphore(value: 0))
    let client = Client(peer: crowd, forwarded: nil, trusting: [])
    let held = Task { try await lane.run(for: client) { gate.wait() } }
    let another = Task { try await lane.run(for: client, isUnderWay: true) { gate.wait() } }
    let gone = Task { try await lane.run(for: client, isUnderWay: true) { gate.wait() } }
    try await bench.eventually { lane.figures.waiting == 2 }
    for picture in [".png?width=100", ".svg?width=100"] {
      let refused = try await bench.respond(.get, target + picture, from: crowd)
      #expect(refused.status == .tooManyRequests && refused.fields["Retry-After"] == "5")
      #expect(try await code(refused) == "limit_waiting_pictures")
      #expect(try await bench.respond(.get, target + picture, from: other).status == .ok)
    }
    // A slice of ordinary size doesn't wait.
    #expect(try await bench.respond(.get, target + "?width=100", from: crowd).status == .ok)
    // An answer that has begun continues, however many requests wait.
    let more = Task { try await lane.run(for: client, isUnderWay: true) { gate.wait() } }
    try await bench.eventually { lane.figures.waiting == 3 }
    gone.cancel()
    await #expect(throws: RequestError.clientLeft) { try await gone.value }
    #expect(lane.figures.waiting == 2)
    for _ in 0..<3 { gate.signal() }
    for task in [held, another, more] { try await task.value }
    #expect(try await bench.respond(.get, target + ".png?width=100", from: crowd).status == .ok)
  }

  @Test("windows of samples wait for readers, of which one client has half, and not for drawings")
  func samples() async throws {
    let bench = try bench { $0.maximumWaitingPicturesPerClient = 1 }
    let targets = try (0..<2).map { _ in
      let recording = try bench.recording()
      try bench.makeWaveform(of: recording)
      try bench.makeSound(of: recording)
      return "/v1/recordings/\(recording.id)/waveform?channels=1&scale=1&start=1"
    }
    let client = Client(peer: crowd, forwarded: nil, trusting: [])
    let gate = DispatchSemaphore(value: 0)
    func hold(_ lane: FairLane, _ count: Int) -> [Task<Void, any Error>] {
      (0..<count).map { _ in Task { try await lane.run(for: client, isUnderWay: true) { gate.wait() } } }
    }
    let drawing = hold(bench.context.drawings, 3)
    try await bench.eventually { bench.context.drawings.figures.waiting == 2 }
    let samples = try await bench.respond(.get, targets[0] + "&end=1.003", from: crowd)
    #expect(samples.status == .ok)
    let text = String(decoding: try await samples.body.collect(), as: UTF8.self)
    let expected = [2001, 2003, 2005].map { Int16(truncatingIfNeeded: $0 * 7919) }.map { "\($0),\($0)" }
    #expect(text.contains("\"data\":[\(expected.joined(separator: ","))]"), "\(text)")
    let reading = hold(bench.context.samples, SampleReaders.limitPerClient + 1)
    try await bench.eventually { bench.context.samples.figures.waiting == 1 }
    #expect(try await bench.respond(.get, targets[1] + "&end=1.004", from: crowd).status == .tooManyRequests)
    #expect(try await bench.respond(.get, targets[1] + "&end=1.004", from: other).status == .ok)
    // A reader has told that these samples are plain, so they need none any more.
    for target in targets { #expect(try await bench.respond(.get, target + "&end=1.005", from: crowd).status == .ok) }
    for _ in drawing + reading { gate.signal() }
    for task in drawing + reading { try await task.value }
  }
}
