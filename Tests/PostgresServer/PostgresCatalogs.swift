import PostgresStorage
import Synchronization

/// Databases with a catalog's tables, for tests that also run on SQLite.
public enum PostgresCatalogs {
  private static let databases = Mutex<[String: String]>([:])

  private static let template = Result { () throws -> String? in
    guard let server = TestServer.shared else { return nil }
    let name = try server.newDatabase()
    try PostgresSchema.migrator.migrate(settings(server, name))
    return name
  }

  /// Opens the database that stands in for the file at `path`: the same for the same path, at first without rows.
  /// Returns nil if PostgreSQL isn't installed.
  package static func engine(path: String) throws -> PostgresEngine? {
    guard let server = TestServer.shared, let template = try template.get() else { return nil }
    let name = try databases.withLock { databases in
      if let name = databases[path] { return name }
      let name = try server.newDatabase(copying: template)
      databases[path] = name
      return name
    }
    return PostgresEngine(try settings(server, name))
  }

  private static func settings(_ server: TestServer, _ name: String) throws -> PostgresSettings {
    var settings = PostgresSettings(address: try PostgresAddress(server.url(database: name)))
    // Tests open many catalogs; the server has 200 connections.
    settings.connectionCount = 4
    return settings
  }
}
