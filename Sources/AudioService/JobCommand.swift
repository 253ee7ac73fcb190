import Processing
import Storage

/// What a job's child is told, and the files it writes. Each attempt writes new files: what an earlier attempt wrote may
/// still be mapped.
struct JobCommand: Sendable {
  let arguments: [String]
  let pyramidPath: String
  /// nil for a job that makes no sound.
  let audioPath: String?

  /// Throws where the row's parameters are of another version's making.
  init(_ job: Job, source: Recording, sourcePath: String, folder: String, limitArguments: [String]) throws(ServiceError)
  {
    pyramidPath = "\(folder)/attempt-\(job.attempts).pyramid"
    var words: [String]
    switch job.kind {
    case .waveform:
      audioPath = nil
      words = ["waveform", sourcePath]
    case .denoise:
      guard let parameters = RowJSON.value(DenoiseParameters.self, from: job.parameters) else {
        throw .workerUnavailable(reason: "the parameters of job \(job.id) can't be read")
      }
      let path = "\(folder)/attempt-\(job.attempts).audio"
      audioPath = path
      words = ["denoise", sourcePath, "-o", path, "--format", parameters.format] + Self.arguments(parameters)
    case .convert:
      throw .workerUnavailable(reason: "jobs of kind convert are not made yet")
    }
    words += ["--pyramid", pyramidPath, "--progress", "json", "--until-standard-input-closes"]
    arguments = words + limitArguments
  }

  private static func arguments(_ parameters: DenoiseParameters) -> [String] {
    var words = [
      "--method", parameters.method, "--reduction", "\(parameters.reduction)", "--sensitivity",
      "\(parameters.sensitivity)", "--output", parameters.output,
    ]
    if let noise = parameters.noise {
      if let quantile = noise.quantile {
        words += ["--noise", "quantile:\(quantile)"]
      } else if let start = noise.start, let end = noise.end {
        words += ["--noise", "\(start)-\(end)"]
      }
    }
    return words
  }
}

extension Configuration {
  /// The limits, as every worker takes them.
  var limitArguments: [String] {
    [
      "--max-channels", "\(audioLimits.channels)", "--max-sample-rate", "\(audioLimits.sampleRates.upperBound)",
      "--max-duration", "\(audioLimits.durationSeconds)",
    ]
  }
}
