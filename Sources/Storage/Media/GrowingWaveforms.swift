/// How a node reads the waveform that a job is still writing, here or on another node. Thread-safe.
///
/// `MediaStore` has the folders of jobs, on this machine or shared by all. If each node has its own
/// (`OwnGrowingWaveforms`), the others know only a job's progress, and have the node that writes it answer for them.
package protocol GrowingWaveforms: Sendable {
  /// Returns the file that an attempt writes its waveform to; nil if this node can't reach it, so that only the job's
  /// progress is known. The file may not exist yet, or may have become an object meanwhile.
  ///
  /// Costs the making of a string in a folder.
  func growingWaveform(of token: AttemptToken) throws(StorageError) -> LocalFile?
}
