import Glibc
import Terms
import Testing

@testable import Denoise

@Suite struct SpectrogramTests {
  /// Draws a query's tile of a sound, given to the builder in pieces of at most `piece` frames.
  private func tile(
    of sound: [Float], channels: Int = 1, rate: Int = 48_000, piece: Int = 5000, joining gap: Int = 0,
    available: Int? = nil, _ change: (inout SpectrogramQuery) -> Void = { _ in }
  ) throws -> (SpectrogramTile, [UInt8], read: Int) {
    var query = SpectrogramQuery()
    change(&query)
    let frames = Int64(sound.count / channels)
    let extent = SpectrogramExtent(
      sampleRate: rate, channels: channels, availableFrames: available.map(Int64.init) ?? frames, length: frames,
      isComplete: available == nil)
    let tile = try SpectrogramTile(query, of: extent)
    var builder = SpectrogramBuilder(tile, joining: gap), read = 0
    while let wanted = builder.nextFrames {
      let end = min(wanted.upperBound, wanted.lowerBound + Int64(piece))
      try #require(wanted.lowerBound < end && end <= extent.availableFrames)
      builder.append(sound.span.extracting(Int(wanted.lowerBound) * channels..<Int(end) * channels))
      read += Int(end - wanted.lowerBound)
    }
    return (tile, builder.finish(), read)
  }

  private func column(_ number: Int, of tile: (SpectrogramTile, [UInt8], read: Int)) -> [UInt8] {
    (0..<tile.0.height).map { tile.1[$0 * tile.0.columnCount + number] }
  }

  @Test(
    "a full-scale sine at a bin's frequency is 0 dB, in its own row", arguments: FrequencyScale.allCases,
    [256, 2048, 16_384])
  func sine(scale: FrequencyScale, window: Int) throws {
    for bin in [window / 64, window / 16, window / 5, window / 2 - 9] {
      let hertz = Double(bin) * 48_000 / Double(window)
      let sound = TestSignals.tone(40_000, hertz: hertz, sampleRate: 48_000, amplitude: 1)
      let found = try tile(of: sound) {
        ($0.resolution, $0.window, $0.frequencyScale) = (.scale(1024), window, scale)
        // Rows are narrower than a bin near the sine.
        ($0.minHz, $0.maxHz, $0.height) = (max(hertz * 0.97, 1), min(hertz * 1.03, 24_000), 2000)
        $0.minDB = -51
      }
      let values = column(20, of: found)
      let loudest = values.max() ?? 0
      // 5 steps per dB.
      #expect(loudest >= 254, "\(loudest)")
      let top = values.indices.filter { values[$0] == loudest }
      let tile = found.0, low = scale.value(at: tile.minHz), high = scale.value(at: tile.maxHz)
      let row = (high - scale.value(at: hertz)) / (high - low) * 2000
      #expect(Double(top[0]) - 0.5 <= row && row <= Double(top[top.count - 1]) + 1.5, "\(top) \(row)")
    }
  }

  @Test("a row with a sine between its edges is the loudest", arguments: FrequencyScale.allCases)
  func rowOfASine(scale: FrequencyScale) throws {
    for bin in stride(from: 8, to: 1000, by: 37) {
      let hertz = Double(bin) * 48_000 / 2048
      let sound = TestSignals.tone(8192, hertz: hertz, sampleRate: 48_000, amplitude: 0.5)
      let found = try tile(of: sound) { ($0.resolution, $0.frequencyScale, $0.minHz) = (.scale(64), scale, 50) }
      let values = column(64, of: found)
      let top = values.indices.filter { values[$0] == values.max() }
      let low = scale.value(at: 50), high = scale.value(at: 24_000)
      let row = (high - scale.value(at: hertz)) / (high - low) * 256
      let middle = Double(top[0] + top[top.count - 1] + 1) / 2
      #expect(abs(middle - row) <= Double(top.count) / 2 + 0.5, "\(hertz) Hz: \(middle) \(row)")
    }
  }

  @Test("white noise is flat within 1 dB", arguments: FrequencyScale.allCases)
  func whiteNoise(scale: FrequencyScale) throws {
    let found = try tile(of: TestSignals.noise(1 << 20, level: 0.1)) {
      ($0.resolution, $0.frequencyScale, $0.height, $0.minHz) = (.scale(4096), scale, 64, 100)
      ($0.minDB, $0.maxDB) = (-80, -20)
    }
    // The mean over 256 columns of 8 transforms; 4.25 steps per dB. A sine of the same power in one bin is 0 dB.
    let expected = 10 * log10(0.01 * 1.5 / 1024 * 8 / 3 * 0.75)
    for row in 0..<64 {
      let power = (1..<255).reduce(0.0) { $0 + pow(10, (Double(found.1[row * 256 + $1]) / 4.25 - 80) / 10) } / 254
      #expect(abs(10 * log10(power) - expected) < 1, "row \(row): \(10 * log10(power)) instead of \(expected)")
    }
  }

  @Test func powersEqualThoseOfAPlainReferenceInDoublePrecision() throws {
    let sound = TestSignals.sum(
      TestSignals.noise(20_000, level: 0.01),
      TestSignals.tone(20_000, hertz: 1234.5, sampleRate: 8000, amplitude: 0.2))
    let found = try tile(of: sound, rate: 8000) {
      ($0.resolution, $0.window, $0.frequencyScale, $0.height) = (.scale(128), 256, .linear, 128)
    }
    // 2 transforms per column, and rows as wide as a bin, between two bins.
    for column in [0, 1, 77, 155] {
      var power = [Double](repeating: 0, count: 129)
      for part in 0..<2 {
        let start = column * 128 + part * 64 - 128
        let samples = (0..<256).map { index -> Double in
          let place = start + index
          let sample = sound.indices.contains(place) ? Double(sound[place]) : 0
          return sample * (0.5 - 0.5 * cos(2 * .pi * Double(index) / 256))
        }
        for bin in power.indices {
          var real = 0.0, imaginary = 0.0
          for index in 0..<256 {
            let angle = 2 * Double.pi * Double(index * bin % 256) / 256
            real += samples[index] * cos(angle)
            imaginary += samples[index] * sin(angle)
          }
          power[bin] += (real * real + imaginary * imaginary) * 16 / 65_536 / 2
        }
      }
      for row in 0..<128 {
        let expected = 10 * log10((power[127 - row] + power[128 - row]) / 2)
        let level = Double(found.1[row * found.0.columnCount + column]) * 120 / 255 - 120
        #expect(abs(level - max(expected, -120)) < 0.1 + 60.0 / 255, "column \(column), row \(row)")
      }
    }
  }

  @Test("tiles join without a seam, whatever the pieces and what is skipped", arguments: [256, 2048])
  func seams(window: Int) throws {
    let sound = TestSignals.noise(2 * 300_000, level: 0.2)
    for (scale, channels) in [(64, ChannelSelection.mix), (2048, .split), (16_384, .channel(1)), (32_768, .mix)] {
      func query(_ query: inout SpectrogramQuery) {
        (query.resolution, query.window, query.channels, query.height) = (.scale(scale), window, channels, 30)
        if scale == 64 { query.end = 2 }
      }
      let whole = try tile(of: sound, channels: 2, query)
      let pieced = try tile(of: sound, channels: 2, piece: 77 * 64, joining: 1 << 20, query)
      #expect(whole.1 == pieced.1)
      if scale == 32_768, window == 256 { #expect(whole.read * 4 < pieced.read) }
      let middle = Double(whole.0.columnCount / 2 * scale) / 48_000
      let left = try tile(of: sound, channels: 2) {
        query(&$0); $0.end = middle
      }
      let right = try tile(of: sound, channels: 2) {
        query(&$0); $0.start = middle
      }
      #expect(left.0.columnCount + right.0.columnCount == whole.0.columnCount)
      #expect(right.0.startFrame == Int64(left.0.columnCount * scale))
      for column in 0..<whole.0.columnCount {
        let isLeft = column < left.0.columnCount
        let part = self.column(isLeft ? column : column - left.0.columnCount, of: isLeft ? left : right)
        #expect(self.column(column, of: whole) == part, "column \(column)")
      }
    }
  }

  @Test func aGrowingRecordingShowsOnlyColumnsThatStayAsTheyAre() throws {
    let sound = TestSignals.noise(100_000, level: 0.2)
    for scale in [64, 512, 4096] {
      let whole = try tile(of: sound) { $0.resolution = .scale(scale) }
      var shown = 0
      for available in [0, 1023, 1024, 30_000, 99_999] {
        let part = try tile(of: sound, available: available) { $0.resolution = .scale(scale) }
        #expect(part.0.columnCount >= shown)
        shown = part.0.columnCount
        for number in 0..<shown { #expect(column(number, of: part) == column(number, of: whole)) }
      }
      #expect(shown < whole.0.columnCount && shown * scale > 99_999 - 4096 - 1024)
    }
  }

  @Test func everySoundHasASpectrogram() throws {
    let rates = [8000, 44_100, 192_000, 768_000]
    for rate in rates {
      for sound in [[], [0.5], [Float](repeating: 0, count: 5000), [Float](repeating: 3e38, count: 5000)] {
        for scale in FrequencyScale.allCases {
          let found = try tile(of: sound, rate: rate) { $0.frequencyScale = scale }
          #expect(found.1.count == 256 * (sound.count + 63) / 64 / 256 * 256 || found.0.scale == 64)
          #expect(found.0.columnCount == (sound.count + 63) / 64)
          if sound.first == 0 { #expect(found.1.allSatisfy { $0 == 0 }) }
        }
      }
    }
    let many = TestSignals.noise(32 * 3000, level: 0.5)
    let split = try tile(of: many, channels: 32) { $0.channels = .split }
    let last = try tile(of: many, channels: 32) { ($0.channels, $0.height) = (.channel(31), 8) }
    #expect(split.1.suffix(8 * split.0.columnCount) == last.1[...])
  }

  @Test func invalidQueriesNameTheParameter() {
    func error(_ change: (inout SpectrogramQuery) -> Void) -> SpectrogramError? {
      var query = SpectrogramQuery()
      change(&query)
      let extent = SpectrogramExtent(
        sampleRate: 48_000, channels: 2, availableFrames: 1 << 30, length: 1 << 30, isComplete: true)
      do throws(SpectrogramError) { _ = try SpectrogramTile(query, of: extent) } catch { return error }
      return nil
    }
    #expect(error { _ in } == nil)
    #expect(error { $0.start = -1 } == .timeOutOfRange(parameter: "start", seconds: -1))
    #expect(error { ($0.start, $0.end) = (2, 2) } == .windowReversed(start: 2, end: 2))
    for scale in [0, 32, 100, 1 << 25] {
      let expected = SpectrogramError.notAPowerOfTwo(parameter: "scale", value: scale, lowest: 64, highest: 1 << 24)
      #expect(error { $0.resolution = .scale(scale) } == expected)
    }
    #expect(
      error { $0.window = 1000 } == .notAPowerOfTwo(parameter: "window", value: 1000, lowest: 256, highest: 16_384))
    #expect(error { $0.resolution = .scale(64) } == .tooManyColumns(count: 1 << 24, limit: 4096))
    #expect(error { $0.channels = .channel(2) } == .channelOutOfRange(channel: 2, channels: 2))
    #expect(
      error {
        ($0.resolution, $0.window) = (.width(4096), 16_384); $0.end = 3000
      } == nil)
    let ranges: [((inout SpectrogramQuery) -> Void, String, Double, Double, Double)] = [
      ({ $0.resolution = .width(4097) }, "width", 4097, 1, 4096), ({ $0.height = 0 }, "height", 0, 1, 2048),
      ({ ($0.height, $0.channels) = (1, .split) }, "height", 1, 2, 2048),
      ({ $0.minDB = -121 }, "min_db", -121, -120, -1),
      ({ ($0.minDB, $0.maxDB) = (-10, -10) }, "max_db", -10, -9, 0), ({ $0.maxDB = 1 }, "max_db", 1, -119, 0),
      ({ $0.minHz = -1 }, "min_hz", -1, 0, 23_999), ({ $0.maxHz = 24_001 }, "max_hz", 24_001, 1, 24_000),
      ({ ($0.minHz, $0.frequencyScale) = (0, .log) }, "min_hz", 0, 1, 23_999),
      ({ ($0.minHz, $0.maxHz) = (500, 500) }, "max_hz", 500, 501, 24_000),
    ]
    for (change, name, value, lowest, highest) in ranges {
      #expect(error(change) == .outOfRange(parameter: name, value: value, lowest: lowest, highest: highest), "\(name)")
    }
  }

  @Test func aTileSurvivesTheWayToTheReader() throws {
    var query = SpectrogramQuery()
    query.resolution = .scale(256)
    (query.start, query.frequencyScale, query.channels, query.minHz) = (1, .log, .channel(1), 33)
    let tile = try SpectrogramTile(
      query,
      of: SpectrogramExtent(
        sampleRate: 44_100, channels: 2, availableFrames: 200_000, length: 200_000, isComplete: true)
    ).ofFile(from: 4096)
    #expect(SpectrogramTile(words: tile.words) == tile)
    for index in tile.words.indices {
      var words = tile.words
      words[index] = .max
      #expect(SpectrogramTile(words: words) == nil, "word \(index)")
    }
  }
}
