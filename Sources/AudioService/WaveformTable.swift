import Glibc
import Processing
import Storage
import Synchronization
import Waveform

/// A recording's waveform, as far as it is there.
struct OpenWaveform: Sendable {
  let extent: WaveformExtent
  /// nil while there is no point yet.
  let pyramid: PyramidFile?
  /// The samples, for what is finer than the pyramid; nil while the sound is still being made.
  let samples: SampleWindow?
}

/// The open pyramids: once warm, a slice costs no query. Bounded; the least recently used finished one goes first.
final class WaveformTable: Sendable {
  /// Of finished waveforms, as they were answered.
  let slices = SliceTable()

  private struct Entry {
    var waveform: OpenWaveform
    var lastUse: UInt64
  }

  private struct Growing {
    let path: String
    let pyramid: PyramidFile
  }

  private struct State {
    var finished: [RecordingID: Entry] = [:]
    var growing: [RecordingID: Growing] = [:]
    var clock: UInt64 = 0
    /// How often something was forgotten: what was read before is not kept after.
    var forgotten: UInt64 = 0
  }

  private let limit: Int
  private let catalog: Catalog
  private let store: MediaStore
  private let live: LiveJobs
  private let work: WorkQueue
  private let state = Mutex(State())

  init(catalog: Catalog, store: MediaStore, live: LiveJobs, work: WorkQueue, limit: Int = 256) {
    self.catalog = catalog
    self.store = store
    self.live = live
    self.work = work
    self.limit = limit
  }

  /// The waveform of a recording as it is now. Throws where there is no such recording.
  func open(_ id: RecordingID) async throws -> OpenWaveform {
    if let known = finished(id) { return known }
    return try await work.run { [self] in try load(id) }
  }

  /// The recording is gone, or its waveform is being built again.
  func forget(_ id: RecordingID) {
    state.withLock { state in
      state.finished[id] = nil
      state.growing[id] = nil
      state.forgotten += 1
    }
    slices.forget(id)
  }

  private func finished(_ id: RecordingID) -> OpenWaveform? {
    state.withLock { state in
      guard let index = state.finished.index(forKey: id) else { return nil }
      state.clock += 1
      state.finished.values[index].lastUse = state.clock
      return state.finished.values[index].waveform
    }
  }

  /// A job that ends while its row is read takes its file along: a second look finds what has become of it.
  private func load(_ id: RecordingID) throws -> OpenWaveform {
    if let waveform = try look(at: id) ?? look(at: id) { return waveform }
    guard let recording = try catalog.recording(id) else { throw ServiceError.noSuchRecording(id.text) }
    return OpenWaveform(extent: extent(of: recording, nil), pyramid: nil, samples: nil)
  }

  /// The job first, then the row: a job that ends in between has its row finished before it leaves the table. Nil where
  /// the file that the job was writing is gone.
  private func look(at id: RecordingID) throws -> OpenWaveform? {
    let forgotten = state.withLock { $0.forgotten }
    let job = live.job(writing: id)
    guard let recording = try catalog.recording(id) else {
      forget(id)
      throw ServiceError.noSuchRecording(id.text)
    }
    let folder = store.folder(of: id)
    let samples = recording.soundFile.map { SampleWindow(recordingAt: "\(folder)/\($0)") }
    if recording.waveformState == .ready, let file = recording.waveformFile {
      guard let pyramid = try openIfThere("\(folder)/\(file)") else {
        // The disk has lost it: as good as one that could not be built, and can be built again.
        try MissingFiles(catalog: catalog, store: store).loseWaveform(of: id, name: file)
        slices.forget(id)
        return OpenWaveform(extent: extent(of: recording, nil), pyramid: nil, samples: nil)
      }
      let waveform = OpenWaveform(extent: WaveformExtent(finished: pyramid), pyramid: pyramid, samples: samples)
      keep(waveform, of: id, unlessForgottenSince: forgotten)
      return waveform
    }
    let extent = extent(of: recording, job?.progress)
    guard let job, extent.availableFrames > 0 else { return OpenWaveform(extent: extent, pyramid: nil, samples: nil) }
    return try growingPyramid(id, job).map { OpenWaveform(extent: extent, pyramid: $0, samples: nil) }
  }

  private func openIfThere(_ path: String) throws -> PyramidFile? {
    do { return try PyramidFile(path: path) } catch WaveformError.io(_, _, let number) where number == ENOENT {
      return nil
    }
  }

  /// What there is of a waveform that a job has brought so far.
  private func extent(of recording: Recording, _ progress: WorkerProgress?) -> WaveformExtent {
    let isReliable = recording.audioFormat?.codec.hasReliableFrameCount ?? false
    let total = progress.map(\.totalFrames) ?? (isReliable ? recording.format.frames : nil)
    return WaveformExtent(
      sampleRate: recording.format.sampleRate, channels: recording.format.channels,
      availableFrames: progress?.readyFrames ?? 0, totalFrames: total,
      estimatedFrames: total == nil
        ? progress?.estimatedFrames ?? recording.format.frames ?? recording.format.estimatedFrames : nil,
      isComplete: false)
  }

  /// The file that a job writes: where it is written, or where it goes when it is whole.
  private func growingPyramid(_ id: RecordingID, _ job: LiveJob) throws -> PyramidFile? {
    guard let path = job.pyramidPath else { return nil }
    if let known = state.withLock({ $0.growing[id] }), known.path == path { return known.pyramid }
    guard let pyramid = try openIfThere(path) ?? job.finishedPyramidPath.flatMap(openIfThere) else { return nil }
    state.withLock { state in
      // What a job that ended has left here is let go, with its descriptor and mapping.
      state.growing = state.growing.filter { live.job(writing: $0.key)?.pyramidPath == $0.value.path }
      state.growing[id] = Growing(path: path, pyramid: pyramid)
    }
    return pyramid
  }

  /// A recording deleted while its row was read must not come back.
  private func keep(_ waveform: OpenWaveform, of id: RecordingID, unlessForgottenSince forgotten: UInt64) {
    state.withLock { state in
      state.growing[id] = nil
      guard state.forgotten == forgotten else { return }
      state.clock += 1
      state.finished[id] = Entry(waveform: waveform, lastUse: state.clock)
      if state.finished.count > limit, let oldest = state.finished.min(by: { $0.value.lastUse < $1.value.lastUse }) {
        state.finished[oldest.key] = nil
      }
    }
  }
}
