/// How a node reads the waveform that a job is still writing, here or on another node. Thread-safe.
///
/// `MediaStore` has the folders of jobs, on this machine or shared by all. Without them, a node has a mirror of the
/// writing node's file.
package protocol GrowingWaveforms: Sendable {
  /// Returns the file that an attempt writes its waveform to; nil if this node can't reach it, so that only the job's
  /// progress is known. The file may not exist yet, or may have become an object meanwhile.
  ///
  /// Costs the making of a string in a folder; a mirror fetches what it lacks of the points that are ready.
  func growingWaveform(of token: AttemptToken) throws(StorageError) -> LocalFile?
}
