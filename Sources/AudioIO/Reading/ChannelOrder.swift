import Terms

// In memory, a frame's samples are always in WAV's order: left, right, center, low frequencies, back left and right,
// side left and right. Vorbis and Opus have another order (Vorbis I §4.3.9, RFC 7845 §5.1.1.2), which libsndfile passes
// on unchanged. Their encoders discard the high frequencies of the channel that they take for low frequencies: the
// fourth in WAV, the last in theirs.

/// The position of each channel of WAV's order in Vorbis's order.
struct ChannelOrder {
  private let places: [Int]
  private var frame: [Float]

  /// Fails if the codec uses WAV's order or none.
  init?(_ format: AudioFormat) {
    guard format.codec == .vorbis || format.codec == .opus else { return nil }
    switch format.channels {
    case 3: places = [0, 2, 1]
    case 5: places = [0, 2, 1, 3, 4]
    case 6: places = [0, 2, 1, 5, 3, 4]
    case 7: places = [0, 2, 1, 6, 5, 3, 4]
    case 8: places = [0, 2, 1, 7, 5, 6, 3, 4]
    default: return nil
    }
    frame = [Float](repeating: 0, count: places.count)
  }

  /// Converts whole frames from the codec's order to WAV's.
  mutating func fromCodec(_ samples: inout MutableSpan<Float>) {
    for start in stride(from: 0, to: samples.count, by: places.count) {
      for channel in places.indices { frame[channel] = samples[start + places[channel]] }
      for channel in places.indices { samples[start + channel] = frame[channel] }
    }
  }

  /// Converts whole frames from WAV's order to the codec's.
  mutating func toCodec(_ samples: inout MutableSpan<Float>) {
    for start in stride(from: 0, to: samples.count, by: places.count) {
      for channel in places.indices { frame[places[channel]] = samples[start + channel] }
      for channel in places.indices { samples[start + channel] = frame[channel] }
    }
  }
}
