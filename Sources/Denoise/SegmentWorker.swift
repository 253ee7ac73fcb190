import Dispatch

/// Computes the gains of a segment and its sound, optionally on a separate thread.
///
/// It processes one segment at a time. The material passed to `start` belongs to the worker until `finish`, which
/// waits. The arithmetic and its order are the same on any thread, so the bits are too.
final class SegmentWorker: @unchecked Sendable {  // `queue` owns it from `start` to `finish`, else its owner
  /// The input of a segment.
  struct Material {
    /// γ, one row per frame, for the rows of the segment and its context.
    var posterior: [Float] = []
    /// The cepstra of the same rows, if the method uses them.
    var cepstra: [Float] = []
    /// The segment's spectra, followed by some later ones.
    var spectra: [Float] = []
  }

  private let gainRule: SegmentGains
  private let isResidue: Bool
  private let binCount: Int
  private let queue: DispatchQueue?
  private let isDone = DispatchSemaphore(value: 0)
  private var synthesis: Synthesis
  private var fft: RealFFT
  private var gains: [Float] = []
  private var logs: [Float] = []
  private var material = Material()
  private var sound = SegmentSound()
  private var isBusy = false

  /// - Parameter isThreaded: whether `start` returns before the work is done.
  init(gainRule: SegmentGains, synthesis: consuming Synthesis, frame: AnalysisFrame, isResidue: Bool, isThreaded: Bool)
  {
    self.gainRule = gainRule
    self.isResidue = isResidue
    self.synthesis = synthesis
    binCount = frame.binCount
    fft = RealFFT(length: frame.length)
    queue = isThreaded ? DispatchQueue(label: "denoise") : nil
  }

  /// Starts a segment; the previous one must be finished.
  /// - Parameters:
  ///   - segment: its frames.
  ///   - rows: the rows of their γ in the material.
  ///   - context: number of valid rows of γ.
  func start(_ segment: Range<Int64>, rows: Range<Int>, context: Int, of material: consuming Material) {
    precondition(!isBusy, "one segment at a time")
    isBusy = true
    self.material = material
    guard let queue else { return compute(segment, rows, context) }
    queue.async { [self] in
      compute(segment, rows, context)
      isDone.signal()
    }
  }

  /// Waits for the segment. Exchanges `sound` for the segment's, reusing its memory, and returns the material, or nil
  /// if no segment was started.
  func finish(_ sound: inout SegmentSound) -> Material? {
    guard isBusy else { return nil }
    if queue != nil { isDone.wait() }
    isBusy = false
    swap(&sound, &self.sound)
    let used = material
    material = Material()
    return used
  }

  private func compute(_ segment: Range<Int64>, _ rows: Range<Int>, _ context: Int) {
    let needed = rows.count * binCount
    if gains.count < needed {
      gains = [Float](repeating: 0, count: needed)
      logs = gains
    }
    gainRule.compute(
      posterior: material.posterior, cepstra: material.cepstra, frames: context, segment: rows, &fft, logs: &logs,
      into: &gains)
    if isResidue { Kernels.complement(&gains) }
    synthesis.add(segment, spectra: material.spectra, gains: gains, &fft, to: &sound)
  }
}
