/// The channels of a recording that a slice or a spectrogram shows.
package enum ChannelSelection: Sendable, Hashable {
  /// The mean of the channels, per frame.
  case mix
  /// Each channel.
  case split
  /// One channel, counted from 0.
  case channel(Int)

  /// −2 for the mix, −1 for each, or the channel's number.
  package var word: Int64 {
    switch self {
    case .mix: -2
    case .split: -1
    case .channel(let number): Int64(number)
    }
  }

  /// Creates a value from its number; nil if a sound with this many channels has none with it.
  package init?(word: Int64, channels: Int64) {
    switch word {
    case -2: self = .mix
    case -1: self = .split
    case 0..<channels: self = .channel(Int(word))
    default: return nil
    }
  }
}
