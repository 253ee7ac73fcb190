import PostgresServer
import Testing

/// Without PostgreSQL, hundreds of tests are skipped.
@Suite struct SkippedTests {
  @Test("without PostgreSQL, its tests are skipped, but CI fails")
  func inCI() async {
    await #expect(processExitsWith: .failure) { _ = TestServer.programs(in: "/nowhere", isCI: true) }
    await #expect(processExitsWith: .success) {
      precondition(TestServer.programs(in: "/nowhere", isCI: false) == nil)
    }
  }
}
