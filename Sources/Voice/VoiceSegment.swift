import CVoice
import Glibc

// For each spectral frame t and bin k, with X the input, S the classical result, and g, c of the networks:
//
//   Y = Σ c[i] X[t − 2 + i], i = 0 … 4    below 4.8 kHz          Y = g[band] X    above
//   M = Y (|S| / |Y|)^¼                   a mean of the magnitudes, with the phase of Y
//   Z = (1 − κ) (a X + (1 − a) M) + κ (b X + (1 − b) S)
//
// a is the limit of attenuation, κ how much of S is kept (see VoiceGuard), and b brings S, which has a limit of 25 dB,
// to that of a if it is lower.
//
// Z − X is what goes back to the sound's rate, and is added to it. So what the resampler can't hold, above 24 kHz or
// close to half the rate, is still there; it gets the gain of the band below.
//
// All channels of a group have the same g, c and κ, which come from their sum, so the image stays. A channel whose
// polarity is opposite to the loudest one's is subtracted.

/// The settings of a whole recording.
struct VoiceRule: Sendable {
  /// The limit of attenuation as a factor, a.
  var limit: Float
  /// b
  var classicalLimit: Float { max(0, (limit - 0.0562) / (1 - 0.0562)) }
  /// Whether the user has said what is noise.
  var isMarked: Bool
}

/// A segment of the channels that are linked, on its way through the networks. For one thread at a time.
final class VoiceSegment: @unchecked Sendable {
  /// The channels' sound where the segment is read, and the classical result.
  struct Sound: Sendable {
    var original, classical: [[Float]]
  }

  let place: SegmentPlace
  private let rule: VoiceRule
  private let sound: Sound
  /// The end of the spectral frames.
  private let end: Int
  /// Those of the sum of the channels.
  private var mix, classicalMix: [Float]
  private var features = VoiceFeatures()
  private var ring: SpectrumRing
  private var analyzed = 0
  private var position: Int
  /// g and c of each frame from `place.firstNetwork` on.
  private var gains, filters: [Float]
  /// The gain of the bins above the resampler's.
  private var topGains: [Float]
  private let topBand: Int
  private let topNumbers: Range<Int>
  private var guarding: VoiceGuard
  /// The verdicts of the segment's seconds.
  private(set) var verdicts: [VoiceGuard.Verdict] = []

  /// - Parameter soundEnd: where the sound that is wanted ends, in frames of the recording.
  init(
    _ place: SegmentPlace, _ sound: Sound, rule: VoiceRule, soundEnd: Int64
  ) throws(VoiceError) {
    self.place = place
    self.sound = sound
    self.rule = rule
    let count = Resampler.count(sound.original[0].count, from: place.sampleRate, to: FrameTransform.sampleRate)
    end = min(
      place.end(forSoundUpTo: soundEnd), (count + FrameTransform.hop - 1) / FrameTransform.hop + 1)
    position = place.firstNetwork
    ring = SpectrumRing()
    let signs = Self.signs(sound.original)
    mix = try Self.resampledMix(sound.original, signs, place.sampleRate)
    classicalMix = try Self.resampledMix(sound.classical, signs, place.sampleRate)
    let frames = max(0, end - place.firstNetwork)
    gains = [Float](repeating: 0, count: frames * VoiceBands.count)
    filters = [Float](repeating: 0, count: frames * VoiceBands.filteredBins * 10)
    topGains = [Float](repeating: 1, count: frames)
    let top = min(0.95 * Double(place.sampleRate) / 2, 20_000)
    topBand = VoiceBands.bands[Int(top / 50)]
    let below = VoiceBands.widths[..<topBand].reduce(0, +)
    topNumbers = 2 * below..<2 * (below + VoiceBands.widths[topBand])
    guarding = VoiceGuard(seconds: Int(SegmentPlace.seconds))
  }

  private static func signs(_ channels: [[Float]]) -> [Float] {
    func product(_ a: [Float], _ b: [Float]) -> Float {
      var sum: Float = 0
      for index in 0..<a.count { sum += a[index] * b[index] }
      return sum
    }
    guard channels.count > 1 else { return [1] }
    let powers = channels.map { product($0, $0) }
    let loudest = powers.indices.max { powers[$0] < powers[$1] } ?? 0
    return channels.map { product($0, channels[loudest]) < 0 ? -1 : 1 }
  }

  private static func resampledMix(
    _ channels: [[Float]], _ signs: [Float], _ sampleRate: Int
  ) throws(VoiceError) -> [Float] {
    var sum = channels[0]
    if channels.count > 1 {
      let scale = 1 / Float(channels.count)
      for index in sum.indices {
        var value: Float = 0
        for channel in channels.indices { value += signs[channel] * channels[channel][index] }
        sum[index] = value * scale
      }
    }
    return try Resampler.run(sum, from: sampleRate, to: FrameTransform.sampleRate)
  }

  /// The number of spectral frames that the networks have yet to see.
  var remaining: Int { max(0, end - position) }
  /// The number of channels.
  var channelCount: Int { sound.original.count }

  // MARK: Through the networks

  /// Writes the features of the next frame for the networks, which see two frames ahead.
  @unsafe
  func prepare(_ frame: UnsafeMutablePointer<voice_frame>, _ transform: FrameTransform) {
    while analyzed <= position + 2 {
      transform.analyze(mix, at: analyzed * FrameTransform.hop, into: &ring[analyzed])
      unsafe features.take(ring[analyzed], into: Self.numbers(frame))
      analyzed += 1
    }
  }

  private static func numbers(_ frame: UnsafeMutablePointer<voice_frame>) -> UnsafeMutablePointer<Float> {
    unsafe UnsafeMutableRawPointer(frame).assumingMemoryBound(to: Float.self)
  }

  /// Takes what the networks made of the frame.
  @unsafe
  func take(_ frame: UnsafeMutablePointer<voice_frame>, _ transform: FrameTransform, _ space: inout VoiceSpace) {
    let index = position - place.firstNetwork, (bands, coefficients) = (VoiceBands.count, VoiceBands.filteredBins * 10)
    let numbers = unsafe Self.numbers(frame) + 32 + 2 * VoiceBands.filteredBins
    unsafe gains.withUnsafeMutableBufferPointer { target in
      for band in 0..<bands { unsafe target[index * bands + band] = numbers[band] }
    }
    unsafe filters.withUnsafeMutableBufferPointer { target in
      for number in 0..<coefficients { unsafe target[index * coefficients + number] = numbers[bands + number] }
    }
    if position >= place.firstOutput { compare(transform, &space) }
    position += 1
  }

  /// Compares the results for the sum of the channels.
  private func compare(_ transform: FrameTransform, _ space: inout VoiceSpace) {
    transform.analyze(classicalMix, at: position * FrameTransform.hop, into: &space.classical)
    filter(ring, position, into: &space.voice)
    let second = (position - place.firstOwn) / FrameTransform.framesPerSecond
    let input = ring[position]
    topGains[position - place.firstNetwork] = classicalTopGain(space, input)
    guard position >= place.firstOwn, second < Int(SegmentPlace.seconds) else { return }
    // What the limit leaves counts as kept by the networks.
    for index in input.indices { space.voice[index] += rule.limit * (input[index] - space.voice[index]) }
    guarding.add(second: second, voice: space.voice, classical: space.classical, input: input)
  }

  /// The classical gain of the band whose gain the bins above it get.
  private func classicalTopGain(_ space: VoiceSpace, _ input: [Float]) -> Float {
    var (left, whole): (Float, Float) = (1e-30, 1e-30)
    for number in topNumbers {
      left += space.classical[number] * space.classical[number]
      whole += input[number] * input[number]
    }
    return min(1, (left / whole).squareRoot())
  }

  /// Computes Y of a frame.
  private func filter(_ ring: borrowing SpectrumRing, _ frame: Int, into voice: inout [Float]) {
    let (filters, gains, bands) = (self.filters, self.gains, VoiceBands.bands)
    let index = frame - place.firstNetwork, first = index * VoiceBands.count
    let start = index * VoiceBands.filteredBins * 10
    for bin in 0..<2 * VoiceBands.filteredBins { voice[bin] = 0 }
    for tap in 0..<5 {
      let input = ring[frame - 2 + tap]
      var coefficient = start + 2 * tap
      for bin in 0..<VoiceBands.filteredBins {
        let (a, b, c, d) = (input[2 * bin], input[2 * bin + 1], filters[coefficient], filters[coefficient + 1])
        voice[2 * bin] += a * c - b * d
        voice[2 * bin + 1] += a * d + b * c
        coefficient += 10
      }
    }
    let input = ring[frame]
    for bin in VoiceBands.filteredBins..<FrameTransform.binCount {
      let gain = gains[first + bands[bin]]
      voice[2 * bin] = input[2 * bin] * gain
      voice[2 * bin + 1] = input[2 * bin + 1] * gain
    }
  }

  // MARK: Back to sound

  /// Decides what to keep, once the networks have seen all frames.
  func decide(_ space: inout VoiceSpace) {
    verdicts = (0..<Int(SegmentPlace.seconds)).map { guarding.verdict(second: $0, isMarked: rule.isMarked) }
    for frame in place.firstOutput..<max(place.firstOutput, end) {
      keep(frame, &space)
      let index = frame - place.firstNetwork
      let (voice, classical) = (gains[index * VoiceBands.count + topBand], topGains[index])
      let joined = Self.limited((voice * voice * voice * classical).squareRoot().squareRoot(), rule.limit)
      topGains[index] =
        joined + space.kept[topBand] * (Self.limited(classical, rule.classicalLimit) - joined)
    }
  }

  /// Returns a channel's frames in `place.output`, as far as there are any.
  func output(channel: Int, _ transform: FrameTransform, _ space: inout VoiceSpace) throws(VoiceError) -> [Float] {
    let original = sound.original[channel], rate = place.sampleRate
    let isAlone = sound.original.count == 1
    let input = isAlone ? mix : try Resampler.run(original, from: rate, to: FrameTransform.sampleRate)
    let classical =
      isAlone ? classicalMix : try Resampler.run(sound.classical[channel], from: rate, to: FrameTransform.sampleRate)
    var change = [Float](repeating: 0, count: input.count)
    var ring = SpectrumRing()
    var next = place.firstOutput - 2
    for frame in place.firstOutput..<max(place.firstOutput, end) {
      while next <= frame + 2 {
        transform.analyze(input, at: next * FrameTransform.hop, into: &ring[next])
        next += 1
      }
      transform.analyze(classical, at: frame * FrameTransform.hop, into: &space.classical)
      filter(ring, frame, into: &space.voice)
      join(ring[frame], frame, &space)
      transform.synthesize(space.voice, at: frame * FrameTransform.hop, addingTo: &change)
    }
    let wanted = place.output
    let first = Int(wanted.lowerBound - place.read.lowerBound)
    let last = min(Int(wanted.upperBound - place.read.lowerBound), original.count)
    guard first < last else { return [] }
    if rate == FrameTransform.sampleRate { return (first..<last).map { original[$0] + change[$0] } }
    let changed = try Resampler.run(change, from: FrameTransform.sampleRate, to: rate, count: original.count)
    let held = try Resampler.run(input, from: FrameTransform.sampleRate, to: rate, count: original.count)
    return (first..<last).map { index in
      original[index] + changed[index] + (topGain(at: index) - 1) * (original[index] - held[index])
    }
  }

  /// Computes Z − X in place of Y.
  private func join(_ input: [Float], _ frame: Int, _ space: inout VoiceSpace) {
    keep(frame, &space)
    let (limit, classicalLimit) = (rule.limit, rule.classicalLimit)
    for bin in 0..<FrameTransform.binCount {
      let (re, im) = (space.voice[2 * bin], space.voice[2 * bin + 1])
      let (sre, sim) = (space.classical[2 * bin], space.classical[2 * bin + 1])
      let ratio = (sre * sre + sim * sim + 1e-36) / (re * re + im * im + 1e-36)
      let scale = min(30, ratio).squareRoot().squareRoot().squareRoot()
      let kept = space.kept[VoiceBands.bands[bin]]
      // Both without X.
      let (x, y) = (input[2 * bin], input[2 * bin + 1])
      let (own, other) = ((1 - limit) * (1 - kept), (1 - classicalLimit) * kept)
      space.voice[2 * bin] = own * (re * scale - x) + other * (sre - x)
      space.voice[2 * bin + 1] = own * (im * scale - y) + other * (sim - y)
    }
  }

  /// Returns a gain that is limited by adding some of the input.
  private static func limited(_ gain: Float, _ limit: Float) -> Float { limit + (1 - limit) * gain }

  /// Computes κ of a frame's bands.
  private func keep(_ frame: Int, _ space: inout VoiceSpace) {
    let own = frame - place.firstOwn, perSecond = FrameTransform.framesPerSecond
    let second = max(0, min(own / perSecond, verdicts.count - 1))
    let share = min(1, Float(max(0, own - second * perSecond)) / 20)
    for band in 0..<VoiceBands.count {
      let now = verdicts[second].kept[band], before = second > 0 ? verdicts[second - 1].kept[band] : now
      space.kept[band] = before + share * (now - before)
    }
  }

  /// Returns the gain at a frame of the sound since its reading began.
  private func topGain(at index: Int) -> Float {
    let position = Float(index) * (Float(FrameTransform.framesPerSecond) / Float(place.sampleRate))
    let frame = min(max(Int(position) - place.firstNetwork, 0), topGains.count - 1)
    let next = min(frame + 1, topGains.count - 1)
    let share = position - Float(Int(position))
    return topGains[frame] + share * (topGains[next] - topGains[frame])
  }
}

/// Numbers that a thread needs meanwhile.
struct VoiceSpace {
  var voice = [Float](repeating: 0, count: 2 * FrameTransform.binCount)
  var classical = [Float](repeating: 0, count: 2 * FrameTransform.binCount)
  var kept = [Float](repeating: 0, count: VoiceBands.count)
}

/// The last five spectra, by the number of the frame, which may be −2 or more.
struct SpectrumRing: ~Copyable {
  private var spectra = [[Float]](repeating: [Float](repeating: 0, count: 2 * FrameTransform.binCount), count: 5)

  subscript(frame: Int) -> [Float] {
    _read { yield spectra[(frame + 5) % 5] }
    _modify { yield &spectra[(frame + 5) % 5] }
  }
}
