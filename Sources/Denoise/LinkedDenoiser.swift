import Dispatch
import Terms

/// Removes noise from a recording whose channels are linked in groups: a Denoiser for each, side by side.
///
/// The contract is Denoiser's, as is the memory: the groups share its budget.
package struct LinkedDenoiser: ~Copyable {
  private let channels: Int
  private let usesSecondThread: Bool
  private let groups: [LinkedGroup]
  /// Interleaved output.
  private var sound: [Float] = []

  /// Creates a denoiser; see `Denoiser` for the parameters. `settings.link` says which channels share one gain.
  package init(
    noise: NoiseCourse, settings: DenoiseSettings, sampleRate: Int, channels: Int, startFrame: Int64 = 0,
    wanted: Range<Int64> = 0..<(.max), usesSecondThread: Bool = false
  ) {
    let groups = Self.groups(settings, channels)
    self.channels = channels
    self.usesSecondThread = usesSecondThread && groups.count > 1
    self.groups = groups.map { own in
      let denoiser = Denoiser(
        noise: noise.ofChannels(own), settings: settings, sampleRate: sampleRate, channels: own.count,
        startFrame: startFrame, wanted: wanted, usesSecondThread: usesSecondThread && groups.count == 1,
        budgetedChannels: Self.budgetedChannels(groups, channels))
      return LinkedGroup(own, denoiser)
    }
  }

  /// Returns the sound that must be processed so that a part of it, `wanted`, has the same bits as in the whole; see
  /// `Denoiser`.
  package static func sound(
    for wanted: Range<Int64>, settings: DenoiseSettings, sampleRate: Int, channels: Int
  ) -> Range<Int64> {
    Denoiser.sound(
      for: wanted, sampleRate: sampleRate, channels: budgetedChannels(groups(settings, channels), channels),
      isTracked: settings.adaptation != nil)
  }

  private static func groups(_ settings: DenoiseSettings, _ channels: Int) -> [[Int]] {
    (settings.link ?? ChannelLink(channels: channels)).groups(of: channels)
  }

  /// Besides spectra for each channel, there is as much again for each group.
  private static func budgetedChannels(_ groups: [[Int]], _ channels: Int) -> Int { channels + groups.count - 1 }

  /// Whether the noise of any group has changed so far; see `Denoiser`.
  package var hasNoiseChanged: Bool { groups.contains { $0.denoiser.hasNoiseChanged } }

  /// Processes more sound and passes on the output that is final; see `Denoiser`.
  package mutating func process<E: Error>(
    _ input: Span<Float>, _ output: (Span<Float>) throws(E) -> Void
  ) throws(E) {
    precondition(input.count.isMultiple(of: channels), "samples come in whole frames")
    guard groups.count > 1 else { return try groups[0].denoiser.process(input, output) }
    for group in groups { group.take(input, of: channels) }
    inTurn { $0.process() }
    try passOn(output)
  }

  /// Ends the sound and passes on the rest; see `Denoiser`.
  package mutating func finish<E: Error>(_ output: (Span<Float>) throws(E) -> Void) throws(E) {
    guard groups.count > 1 else { return try groups[0].denoiser.finish(output) }
    inTurn { $0.finish() }
    try passOn(output)
  }

  /// Runs `work` once for each group; every other group on a second thread, if wanted.
  private func inTurn(_ work: @escaping @Sendable (LinkedGroup) -> Void) {
    let groups = self.groups, isDone = DispatchSemaphore(value: 0)
    let isShared =
      usesSecondThread
      && Threads.shared.run {
        for index in stride(from: 1, to: groups.count, by: 2) { work(groups[index]) }
        isDone.signal()
      }
    for index in stride(from: 0, to: groups.count, by: isShared ? 2 : 1) { work(groups[index]) }
    if isShared { isDone.wait() }
  }

  /// Interleaves what all groups have.
  private mutating func passOn<E: Error>(_ output: (Span<Float>) throws(E) -> Void) throws(E) {
    let frames = groups.reduce(Int.max) { min($0, $1.readyFrames) }
    guard frames > 0 else { return }
    if sound.count < frames * channels { sound = [Float](repeating: 0, count: frames * channels) }
    for group in groups { group.give(frames, to: &sound, of: channels) }
    try output(sound.span.extracting(0..<(frames * channels)))
  }
}

/// The channels that share one gain, and their denoiser.
private final class LinkedGroup: @unchecked Sendable {  // used by one thread at a time
  let own: [Int]
  var denoiser: Denoiser
  private var input: [Float] = []
  private var output: [Float] = []

  init(_ own: [Int], _ denoiser: consuming Denoiser) {
    self.own = own
    self.denoiser = denoiser
  }

  var readyFrames: Int { output.count / own.count }

  /// Copies its channels of interleaved sound.
  func take(_ sound: Span<Float>, of channels: Int) {
    input.removeAll(keepingCapacity: true)
    for frame in stride(from: 0, to: sound.count, by: channels) {
      for channel in own { input.append(sound[frame + channel]) }
    }
  }

  func process() {
    let input = self.input
    denoiser.process(input.span) { append($0) }
  }

  func finish() { denoiser.finish { append($0) } }

  private func append(_ samples: Span<Float>) {
    unsafe samples.withUnsafeBufferPointer { unsafe output.append(contentsOf: $0) }
  }

  /// Moves frames of output into their places in interleaved sound.
  func give(_ frames: Int, to sound: inout [Float], of channels: Int) {
    for (place, channel) in own.enumerated() {
      for frame in 0..<frames { sound[frame * channels + channel] = output[frame * own.count + place] }
    }
    output.removeFirst(frames * own.count)
  }
}
