/// What came of going through the folders.
package struct TendingReport: Sendable, Equatable {
  /// Damaged rows that were written again.
  package var corrected = 0
  /// Files of conversions that no row names, which were removed.
  package var removed = 0
}

extension Reconciliation {
  /// Removes the conversions in a recording's folder that no row names: a catalog that was rebuilt from the folders
  /// knows none of them, so nothing else would ever remove them. They can be made again from the recording. Returns how
  /// many.
  ///
  /// Beside a running service: the file of a conversion comes before its row, and its row before the end of its job,
  /// whose id is in the file's name. So the job is looked up first, and while it is unfinished its file stays.
  func removeLostConversions(among files: [String], of id: RecordingID) throws(StorageError) -> Int {
    var ended: [String] = []
    for file in files {
      guard let job = Self.converter(of: file) else { continue }
      if try catalog.job(job)?.state.isFinished ?? true { ended.append(file) }
    }
    guard !ended.isEmpty else { return 0 }
    let known = Set(try catalog.conversionFiles(of: id))
    let lost = ended.filter { !known.contains($0) }
    for file in lost { store.remove(file, of: id) }
    return lost.count
  }

  /// The job that made a conversion, by the name of its file: `converted-<job>.<format>`.
  private static func converter(of file: String) -> JobID? {
    guard file.hasPrefix("converted-"), let dot = file.lastIndex(of: ".") else { return nil }
    return JobID(String(file[..<dot].dropFirst("converted-".count)))
  }
}
