import CVoice
import Dispatch
import Terms

// Removes noise from speech with DeepFilterNet3's networks:
//
//   sound and the classical result ─► segments (SegmentPlace) ─► the sum of linked channels at 48 kHz ─► spectra,
//   features ─► networks ─► guard (VoiceGuard) ─► each channel's spectra, filtered and joined (VoiceSegment) ─► sound
//
// Several segments go through the networks side by side, so that each weight is read from memory once for all of them.

/// Removes noise from a recording of any length in constant memory.
///
/// The output has exactly as many frames as the input and isn't delayed. A part of a recording comes out as in the
/// whole, to −90 dBFS, if it gets what `sound(for:)` returns. Samples that aren't finite count as 0, and larger ones
/// than 1e6 are clamped to that.
package final class VoiceDenoiser {
  /// The settings that matter to the networks.
  package struct Settings: Sendable, Equatable {
    /// The limit of attenuation in dB, 0 … 60.
    package var reductionDB: Double
    /// Whether the user has said where noise is, which then may not come back.
    package var isMarked: Bool

    /// Creates settings.
    package init(reductionDB: Double, isMarked: Bool) {
      self.reductionDB = reductionDB
      self.isMarked = isMarked
    }
  }

  /// How many segments are in memory at a time: one on each of two threads, or both side by side on one.
  private static let segmentsAtATime = 2
  /// The sound of this many segments is collected if it takes at most that number of bytes; else that of one.
  private static let collectedBytes = 24 << 20

  private let weights: VoiceWeights
  private let rule: VoiceRule
  private let groups: [[Int]]
  private let channels: Int
  private let sampleRate: Int
  private let wanted: Range<Int64>
  private let usesSecondThread: Bool
  private let batch: Int64
  private var nextSegment: Int64
  private let endSegment: Int64
  /// The sound from frame `start` of the recording on, a row for each channel.
  private var sound: VoiceSegment.Sound
  private var start: Int64
  /// The end of each channel's last segment, which the next one is faded into.
  private var tails: [[Float]]
  private var position: Int64
  private var spaces: [Workspace]
  private var keptShare = 0.0, lostShare = 0.0, soundSeconds = 0

  private struct Workspace {
    let transform = FrameTransform()
    var space = VoiceSpace()
  }

  /// Creates a denoiser.
  /// - Parameters:
  ///   - groups: the channels that share one result of the networks.
  ///   - startFrame: the frame of the recording that the first sample belongs to.
  ///   - wanted: the frames to output, as far as there are any; not empty.
  package init(
    weights: VoiceWeights, settings: Settings, groups: [[Int]], sampleRate: Int, startFrame: Int64 = 0,
    wanted: Range<Int64> = 0..<(.max), usesSecondThread: Bool = false
  ) {
    self.weights = weights
    rule = VoiceRule(
      limit: settings.reductionDB >= 60 ? 0.001 : Self.factor(settings.reductionDB), isMarked: settings.isMarked)
    self.groups = groups
    channels = groups.reduce(0) { $0 + $1.count }
    self.sampleRate = sampleRate
    self.wanted = wanted
    self.usesSecondThread = usesSecondThread
    let bytes = 8 * channels * sampleRate * Int(SegmentPlace.seconds) * Self.segmentsAtATime
    batch = groups.count == 1 && bytes <= Self.collectedBytes ? Int64(Self.segmentsAtATime) : 1
    let whole = SegmentPlace.segments(for: wanted.clamped(to: 0..<(1 << 60)), sampleRate: sampleRate)
    (nextSegment, endSegment) = (whole.lowerBound, whole.upperBound)
    let rows = [[Float]](repeating: [], count: channels)
    sound = VoiceSegment.Sound(original: rows, classical: rows)
    start = startFrame
    tails = rows
    position = wanted.lowerBound
    spaces = (0..<(usesSecondThread ? 2 : 1)).map { _ in Workspace() }
  }

  private static func factor(_ decibels: Double) -> Float {
    // 10^(−dB / 20), without a library that may differ.
    var factor = 1.0
    for _ in 0..<Int(decibels) { factor *= 0.891_250_938_133_745_5 }
    let rest = decibels - decibels.rounded(.down)
    // Linear within a decibel: at most 0.01 dB off, and exact at whole ones.
    return Float(factor * (1 - rest * (1 - 0.891_250_938_133_745_5)))
  }

  /// Returns the frames of the recording to process so that `wanted` comes out.
  package static func sound(for wanted: Range<Int64>, sampleRate: Int) -> Range<Int64> {
    SegmentPlace.sound(for: wanted, sampleRate: sampleRate)
  }

  /// Loads libsoxr, which a fenced process can't. Returns whether it is there.
  @discardableResult
  package static func loadResampler() -> Bool { resampler_load() }

  /// The share of the sound in which the classical result was kept, and the share that the networks would have lost.
  package var shares: (kept: Double, lost: Double) {
    soundSeconds == 0 ? (0, 0) : (keptShare / Double(soundSeconds), lostShare / Double(soundSeconds))
  }

  /// Processes more sound, and passes on what is finished, in order from the first wanted frame.
  /// - Parameters:
  ///   - original: interleaved whole frames.
  ///   - classical: what the classical method makes of them.
  package func process<E: Error>(
    _ original: Span<Float>, _ classical: Span<Float>, failing: (VoiceError) -> E,
    _ output: (Span<Float>) throws(E) -> Void
  ) throws(E) {
    append(original, to: &sound.original)
    append(classical, to: &sound.classical)
    while nextSegment < endSegment, batchEnd <= start + Int64(sound.original[0].count) {
      try run(nextSegment..<min(nextSegment + batch, endSegment), soundEnd: wanted.upperBound, failing, output)
    }
  }

  /// Ends the sound, and passes on the rest.
  package func finish<E: Error>(
    failing: (VoiceError) -> E, _ output: (Span<Float>) throws(E) -> Void
  ) throws(E) {
    let end = start + Int64(sound.original[0].count)
    let last = min(wanted.upperBound, end)
    guard last > position || nextSegment < endSegment, end > 0 else { return }
    let segments = SegmentPlace.segments(for: max(0, last - 1)..<max(1, last), sampleRate: sampleRate)
    while nextSegment < min(endSegment, segments.upperBound) {
      let upTo = min(nextSegment + batch, endSegment, segments.upperBound)
      try run(nextSegment..<upTo, soundEnd: last, failing, output)
    }
    try emit(tails, at: position, upTo: last, output)
  }

  private var batchEnd: Int64 {
    SegmentPlace(number: min(nextSegment + batch, endSegment) - 1, sampleRate: sampleRate).read.upperBound
  }

  private func append(_ samples: Span<Float>, to rows: inout [[Float]]) {
    precondition(samples.count.isMultiple(of: channels), "samples come in whole frames")
    for channel in 0..<channels {
      for index in stride(from: channel, to: samples.count, by: channels) {
        let sample = samples[index]
        rows[channel].append(sample.isFinite ? min(1e6, max(-1e6, sample)) : 0)
      }
    }
  }

  // MARK: Segments

  private func run<E: Error>(
    _ numbers: Range<Int64>, soundEnd: Int64, _ failing: (VoiceError) -> E,
    _ output: (Span<Float>) throws(E) -> Void
  ) throws(E) {
    let outputs: [[[Float]]]
    do throws(VoiceError) { outputs = try results(numbers, soundEnd: soundEnd) } catch { throw failing(error) }
    for (number, rows) in zip(numbers, outputs) {
      let place = SegmentPlace(number: number, sampleRate: sampleRate)
      let fade = number == 0 ? 0 : Int(place.fade)
      let joined = zip(tails, rows).map { Self.fade($0, into: $1, frames: fade) }
      let frames = joined[0].count, end = place.output.lowerBound + Int64(frames)
      let isLast = end < place.output.upperBound
      let kept = isLast ? frames : max(0, frames - Int(place.fade))
      // What comes after is faded into the next segment, and passed on with it.
      tails = joined.map { Array($0[kept...]) }
      let ready = joined.map { Array($0[..<kept]) }
      try emit(
        ready, at: place.output.lowerBound, upTo: min(wanted.upperBound, place.output.lowerBound + Int64(kept)), output)
    }
    nextSegment = numbers.upperBound
  }

  /// Fades from the end of a segment to the beginning of the next one. Without the segment before, nothing is wanted of
  /// these frames.
  private static func fade(_ before: [Float], into next: [Float], frames: Int) -> [Float] {
    var result = next
    for index in 0..<min(frames, before.count, next.count) {
      let share = (Float(index) + 0.5) / Float(frames)
      result[index] = before[index] + share * (next[index] - before[index])
    }
    return result
  }

  /// Passes on the frames from `position` on.
  private func emit<E: Error>(
    _ rows: [[Float]], at place: Int64, upTo end: Int64, _ output: (Span<Float>) throws(E) -> Void
  ) throws(E) {
    let from = position - place, to = min(end - place, Int64(rows[0].count))
    guard from >= 0, from < to else { return }
    var interleaved = [Float](repeating: 0, count: Int(to - from) * channels)
    for channel in 0..<channels {
      var index = channel
      for frame in Int(from)..<Int(to) {
        interleaved[index] = rows[channel][frame]
        index += channels
      }
    }
    position += to - from
    try output(interleaved.span)
  }

  /// Forgets the sound that a segment and later ones don't need, and frees its memory.
  private func discard(before segment: Int64) {
    let needed = SegmentPlace(number: segment, sampleRate: sampleRate).read.lowerBound
    let count = Int(min(max(0, needed - start), Int64(sound.original[0].count)))
    for channel in 0..<channels {
      sound.original[channel] = Array(sound.original[channel][count...])
      sound.classical[channel] = Array(sound.classical[channel][count...])
    }
    start += Int64(count)
  }

  /// Returns the output of each segment, a row for each channel.
  private func results(_ numbers: Range<Int64>, soundEnd: Int64) throws(VoiceError) -> [[[Float]]] {
    var outputs = [[[Float]]](repeating: [[Float]](repeating: [], count: channels), count: numbers.count)
    let works = numbers.flatMap { number in groups.map { (number, $0) } }
    for start in stride(from: 0, to: works.count, by: Self.segmentsAtATime) {
      let together = works[start..<min(start + Self.segmentsAtATime, works.count)]
      var segments: [VoiceSegment] = []
      for (number, own) in together {
        let place = SegmentPlace(number: number, sampleRate: sampleRate)
        let part = VoiceSegment.Sound(
          original: own.map { slice(sound.original[$0], place) },
          classical: own.map { slice(sound.classical[$0], place) })
        segments.append(try VoiceSegment(place, part, rule: rule, soundEnd: soundEnd))
      }
      // These have their own copies.
      if together.endIndex == works.endIndex { discard(before: numbers.upperBound) }
      for ((number, own), rows) in zip(together, try perform(segments)) {
        for (channel, row) in zip(own, rows) { outputs[Int(number - numbers.lowerBound)][channel] = row }
      }
      for segment in segments { count(segment.verdicts) }
    }
    return outputs
  }

  private func count(_ verdicts: [VoiceGuard.Verdict]) {
    for verdict in verdicts where verdict.hasSound {
      keptShare += Double(verdict.keptShare)
      lostShare += Double(verdict.lostShare)
      soundSeconds += 1
    }
  }

  private func slice(_ row: [Float], _ place: SegmentPlace) -> [Float] {
    let from = Int(min(max(place.read.lowerBound - start, 0), Int64(row.count)))
    return Array(row[from..<min(row.count, max(from, Int(place.read.upperBound - start)))])
  }

  /// Computes the outputs of segments, half of them on a second thread.
  private func perform(_ segments: [VoiceSegment]) throws(VoiceError) -> [[[Float]]] {
    let half = usesSecondThread && segments.count > 1 ? (segments.count + 1) / 2 : segments.count
    let mine = Part(Array(segments[..<half]), weights, spaces[0])
    guard half < segments.count else {
      mine.run()
      return try mine.results.get()
    }
    let other = Part(Array(segments[half...]), weights, spaces[1]), isDone = DispatchSemaphore(value: 0)
    let isShared = Threads.shared.run {
      other.run()
      isDone.signal()
    }
    mine.run()
    if isShared { isDone.wait() } else { other.run() }
    return try mine.results.get() + other.results.get()
  }

  /// Segments that one thread computes.
  private final class Part: @unchecked Sendable {  // used by one thread at a time
    private let segments: [VoiceSegment]
    private let weights: VoiceWeights
    private var workspace: Workspace
    private(set) var results: Result<[[[Float]]], VoiceError> = .success([])

    init(_ segments: [VoiceSegment], _ weights: VoiceWeights, _ workspace: Workspace) {
      (self.segments, self.weights, self.workspace) = (segments, weights, workspace)
    }

    func run() {
      VoiceNetworks.run(segments, weights, workspace.transform, &workspace.space)
      do throws(VoiceError) {
        var rows: [[[Float]]] = []
        for segment in segments {
          segment.decide(&workspace.space)
          var row: [[Float]] = []
          for channel in 0..<segment.channelCount {
            row.append(try segment.output(channel: channel, workspace.transform, &workspace.space))
          }
          rows.append(row)
        }
        results = .success(rows)
      } catch {
        results = .failure(error)
      }
    }
  }
}

/// The networks for this processor. All of its instruction sets give the same bits.
enum VoiceNetworks {
  private static let best = unsafe voice_best()

  /// Takes segments through the networks side by side, from their first frames to their last.
  static func run(
    _ segments: some Collection<VoiceSegment>, _ weights: VoiceWeights, _ transform: FrameTransform,
    _ space: inout VoiceSpace
  ) {
    // The longest first, because the others leave earlier.
    let segments = segments.sorted { $0.remaining > $1.remaining }
    let streams = UnsafeMutablePointer<voice_stream>.allocate(capacity: segments.count)
    let frames = UnsafeMutablePointer<voice_frame>.allocate(capacity: segments.count)
    unsafe UnsafeMutableRawPointer(streams).initializeMemory(
      as: UInt8.self, repeating: 0, count: segments.count * MemoryLayout<voice_stream>.stride)
    unsafe UnsafeMutableRawPointer(frames).initializeMemory(
      as: UInt8.self, repeating: 0, count: segments.count * MemoryLayout<voice_frame>.stride)
    defer {
      unsafe streams.deallocate()
      unsafe frames.deallocate()
    }
    var active = segments.count
    while true {
      while active > 0, segments[active - 1].remaining == 0 { active -= 1 }
      guard active > 0 else { return }
      for index in 0..<active { unsafe segments[index].prepare(frames + index, transform) }
      unsafe best(streams, frames, active, weights.address)
      for index in 0..<active { unsafe segments[index].take(frames + index, transform, &space) }
    }
  }
}
