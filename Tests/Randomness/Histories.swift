import Foundation

/// How many histories a simulation runs.
public enum Histories {
  /// Returns `usual`, multiplied by the number in `STILLWAVE_HISTORIES`, if there is one.
  public static func count(_ usual: Int) -> Int {
    usual * (ProcessInfo.processInfo.environment["STILLWAVE_HISTORIES"].flatMap { Int($0) } ?? 1)
  }
}
