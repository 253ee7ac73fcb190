import Glibc
import Storage

/// How a service shares its catalog and its media with others. Without `catalogURL`, it shares nothing.
package struct ClusterSettings: Sendable {
  /// What a node does.
  package enum Role: String, Sendable, CaseIterable {
    /// Both.
    case all
    /// Answers clients, but runs no jobs.
    case api
    /// Runs jobs. Of its addresses, only those for operators answer.
    case work

    /// Whether it runs jobs.
    package var runsJobs: Bool { self != .api }
    /// Whether it answers clients.
    package var answersClients: Bool { self != .work }
  }

  /// The PostgreSQL database with the catalog: `postgres://…`, perhaps with a password.
  package var catalogURL: String?
  /// The folder with the media, which all nodes have mounted; nil if they are in a bucket.
  package var mediaDirectory: String?
  /// The bucket with the media, and what a node needs to use it.
  package var bucket = BucketSettings()
  /// How the nodes reach each other.
  var nodes = NodeSettings()
  /// What this node does.
  package var role = Role.all
  /// The name of this node, different for each; nil for the name of the machine.
  package var node: String?
  /// Seconds after which the jobs of a node that isn't heard from are given to others, 3 or more.
  package var leaseSeconds = 30.0
  /// Seconds that running jobs get to finish after SIGTERM, before they are given back for other nodes.
  package var drainSeconds = 0.0

  /// Creates settings of a service that shares nothing.
  package init() {}

  /// The terms of the leases.
  var terms: LeaseHolder.Terms {
    LeaseHolder.Terms(seconds: leaseSeconds, renewalSeconds: leaseSeconds / 6, marginSeconds: leaseSeconds / 6)
  }

  /// Whether the URL of a database has a password.
  static func hasPassword(_ url: String) -> Bool {
    let rest = url.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false).last ?? ""
    let user = rest.prefix { $0 != "/" && $0 != "?" }.split(separator: "@", omittingEmptySubsequences: false)
    return (user.count > 1 && user[0].contains(":")) || rest.contains("password=")
  }

  /// Throws if the settings don't go together.
  func check() throws(SettingError) {
    let hasMedia = mediaDirectory != nil || bucket.address != nil
    if catalogURL == nil {
      guard !hasMedia, node == nil, role == .all, drainSeconds == 0 else {
        throw SettingError("--media, --node, --role and --drain are for several machines and need --catalog.")
      }
    } else if !hasMedia {
      throw SettingError(
        "--catalog needs --media, the folder or the bucket that all nodes share: --media file:///srv/stillwave or "
          + "--media s3://BUCKET.")
    }
    try nodes.check(role, hasBucket: bucket.address != nil)
  }
}

extension Setting {
  /// Settings of a service that shares its work with others.
  static let cluster: [Setting] = [
    Setting(
      "catalog", "URL",
      "PostgreSQL database of the catalog, for several machines: postgres://user@host1,host2/name?sslmode=…, where "
        + "only sockets and loopback addresses do without sslmode. A password is taken from the variable, PGPASSWORD or "
        + "a password file, because other users can see flags.",
      default: "SQLite in the data folder"
    ) { (text: String, configuration) throws(SettingError) in
      guard !text.isEmpty else { return }
      guard text.hasPrefix("postgres://") || text.hasPrefix("postgresql://") else {
        throw SettingError("--catalog is a URL such as postgres://stillwave@db.example.com/stillwave.")
      }
      configuration.cluster.catalogURL = text
    },
    Setting(
      "media", "URL",
      "Folder or bucket of the recordings that all nodes share, with --catalog: file:///srv/stillwave or "
        + "s3://BUCKET/PREFIX.", default: "the data folder"
    ) { (text: String, configuration) throws(SettingError) in
      configuration.cluster.mediaDirectory = nil
      configuration.cluster.bucket.address = nil
      guard !text.isEmpty else { return }
      if text.hasPrefix("s3://") {
        configuration.cluster.bucket.address = text
        return
      }
      guard text.hasPrefix("file:///"), text.utf8.count > 8 else {
        throw SettingError(
          "--media is the URL of a folder or a bucket, such as file:///srv/stillwave or s3://BUCKET; it was “\(text)”.")
      }
      configuration.cluster.mediaDirectory = String(text.dropFirst("file://".utf8.count))
    },
    .choice(
      "role", \.cluster.role,
      "What this node does, with --catalog: all, api (runs no jobs) or work (answers no clients)."
    ),
    Setting(
      "node", "NAME", "Name of this node, with --catalog; each has its own.", default: "the machine's"
    ) { (text: String, configuration) throws(SettingError) in
      guard !text.isEmpty else { return }
      guard text.utf8.count <= 64, text.first != ".",
        text.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || "-._".contains($0)) })
      else { throw SettingError("--node takes letters, digits and -._, at most 64; it was “\(text)”.") }
      configuration.cluster.node = text
    },
    .time(
      "lease", \.cluster.leaseSeconds, in: 3...3600,
      "Time after which the jobs of a node that isn't heard from are given to others, at least 3."),
    .time(
      "drain", \.cluster.drainSeconds, in: 0...86_400,
      "Time that running jobs get to finish after SIGTERM before other nodes get them."),
  ]
}
