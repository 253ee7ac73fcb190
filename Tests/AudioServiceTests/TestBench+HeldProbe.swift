import Foundation

extension TestBench {
  /// A script whose probe waits to be released.
  static let heldProbe = "[ $command != probe ] || { echo > $folder/probing; read -r line < $folder/hold; }; finish"

  func holdProbe() throws { guard unsafe mkfifo(folder.path + "/hold", 0o600) == 0 else { throw POSIXError(.EIO) } }

  var isProbing: Bool { FileManager.default.fileExists(atPath: folder.path + "/probing") }

  /// Releases the probe once it waits, without blocking a thread.
  func releaseProbe() async throws { try await letThrough(folder.path + "/hold") }
}
