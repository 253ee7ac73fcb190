import Foundation
import Testing

extension Trait where Self == ConditionTrait {
  /// For tests that take ten seconds or more: only `deploy/test --all` runs them.
  static var secondTier: Self {
    .enabled(if: ProcessInfo.processInfo.environment["STILLWAVE_ALL"] != nil, "only deploy/test --all runs it")
  }
}
