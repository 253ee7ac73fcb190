import Dispatch
import Glibc

/// Closes files in the background.
///
/// The last reference to a file may go on any thread, also on an event loop. If the file has no name any more, closing
/// it frees its space: 17 ms for 300 MB, 54 ms for 800 MB (ext4).
package enum FileClosing {
  /// Serial, so that it gets a thread even when others' work has taken all threads that concurrent queues share.
  package static let queue = DispatchQueue(label: "closing files")

  /// Closes a descriptor soon, without blocking.
  package static func close(_ descriptor: Int32) { queue.async { _ = Glibc.close(descriptor) } }
}
