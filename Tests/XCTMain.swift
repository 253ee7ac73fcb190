import Testing
import XCTest

/// Runs the tests of Swift Testing. With an entry point of its own, the build needs no index in which to look for tests
/// of XCTest; `swift test` asks for them all the same.
@main struct TestRunner {
  static func main() async {
    guard CommandLine.arguments.contains("swift-testing") else { XCTMain([]) }
    await Testing.__swiftPMEntryPoint() as Never
  }
}
