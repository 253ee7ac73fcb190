import HTTP
import PostgresStorage
import Storage

extension Service {
  /// Explains an error of `init` or `start` to the person who starts the service.
  package static func words(forFailedStart error: any Error) -> String {
    switch error {
    case HTTPServerError.cannotListen(let host, let port, let number):
      "Can't listen on \(host):\(port): \(systemWords(number)). Choose another address with --listen, --admin-listen "
        + "or --cluster-listen."
    case StorageError.inUse(let path):
      "Another service uses \(path). Choose another folder with --data, or with --scratch if the media are in a bucket."
    case StorageError.nodeInUse(let path):
      "Another process has this node's name (\(path)). Give each node its own with --node."
    case StorageError.sharedMedia(let path):
      "\(path) has the media of several machines and is no data folder. Start the service with --catalog and --media."
    case StorageError.otherMedia(let path) where path.hasPrefix("s3://"):
      """
      \(path) isn't the bucket whose recordings the catalog describes: its object media-id is missing or another's. \
      Nothing was changed. See that --catalog and --media belong together. A new catalog needs a bucket, or a prefix in \
      one, that no other catalog has had.
      """
    case StorageError.otherMedia(let path):
      """
      \(path) isn't the folder whose recordings the catalog describes. Nothing was changed. See that its disk is \
      mounted, and that --catalog and --media belong together.
      """
    case StorageError.lostCatalog(let path):
      """
      There are recordings, but the catalog \(path) is missing or empty. Nothing was changed. Put the catalog back, or \
      run “stillwave check --data DIR --repair” to rebuild it from the recordings' folders.
      """
    case StorageError.unreleasedSchema(let path):
      """
      The catalog \(path) was made by a version from before the first release, which this one can't read. Nothing was \
      changed. Choose another folder with --data, or remove this one, and upload the recordings again.
      """
    case StorageError.newerSchema(let path):
      "The catalog \(path) was written by a newer version of the program. Nothing was changed. Install that version."
    case StorageError.damagedCatalog(let path, let detail):
      """
      The catalog \(path) is damaged: \(detail). Nothing was changed. Restore a backup, or run “stillwave check --data \
      DIR --repair” to rebuild it from the recordings' folders.
      """
    case SharedStorage.Fault.noSharedFolder(let path):
      "\(path) isn't a folder that several machines share: no service was started with it as --media."
    case SharedStorage.Fault.olderCatalog:
      "The catalog has no tables yet, or those of an earlier version. Start a node of this version first."
    case let error as UnusableFile: error.description
    case let fault as MovePlaces.Fault: words(for: fault)
    case StorageError.unfinishedMove(let path?, let source):
      """
      \(path) is unfinished: a move from \(source ?? "another place") hasn't ended. Run the same “stillwave move” again, \
      or remove the folder.
      """
    case StorageError.unfinishedMove(nil, _):
      """
      A move into the catalog hasn't ended. Run the same “stillwave move” again, or use another database and other \
      media.
      """
    case StorageError.notEmpty(let path): "\(path) isn't empty. Everything is moved to an empty place."
    case StorageError.otherMove:
      "Another “stillwave move” into the same place has begun meanwhile. Only that one goes on."
    case StorageError.sourceChanged:
      """
      The place to move from was changed while it was moved. Stop all services that use it, and run the same command \
      again.
      """
    case StorageError.objectStore(let detail): "The bucket of --media can't be used: \(detail)."
    case StorageError.storeUnreachable(let detail): "The store of --media can't be reached: \(detail)."
    case let error as PostgresError: words(for: error)
    default: logText(error)
    }
  }

  private static func words(for error: PostgresError) -> String {
    switch error {
    case .libraryMissing(let file, let package, let reason):
      "--catalog needs \(file), which can't be loaded (\(reason)). Install the package \(package)."
    case .invalidAddress(let fault): "--catalog: " + words(for: fault)
    case .cannotConnect(let reason): "The catalog's server can't be reached: \(reason)"
    case .unsupportedServer(let version):
      "The catalog's server is PostgreSQL \(version / 10_000), and 15 or newer is needed."
    case .wrongEncoding(let encoding):
      """
      The catalog's database has the encoding \(encoding), in which not every name can be written. Make one with UTF8: \
      CREATE DATABASE stillwave ENCODING 'UTF8' TEMPLATE template0.
      """
    case .sharedSession: sharedSession
    case .statement(let failure) where failure.namesOtherSession: sharedSession
    case .newerSchema(let version, let known, _):
      """
      The catalog was migrated by a newer version of the program (migration \(version); this one knows \(known)), \
      which doesn't support this one any more. Install that version on this node.
      """
    case .differentMigration(let number, let name):
      """
      The catalog has a migration \(number), “\(name)”, which isn't this program's: it was made by a version from before \
      the first release, or by another program. Nothing was changed. Use another database.
      """
    case .statement(let failure) where failure.sqlState == "55P03":
      """
      The catalog's tables can't be brought up to date, because another session keeps one of them locked \
      (\(failure.message)). The step that failed has changed nothing. End that session, or wait for it, and start the \
      node again.
      """
    case .statement(let failure):
      "The catalog's server refuses a statement: \(failure.message) (SQLSTATE \(failure.sqlState))."
    case .connectionLost(_, let reason): "The connection to the catalog's server was lost: \(reason)"
    default: "The catalog can't be used: \(error)"
    }
  }

  private static let sharedSession = """
    Between this node and the catalog's server is a pooler that shares sessions between transactions (such as PgBouncer \
    with pool_mode = transaction), which loses notifications and locks. Name the server itself in --catalog, or a pooler \
    with a session for each client (pool_mode = session).
    """

  private static func words(for fault: PostgresAddress.Fault) -> String {
    switch fault {
    case .scheme: "the URL begins with postgres://."
    case .unescapedCharacter: "@ and / in a user name or password have to be written as %40 and %2F."
    case .port: "a port is a number from 1 to 65535."
    case .sessionAttributes:
      "target_session_attrs must be read-write, which it is without it: a node needs a server that it can write to."
    case .unprotected(let host):
      """
      without sslmode, the connection to \(host.isEmpty ? "the service’s hosts" : "“\(host)”") might be neither encrypted \
      nor checked. Add ?sslmode=verify-full&sslrootcert=FILE to the URL, with the certificate of the authority that the \
      server's is from; or sslmode=require for encryption alone; or sslmode=disable if nobody else can use the network. \
      Only sockets and loopback addresses do without it.
      """
    case .syntax: "libpq can't read the URL, or doesn't know one of its parameters."
    }
  }
}
