// Streaming noise removal.
//
//   samples ─► FrameBlock ─► FrameAnalysis (spectra, γ, cepstra) ─► SegmentGains ─► Synthesis ─► SoundOutlet ─► samples
//                            per block of frames                    per segment, once its context has arrived
//
// If the noise may change, NoiseTracker corrects γ in between, and the cepstra follow it.
//
// SegmentPipeline runs these tasks on one thread or on two.
//
// All channels of a denoiser share one gain for each bin, from γ = Σ |Y_c|² / Σ λ_c over the channels; LinkedDenoiser
// has several denoisers. So the panning is preserved, and because powers are summed rather than signals, channels out
// of phase count like channels in phase.

/// Removes noise from a recording of any length in constant memory: 14 MB for 2 channels at 48 kHz, 25 MB with a second
/// thread, and 5 MB more if the noise is tracked.
///
/// The output has exactly as many frames as the input and isn't delayed. It arrives in pieces of about 3 s, 0.8 s
/// behind the input, or up to 8 s with a second thread. Its bits depend only on the samples, the profile, and the
/// settings: not on the sizes of the pieces, on the threads, or on where in the recording the denoiser starts and ends,
/// if it processes what `sound(for:)` returns. On another kind of processor the last bits may differ, because FFTW's
/// transforms do; all other loops give the same bits on every processor. Samples that aren't finite count as 0, and
/// larger ones than 1e12 are clamped to that; all output is finite.
package struct Denoiser: ~Copyable {
  private let channels: Int
  private let frame: AnalysisFrame
  private let grid: SegmentGrid
  private let pipeline: SegmentPipeline
  private let usesSecondThread: Bool
  /// The next frames, which are still arriving.
  private var block: FrameBlock
  private var outlet: SoundOutlet
  private let start: Int64
  /// The analysis frames that the wanted sound needs end before this one.
  private let neededEnd: Int64
  /// Where the wanted sound ends, in frames of the recording.
  private let wantedEnd: Int64
  /// Frames of the recording received so far, counted from its start.
  private var inputEnd: Int64

  /// Creates a denoiser.
  /// - Parameters:
  ///   - noise: must have the sound's sample rate and channel count.
  ///   - settings: the gain rule, its parameters, and the part to return.
  ///   - sampleRate: in Hz.
  ///   - channels: at least 1.
  ///   - startFrame: the frame of the recording that the first sample belongs to.
  ///   - wanted: the frames of the recording to output, as far as they are processed; not empty. They have the same
  ///     bits as in the whole if at least `sound(for: wanted)` is processed.
  ///   - usesSecondThread: whether to share the work with another thread.
  ///   - budgetedChannels: the number of channels that the memory is meant for, if other denoisers take a part of it.
  package init(
    noise: NoiseCourse, settings: DenoiseSettings, sampleRate: Int, channels: Int, startFrame: Int64 = 0,
    wanted: Range<Int64> = 0..<(.max), usesSecondThread: Bool = false, budgetedChannels: Int? = nil
  ) {
    for part in noise.parts {
      precondition(part.profile.sampleRate == sampleRate, "the profile is of the sound's rate")
      precondition(part.profile.power.count == channels, "the profile has the sound's channels")
    }
    precondition(startFrame >= 0, "frames are counted from 0")
    precondition(wanted.upperBound > max(startFrame, wanted.lowerBound), "some output is wanted")
    let frame = AnalysisFrame(sampleRate: sampleRate)
    let grid = SegmentGrid(
      frame: frame, channels: budgetedChannels ?? channels, isTracked: settings.adaptation != nil)
    let level = Self.level(of: noise, settings, frame, sampleRate: sampleRate)
    let firstHop = startFrame / Int64(frame.hop)
    let outputStart = max(startFrame, wanted.lowerBound)
    let segments = grid.segments(in: outputStart..<wanted.upperBound)
    self.channels = channels
    self.frame = frame
    self.grid = grid
    pipeline = SegmentPipeline(
      grid: grid, frame: frame, channels: channels, noise: level,
      gainRule: SegmentGains(settings: settings, noise: level, frame: frame, sampleRate: sampleRate),
      tracker: settings.adaptation.map {
        NoiseTracker(frame: frame, sampleRate: sampleRate, noise: level, adaptation: $0)
      }, startingAt: firstHop, segments: segments, usesSecondThread: usesSecondThread)
    self.usesSecondThread = usesSecondThread
    let firstFrame = firstHop / Int64(grid.blockHops) * Int64(grid.blockHops)
    block = FrameBlock(frame: frame, channels: channels, count: grid.blockHops, firstFrame: firstFrame)
    block.appendSilence(Int(startFrame - firstFrame * Int64(frame.hop)))
    outlet = SoundOutlet(channels: channels, hop: frame.hop, from: outputStart)
    start = startFrame
    neededEnd = grid.frames(for: segments).upperBound
    wantedEnd = wanted.upperBound
    inputEnd = startFrame
  }

  /// Processes more sound and passes on the output that is final, in order from the first wanted frame.
  /// - Parameters:
  ///   - input: interleaved whole frames, full scale ±1; any number of them.
  ///   - output: called with interleaved whole frames, any number of times.
  package mutating func process<E: Error>(
    _ input: Span<Float>, _ output: (Span<Float>) throws(E) -> Void
  ) throws(E) {
    precondition(input.count.isMultiple(of: channels), "samples come in whole frames")
    var position = 0
    inputEnd += Int64(input.count / channels)
    while block.firstFrame < neededEnd, block.fill(from: input, &position) { try submitBlock(output) }
  }

  /// Ends the sound and passes on the rest, for a total of as many frames as were processed and wanted. Call nothing
  /// after it.
  package mutating func finish<E: Error>(_ output: (Span<Float>) throws(E) -> Void) throws(E) {
    let hop = Int64(frame.hop)
    guard inputEnd > start else { return }
    // The last analysis frame that overlaps the sound is the one that begins in its last hop.
    let endFrame = min((inputEnd + hop - 1) / hop + 3, neededEnd)
    pipeline.end(before: endFrame)
    while block.firstFrame < endFrame {
      block.appendSilence(.max)
      try submitBlock(output)
    }
    while !pipeline.isFinished { try work(output) }
  }

  /// Returns the sound that must be processed so that a part of it, `wanted`, has the same bits as in the whole. It may
  /// end after the recording.
  /// - Parameters:
  ///   - wanted: frames of the recording before 2^60; not empty.
  ///   - sampleRate: in Hz.
  ///   - channels: the number of channels that the memory is meant for. Many channels at a high rate need less around
  ///     the part, because their segments are shorter to limit memory.
  ///   - isTracked: whether the noise is tracked, which needs more.
  package static func sound(
    for wanted: Range<Int64>, sampleRate: Int, channels: Int = 1, isTracked: Bool = false
  ) -> Range<Int64> {
    SegmentGrid(frame: AnalysisFrame(sampleRate: sampleRate), channels: channels, isTracked: isTracked)
      .sound(for: wanted)
  }

  /// Whether the settings' adaptation has found a change of the noise in what was output so far.
  package var hasNoiseChanged: Bool { pipeline.hasNoiseChanged }

  /// Hands over the full block and begins the next one.
  private mutating func submitBlock<E: Error>(_ output: (Span<Float>) throws(E) -> Void) throws(E) {
    while !pipeline.hasRoom { try work(output) }
    var next = pipeline.takeSpare() ?? FrameBlock(frame: frame, channels: channels, count: grid.blockHops)
    next.follow(block)
    swap(&block, &next)
    pipeline.accept(next)
    while try takeSegment(output) || (!usesSecondThread && pipeline.runTask()) {}
  }

  /// Does something that makes progress: outputs sound, runs a task, or waits for the other thread.
  private mutating func work<E: Error>(_ output: (Span<Float>) throws(E) -> Void) throws(E) {
    if try takeSegment(output) { return }
    if !pipeline.runTask() { pipeline.waitForSecond() }
  }

  /// Outputs a segment if one is finished.
  private mutating func takeSegment<E: Error>(_ output: (Span<Float>) throws(E) -> Void) throws(E) -> Bool {
    let end = min(inputEnd, wantedEnd)
    return try pipeline.takeSegment { (frames, sums) throws(E) in
      try outlet.emit(frames, sums, upTo: end, output)
    }
  }

  /// The sum of the channels' λ, scaled. The rules based on the a-priori SNR use a factor of 0.85 (PESQ 1.934, against
  /// 1.909 without); Berouti's α has the same effect.
  static func level(
    of noise: NoiseCourse, _ settings: DenoiseSettings, _ frame: AnalysisFrame, sampleRate: Int
  ) -> FrameNoise {
    let sensitivity = factor(of: settings.method) * Float(min(2, max(0.5, settings.sensitivity)))
    let levels = noise.parts.map { $0.profile.summed.map { $0 * sensitivity } }
    let hiss = zip(noise.parts, levels).map { part, level in
      part.profile.leastSteadiness * Hiss.breadth(of: level, frame: frame, sampleRate: sampleRate)
    }
    return FrameNoise(
      levels, hiss: hiss, liveliness: noise.parts.map(\.profile.leastLiveliness), at: noise.parts.map(\.frames),
      hop: frame.hop)
  }

  /// The factor of λ.
  static func factor(of method: DenoiseMethod) -> Float { method == .spectralSubtraction ? 1 : 0.85 }
}
