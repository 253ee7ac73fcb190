import AudioIO
import Media
import Processing
import Storage
import Terms

extension WorkerRequest {
  /// What a job's worker is asked to do. Each attempt writes new files in the job's folder: what an earlier attempt
  /// wrote may still be mapped.
  ///
  /// Throws if the row's parameters can't be read.
  init(
    _ job: Job, source: Recording, sourceFolder: String, folder: String, _ settings: WorkerSettings
  ) throws(JobsError) {
    // Of another version's making.
    guard source.media == nil || source.mediaFacts != nil else { throw .unreadableParameters(job.id) }
    let attempt = "\(folder)/attempt-\(job.attempts)"
    let original = "\(sourceFolder)/\(source.audioFile ?? "audio")"
    let sound = source.soundFile.map { "\(sourceFolder)/\($0)" }
    let (work, input): (Work, String)
    switch job.kind {
    case .waveform:
      let copy = source.mediaFacts.map { WorkingCopy($0, at: "\(attempt).working") }
      input = original
      work = .waveform(
        WaveformWork(
          pyramid: "\(attempt).pyramid", copy: copy, soundMap: copy == nil ? "\(attempt).map" : nil,
          findsNoiseRegions: true))
    case .denoise:
      guard let asked = RowJSON.value(DenoiseParameters.self, from: job.parameters) else {
        throw .unreadableParameters(job.id)
      }
      input = sound ?? original
      work = .denoise(.init(asked, of: source, original: original, attempt: attempt))
    case .convert:
      guard let asked = RowJSON.value(ConvertParameters.self, from: job.parameters), let shape = source.audioFormat,
        let sound
      else { throw .unreadableParameters(job.id) }
      input = sound
      let needsFFmpeg = (try? ConvertRecording.needsFFmpeg(shape, asked.format)) != nil
      work = .convert(
        ConvertWork(output: "\(attempt).audio", format: asked.format, resampled: needsFFmpeg ? shape : nil))
    }
    self.init(work, on: input, in: folder, fence: .job(on: source, settings), settings)
  }

  /// A request with the service's limits and its ffmpeg.
  package init(
    _ work: Work, on source: String, in folder: String? = nil, fence: WorkerFence, _ settings: WorkerSettings
  ) {
    self.init(
      work, on: source, in: folder, limits: settings.audioLimits, fence: fence, ffmpeg: settings.ffmpeg)
  }

  /// The pyramid file that the work writes, if any.
  var pyramid: String? {
    switch work {
    case .waveform(let work): work.pyramid
    case .denoise(let work): work.pyramid
    default: nil
    }
  }
}

extension DenoiseWork {
  fileprivate init(_ asked: DenoiseParameters, of source: Recording, original: String, attempt: String) {
    self.init(asked.resolved(for: source), output: "\(attempt).audio", findsNoiseRegions: true)
    pyramid = "\(attempt).pyramid"
    guard let facts = source.mediaFacts else { return }
    // Requested so early that there is no working copy yet: the worker makes one for itself.
    if source.soundFile == nil { copy = WorkingCopy(facts, at: "\(attempt).decoded") }
    guard asked.format == .same else { return }
    if facts.writtenCodec != nil {
      replacement = .init(of: original, facts, output: output)
      output = "\(attempt).working"
    } else {
      // A file that can't be written again as it was becomes WAV or FLAC. `same` would be the working copy's container,
      // which is RF64 where the length wasn't known before.
      parameters.format = facts.workingFormat.container == .flac ? .flac : .wav
    }
  }
}

extension DenoiseParameters {
  /// The same with the noise that `auto` comes to for a recording that has been read; in one that hasn't, the worker
  /// looks for it.
  package func resolved(for source: Recording) -> DenoiseParameters {
    var resolved = self
    resolved.noise = noise ?? source.noiseRegions.map(NoiseSource.init(best:))
    return resolved
  }
}
