import Storage
import Terms
import Workers

extension HeldWrite {
  /// A sentence for operators.
  var words: String {
    "A write has held the catalog for \(Words.seconds(seconds)) s, so that others wait: \(kind), in “\(statement)”."
  }
}

/// The findings that `/readyz` reports for a person to look at, although the service can take work.
enum ReadinessWarning {
  /// All current warnings. Blocks.
  static func all(_ context: Context) -> [Warning] {
    let report = context.startReport
    var warnings = [fence(context.configuration)].compactMap(\.self)
    func add(_ code: String, if isFound: Bool, _ detail: @autoclosure () -> String) {
      if isFound { warnings.append(Warning(code: code, detail: detail())) }
    }
    let orphans = context.media.orphanCount
    add(
      "orphaned_files", if: orphans > 0,
      """
      The data folder's folder “orphaned” contains \(orphans) folders or uploads that nothing explains. Look at them: \
      they may be recordings. Move them away or remove them to clear this warning.
      """)
    add(
      "unreadable_rows", if: report.unreadable > 0,
      """
      The catalog has \(report.unreadable) recordings whose rows can't be read. Run “stillwave check”, or restore a \
      backup.
      """)
    add(
      "media_full", if: context.media.bucket?.store.isFull ?? false,
      "The bucket with the recordings, or its quota, is full: uploads are refused, and no job begins.")
    add(
      "catalog_unverified", if: report.isUnverified,
      "The catalog could not be checked within ten seconds at the start, so nothing was tidied up.")
    add(
      "feed_interrupted", if: context.feed.map { $0.ageSeconds.map { $0 > 5 } ?? true } ?? false,
      """
      The feed of other nodes' changes is interrupted, so rows are read again for every request, and progress on other \
      nodes isn't shown.
      """)
    if let doubt = context.catalogClock.doubt {
      add(
        "clock_doubtful", if: true,
        """
        The catalog's clock may be wrong: \(DeletionClock.words(for: doubt)). Until it is right, or for a day at most \
        after a jump, nothing is deleted because of its age.
        """)
    }
    if let write = context.writeWatch.current { add("catalog_busy", if: true, write.words) }
    let altered = context.scrub.alteredCount
    add(
      Scrub.code, if: altered > 0,
      """
      The files of \(altered) recordings have changed on the disk. “stillwave check” lists them. Restore them from a \
      backup, and look at the disk.
      """)
    return warnings
  }

  /// The parts of the fence that are missing here.
  static func fence(_ configuration: Configuration) -> Warning? {
    FenceSupport.current(with: configuration.ffmpeg).warning
  }
}
