import HTTP
import Storage
import Synchronization
import Waveform

/// Finished slices, encoded as responses, because everyone who opens a recording requests the same first view.
///
/// They are ordinary bytes. Copying 22 KB to a socket together with the head takes less time than passing on
/// the pages of a memory file with a call of its own (by 1.7 µs; by 4 µs for 128 KB). A slice is stored with
/// its second request: most windows are requested only once, and would evict the others.
struct SliceTable: Sendable {
  /// Identifies a slice of a recording with a complete waveform.
  struct Key: TenantKey {
    var tenant: Tenant
    let recording: RecordingID
    let query: WaveformQuery
    let form: WaveformForm
    /// Whether `Accept` has chosen the form, not the path.
    let isNegotiated: Bool
    /// Computed once, because three tables look for each key. The tenant is compared, but not part of it: a recording
    /// is of one only.
    fileprivate let hash: Int

    init(
      tenant: Tenant, recording: RecordingID, query: WaveformQuery, form: WaveformForm, isNegotiated: Bool = false
    ) {
      (self.tenant, self.recording, self.query, self.form) = (tenant, recording, query, form)
      self.isNegotiated = isNegotiated
      var hasher = Hasher()
      hasher.combine(recording)
      hasher.combine(query)
      hasher.combine(form)
      hasher.combine(isNegotiated)
      hash = hasher.finalize()
    }

    func hash(into hasher: inout Hasher) { hasher.combine(hash) }
  }

  private let cache: Cache<Key, UInt64, Representation>
  private let requested = RequestedSlices()
  /// Longer ones are streams, or would soon evict all others.
  private static let longest = 128 * 1024
  /// The memory of an entry besides its content, measured. Otherwise, many small slices would exceed the limit.
  private static let overhead = 6 * 1024

  /// `limit` is the maximum number of bytes, including the overhead of each entry. `version` returns the version of a
  /// recording's row.
  init(limit: Int = 8 << 20, version: @escaping @Sendable (RecordingID) -> UInt64) {
    cache = Cache(
      limit: limit, cost: { Int($0.body.length ?? 0) + Self.overhead }, version: { version($0.recording) })
  }

  subscript(key: Key) -> Representation? { cache[key] }

  /// Returns the version of a slice. Call it before making the slice.
  func version(_ key: Key) -> UInt64 { cache.version(key) }

  /// Removes the slices of recordings that have changed or are gone.
  func removeOutdated() { cache.removeOutdated() }

  /// Remembers a request for a slice. Returns whether the slice was requested before, as far as is remembered.
  func noteRequest(_ key: Key) -> Bool { requested.add(key) }

  /// Stores a slice of a complete waveform, unless it's a stream, which can be read only once.
  func keep(_ slice: Representation, for key: Key, version: UInt64) {
    guard let count = slice.body.bytesAtHand?.count, count <= Self.longest else { return }
    cache.keep(slice, for: key, version: version)
  }
}

/// The hashes of the slices requested recently. A slice is forgotten when another one takes its place, and is mistaken
/// for another one with the same hash; either costs only time.
private final class RequestedSlices: Sendable {
  private static let count = 2048
  private let hashes = Mutex([Int](repeating: 0, count: count))

  /// Remembers a slice. Returns whether it was known.
  func add(_ key: SliceTable.Key) -> Bool {
    let hash = key.hash
    let place = Int(UInt(bitPattern: hash) % UInt(Self.count))
    return hashes.withLock { hashes in
      defer { hashes[place] = hash }
      return hashes[place] == hash
    }
  }
}
