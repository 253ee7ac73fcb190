import ArgumentParser
import Processing
import Terms

/// `START-END` in seconds, or several of them, separated by commas; `auto`; `quantile:Q`; or the path of a profile.
struct NoiseArgument {
  /// nil for `auto`.
  let source: NoiseSource?

  static let automatic = NoiseArgument(source: nil)

  private init(source: NoiseSource?) { self.source = source }

  init(parsing argument: String) throws {
    if argument == "auto" {
      source = nil
    } else if argument.hasPrefix("quantile:") {
      guard let quantile = Double(argument.dropFirst(9)), (0.01...0.9).contains(quantile) else {
        throw ValidationError("--noise quantile:Q takes a number from 0.01 to 0.9.")
      }
      source = .quantile(quantile)
    } else if argument.hasSuffix(".json") {
      source = .profile(argument)
    } else {
      source = try Self.regions(argument)
    }
  }

  private static func regions(_ argument: String) throws -> NoiseSource {
    let regions = try argument.split(separator: ",", omittingEmptySubsequences: false).map { text in
      guard let window = WindowArgument(argument: String(text))?.window else {
        throw ValidationError(
          "--noise is “\(argument)”; it must be START-END in seconds, or several of them, separated by commas; auto; "
            + "quantile:Q; or the name of a profile that ends in .json.")
      }
      return NoiseSource.Region(start: window.start, end: window.end)
    }
    guard regions.count <= NoiseSource.regionLimit else {
      throw ValidationError("--noise has \(regions.count) stretches; at most \(NoiseSource.regionLimit) are allowed.")
    }
    guard zip(regions, regions.dropFirst()).allSatisfy({ $0.end <= $1.start }) else {
      throw ValidationError("The stretches of --noise must be in order and must not overlap.")
    }
    return regions.count == 1 ? .region(regions[0]) : .regions(regions)
  }
}

extension NoiseArgument: CustomStringConvertible {
  /// The default as shown in the help.
  var description: String { "auto" }
}
