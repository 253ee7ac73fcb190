import Storage
import Testing

@testable import PostgresStorage

@Suite struct ReplicationRiskTests {
  @Test(
    "commits that don't wait for a standby are a risk as soon as there is one",
    arguments: [
      ("on", "", 0, nil), ("on", "", 2, .standbysMayLag(count: 2)), ("on", " ", 1, .standbysMayLag(count: 1)),
      ("on", "FIRST 1 (a, b)", 2, nil), ("remote_apply", "a", 1, nil), ("local", "a", 1, .standbysMayLag(count: 1)),
      ("local", "", 0, nil), ("off", "a", 1, .commitsAreAsynchronous), ("off", "", 0, .commitsAreAsynchronous),
    ] as [(String, String, Int, ReplicationRisk?)])
  func risks(commit: String, names: String, standbys: Int, risk: ReplicationRisk?) {
    #expect(ReplicationRisk(synchronousCommit: commit, standbyNames: names, standbys: standbys) == risk)
  }
}

@Suite(.needsPostgres) struct ServerReplicationRiskTests {
  @Test("a server's settings are read")
  func server() throws {
    let database = try TestDatabase()
    let engine = PostgresEngine(try database.settings())
    #expect(try engine.replicationRisk() == nil)
    let name = try #require(try engine.read { try $0.first("SELECT current_database()", as: String.self) })
    try database.run("ALTER DATABASE \(name) SET synchronous_commit = off")
    let later = PostgresEngine(try database.settings())
    #expect(try later.replicationRisk() == .commitsAreAsynchronous)
  }
}
