import Glibc
import Storage
import Synchronization

/// What the cache has of one object, and how it gets the rest. Thread-safe; every call that throws blocks.
final class CachedObject: Sendable {
  private enum BlockState: Sendable {
    case absent
    /// An earlier process has recorded a digest of it.
    case claimed
    /// A thread fetches or verifies it.
    case underWay
    case present
  }

  private enum Step: Sendable {
    case nothing
    /// Some can only be had from the store.
    case lack
    case wait(SharedTask)
    case verify(Range<Int>, SharedTask)
    case fetch(Range<Int>, SharedTask)
  }

  private struct Blocks: Sendable {
    var states: [BlockState]
    /// By block, for those under way.
    var tasks: [Int: SharedTask] = [:]
    var isWhole = false
    var check: SharedTask?
    /// The SHA-256 of the last whole that wasn't the object, and how many have had it in a row.
    var wrong: (digest: String, count: Int)?
  }

  /// Maximum number of blocks in one request: 4 MiB, so that the request itself takes little of the time.
  private static let runLimit = 64
  /// The largest gap between wanted blocks that is fetched along with them, in blocks: a second request would take
  /// longer.
  private static let gapLimit = 4

  let key: ObjectKey
  let version: CachedVersion
  /// Where the whole object is, once it is published.
  let path: String
  private let partPath: String
  private let indexPath: String
  /// The file's inode when it was created or found.
  private let inode: ino_t
  private let blocks: Mutex<Blocks>
  private let blockBytes: Atomic<Int64>
  /// How many bytes of the disk its file took when that was measured last: more than its blocks if some turned out to
  /// be wrong, or if there was room only for a part of some.
  private let fileBytes: Atomic<Int64>
  private let isRetired = Atomic(false)
  private let hasPath: Atomic<Bool>
  private let isLeft = Atomic(false)

  /// Describes the files of an object of which a part may be there, in the file at `partPath`.
  init(_ key: ObjectKey, path: String, partPath: String, index: BlockIndex) throws(StorageError) {
    (self.key, self.path, self.partPath, indexPath) = (key, path, partPath, index.file.path)
    version = index.version
    hasPath = Atomic(false)
    let status = Self.status(of: partPath)
    inode = status?.st_ino ?? 0
    fileBytes = Atomic(status.map(Self.bytesOnDisk) ?? 0)
    let (table, count) = (try index.table(), index.version.blockCount)
    let states = (0..<count).map { block in
      let digest = table[block * BlockIndex.digestBytes..<(block + 1) * BlockIndex.digestBytes]
      return digest.allSatisfy { $0 == 0 } ? BlockState.absent : .claimed
    }
    let version = version
    let claimed = states.indices.filter { states[$0] == .claimed }
    blockBytes = Atomic(claimed.reduce(0) { $0 + Int64(version.range(of: $1..<$1 + 1).count) })
    blocks = Mutex(Blocks(states: states))
  }

  /// Describes a file that has the whole object, as this process has just found.
  init(whole key: ObjectKey, path: String, indexPath: String, _ version: CachedVersion) {
    (self.key, self.path, partPath, self.indexPath) = (key, path, path, indexPath)
    self.version = version
    hasPath = Atomic(true)
    inode = Self.status(of: path)?.st_ino ?? 0
    blockBytes = Atomic(version.bytes)
    fileBytes = Atomic(0)
    blocks = Mutex(Blocks(states: Array(repeating: .present, count: version.blockCount), isWhole: true))
  }

  deinit {
    guard isLeft.load(ordering: .relaxed) else { return }
    Self.paths.withLock { _ in
      // Unless it is another object's by now.
      if Self.status(of: path)?.st_ino == inode { try? FileSystem.remove(path) }
    }
  }

  /// Locked while a file becomes an object's, and while one that was left is compared and removed.
  private static let paths = Mutex(())

  /// Makes a file that of an object, in place of one that may have been left there.
  static func move(_ source: String, to path: String) throws(StorageError) {
    try paths.withLock { _ throws(StorageError) in try FileSystem.rename(source, to: path) }
  }

  /// About how many bytes of the disk it takes.
  var cost: Int64 { Self.pages(takenBytes) + Self.pages(BlockIndex.length(for: version)) }

  private static func pages(_ bytes: Int64) -> Int64 { (bytes + 4095) / 4096 * 4096 }

  /// How many bytes of the disk its file takes: a file system may count late what was written.
  private var takenBytes: Int64 { max(blockBytes.load(ordering: .relaxed), fileBytes.load(ordering: .relaxed)) }

  private static func bytesOnDisk(_ status: stat) -> Int64 { Int64(status.st_blocks) * 512 }

  /// Looks how much of the disk its file takes.
  func measure() {
    guard let status = Self.status(of: isPublished ? path : partPath), status.st_ino == inode else { return }
    fileBytes.store(Self.bytesOnDisk(status), ordering: .relaxed)
  }

  /// How many bytes of the object aren't in the file.
  var missingBytes: Int64 { max(0, version.bytes - blockBytes.load(ordering: .relaxed)) }

  /// How many bytes of these blocks aren't in the file.
  func missingBytes(of wanted: Set<Int>) -> Int64 {
    blocks.withLock { blocks in
      wanted.reduce(0) { $0 + (blocks.states[$1] == .present ? 0 : Int64(length(of: $1))) }
    }
  }

  /// How many bytes its file takes beside the blocks that are there: of blocks that are being written, or that were
  /// wrong and will be written over.
  var uncountedBytes: Int64 { takenBytes - blockBytes.load(ordering: .relaxed) }

  /// How many bytes its file may still grow by.
  var lackingBytes: Int64 { max(0, version.bytes - takenBytes) }

  /// Whether the file is the whole object, and at its path.
  var isPublished: Bool { hasPath.load(ordering: .acquiring) }

  /// Whether the store has given the same wrong bytes twice. Those that a connection damages differ each time.
  var isDamaged: Bool { blocks.withLock { $0.wrong.map { $0.count > 1 } ?? false } }

  /// Whether the file is still the one that the cache has made: another program may have emptied the folder. Costs a
  /// system call.
  var isThere: Bool {
    // It may be published meanwhile.
    guard let status = (isPublished ? nil : Self.status(of: partPath)) ?? Self.status(of: path) else { return false }
    return status.st_ino == inode && Int64(status.st_size) == version.bytes
  }

  private static func status(of path: String) -> stat? {
    var status = stat()
    return unsafe stat(path, &status) == 0 ? status : nil
  }

  /// From now on, the files belong to another object, or are gone. Call this before they are replaced or removed.
  func retire() { isRetired.store(true, ordering: .sequentiallyConsistent) }

  /// Leaves the file at its path to those who hold the object: the last one removes it, unless another object has
  /// replaced it. Call this only if the object is published.
  func leave() { isLeft.store(true, ordering: .relaxed) }

  /// Gives the whole object its path. Call this only while no other thread creates or removes the object's files.
  func publish() throws(StorageError) {
    guard !isPublished else { return }
    guard isThere else { throw .changedMeanwhile }
    try Self.move(partPath, to: path)
    hasPath.store(true, ordering: .releasing)
  }

  /// Opens the object's file. What is open stays the object's, whatever takes its place.
  private func openFile(_ flags: Int32) throws(StorageError) -> BlockFile {
    // It may be published meanwhile.
    for place in isPublished ? [path] : [partPath, path] {
      let file: BlockFile
      do throws(StorageError) { file = try BlockFile(path: place, flags: flags) } catch {
        if case .io(_, _, ENOENT) = error { continue }
        throw error
      }
      guard try file.inode() == inode, !isRetired.load(ordering: .sequentiallyConsistent) else { break }
      return file
    }
    throw .changedMeanwhile
  }

  /// Returns bytes that `fill` has made sure of. Throws `.changedMeanwhile` if the object was replaced or removed.
  func read(_ ranges: [Range<Int64>]) throws(StorageError) -> [[UInt8]] {
    let file = try openFile(O_RDONLY)
    return try ranges.map { (range) throws(StorageError) in
      let bytes = try file.read(range.count, at: range.lowerBound)
      // Something else than this program has changed the file.
      guard bytes.count == range.count else { throw .changedMeanwhile }
      return bytes
    }
  }

  /// Returns the blocks that ranges are in, as far as they aren't present, in runs of a request each.
  func missingRuns(of ranges: [Range<Int64>]) -> [Range<Int>] {
    let wanted = ranges.filter { !$0.isEmpty }.map { version.blocks(of: $0) }.sorted { $0.lowerBound < $1.lowerBound }
    return blocks.withLock { blocks in
      var runs: [Range<Int>] = []
      for block in wanted.joined() where blocks.states[block] != .present {
        if let last = runs.last, block < last.lowerBound + Self.runLimit, block <= last.upperBound + Self.gapLimit {
          runs[runs.count - 1] = last.lowerBound..<max(last.upperBound, block + 1)
        } else {
          runs.append(block..<block + 1)
        }
      }
      return runs
    }
  }

  /// Gets the blocks among `wanted` that are missing, and returns how many bytes it has fetched. Blocks that other
  /// threads are getting are waited for.
  @discardableResult
  func fill(_ wanted: Range<Int>, from client: S3Client) throws(StorageError) -> Int64 {
    var fetched: Int64 = 0
    while true {
      switch blocks.withLock({ Self.nextStep(in: wanted, &$0) }) {
      case .nothing, .lack: return fetched
      case .wait(let task): _ = try task.wait()
      case .verify(let run, let task): try verify(run, task)
      case .fetch(let run, let task):
        try settle(run, task) { () throws(StorageError) in
          try fetch(run, from: client)
          fetched += Int64(version.range(of: run).count)
          return Array(repeating: true, count: run.count)
        }
      }
    }
  }

  /// Whether the file has all blocks that ranges are in. Compares those that an earlier process has left with their
  /// digests, and waits for other threads that do so, but not for those that fetch.
  func isAtHand(_ ranges: [Range<Int64>]) -> Bool {
    for range in ranges where !range.isEmpty {
      let wanted = version.blocks(of: range)
      var isKnown = false
      while !isKnown {
        do throws(StorageError) {
          switch blocks.withLock({ Self.nextStep(in: wanted, fetching: false, &$0) }) {
          case .nothing: isKnown = true
          case .wait(let task): _ = try task.wait()
          case .verify(let run, let task): try verify(run, task)
          case .fetch, .lack: return false
          }
        } catch {
          return false
        }
      }
    }
    return true
  }

  /// Returns what to do next for the blocks in `wanted`, and marks those as under way. Without `fetching`, leaves those
  /// alone that are absent or being fetched, and returns `.lack`.
  private static func nextStep(in wanted: Range<Int>, fetching: Bool = true, _ blocks: inout Blocks) -> Step {
    guard let first = wanted.first(where: { blocks.states[$0] != .present }) else { return .nothing }
    if let task = blocks.tasks[first] { return fetching || !task.asksStore ? .wait(task) : .lack }
    let state = blocks.states[first]
    guard fetching || state == .claimed else { return .lack }
    let limit = min(wanted.upperBound, first + runLimit)
    let run = first..<((first..<limit).first { blocks.states[$0] != state } ?? limit)
    let task = SharedTask(asksStore: state == .absent)
    for block in run {
      blocks.states[block] = .underWay
      blocks.tasks[block] = task
    }
    return state == .claimed ? .verify(run, task) : .fetch(run, task)
  }

  private func verify(_ run: Range<Int>, _ task: SharedTask) throws(StorageError) {
    try settle(run, task) { () throws(StorageError) in
      do throws(StorageError) { return try verified(run) } catch {
        count(-version.range(of: run).count)
        throw error
      }
    }
  }

  /// Performs a task, which returns for each block of `run` whether the file has it.
  private func settle(
    _ run: Range<Int>, _ task: SharedTask, _ work: () throws(StorageError) -> [Bool]
  ) throws(StorageError) {
    let outcome = Result(catching: work)
    let found = (try? outcome.get()) ?? Array(repeating: false, count: run.count)
    blocks.withLock { blocks in
      for (block, isPresent) in zip(run, found) {
        blocks.states[block] = isPresent ? .present : .absent
        blocks.tasks[block] = nil
      }
    }
    if case .failure(let error) = outcome { task.finish(.failed(error)) } else { task.finish(.done) }
    _ = try outcome.get()
  }

  /// Compares blocks with the digests that an earlier process recorded.
  private func verified(_ run: Range<Int>) throws(StorageError) -> [Bool] {
    let range = version.range(of: run)
    let bytes = try openFile(O_RDONLY).read(range.count, at: range.lowerBound)
    let expected = try openIndex().digests(of: run)
    let found = CachedVersion.digests(of: bytes)
    let results = run.indices.map { block in
      let place = (block - run.lowerBound) * BlockIndex.digestBytes
      return found.dropFirst(place).prefix(BlockIndex.digestBytes)
        .elementsEqual(expected[place..<place + BlockIndex.digestBytes])
    }
    for (block, isRight) in zip(run, results) where !isRight { count(-length(of: block)) }
    return results
  }

  private func length(of block: Int) -> Int { version.range(of: block..<block + 1).count }

  private func fetch(_ run: Range<Int>, from client: S3Client) throws(StorageError) {
    let range = version.range(of: run)
    let tag = version.entityTag.isEmpty ? nil : version.entityTag
    // Open meanwhile, so that no block comes into the files of another version.
    let (file, index) = (try openFile(O_WRONLY), try openIndex())
    let bytes: [UInt8]
    do throws(S3Error) {
      bytes = try client.get(key.description, range, entityTag: tag, of: version.bytes)
      guard bytes.count == range.count else { throw .malformedAnswer(what: "length") }
    } catch {
      // Not the object that was begun.
      if error == .changed || error == .noSuchKey { throw .changedMeanwhile }
      throw StorageError(error)
    }
    // The digest comes last: until it is there, the block isn't.
    try file.write(bytes, at: range.lowerBound)
    try index.write(CachedVersion.digests(of: bytes), from: run.lowerBound)
    count(bytes.count)
  }

  /// What a comparison of all blocks with the object has found.
  enum Finding: Sendable {
    case whole
    /// They are something else, and are forgotten.
    case wrong
    /// Some are missing, as after another thread has found them wrong.
    case incomplete
  }

  /// Makes sure that all blocks together are the object. Reads the file, unless this or an earlier process has done so
  /// before.
  func check() throws(StorageError) -> Finding {
    while true {
      let (known, current, own) = blocks.withLock { blocks -> (Finding?, SharedTask?, SharedTask) in
        let own = SharedTask()
        if blocks.isWhole { return (.whole, nil, own) }
        guard blocks.states.allSatisfy({ $0 == .present }) else { return (.incomplete, nil, own) }
        let current = blocks.check
        if current == nil { blocks.check = own }
        return (nil, current, own)
      }
      if let known { return known }
      if let current {
        if try !current.wait() { return .wrong }
        continue
      }
      let outcome = Result { () throws(StorageError) in try wrongDigest() }
      blocks.withLock { blocks in
        blocks.check = nil
        switch outcome {
        case .success(nil): (blocks.isWhole, blocks.wrong) = (true, nil)
        case .success(let digest?):
          let isAgain = blocks.wrong?.digest == digest
          blocks.wrong = (digest, isAgain ? (blocks.wrong?.count ?? 0) + 1 : 1)
          for block in blocks.states.indices where blocks.states[block] == .present {
            blocks.states[block] = .absent
            count(-length(of: block))
          }
        case .failure: break
        }
      }
      switch outcome {
      case .success(nil): own.finish(.done)
      case .success: own.finish(.absent)
      case .failure(let error): own.finish(.failed(error))
      }
      return try outcome.get() == nil ? .whole : .wrong
    }
  }

  /// Returns the SHA-256 of the whole file if the object has another one, and forgets its blocks on the disk; nil if it
  /// is the object.
  private func wrongDigest() throws(StorageError) -> String? {
    let index = try openIndex()
    if try index.isSealed() { return nil }
    if let expected = version.sha256 {
      let file = try openFile(O_RDONLY)
      var digest = SHA256()
      var offset: Int64 = 0
      while offset < version.bytes {
        let bytes = try file.read(Int(min(1 << 20, version.bytes - offset)), at: offset)
        guard !bytes.isEmpty else { break }
        digest.update(bytes.span)
        offset += Int64(bytes.count)
      }
      let found = digest.hexDigest()
      guard found == expected else {
        try index.clear()
        return found
      }
    }
    try index.seal()
    return nil
  }

  private func openIndex() throws(StorageError) -> BlockIndex {
    let index = try BlockIndex(opening: indexPath)
    // Or something else than this program has removed or changed the index.
    guard !isRetired.load(ordering: .sequentiallyConsistent), let index, index.version == version else {
      throw .changedMeanwhile
    }
    return index
  }

  private func count(_ bytes: Int) { blockBytes.add(Int64(bytes), ordering: .relaxed) }
}
