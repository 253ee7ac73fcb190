// Starts a PostgreSQL server for the tests of one process: on a Unix socket in a temporary folder, without the network.
//
// initdb and postgres refuse to run as root; then they run as the user `postgres`, or else `nobody`. Between the test
// process and the server is a shell that waits for the end of a pipe, so that the server ends and its folder is removed
// however the process ends.

import Foundation
import Synchronization

/// A running PostgreSQL server for tests.
public final class TestServer: Sendable {
  /// The folder with the server's socket.
  public let folder: String
  /// The end of the pipe whose closing stops the server.
  private let lifeline: Pipe
  private let port: UInt16
  private let databases = Atomic(0)

  /// The server of this process, started with the first use; nil if PostgreSQL isn't installed.
  public static let shared: TestServer? = {
    guard let programs else { return nil }
    do { return try TestServer(programs: programs) } catch { fatalError("PostgreSQL didn't start: \(error)") }
  }()

  /// Starts a server for one test, which may crash it. Returns nil if PostgreSQL isn't installed.
  public static func separate() throws -> TestServer? { try programs.map { try TestServer(programs: $0) } }

  /// Starts a server that also listens on 127.0.0.1, where it accepts only TLS and a password. Returns nil if
  /// PostgreSQL or openssl isn't installed. `authority` is the file of the authority that its certificate is from, and
  /// `other` that of another one.
  public static func overTLS() throws -> (server: TestServer, port: UInt16, authority: String, other: String)? {
    guard let programs else { return nil }
    guard FileManager.default.isExecutableFile(atPath: "/usr/bin/openssl") else {
      skip(missing: "openssl", install: "test", isCI: isCI)
      return nil
    }
    let server = try TestServer(programs: programs, port: UInt16.random(in: 20_000..<32_000))
    return (server, server.port, server.folder + "/server.crt", server.folder + "/other.crt")
  }

  /// Whether PostgreSQL is installed. In CI, where no test may be skipped, this ends the process if it isn't.
  public static var isInstalled: Bool { programs != nil }

  private static let programs = programs(in: "/usr/lib/postgresql", isCI: isCI)

  private static let isCI = !["", "0", "false"].contains(ProcessInfo.processInfo.environment["CI"] ?? "")

  /// Returns the folder of the newest version's programs, as Debian installs them in `folder`; nil, so that tests are
  /// skipped, if there are none. In CI, that ends the process.
  package static func programs(in folder: String, isCI: Bool) -> String? {
    let versions = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    let found = versions.compactMap { Int($0) }.sorted(by: >).map { "\(folder)/\($0)/bin" }
      .first { FileManager.default.isExecutableFile(atPath: $0 + "/initdb") }
    if found == nil { skip(missing: "PostgreSQL", install: "postgres", isCI: isCI) }
    return found
  }

  /// Says that tests are skipped; in CI, ends the process instead, so that nobody takes them for passed.
  private static func skip(missing name: String, install set: String, isCI: Bool) {
    let text = "\(name) isn't installed: deploy/install \(set)"
    precondition(!isCI, "\(text). CI is set, so no test may be skipped.")
    print("\(text). Its tests are skipped.")
  }

  /// What failed.
  public struct Failure: Error {
    /// What the programs printed.
    public let output: String
  }

  /// Starts a server, and returns when it accepts connections. With a port, it also accepts them over TLS.
  public init(programs: String, port: UInt16 = 0) throws {
    self.port = port
    folder = "/tmp/stillwave-pg-\(UInt32.random(in: 0...UInt32.max))"
    lifeline = Pipe()
    let output = Pipe()
    let shell = Process()
    shell.executableURL = URL(fileURLWithPath: "/bin/sh")
    shell.arguments = ["-c", Self.script, "sh", folder, programs, port == 0 ? "" : "\(port)"]
    shell.standardInput = lifeline
    shell.standardOutput = output
    try shell.run()
    // Otherwise, children of this process would keep the server alive.
    _ = fcntl(lifeline.fileHandleForWriting.fileDescriptor, F_SETFD, FD_CLOEXEC)
    var printed = ""
    while !printed.hasSuffix("ready\n") {
      let data = output.fileHandleForReading.availableData
      if data.isEmpty { throw Failure(output: printed) }
      printed += String(decoding: data, as: UTF8.self)
    }
  }

  /// Settings that trade safety for speed are fine here: nothing survives the folder.
  private static let script = """
    folder=$1 programs=$2 port=$3
    trap '' INT
    as=
    if [ "$(id -u)" = 0 ]; then
      user=postgres
      getent passwd postgres >/dev/null || user=nobody
      as="setpriv --reuid=$user --regid=$(id -g $user) --clear-groups"
    fi
    mkdir -m 700 "$folder" && cd "$folder" || exit 1
    [ -z "$as" ] || chown "$user" "$folder"
    export LC_ALL=C.UTF-8 HOME="$folder"
    $as "$programs/initdb" --no-sync -D data -U stillwave -A trust -E UTF8 >log 2>&1 || { cat log; rm -rf "$folder"; exit 1; }
    set -- -c listen_addresses=
    if [ -n "$port" ]; then
      for name in other server; do
        $as openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test \\
          -addext subjectAltName=IP:127.0.0.1 -keyout server.key -out $name.crt >>log 2>&1
      done
      chmod 711 "$folder"
      $as sh -c 'chmod 600 server.key; chmod 644 *.crt
        echo "local all all trust
    hostssl all all 127.0.0.1/32 scram-sha-256" >data/pg_hba.conf'
      set -- -c listen_addresses=127.0.0.1 -c ssl=on -c "ssl_cert_file=$folder/server.crt" \\
        -c "ssl_key_file=$folder/server.key"
    fi
    $as "$programs/postgres" -D data -k "$folder" "$@" -c port="${port:-5432}" -c fsync=off -c shared_buffers=32MB \\
      -c max_connections=500 -c log_min_messages=warning >>log 2>&1 </dev/null &
    server=$!
    tries=0
    until $as "$programs/pg_isready" -q -h "$folder" -p "${port:-5432}"; do
      tries=$((tries + 1))
      [ $tries -lt 600 ] && kill -0 $server || { cat log; kill -QUIT $server; rm -rf "$folder"; exit 1; }
      sleep 0.05
    done
    echo ready
    cat >/dev/null
    kill -QUIT $server
    wait $server
    rm -rf "$folder"
    """

  /// The URL of a database. `folder` is another folder with a socket, such as a proxy's.
  public func url(database: String, folder: String? = nil) -> String {
    let host = (folder ?? self.folder).replacingOccurrences(of: "/", with: "%2F")
    return "postgres://stillwave@\(host)/\(database)"
  }

  /// Creates a database, empty or a copy of another one that nobody uses, and returns its name.
  public func newDatabase(copying template: String? = nil) throws -> String {
    let name = "test\(databases.wrappingAdd(1, ordering: .relaxed).newValue)"
    try run("CREATE DATABASE \(name)" + (template.map { " TEMPLATE \($0)" } ?? ""))
    return name
  }

  /// Runs statements with psql, which shares no code with what is tested, and returns what it prints: rows in lines,
  /// columns separated by `|`.
  @discardableResult
  public func run(_ sql: String, database: String = "postgres") throws -> String {
    let psql = Process()
    psql.executableURL = URL(fileURLWithPath: "/usr/bin/psql")
    psql.arguments = [
      "-XqAt", "-v", "ON_ERROR_STOP=1", "-h", folder, "-p", "\(port == 0 ? 5432 : port)", "-U", "stillwave", "-d",
      database, "-c", sql,
    ]
    let output = Pipe()
    psql.standardOutput = output
    psql.standardError = output
    psql.standardInput = FileHandle.nullDevice
    try psql.run()
    let printed = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    psql.waitUntilExit()
    guard psql.terminationStatus == 0 else { throw Failure(output: printed) }
    return printed.trimmingCharacters(in: .whitespacesAndNewlines)
  }
}
