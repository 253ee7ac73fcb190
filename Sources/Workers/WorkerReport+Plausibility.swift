import Terms

extension WorkerReport {
  /// Whether a sound can have all of these numbers.
  var isPlausible: Bool {
    switch self {
    case .progress(let progress):
      (0...1).contains(progress.fraction) && areFrames(progress.readyFrames)
        && areFrames(progress.totalFrames, progress.estimatedFrames)
    case .probed(let probe): probe.isPlausible
    case .takenIn(let intake): intake.probe.isPlausible && intake.analysis?.isPlausible ?? true
    case .analyzed(let analysis): analysis.isPlausible
    case .denoised(let outcome):
      areFrames(outcome.frames, outcome.clippedSamples >> 10) && arePlausible(outcome.noiseRegions)
    case .converted(let outcome): areFrames(outcome.frames)
    case .noiseRegions(let regions): arePlausible(regions)
    case .trimmed(let outcome): areFrames(outcome.frames) && arePlausible(outcome.noiseRegions)
    case .unfenced, .failed, .ffmpegWorks, .measured, .loudness, .profileLearnt: true
    }
  }
}

/// Whether counts of frames are below 2^45. A year at 768 kHz has fewer, and 1,024 channels of eight bytes still fit an
/// `Int64`.
private func areFrames(_ counts: Int64?...) -> Bool { counts.allSatisfy { (0..<1 << 45).contains($0 ?? 0) } }

private func isRate(_ hertz: Int) -> Bool { (1..<1 << 31).contains(hertz) }

private func areChannels(_ count: Int) -> Bool { (1...1024).contains(count) }

/// Whether a text can be the end of a file's name: up to eight lower-case letters and digits.
private func isExtension(_ text: String) -> Bool {
  (1...8).contains(text.utf8.count)
    && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x7A).contains($0) }
}

extension Analysis {
  fileprivate var isPlausible: Bool { areFrames(frames) && arePlausible(noiseRegions) }
}

extension Probe {
  fileprivate var isPlausible: Bool {
    isRate(shape.sampleRate) && areChannels(shape.channels) && areFrames(shape.frames, shape.estimatedFrames)
      && isExtension(fileExtension) && media?.isPlausible ?? true
  }
}

extension MediaFacts {
  fileprivate var isPlausible: Bool {
    let distances = [firstFrame, firstIsLate].map { Int64(clamping: ($0 ?? 0).magnitude) }
    return isRate(sampleRate) && areChannels(channels) && areFrames(promisedFrames, distances[0], distances[1])
      && (leadingBytes ?? 0) >= 0 && audioTracks >= 0
  }
}

private func arePlausible(_ regions: [NoiseRegion]?) -> Bool {
  (regions ?? []).allSatisfy { region in
    isRate(region.sampleRate) && areFrames(region.frames.upperBound, region.span?.lowerBound, region.span?.upperBound)
  }
}
