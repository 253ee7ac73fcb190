import Testing

@testable import Denoise

@Suite struct LinkedDenoiserTests {
  private let rate = 8000

  /// Cleans sound with a profile of its noise.
  private func clean(
    _ lanes: [[Float]], noise: [[Float]], _ link: ChannelLink?, pieces: [Int] = [4096], threads: Int = 1
  ) throws -> [[Float]] {
    let settings = DenoiseSettings(link: link)
    let cleaning = Cleaning(sampleRate: rate, channels: lanes.count)
    var denoiser = LinkedDenoiser(
      noise: NoiseCourse(try cleaning.profile(of: TestSignals.interleaved(noise))), settings: settings,
      sampleRate: rate, channels: lanes.count, usesSecondThread: threads > 1)
    let samples = TestSignals.interleaved(lanes)
    var output: [Float] = []
    func append(_ samples: Span<Float>) {
      for index in samples.indices { output.append(samples[index]) }
    }
    var position = 0, turn = 0
    while position < samples.count {
      let end = min(samples.count, position + pieces[turn % pieces.count] * lanes.count)
      denoiser.process(samples.span.extracting(position..<end)) { append($0) }
      (position, turn) = (end, turn + 1)
    }
    denoiser.finish { append($0) }
    return lanes.indices.map { TestSignals.channel($0, of: lanes.count, in: output) }
  }

  private func noise(_ channels: Int, seconds: Int = 4) -> [[Float]] {
    (0..<channels).map { TestSignals.noise(seconds * rate, seed: UInt64($0 + 1)) }
  }

  @Test(
    "pairs are the channels left and right of each other",
    arguments: [
      (1, [[0]]), (2, [[0, 1]]), (3, [[0, 1], [2]]), (4, [[0, 1], [2, 3]]), (5, [[0, 1], [2], [3, 4]]),
      (6, [[0, 1], [2], [3], [4, 5]]), (7, [[0, 1], [2], [3], [4], [5, 6]]),
      (8, [[0, 1], [2], [3], [4, 5], [6, 7]]),
      (9, [[0, 1], [2, 3], [4, 5], [6, 7], [8]]),
    ])
  func pairs(channels: Int, groups: [[Int]]) {
    #expect(ChannelLink.pairs.groups(of: channels) == groups)
    #expect(ChannelLink.all.groups(of: channels) == [Array(0..<channels)])
    #expect(ChannelLink.none.groups(of: channels) == (0..<channels).map { [$0] })
  }

  @Test func pairsAreTheDefaultFromThreeChannelsOn() {
    #expect((1...4).map(ChannelLink.init(channels:)) == [.all, .all, .pairs, .pairs])
  }

  @Test func eachGroupIsCleanedAsIfItWereAlone() throws {
    var lanes = noise(3)
    let tone = TestSignals.tone(lanes[0].count, hertz: 700, sampleRate: rate)
    lanes[0] = TestSignals.sum(lanes[0], tone)
    let output = try clean(lanes, noise: noise(3), .pairs)
    #expect(try Array(output[..<2]) == clean(Array(lanes[..<2]), noise: Array(noise(3)[..<2]), .all))
    #expect(try [output[2]] == clean([lanes[2]], noise: [noise(3)[2]], .all))
    #expect(try output == clean(lanes, noise: noise(3), nil))
  }

  @Test func linkedChannelsAreCleanedAsByOneDenoiser() throws {
    let lanes = noise(3)
    let cleaning = Cleaning(sampleRate: rate, channels: 3)
    let samples = TestSignals.interleaved(lanes)
    let whole = cleaning.clean(samples, try cleaning.profile(of: samples))
    #expect(try TestSignals.interleaved(clean(lanes, noise: lanes, .all)) == whole)
  }

  @Test func aNoisyChannelLosesNothingThroughItsNeighborsSpeech() throws {
    let silence = noise(2, seconds: 6)
    let tones = [300.0, 500, 900, 1500, 2300, 3100].map {
      TestSignals.tone(6 * rate, hertz: $0, sampleRate: rate, amplitude: 0.1)
    }
    let speech = tones.reduce(silence[0], TestSignals.sum)
    func removed(_ link: ChannelLink) throws -> Double {
      let output = try clean([speech, silence[1]], noise: silence, link)
      return TestSignals.levelDB(silence[1]) - TestSignals.levelDB(output[1])
    }
    let (alone, linked) = (try removed(.none), try removed(.all))
    #expect(alone > 16.5 && linked < alone - 2, "\(alone) \(linked)")
  }

  @Test("pieces and threads don't matter", arguments: [ChannelLink.pairs, .none])
  func pieces(link: ChannelLink) throws {
    let lanes = noise(5)
    let whole = try clean(lanes, noise: lanes, link, pieces: [1_000_000])
    #expect(try clean(lanes, noise: lanes, link, pieces: [1, 5000, 77], threads: 2) == whole)
    #expect(whole.allSatisfy { $0.count == 4 * rate })
  }
}
