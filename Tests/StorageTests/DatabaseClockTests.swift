import PostgresServer
import PresentRows
import Testing

@testable import Storage

/// Leases are judged by the database's clock, whatever the node's is.
@Suite(.enabled(if: PostgresServer.TestServer.isInstalled, "PostgreSQL isn't installed: deploy/install postgres"))
struct DatabaseClockTests {
  private let folder: TemporaryFolder
  private let engine: any SQLEngine
  private let job: Job

  /// Puts a function in front of PostgreSQL's clock_timestamp(), so that this process's clock is wrong for the
  /// database.
  init() throws {
    folder = try TemporaryFolder()
    let first = try CatalogEngines.postgres.open(folder("clock"))
    try first.write { session in
      let name = try session.first("SELECT current_database()", as: String.self) ?? ""
      for statement in [
        "CREATE SCHEMA skewed", "CREATE TABLE skewed.clock (seconds double precision)",
        "INSERT INTO skewed.clock VALUES (0)",
        """
        CREATE FUNCTION skewed.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
        'SELECT pg_catalog.clock_timestamp() + (SELECT seconds FROM skewed.clock) * interval ''1 s'''
        """,
        "ALTER DATABASE \(name) SET search_path = skewed, pg_catalog, public",
      ] { try session.run(statement) }
    }
    try first.close()
    engine = try CatalogEngines.postgres.open(folder("clock"))
    let recording = sample()
    job = Job(kind: .waveform, recording: recording.id)
    try Catalog(engine: engine).insert(recording, jobs: [job])
  }

  private func node(_ name: String) -> Catalog {
    Catalog(engine: engine, holder: LeaseHolder(name: name, terms: LeaseHolder.Terms()))
  }

  /// Sets the database's clock to this machine's plus some seconds.
  private func skew(_ seconds: Double) throws {
    _ = try engine.write { try $0.run("UPDATE skewed.clock SET seconds = ?", [seconds]) }
  }

  /// Seconds from one time to another.
  private func gap(_ from: Timestamp, _ to: Timestamp?) -> Double {
    Double((to ?? from).milliseconds - from.milliseconds) / 1000
  }

  @Test("a node's time follows the database's clock, but not what it hears of it late")
  func time() throws {
    let node = node("one")
    try skew(36_000)
    try node.compareClocks()
    #expect(abs(gap(.now + 36_000, node.time)) < 3600)
    node.note(clock: .now, after: .seconds(2))
    #expect(abs(gap(.now + 36_000, node.time)) < 3600)
    node.note(clock: .now + 72_000, after: .milliseconds(999))
    #expect(abs(gap(.now + 72_000, node.time)) < 3600)
  }

  @Test("a database whose clock differs by minutes from a node's, or jumps, is doubted")
  func doubt() throws {
    let node = node("one")
    try node.compareClocks()
    #expect(node.clockDoubt == nil && abs(node.clockDifferenceSeconds) < 200)
    try skew(2_592_000)
    try node.compareClocks()
    guard case .differs(let seconds)? = node.clockDoubt else {
      Issue.record("it isn't doubted")
      return
    }
    #expect(abs(seconds - 2_592_000) < 200 && abs(node.clockDifferenceSeconds - 2_592_000) < 200)
    #expect(node.of(.none).doubtsClock)
    try skew(0)
    try node.compareClocks()
    #expect(node.clockDoubt == nil)
  }

  @Test("what a node hears late of the database's clock is better than nothing")
  func firstTime() throws {
    let node = node("one")
    node.note(clock: .now + 36_000, after: .seconds(2))
    #expect(abs(gap(.now + 36_000, node.time)) < 3600)
  }

  @Test("a node whose clock is 20 minutes off neither loses a lease nor takes another's", arguments: [-1200.0, 1200])
  func wrongClock(offset: Double) throws {
    try skew(offset)
    let (one, two) = (node("one"), node("two"))
    let token = try #require(try one.claim(job.id).written?.token)
    // Within a test's time of half an hour, it can't be by this machine's clock.
    let claimed = try #require(try two.job(job.id))
    #expect(abs(gap(.now, claimed.leaseUntil) - offset) < 300)
    #expect(abs(gap(.now, claimed.startedAt) - offset) < 300)
    #expect(gap(try #require(claimed.startedAt), claimed.leaseUntil) == 30)
    #expect(try two.endLostLeases() == 0 && one.renew(token))
    try skew(offset + 31)
    #expect(try two.endLostLeases() == 1)
    #expect(try !one.renew(token) && one.finish(token, with: "{}").written == nil)
    let next = try #require(try two.claim(job.id).written?.token)
    let ended = try #require(try two.finish(next, with: "{}").written)
    #expect(abs(gap(.now, ended.finishedAt) - offset - 31) < 300)
  }

  @Test("a running job is renewed by the database's clock")
  func renewal() throws {
    let (one, two) = (node("one"), node("two"))
    let token = try #require(try one.claim(job.id).written?.token)
    for seconds in [25.0, 50, 75] {
      try skew(seconds)
      #expect(try one.renew(token) && two.endLostLeases() == 0)
    }
  }
}
