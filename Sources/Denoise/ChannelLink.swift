/// Which channels share one gain for each bin.
package enum ChannelLink: String, Codable, Sendable, CaseIterable {
  /// All of them, which keeps the image of a stereo recording.
  case all
  /// Those that are left and right of each other, by their position. Center and low frequencies are on their own.
  case pairs
  /// None: microphones that are independent.
  case none

  /// Creates the default: all of one or two channels, pairs of more.
  package init(channels: Int) { self = channels > 2 ? .pairs : .all }

  /// Returns the channels of each group, in ascending order.
  ///
  /// Positions follow from the number of channels, in WAV's order: left, right, center, low frequencies, then pairs; 4
  /// are two pairs, 5 lack low frequencies, 7 have a back center. More than 8, whose positions aren't known, are pairs
  /// of neighbors.
  package func groups(of channels: Int) -> [[Int]] {
    switch self {
    case .all: [Array(0..<channels)]
    case .none: (0..<channels).map { [$0] }
    case .pairs:
      switch channels {
      case 3: [[0, 1], [2]]
      case 5: [[0, 1], [2], [3, 4]]
      case 6: [[0, 1], [2], [3], [4, 5]]
      case 7: [[0, 1], [2], [3], [4], [5, 6]]
      case 8: [[0, 1], [2], [3], [4, 5], [6, 7]]
      default: stride(from: 0, to: channels, by: 2).map { Array($0..<min($0 + 2, channels)) }
      }
    }
  }
}
