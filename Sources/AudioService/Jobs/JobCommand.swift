import AudioIO
import Media
import Processing
import Storage

/// What a job's child is told, and the files it writes. Each attempt writes new files: what an earlier attempt wrote
/// may still be mapped.
struct JobCommand: Sendable {
  let arguments: [String]
  let pyramidPath: String
  /// The waveform's name in its recording's folder.
  let pyramidName: String
  /// nil for a job that makes no sound.
  let audioPath: String?
  /// Where the map of the source's sound is, if the job made one.
  let soundMapPath: String?
  /// Where the source's working copy is left; nil where its file is read as it is.
  let workingPath: String?

  /// Throws where the row's parameters are of another version's making.
  init(
    _ job: Job, source: Recording, sourceFolder: String, folder: String, limitArguments: [String]
  ) throws(ServiceError) {
    let original = "\(sourceFolder)/\(source.audioFile ?? "audio")"
    pyramidPath = "\(folder)/attempt-\(job.attempts).pyramid"
    pyramidName = "waveform-\(job.id).pyramid"
    var words: [String]
    switch job.kind {
    case .waveform:
      audioPath = nil
      words = ["waveform", original]
      if let media = source.media {
        let path = "\(folder)/attempt-\(job.attempts).working"
        (workingPath, soundMapPath) = (path, nil)
        words += ["--media", media, "--working", path]
      } else {
        let map = "\(folder)/attempt-\(job.attempts).map"
        (workingPath, soundMapPath) = (nil, map)
        words += ["--sound-map", map]
      }
    case .denoise:
      guard let parameters = RowJSON.value(DenoiseParameters.self, from: job.parameters) else {
        throw .workerUnavailable(reason: "the parameters of job \(job.id) can't be read")
      }
      let path = "\(folder)/attempt-\(job.attempts).audio"
      audioPath = path
      soundMapPath = nil
      words = ["denoise", source.soundFile.map { "\(sourceFolder)/\($0)" } ?? original, "-o"]
      if parameters.format == "same", let facts = source.mediaFacts, facts.writtenCodec != nil {
        let working = "\(folder)/attempt-\(job.attempts).working"
        workingPath = working
        words += [working, "--replace-in", original, "--replace-facts", facts.json, "--replaced", path]
      } else {
        workingPath = nil
        words.append(path)
      }
      // Asked for so early that there is no working copy yet: the child makes one for itself.
      if source.soundFile == nil, let media = source.media { words += ["--media", media] }
      words += ["--format", Self.format(parameters, of: source)]
      words += Self.arguments(parameters, source: source)
    case .convert:
      guard let parameters = RowJSON.value(ConvertParameters.self, from: job.parameters),
        let format = OutputFormat(rawValue: parameters.format), let shape = source.audioFormat,
        let sound = source.soundFile
      else { throw .workerUnavailable(reason: "the parameters of job \(job.id) can't be read") }
      let path = "\(folder)/attempt-\(job.attempts).audio"
      audioPath = path
      (workingPath, soundMapPath) = (nil, nil)
      words = ["convert", "\(sourceFolder)/\(sound)", "-o", path, "--format", format.rawValue]
      if (try? ConvertRecording.needsFFmpeg(shape, format)) != nil {
        words += ["--encode", "\(shape.sampleRate),\(shape.channels)"]
      }
    }
    if job.kind != .convert { words += ["--pyramid", pyramidPath, "--noise-regions"] }
    words += ["--progress", "json", "--until-standard-input-closes", "--work-folder", folder]
    arguments = words + limitArguments
  }

  /// A file that can't be written again as it was becomes WAV or FLAC. `same` would be the working copy's container,
  /// which is RF64 where the length wasn't known before.
  private static func format(_ parameters: DenoiseParameters, of source: Recording) -> String {
    guard parameters.format == "same", let facts = source.mediaFacts, facts.writtenCodec == nil else {
      return parameters.format
    }
    return (facts.workingFormat.container == .flac ? OutputFormat.flac : .wav).rawValue
  }

  static func arguments(_ parameters: DenoiseParameters, source: Recording) -> [String] {
    [
      "--method", parameters.method, "--reduction", "\(parameters.reduction)", "--sensitivity",
      "\(parameters.sensitivity)", "--output", parameters.output, "--noise",
      noise(parameters.noise ?? .automatic(for: source)),
    ]
  }

  /// Where nothing is known of the recording's noise, the child looks for it.
  private static func noise(_ noise: DenoiseParameters.Noise?) -> String {
    if let quantile = noise?.quantile { return "quantile:\(quantile)" }
    if let start = noise?.start, let end = noise?.end { return "\(start)-\(end)" }
    return "auto"
  }
}

extension Configuration {
  /// The limits, as every worker takes them.
  var limitArguments: [String] {
    [
      "--max-channels", "\(audioLimits.channels)", "--max-sample-rate", "\(audioLimits.sampleRates.upperBound)",
      "--max-duration", "\(audioLimits.durationSeconds)", "--ffmpeg", ffmpeg,
    ]
  }
}
