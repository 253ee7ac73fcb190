import Storage
import Synchronization
import Terms

/// Fetches the maps of sounds into a cache, each once, however many threads want it. Thread-safe; every call blocks.
///
/// Readers of a sound open its map by its path, and make it again if there is none. So it must never be there in part.
final class SoundMaps: Sendable {
  private enum Search: Sendable {
    case underWay(SharedTask)
    case failed(until: Clock.Instant)
  }

  /// The room for a map whose length is known.
  private final class Reserved: Sendable {
    let value = Mutex<BlockCache.Room?>(nil)
  }

  private enum Step: Sendable {
    case giveUp
    case wait(SharedTask)
    case fetch(SharedTask)
  }

  /// How long a map isn't looked for after it wasn't found.
  private static let pause = Duration.seconds(600)
  /// How long a map isn't looked for after the store failed or the disk was full.
  private static let shortPause = Duration.seconds(30)

  private let client: S3Client
  private let cache: BlockCache
  /// Maximum number of failed searches that are remembered.
  private let limit: Int
  /// By map. Those that succeeded are in the cache.
  private let searches = Mutex<[ObjectKey: Search]>([:])

  /// Creates one that remembers at most about `limit` missing maps.
  init(_ client: S3Client, cache: BlockCache, limit: Int = 10_000) {
    (self.client, self.cache, self.limit) = (client, cache, limit)
  }

  /// Returns the map of a sound; nil if there is none, or if it can't be fetched now.
  func map(of sound: ObjectKey) -> LocalFile? {
    let key = sound.map
    while true {
      if let file = cache.fileAtHand(key) { return file }
      switch nextStep(key) {
      case .giveUp: return nil
      case .wait(let task): _ = try? task.wait()
      case .fetch(let task):
        let (file, pause) = search(for: key)
        let until = client.clock.now + pause
        searches.withLock { $0[key] = file == nil ? .failed(until: until) : nil }
        task.finish(.done)
        return file
      }
    }
  }

  private func nextStep(_ key: ObjectKey) -> Step {
    let now = client.clock.now
    return searches.withLock { searches in
      switch searches[key] {
      case .underWay(let task): return .wait(task)
      case .failed(let until) where now < until: return .giveUp
      default: break
      }
      if searches.count >= limit { Self.forgetSome(of: &searches, now) }
      let task = SharedTask(asksStore: true)
      searches[key] = .underWay(task)
      return .fetch(task)
    }
  }

  /// Forgets the failed searches that may be repeated; if those are few, the others, too.
  private static func forgetSome(of searches: inout [ObjectKey: Search], _ now: Clock.Instant) {
    let enough = searches.count * 3 / 4
    for isOver in [true, false] where searches.count > enough {
      searches = searches.filter { _, search in
        guard case .failed(let until) = search else { return true }
        return isOver && now < until
      }
    }
  }

  /// Returns a map, or how long not to look for it.
  private func search(for key: ObjectKey) -> (LocalFile?, pause: Duration) {
    if cache.has(key), let file = try? cache.file(key) { return (file, .zero) }
    // A sound that is here must not wait for a store that doesn't answer.
    guard !client.isFailing else { return (nil, Self.shortPause) }
    do { return (try fetched(key), Self.pause) } catch {
      return (nil, error == .noSuchKey ? Self.pause : Self.shortPause)
    }
  }

  /// Fetches a map. Returns nil if it is damaged or can't be kept.
  private func fetched(_ key: ObjectKey) throws(S3Error) -> LocalFile? {
    let path = cache.incomingPath()
    defer { try? FileSystem.remove(path) }
    let room = Reserved()
    defer { withExtendedLifetime(room) {} }
    let info = try client.get(key.description, into: path) { [cache] bytes in
      guard let reserved = try? cache.reserve(bytes) else { return false }
      room.value.withLock { $0 = reserved }
      return true
    }
    // No row says what it must be. It was put with its SHA-256.
    guard let digests = try? FileDigests(of: path), info.sha256 == digests.sha256 else { return nil }
    let version = CachedVersion(bytes: info.bytes, entityTag: info.entityTag, sha256: digests.sha256)
    cache.insert(path, as: key, version, digests: digests.blocks)
    return cache.fileAtHand(key)
  }
}
