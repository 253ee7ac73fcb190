import Foundation
import PresentRows
import Storage

/// A folder for one test, removed with its last reference.
final class TemporaryFolder: Sendable {
  let path = NSTemporaryDirectory() + "stillwave-s3-" + JobID().text

  init() throws {
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// Writes a file and returns its path.
  func file(_ name: String, _ bytes: [UInt8]) throws -> String {
    try Data(bytes).write(to: URL(fileURLWithPath: path + "/" + name))
    return path + "/" + name
  }

  func contents(_ name: String) -> [UInt8]? { FileManager.default.contents(atPath: path + "/" + name).map(Array.init) }
}
