// Streaming noise removal.
//
//   samples ─► FrameCutter ─► SpectrumStore (γ, cepstra)   ─► SegmentGains ─► Synthesis ─► samples
//                per hop          per frame                    per segment, once its context has arrived;
//                                                              with a second thread, beside the next one's transforms
//
// All channels of a bin share one gain, from γ = Σ |Y_c|² / Σ λ_c over the channels. So the panning is preserved, and
// because powers are summed rather than signals, channels out of phase count like channels in phase.

/// Removes noise from a recording of any length in constant memory: 25 MB for 2 channels at 48 kHz.
///
/// The output has exactly as many frames as the input and isn't delayed. It arrives in pieces of about 3 s, 0.8 s
/// behind the input, or 3.9 s with a second thread. Its bits depend only on the samples, the profile, and the settings:
/// not on the sizes of the pieces, the threads, or, from `contextFrames` on, where in the recording the denoiser
/// started. Samples that aren't finite count as 0, and larger ones than 1e12 are clamped to that; all output is finite.
package struct Denoiser: ~Copyable {
  private let channels: Int
  private let grid: SegmentGrid
  private var cutter: FrameCutter
  private var fft: RealFFT
  private var store: SpectrumStore
  private let worker: SegmentWorker
  private let usesSecondThread: Bool
  private let start: Int64
  /// The material of the last segment, whose memory the next one reuses.
  private var spare = SegmentWorker.Material()
  private var sound = SegmentSound()
  private var outlet: SoundOutlet
  /// Frames of the recording received so far, counted from its start.
  private var inputEnd: Int64

  /// Creates a denoiser.
  /// - Parameters:
  ///   - profile: the noise; must have the sound's sample rate and channel count.
  ///   - settings: the gain rule, its parameters, and the part to return.
  ///   - sampleRate: in Hz.
  ///   - channels: at least 1.
  ///   - startFrame: the frame of the recording that the first sample belongs to. A part of a recording has the same
  ///     output as in the whole if it is passed with `contextFrames` around it.
  ///   - usesSecondThread: whether gains and synthesis, about half of the work, run on a separate thread.
  package init(
    profile: NoiseProfile, settings: DenoiseSettings, sampleRate: Int, channels: Int, startFrame: Int64 = 0,
    usesSecondThread: Bool = false
  ) {
    precondition(profile.sampleRate == sampleRate, "the profile is of the sound's rate")
    precondition(profile.power.count == channels, "the profile has the sound's channels")
    precondition(startFrame >= 0, "frames are counted from 0")
    let frame = AnalysisFrame(sampleRate: sampleRate)
    let noise = Self.noise(of: profile, settings)
    let firstHop = startFrame / Int64(frame.hop)
    self.channels = channels
    grid = SegmentGrid(frame: frame, channels: channels)
    cutter = FrameCutter(frame: frame, channels: channels, offset: Int(startFrame % Int64(frame.hop)))
    fft = RealFFT(length: frame.length)
    let gainRule = SegmentGains(settings: settings, noise: noise, frame: frame, sampleRate: sampleRate)
    store = SpectrumStore(
      frame: frame, channels: channels, grid: grid, noise: noise, cepstralPrior: gainRule.cepstralPrior,
      startingAt: firstHop)
    worker = SegmentWorker(
      gainRule: gainRule,
      synthesis: Synthesis(frame: frame, channels: channels), frame: frame,
      isResidue: settings.output == .residue, isThreaded: usesSecondThread)
    outlet = SoundOutlet(channels: channels, from: startFrame)
    self.usesSecondThread = usesSecondThread
    start = startFrame
    inputEnd = startFrame
  }

  /// Processes more sound and passes on the output that is final, in order from `startFrame`.
  /// - Parameters:
  ///   - input: interleaved whole frames, full scale ±1; any number of them.
  ///   - output: called with interleaved whole frames, any number of times.
  package mutating func process<E: Error>(
    _ input: Span<Float>, _ output: (Span<Float>) throws(E) -> Void
  ) throws(E) {
    precondition(input.count.isMultiple(of: channels), "samples come in whole frames")
    var position = 0
    inputEnd += Int64(input.count / channels)
    while cutter.fill(from: input, &position) { try takeHop(output) }
  }

  /// Ends the sound and passes on the rest, for a total of as many frames as were processed. Call nothing after it.
  package mutating func finish<E: Error>(_ output: (Span<Float>) throws(E) -> Void) throws(E) {
    let hop = Int64(store.frame.hop)
    guard inputEnd > start else { return }
    // The last analysis frame that overlaps the sound is the one that begins in its last hop.
    let endFrame = (inputEnd + hop - 1) / hop + 3
    while store.endFrame < endFrame {
      cutter.fillWithSilence()
      try takeHop(output)
    }
    while store.firstSpectrum < store.endFrame { try finishSegment(output) }
    if takeSound() { try outlet.emit(sound, upTo: inputEnd, output) }
  }

  /// Returns how much sound is needed before and after a part of a recording for its output to have the same bits as in
  /// the whole.
  ///
  /// If the recording begins or ends closer than that, what there is suffices.
  /// - Parameters:
  ///   - sampleRate: in Hz.
  ///   - channels: many channels at a high rate need less, because their segments are shorter to limit memory.
  package static func contextFrames(sampleRate: Int, channels: Int = 1) -> (before: Int64, after: Int64) {
    SegmentGrid(frame: AnalysisFrame(sampleRate: sampleRate), channels: channels).context
  }

  private mutating func takeHop<E: Error>(_ output: (Span<Float>) throws(E) -> Void) throws(E) {
    store.append(cutter, &fft)
    cutter.advance()
    let segmentEnd = grid.segmentEnd(after: store.firstSpectrum)
    if store.endFrame == segmentEnd + Int64(grid.contextHops) { try finishSegment(output) }
  }

  /// Turns the oldest segment into sound. Its trailing context may be short only at the end of the recording. With a
  /// second thread, this outputs the previous segment while the oldest is being computed.
  private mutating func finishSegment<E: Error>(_ output: (Span<Float>) throws(E) -> Void) throws(E) {
    let hasSound = takeSound()
    let segment = store.firstSpectrum..<min(store.endFrame, grid.segmentEnd(after: store.firstSpectrum))
    let rows = Int(segment.lowerBound - store.firstFrame)..<Int(segment.upperBound - store.firstFrame)
    let context = min(store.endFrame, segment.upperBound + Int64(grid.contextHops)) - store.firstFrame
    var material = SegmentWorker.Material()
    swap(&material, &spare)
    store.handOver(
      keepingFrom: segment.upperBound - Int64(grid.contextHops), spectraFrom: segment.upperBound, as: &material)
    worker.start(segment, rows: rows, context: Int(context), of: consume material)
    if usesSecondThread ? hasSound : takeSound() { try outlet.emit(sound, upTo: inputEnd, output) }
  }

  /// Waits for the segment in progress. Returns false if there is none.
  private mutating func takeSound() -> Bool {
    guard let used = worker.finish(&sound) else { return false }
    spare = used
    return true
  }

  /// The sum of the channels' λ, scaled. The rules based on the a-priori SNR use a factor of 0.85 (PESQ 1.934, against
  /// 1.909 without); Berouti's α has the same effect. Values below 1e−14 mean no noise.
  private static func noise(of profile: NoiseProfile, _ settings: DenoiseSettings) -> [Float] {
    let factor = settings.method == .spectralSubtraction ? 1 : 0.85
    let sensitivity = Float(factor * min(2, max(0.5, settings.sensitivity)))
    return profile.summed.map { $0 * sensitivity > 1e-14 ? $0 * sensitivity : 0 }
  }
}
