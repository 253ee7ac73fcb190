import PostgresServer
import Testing

@testable import Storage

// One suite for all engines: a suite with the trait `.onEveryEngine` runs each of its tests once per engine, and opens
// its catalogs with `Catalog(at:)`. What is only about SQLite's file stays in other suites.

/// An engine that the catalog's tests run on.
struct CatalogEngine: Sendable {
  /// The name, for messages.
  let name: String
  /// Opens the database that belongs to a path, which is unique to a test. Opening it again finds the same rows.
  let open: @Sendable (_ path: String) throws -> any SQLEngine

  /// The engine of the running test.
  @TaskLocal static var current = CatalogEngines.sqlite
}

enum CatalogEngines {
  static let sqlite = CatalogEngine(name: "SQLite") { try SQLiteEngine(path: $0) }

  /// Databases of a server of the tests' own: the same path is the same database.
  static let postgres = CatalogEngine(name: "PostgreSQL") { path in
    guard let engine = try PostgresCatalogs.engine(path: path) else { throw MissingServer() }
    return engine
  }

  private struct MissingServer: Error {}

  /// All engines whose server is installed. Add a new one here.
  static let all = [sqlite] + (PostgresServer.TestServer.isInstalled ? [postgres] : [])
}

extension Catalog {
  /// Opens the catalog that belongs to a path on the running test's engine.
  convenience init(at path: String, holder: LeaseHolder = LeaseHolder()) throws {
    let engine = try CatalogEngine.current.open(path)
    let noted = (engine as? SQLiteEngine).map { NotedEngine($0) }
    self.init(engine: noted ?? engine, holder: holder)
    if let noted { whenChanged { noted.check($0) } }
  }
}

/// Runs each test once per engine.
struct EveryEngineTrait: SuiteTrait, TestTrait, TestScoping {
  let isRecursive = true

  func scopeProvider(for test: Test, testCase: Test.Case?) -> Self? { testCase == nil ? nil : self }

  func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
  ) async throws {
    for engine in CatalogEngines.all { try await CatalogEngine.$current.withValue(engine) { try await function() } }
  }
}

extension Trait where Self == EveryEngineTrait {
  /// Runs each test once per engine of `CatalogEngines.all`.
  static var onEveryEngine: Self { Self() }
}
