import AudioIO
import Denoise
import Glibc
import Terms
import Workers

/// Learns a recording's noise and writes it to a file.
struct LearnNoiseProfile {
  let source: String
  let work: NoiseProfileWork
  var limits = AudioLimits()
  var opened = OpenedFiles()

  /// Throws `.denoise(.silentRegion)` if there is only digital silence.
  func run(progress: (WorkerProgress) -> Void) throws(ProcessingError) -> NoiseProfileOutcome {
    let reader = try audio { () throws(AudioIOError) in try AudioReader(path: source, limits: limits, map: opened.map) }
    let length = ExpectedLength(reader, path: source)
    let learner = NoiseLearner(
      source: source, noise: work.noise, found: work.noiseRegions, limits: limits, map: reader.map)
    let learnt = try learner.learn { frames in
      progress(
        WorkerProgress(
          fraction: length.fraction(read: frames), readyFrames: 0, totalFrames: length.total,
          estimatedFrames: length.estimate))
    }
    let density: NoiseDensity
    do { density = try NoiseDensity(learnt.course.mean) } catch { throw .denoise(.silentRegion) }
    try write(
      NoiseProfileFile(
        name: work.name, noise: learnt.source, sampleRate: reader.format.sampleRate, density: density))
    progress(length.finished(frames: 0))
    return NoiseProfileOutcome(noise: learnt.source, warnings: learnt.warnings)
  }

  private func write(_ file: NoiseProfileFile) throws(ProcessingError) {
    let descriptor = opened.output ?? (unsafe open(work.output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666))
    guard descriptor >= 0 else { throw .system(operation: "open", path: work.output, errno: errno) }
    defer { if opened.output == nil { close(descriptor) } }
    if let number = writeAll(file.bytes(), to: descriptor) {
      throw .system(operation: "write", path: work.output, errno: number)
    }
  }
}
