import Foundation
import Storage

/// A folder for one test, removed with its last reference.
package final class TemporaryFolder: Sendable {
  package let path = NSTemporaryDirectory() + "stillwave-test-" + JobID().text

  package init() throws {
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// Returns the path of something in the folder.
  package func callAsFunction(_ name: String) -> String { path + "/" + name }

  /// Writes a file and returns its path.
  package func file(_ name: String, _ bytes: [UInt8]) throws -> String {
    try Data(bytes).write(to: URL(fileURLWithPath: self(name)))
    return self(name)
  }

  /// Returns a file's content; nil if there is none.
  package func contents(_ name: String) -> [UInt8]? { FileManager.default.contents(atPath: self(name)).map(Array.init) }

  /// Returns the paths of all files in the folder and of its empty folders, sorted.
  package func contents(of folder: String = "") throws -> [String] {
    try FileManager.default.subpathsOfDirectory(atPath: self(folder)).sorted()
  }
}
