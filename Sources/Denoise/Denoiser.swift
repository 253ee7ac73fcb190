// Noise removal as a stream.
//
//   samples ─► FrameCutter ─► SpectrumStore (γ, cepstra)   ─► SegmentGains ─► Synthesis ─► samples
//                per hop          per frame                    per segment, once its context is there;
//                                                              with a second thread, beside the next one's transforms
//
// All channels of a bin share one gain, from γ = Σ |Y_c|² / Σ λ_c over the channels: what is panned stays where it
// is, and as powers are summed and not signals, what is out of phase counts like what is in phase.

/// Removes noise from a recording of any length in constant memory: 25 MB for 2 channels at 48 kHz.
///
/// The output has exactly as many frames as the input, without delay; pieces come about 3 s at a time and 0.8 s behind
/// the input, with a second thread 3.9 s. Its bits depend on the samples, the profile and the settings alone: not on
/// the sizes of the pieces, not on the threads, and not on where in the recording the denoiser started, from
/// `contextFrames` on. Samples that are not finite count as 0, larger ones than 1e12 as that; all output is finite.
package struct Denoiser: ~Copyable {
  private let channels: Int
  private let grid: SegmentGrid
  private var cutter: FrameCutter
  private var fft: RealFFT
  private var store: SpectrumStore
  private let worker: SegmentWorker
  private let usesSecondThread: Bool
  private let start: Int64
  /// What the last segment was made of, whose memory the next one uses.
  private var spare = SegmentWorker.Material()
  private var sound = SegmentSound()
  private var outlet: SoundOutlet
  /// The frames of the recording that were taken in.
  private var inputEnd: Int64

  /// - Parameters:
  ///   - profile: the noise; of the same rate and channel count as the sound.
  ///   - settings: what to do.
  ///   - sampleRate: in Hz.
  ///   - channels: at least 1.
  ///   - startFrame: the frame of the recording that the first sample given belongs to. A window of a recording comes
  ///     out as in the whole where it is given with `contextFrames` around it.
  ///   - usesSecondThread: whether gains and synthesis run on a thread of their own, about half of the work.
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

  /// Takes more sound and gives what became final, in order, from `startFrame` on.
  /// - Parameters:
  ///   - input: interleaved, whole frames, full scale ±1; any number of them.
  ///   - output: called with interleaved samples, whole frames; may not be called at all, or more than once.
  package mutating func process<E: Error>(
    _ input: Span<Float>, _ output: (Span<Float>) throws(E) -> Void
  ) throws(E) {
    precondition(input.count.isMultiple(of: channels), "samples come in whole frames")
    var position = 0
    inputEnd += Int64(input.count / channels)
    while cutter.fill(from: input, &position) { try takeHop(output) }
  }

  /// Ends the sound and gives the rest: in all as many frames as were taken in. Nothing may be processed after it.
  package mutating func finish<E: Error>(_ output: (Span<Float>) throws(E) -> Void) throws(E) {
    let hop = Int64(store.frame.hop)
    guard inputEnd > start else { return }
    // The last frame to touch the sound is the one that begins in its last hop.
    let endFrame = (inputEnd + hop - 1) / hop + 3
    while store.endFrame < endFrame {
      cutter.fillWithSilence()
      try takeHop(output)
    }
    while store.firstSpectrum < store.endFrame { try finishSegment(output) }
    if takeSound() { try outlet.emit(sound, upTo: inputEnd, output) }
  }

  /// How much sound must be given before and after a window so that it comes out with the bits it has in the whole.
  ///
  /// Where the recording begins or ends nearer than that, all there is is enough.
  /// - Parameters:
  ///   - sampleRate: in Hz.
  ///   - channels: many channels at a high rate need less, as their segments are shorter to bound the memory.
  package static func contextFrames(sampleRate: Int, channels: Int = 1) -> (before: Int64, after: Int64) {
    SegmentGrid(frame: AnalysisFrame(sampleRate: sampleRate), channels: channels).context
  }

  private mutating func takeHop<E: Error>(_ output: (Span<Float>) throws(E) -> Void) throws(E) {
    store.append(cutter, &fft)
    cutter.advance()
    let segmentEnd = grid.segmentEnd(after: store.firstSpectrum)
    if store.endFrame == segmentEnd + Int64(grid.contextHops) { try finishSegment(output) }
  }

  /// Has the oldest segment turned into sound; its context after may be short only where the recording ends. With a
  /// second thread it is the segment before that is given out, while this one is computed.
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

  /// Waits for the segment that was begun, if there is one; whether there was.
  private mutating func takeSound() -> Bool {
    guard let used = worker.finish(&sound) else { return false }
    spare = used
    return true
  }

  /// λ of the channels together. The method's own factor is 0.85 for those that follow the a-priori SNR (PESQ 1.934
  /// against 1.909 without); Berouti's α does the same work. Below 1e−14 there is no noise.
  private static func noise(of profile: NoiseProfile, _ settings: DenoiseSettings) -> [Float] {
    let factor = settings.method == .spectralSubtraction ? 1 : 0.85
    let sensitivity = Float(factor * min(2, max(0.5, settings.sensitivity)))
    return profile.summed.map { $0 * sensitivity > 1e-14 ? $0 * sensitivity : 0 }
  }
}
