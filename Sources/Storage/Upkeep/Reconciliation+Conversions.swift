/// The result of tending the folders.
package struct TendingReport: Sendable, Equatable {
  /// Number of damaged rows that were corrected.
  package var corrected = 0
  /// Number of conversion files removed because no row names them.
  package var removed = 0
}

extension Reconciliation {
  /// Removes the conversions in a recording's folder that no row names. A catalog rebuilt from the folders doesn't list
  /// them, so nothing else would ever remove them, and they can be made again from the recording. Returns their number.
  ///
  /// This is safe while a service is running: a conversion's file is created before its row, and its row before the end
  /// of its job, whose ID is in the file's name. So the job is looked up first, and its file stays while the job is
  /// unfinished.
  func removeLostConversions(among files: [String], of id: RecordingID) throws(StorageError) -> Int {
    var ended: [String] = []
    for file in files {
      guard let job = Self.converter(of: file) else { continue }
      if try catalog.job(job)?.state.isFinished ?? true { ended.append(file) }
    }
    guard !ended.isEmpty else { return 0 }
    let known = Set(try catalog.conversionFiles(of: id))
    let lost = ended.filter { !known.contains($0) }
    let blobs = Blobs(store, of: catalog)
    for file in lost { blobs.delete(ObjectKey(id, file)) }
    return lost.count
  }

  /// Returns the job that made a conversion, from its file's name: `converted-<job>-<attempt>-<nonce>.<format>`.
  private static func converter(of file: String) -> JobID? {
    guard file.hasPrefix("converted-"), file.contains(".") else { return nil }
    let rest = file.dropFirst("converted-".count)
    return rest.dropFirst(36).first == "-" ? JobID(String(rest.prefix(36))) : nil
  }
}
