import HTTP
import Storage
import Synchronization
import Waveform

/// Finished slices that were asked for lately: the first view of a recording is what everybody who opens it asks for.
///
/// Two halves: what is asked for goes to the young one; when that is full it becomes the old one, and the old one, which
/// nobody has asked for in the meantime, is let go.
final class SliceTable: Sendable {
  /// What names a slice of a recording whose waveform is whole.
  struct Key: Hashable, Sendable {
    var recording: RecordingID
    var query: WaveformQuery
    var form: WaveformForm
  }

  private struct State {
    var young: [Key: Representation] = [:]
    var old: [Key: Representation] = [:]
    var youngBytes = 0
  }

  private let state = Mutex(State())
  private let limit: Int
  /// Longer ones are streams, or would soon push out all others.
  private static let longest = 128 * 1024
  /// What an entry takes besides its content, measured: many small slices must not outgrow the limit.
  private static let overhead = 6 * 1024

  /// `limit`: bytes kept at the most, what an entry takes besides its content included.
  init(limit: Int = 8 << 20) { self.limit = limit }

  subscript(key: Key) -> Representation? {
    state.withLock { state in
      if let known = state.young[key] { return known }
      guard let known = state.old.removeValue(forKey: key) else { return nil }
      insert(known, for: key, into: &state)
      return known
    }
  }

  func keep(_ slice: Representation, for key: Key) {
    state.withLock { insert(slice, for: key, into: &$0) }
  }

  private func insert(_ slice: Representation, for key: Key, into state: inout State) {
    guard case .bytes(let bytes) = slice.body, bytes.count <= Self.longest else { return }
    let cost = bytes.count + Self.overhead
    if state.youngBytes + cost > limit / 2 { state = State(old: state.young) }
    state.young[key] = slice
    state.youngBytes += cost
  }
}
