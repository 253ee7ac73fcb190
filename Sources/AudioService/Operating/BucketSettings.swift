import S3Storage

/// How a node reaches the bucket that `--media s3://…` names, and what it keeps on its own disk.
package struct BucketSettings: Sendable {
  /// The address; nil if the media aren't in a bucket.
  package var address: String?
  /// The address of the store, unless the bucket's address has it; nil for Amazon's.
  package var endpoint: String?
  /// The file with the key; nil for the environment or the file that AWS's tools use.
  package var credentialsPath: String?
  /// A PEM file with the authorities that may sign the store's certificate; nil for the system's.
  package var authorities: String?
  /// Where the key comes from; nil without a bucket.
  package var credentials: CredentialSource?
  /// How long a URL that clients are sent to can be used, in seconds; nil if they get everything from the nodes.
  package var redirectSeconds: Int?
  /// The store's address for clients; nil for that of the nodes.
  package var publicEndpoint: String?
  /// How clients are sent to the bucket; nil if they aren't.
  package var redirects: S3Redirects?
  /// The maximum size of the cache.
  package var cacheBytes = defaultCacheBytes
  /// The folder for files in progress and the cache; nil for the one in the data folder.
  package var scratchDirectory: String?

  private static let defaultCacheBytes: Int64 = 10 << 30

  /// Creates settings without a bucket.
  package init() {}

  /// The bucket; nil without an address. Throws if the address or an option is invalid.
  func bucket() throws(SettingError) -> S3Bucket? {
    guard let address else { return nil }
    do throws(S3Error) { return try S3Bucket(address, options: endpoint.map { [("endpoint", $0)] } ?? []) } catch {
      guard case .invalidAddress(let fault) = error else { throw SettingError("--media: \(error)") }
      throw SettingError(Self.words(for: fault))
    }
  }

  /// What requests to the store need beside the bucket and the key.
  var requests: S3Settings {
    var settings = S3Settings()
    settings.authorities = authorities
    return settings
  }

  /// A client of the bucket; nil without one. Throws as `bucket` does.
  func client() throws(SettingError) -> S3Client? {
    guard let bucket = try bucket(), let credentials else { return nil }
    return S3Client(bucket, credentials: credentials, settings: requests)
  }

  private static func words(for fault: S3Bucket.Fault) -> String {
    switch fault {
    case .scheme, .bucket:
      "--media s3://BUCKET/PREFIX: the name of a bucket has 3 to 63 of a-z, 0-9, dots and hyphens."
    case .prefix: "--media s3://BUCKET/PREFIX: a prefix consists of names of a-z, A-Z, 0-9 and -._, with / in between."
    case .endpoint: "--s3-endpoint is http:// or https://, a host and perhaps a port, without a path."
    case .region: "--media s3://BUCKET?region=NAME: a region is a name such as eu-central-1."
    case .option(let name): "--media has the option “\(name)” twice, or it isn't one, or it can't have that value."
    }
  }

  /// Finds where the key comes from, and throws if the settings don't go together. `variable` returns the value of an
  /// environment variable.
  mutating func complete(_ variable: (String) -> String?) throws(SettingError) {
    guard try bucket() != nil else {
      guard endpoint == nil, credentialsPath == nil, authorities == nil, cacheBytes == Self.defaultCacheBytes,
        scratchDirectory == nil, redirectSeconds == nil, publicEndpoint == nil
      else {
        throw SettingError(
          "--s3-endpoint, --s3-credentials, --s3-ca, --s3-redirects, --s3-public-endpoint, --max-cache-bytes and "
            + "--scratch are for media in a bucket and need --media s3://BUCKET.")
      }
      return
    }
    redirects = try makeRedirects()
    if let credentialsPath {
      credentials = CredentialSource(file: credentialsPath)
      return
    }
    var environment: [String: String] = [:]
    for name in Self.variables { environment[name] = variable(name) }
    do throws(S3Error) { credentials = try CredentialSource(environment: environment) } catch {
      throw SettingError(
        "--media s3://… needs a key: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment, or a file with "
          + "--s3-credentials.")
    }
  }

  private func makeRedirects() throws(SettingError) -> S3Redirects? {
    guard let redirectSeconds else {
      guard publicEndpoint == nil else {
        throw SettingError("--s3-public-endpoint is where clients are sent to, and needs --s3-redirects SECONDS.")
      }
      return nil
    }
    guard let bucket = try bucket() else { return nil }
    guard let publicEndpoint else { return S3Redirects(to: bucket, seconds: redirectSeconds) }
    do throws(S3Error) {
      return S3Redirects(to: try bucket.reached(at: publicEndpoint), seconds: redirectSeconds)
    } catch {
      throw SettingError(
        "--s3-public-endpoint is http:// or https://, a host and perhaps a port, without a path; it was "
          + "“\(publicEndpoint)”.")
    }
  }

  /// The environment variables by which a key is found, if no setting says where it is.
  static let variables = secretVariables + ["AWS_SHARED_CREDENTIALS_FILE", "AWS_PROFILE", "HOME"]

  /// The environment variables with parts of a key.
  package static let secretVariables = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"]
}

extension Setting {
  /// Settings of media in a bucket.
  static let bucket: [Setting] = [
    .optionalText(
      "s3-endpoint", "URL", \.cluster.bucket.endpoint, "Address of an S3-compatible store: http://store:7480.",
      default: "Amazon's of the region"),
    .optionalText(
      "s3-credentials", "FILE", \.cluster.bucket.credentialsPath,
      "File with the store's key in the format of ~/.aws/credentials, which is read again when it has changed.",
      default: "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials"),
    .authorities(
      "s3-ca", \.cluster.bucket.authorities,
      "Certificates (PEM) of the authorities that may sign the certificate of a store over https."),
    Setting(
      "s3-redirects", "SECONDS",
      "Sends clients to the bucket for whole files, with addresses that anyone can use for this time.", .seconds,
      default: "0, never"
    ) { (seconds: Int, configuration) throws(SettingError) in
      guard (0...S3Redirects.longestSeconds).contains(seconds) else {
        throw SettingError(
          "--s3-redirects is 0, for never, or at most \(S3Redirects.longestSeconds) seconds; it was \(seconds).")
      }
      configuration.cluster.bucket.redirectSeconds = seconds > 0 ? seconds : nil
    },
    .optionalText(
      "s3-public-endpoint", "URL", \.cluster.bucket.publicEndpoint,
      "Address of the store for clients, with --s3-redirects: https://store.example.com.", default: "--s3-endpoint"),
    .number(
      "max-cache-bytes", "Disk space for recordings of a bucket; the least recently used go first.", .bytes,
      default: "10 GiB"
    ) { (bytes: Int64, configuration) in configuration.cluster.bucket.cacheBytes = bytes },
    .optionalText(
      "scratch", "DIR", \.cluster.bucket.scratchDirectory,
      "Folder of this node for files in progress and for what it has of a bucket; may be lost.",
      default: "“scratch” in the data folder"),
  ]
}
