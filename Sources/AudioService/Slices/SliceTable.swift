import HTTP
import Storage
import Synchronization
import Waveform

/// Finished slices that were asked for lately: the first view of a recording is what everybody who opens it asks for.
///
/// Two halves: what is asked for goes to the young one; when that is full it becomes the old one, and the old one,
/// which nobody has asked for in the meantime, is let go. Slices of usual size lie in a file in memory, one for each
/// half: their bytes go from there to the sockets without being copied, a tenth of the time that such an answer takes.
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
    var youngFile = MemoryFile()
    /// How often something was forgotten: what was made before is not kept after.
    var forgotten: UInt64 = 0
  }

  private let state = Mutex(State())
  private let limit: Int
  /// Longer ones are streams, or would soon push out all others.
  private static let longest = 128 * 1024
  /// To hand over the pages of a file is a system call of its own; shorter slices are copied faster.
  private static let shortestInFile = 8 * 1024
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

  /// To be read before a slice is made that is to be kept.
  var forgotten: UInt64 { state.withLock { $0.forgotten } }

  func keep(_ slice: Representation, for key: Key, unlessForgottenSince before: UInt64) {
    state.withLock { state in
      if state.forgotten == before { insert(slice, for: key, into: &state) }
    }
  }

  /// The recording is gone, or its waveform.
  func forget(_ id: RecordingID) {
    state.withLock { state in
      state.young = state.young.filter { $0.key.recording != id }
      state.old = state.old.filter { $0.key.recording != id }
      state.forgotten += 1
    }
  }

  /// A slice that comes from the old half is copied, so that the old one's file can go.
  private func insert(_ slice: Representation, for key: Key, into state: inout State) {
    // A stream is read once.
    guard let bytes = slice.body.bytesAtHand, bytes.count <= Self.longest else { return }
    let cost = bytes.count + Self.overhead
    if state.youngBytes + cost > limit / 2 { state = State(old: state.young, forgotten: state.forgotten) }
    var slice = slice
    if bytes.count >= Self.shortestInFile, let kept = state.youngFile.append(bytes) {
      slice.body = .file(kept)
    }
    state.young[key] = slice
    state.youngBytes += cost
  }
}
