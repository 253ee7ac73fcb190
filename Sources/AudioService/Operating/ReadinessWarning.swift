import Processing
import Storage
import Terms

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
    let all = [
      fence(context.configuration), orphans(context.media.orphanCount), unreadable(report.unreadable),
      full(context.media.bucket?.blobs.isFull ?? false), unverified(report.isUnverified),
      feed(context.feed?.ageSeconds, isShared: context.feed != nil), clock(context.catalogClock.doubt),
      held(context.writeWatch.current),
      altered(context.scrub.alteredCount),
    ]
    return all.compactMap { $0 }
  }

  private static func altered(_ count: Int) -> Warning? {
    guard count > 0 else { return nil }
    return Warning(
      code: Scrub.code,
      detail: """
        The files of \(count) recordings have changed on the disk. “stillwave check” lists them. Restore them from a \
        backup, and look at the disk.
        """)
  }

  private static func unreadable(_ count: Int) -> Warning? {
    guard count > 0 else { return nil }
    return Warning(
      code: "unreadable_rows",
      detail:
        "The catalog has \(count) recordings whose rows can't be read. Run “stillwave check”, or restore a backup.")
  }

  private static func full(_ isFull: Bool) -> Warning? {
    guard isFull else { return nil }
    return Warning(
      code: "media_full",
      detail: "The bucket with the recordings, or its quota, is full: uploads are refused, and no job begins.")
  }

  private static func feed(_ ageSeconds: Double?, isShared: Bool) -> Warning? {
    guard isShared, ageSeconds.map({ $0 > 5 }) ?? true else { return nil }
    return Warning(
      code: "feed_interrupted",
      detail: """
        The feed of other nodes' changes is interrupted, so rows are read again for every request, and progress on \
        other nodes isn't shown.
        """)
  }

  private static func clock(_ doubt: ClockDoubt?) -> Warning? {
    guard let doubt else { return nil }
    return Warning(
      code: "clock_doubtful",
      detail: """
        The catalog's clock may be wrong: \(DeletionClock.words(for: doubt)). Until it is right, or for a day at \
        most after a jump, nothing is deleted because of its age.
        """)
  }

  private static func held(_ write: HeldWrite?) -> Warning? {
    write.map { Warning(code: "catalog_busy", detail: $0.words) }
  }

  private static func unverified(_ isUnverified: Bool) -> Warning? {
    guard isUnverified else { return nil }
    return Warning(
      code: "catalog_unverified",
      detail: "The catalog could not be checked within ten seconds at the start, so nothing was tidied up.")
  }

  /// The parts of the fence that are missing here.
  static func fence(_ configuration: Configuration) -> Warning? {
    FenceSupport.current(with: configuration.ffmpeg).warning
  }

  private static func orphans(_ count: Int) -> Warning? {
    guard count > 0 else { return nil }
    return Warning(
      code: "orphaned_files",
      detail: """
        The data folder's folder “orphaned” contains \(count) folders or uploads that nothing explains. Look at \
        them: they may be recordings. Move them away or remove them to clear this warning.
        """)
  }
}
