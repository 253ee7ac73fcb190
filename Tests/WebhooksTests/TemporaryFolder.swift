import Foundation
import PresentRows
import Storage

/// A folder for one test, removed with its last reference.
final class TemporaryFolder: Sendable {
  let path = NSTemporaryDirectory() + "stillwave-webhooks-" + JobID().text

  init() throws {
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }
}
