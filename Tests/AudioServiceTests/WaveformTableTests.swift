import Processing
import Storage
import Testing
import Waveform

@testable import AudioService

/// A waveform that is asked for just when its job ends.
@Suite struct WaveformTableTests {
  /// A recording of whose 60,000 frames a job has read 20,000; the job's file lies at `path`.
  private func growing(_ bench: TestBench, at path: String, _ job: (RecordingID) -> LiveJob) throws -> Recording {
    let id = JobID()
    let recording = try bench.recording(state: .building, job: id)
    var writer = try PyramidWriter(creating: path, sampleRate: 1000, channels: 2)
    try writer.append([Int16](repeating: 1000, count: 40_000).span)
    var job = job(recording.id)
    job.progress = WorkerProgress(
      fraction: 0.3, readyFrames: writer.readyFrames, totalFrames: 60_000, estimatedFrames: nil)
    bench.runner.live.insert(id, job)
    return recording
  }

  @Test func aFileThatWasMovedToItsPlaceBeforeItsRowSaysSoIsFoundThere() async throws {
    let bench = try TestBench()
    let folder = bench.folder.path
    let recording = try growing(bench, at: folder + "/finished") {
      LiveJob(
        isRunning: true, recording: $0, pyramidPath: folder + "/moved-away", finishedPyramidPath: folder + "/finished")
    }
    let response = try await bench.respond(.get, "/v1/recordings/\(recording.id)/waveform?scale=256")
    #expect(response.status == .ok)
    #expect(response.fields["Stillwave-Complete"] == "false")
    #expect(Int(response.fields["Stillwave-Available-Frames"] ?? "") ?? 0 >= 19_000)
  }

  @Test func aFileThatIsGoneIsAsIfNothingHadBeenReadYet() async throws {
    let bench = try TestBench()
    let folder = bench.folder.path
    let recording = try growing(bench, at: folder + "/elsewhere") {
      LiveJob(isRunning: true, recording: $0, pyramidPath: folder + "/gone", finishedPyramidPath: folder + "/gone-too")
    }
    for form in ["waveform", "waveform.png"] {
      let response = try await bench.respond(.get, "/v1/recordings/\(recording.id)/\(form)")
      #expect(response.status == .ok)
      #expect(response.fields["Stillwave-Available-Frames"] == "0")
    }
  }
}
