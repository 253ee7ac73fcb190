import Testing

/// Runs the tests of Swift Testing. With an entry point of its own, the build needs no index to search for XCTest's.
@main struct TestRunner {
  static func main() async { await Testing.__swiftPMEntryPoint() as Never }
}
