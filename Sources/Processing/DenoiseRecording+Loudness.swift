import AudioIO
import Glibc
import Loudness
import Terms
import Workers

extension DenoiseRecording {
  /// The first stage's part of the progress.
  private static let cleaningShare = 0.7

  /// The path of the file between the two stages.
  static func between(_ output: String) -> String { output + ".cleaned" }

  /// Cleans, then brings the result to a loudness; see NormalizeLoudness. The file between the two stages lies beside
  /// the output and is removed.
  /// - Parameters:
  ///   - target: in LUFS.
  ///   - isLossy: whether `encoding` codes with loss; nil if there is none.
  func run(
    toLoudness target: Double, isLossy: Bool?, progress: (WorkerProgress) -> Void
  ) throws(ProcessingError) -> DenoiseOutcome {
    let between = Self.between(output)
    defer { unsafe _ = unlink(between) }
    let pair = LoudnessPair()
    var latest = WorkerProgress(fraction: 0, readyFrames: 0, totalFrames: nil, estimatedFrames: nil)
    func report(_ fraction: Double, _ ready: Int64) {
      (latest.fraction, latest.readyFrames) = (fraction, ready)
      progress(latest)
    }
    var cleaning = self
    (cleaning.output, cleaning.opened.output, cleaning.pyramid, cleaning.encoding) = (between, nil, nil, nil)
    (cleaning.measuring, cleaning.findsNoiseRegions, cleaning.isDurable) = (pair, false, false)
    var outcome = try cleaning.run { step in
      (latest.totalFrames, latest.estimatedFrames) = (step.totalFrames, step.estimatedFrames)
      report(Self.cleaningShare * step.fraction, 0)
    }
    let (before, cleaned) = pair.loudness
    guard let sourceFormat = pair.format else { preconditionFailure("a cleaned sound has a format") }
    let format = try audio { () throws(AudioIOError) in try parameters.format.format(for: sourceFormat) }
    let normalized = try NormalizeLoudness(
      source: between, output: output, format: format, tags: tags, pyramid: pyramid,
      findsNoiseRegions: findsNoiseRegions, encoding: encoding,
      isLossy: isLossy ?? (format.codec.sampleKind == .lossy), target: target, cleaned: cleaned
    ).run { report(Self.cleaningShare + (1 - Self.cleaningShare) * min($0, 0.999), $1) }
    report(1, normalized.frames)
    outcome.clippedSamples = normalized.clippedSamples
    outcome.noiseRegions = normalized.noiseRegions
    outcome.loudness = LoudnessChange(target: target, before: before, after: normalized.loudness)
    outcome.warnings += Warning.ofFile(leftOut: normalized.leftOut)
    outcome.warnings += Warning.ofLoudness(normalized.loudness, target: target).map { [$0] } ?? []
    return outcome
  }
}
