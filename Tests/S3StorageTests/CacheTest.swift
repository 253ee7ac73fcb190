import Foundation
import ObjectStore
import PresentRows
import Storage

@testable import S3Storage

/// A store and a cache of it in a temporary folder.
struct CacheTest: Sendable {
  static let block = CachedVersion.blockBytes
  let test: TestStore
  let folder: TemporaryFolder

  init(_ change: (inout S3Settings) -> Void = { _ in }) throws {
    test = try TestStore(change)
    folder = try TemporaryFolder()
  }

  var store: S3Server { test.store }
  var directory: String { folder.path + "/cache" }

  /// Opens the cache as a process does that has just started.
  func cache(
    limit: Int64 = .max, in directory: String? = nil, patience: Duration = .seconds(2), spare: Int64 = 0,
    freeBytes: (@Sendable () -> Int64)? = nil,
    expecting: @escaping @Sendable (ObjectKey) throws(StorageError) -> ExpectedObject? = { _ throws(StorageError) in nil
    }
  ) throws -> BlockCache {
    try BlockCache(
      directory: directory ?? self.directory, limitBytes: limit, spareBytes: spare, client: test.client,
      patience: patience, freeBytes: freeBytes, expecting: expecting)
  }

  /// Stores an object as other nodes do. Returns its key.
  func put(_ bytes: [UInt8], _ name: String = "waveform-1.pyramid") async throws -> ObjectKey {
    let key = ObjectKey(RecordingID(), name)
    try await test.blocking { try $0.put(bytes, as: "\(key)") }
    return key
  }

  func blocking<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await test.blocking { _ in try body() }
  }

  /// The requests since the first `count`, as "HEAD" or the first and last byte of the range.
  func requests(after count: Int = 0) -> [String] {
    store.received.dropFirst(count).filter { $0.method != "PUT" }.map { request in
      request.range.map { String($0.dropFirst("bytes=".count)) } ?? request.method
    }
  }

  /// The file with an object, or with the part of it that is there.
  func objectPath(_ key: ObjectKey) -> String {
    let part = "\(directory)/objects/part.\(key.recording).\(key.name)"
    return Self.exists(part) ? part : "\(directory)/objects/\(key.recording).\(key.name)"
  }

  func indexPath(_ key: ObjectKey) -> String { "\(directory)/indexes/\(key.recording).\(key.name)" }

  /// Copies the cache's folder as it is. Returns the copy's path.
  func copy(_ name: String) throws -> String {
    let copy = "\(folder.path)/\(name)"
    try FileManager.default.copyItem(atPath: directory, toPath: copy)
    return copy
  }

  static func contents(_ path: String) -> [UInt8]? { FileManager.default.contents(atPath: path).map(Array.init) }

  static func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }

  /// Changes a file as a disk does that has lost some of what was written.
  static func change(_ path: String, _ body: (inout [UInt8]) -> Void) throws {
    var bytes = contents(path) ?? []
    body(&bytes)
    try Data(bytes).write(to: URL(fileURLWithPath: path))
  }
}

/// A small disk in memory.
final class TestDisk: Sendable {
  /// Whether this process may mount one: only root may, and not in every container.
  static let isAllowed =
    (try? TemporaryFolder()).map { folder in (try? TestDisk(at: folder.path + "/disk", bytes: 4096)) != nil } ?? false

  private let path: String

  /// Makes the folder `path` and mounts the disk there.
  init(at path: String, bytes: Int) throws {
    self.path = path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    guard Self.run("mount", "-t", "tmpfs", "-o", "size=\(bytes)", "none", path) else { throw POSIXError(.EPERM) }
  }

  // Lazily, because the cache has files open.
  deinit { _ = Self.run("umount", "-l", path) }

  private static func run(_ program: String, _ arguments: String...) -> Bool {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/\(program)")
    process.arguments = arguments
    process.standardError = FileHandle.nullDevice
    guard (try? process.run()) != nil else { return false }
    process.waitUntilExit()
    return process.terminationStatus == 0
  }
}
