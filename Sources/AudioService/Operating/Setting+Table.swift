// Every setting, once. A row defines the flag, the environment variable, the line in `stillwave serve --help`, the row
// in docs/operating.md, and the property of Configuration that holds the value; the property's initial value is the
// default. After a row is added, a test fails until `STILLWAVE_TABLES=remake swift test --filter SettingTests` has
// updated the docs.

import HTTP
import Logging
import Storage
import Webhooks

extension Setting {
  /// A group of settings, with a title in `--help` and in docs/operating.md. The first has what a new operator sets.
  package enum Group: String, CaseIterable {
    case main = "Main settings"
    case access = "Access"
    case http = "Proxies and browsers"
    case limits = "Limits"
    case disk = "Disk and retention"
    case webhooks = "Webhooks"
    case cluster = "Several machines"
    case bucket = "Media in a bucket"

    /// The settings, in the order in which they are shown.
    package var settings: [Setting] {
      switch self {
      case .main: Setting.main
      case .access: Setting.ofKeys
      case .http: Setting.http
      case .limits: Setting.limits
      case .disk: Setting.disk
      case .webhooks: Setting.ofWebhooks
      case .cluster: Setting.cluster + Setting.nodes
      case .bucket: Setting.bucket
      }
    }
  }

  /// Every setting.
  package static let all = Group.allCases.flatMap(\.settings)

  private static let main: [Setting] = [
    Setting(
      "listen", "HOST:PORT", "Address and port to listen on; port 0 lets the system choose.",
      default: "\(Configuration().host):\(Configuration().port)", set: setAddress),
    .text("data", "DIR", \.dataDirectory, "Folder of the recordings and the catalog."),
    .number("workers", \.workerCount, "Jobs that run at once.", default: "one per core"),
    .text(
      "ffmpeg", "PATH", \.ffmpeg,
      "The ffmpeg that reads m4a, mp4, webm and others: a path or a name on PATH. ffprobe must be beside it."),
    .text(
      "voice", "FILE", \.voice,
      "The weights of the method “voice”, which deploy/install voice writes. Without the file, there is no such method."
    ),
    .choice(
      "log-level", \.logLevel,
      "trace, debug, info, notice, warning, error or critical. The log is JSON lines on standard error."),
    .number(
      "grace-period", \.gracePeriodSeconds,
      """
      Time that running requests get to finish after SIGTERM before they are cut off. If anything else hangs, the \
      process ends 3 s later, with status 1.
      """),
  ]

  private static let ofKeys: [Setting] = [
    .optionalText(
      "keys", "FILE", \.keysPath,
      "File of keys, JSON lines, which “stillwave keys” writes; without it, everything is open.",
      default: "none"),
    .optionalText(
      "token-secret-file", "FILE", \.tokenSecretPath,
      "File of secrets for tokens, one per line: the first signs, all verify.", default: "one in the data folder"),
    Setting(
      "tenant-limits", "LIMITS",
      "Limits of tenants whose keys name none, separated by commas: stored_bytes=10000000000,queued_jobs=100.",
      default: "none", set: setTenantLimits),
    .optionalText(
      "audit-log", "FILE", \.auditLogPath,
      "File for who changed what and who read whose audio, JSON lines; SIGHUP opens it again.", default: "none"),
    Setting(
      "admin-listen", "HOST:PORT", "Address and port that serve /metrics and /readyz to operators without a key.",
      default: "with keys \(Configuration.defaultAdminAddress.host):\(Configuration.defaultAdminAddress.port), if free"
    ) { (text: String, configuration) throws(SettingError) in
      guard let address = ListeningAddress(text) else {
        throw SettingError("--admin-listen is HOST:PORT, for example 127.0.0.1:8081; it was “\(text)”.")
      }
      configuration.adminAddress = address
    },
    Setting(
      "metrics-tenants", nil, "true for figures of each tenant in /metrics.", default: "false"
    ) { (value: Bool, configuration) throws(SettingError) in configuration.metricsTenants = value },
  ]

  private static let http: [Setting] = [
    Setting(
      "allowed-hosts", "NAMES",
      "Names that requests may be sent to besides IP addresses and loopback names, separated by commas.",
      default: "none", set: setHosts),
    .origins(
      "cors-origin", \.corsOrigins,
      "Origins whose pages may use the service, separated by commas: https://app.example.com, or * for any."),
    .origins(
      "embed-origins", \.embedOrigins,
      "Origins whose pages may show /embed in a frame, separated by commas: https://blog.example.com, or * for any."),
    .networks(
      "trusted-proxies", \.trustedProxies,
      "Proxies whose X-Forwarded-For names the client, for example 127.0.0.1,10.0.0.0/8."),
    Setting(
      "base-path", "PATH", "Path below which a proxy serves the service, for example /audio.", default: "/",
      set: setBasePath),
    .choice(
      "cache-control", \.cacheScope,
      "Caches that may keep what never changes: private (those of browsers) or public (a CDN too; not with --keys)."),
    .number("idle-timeout", \.httpLimits.idleSeconds, "Time between two requests of a connection."),
    .number("body-timeout", \.httpLimits.bodyGapSeconds, "Time between two pieces of a body."),
  ]

  private static let limits: [Setting] = [
    .number("max-upload-bytes", \.maximumUploadBytes, "Maximum size of an upload.", .bytes),
    .number("max-duration", \.audioLimits.durationSeconds, "Maximum length of a recording."),
    .number("max-channels", \.audioLimits.channels, "Maximum number of channels of a recording."),
    .number(
      "max-sample-rate", "Maximum sample rate of a recording.", .hertz,
      default: "\(Configuration().audioLimits.sampleRates.upperBound)"
    ) { (rate: Int, configuration) in configuration.audioLimits.sampleRates = 1...rate },
    .number("max-open-uploads", \.maximumOpenUploads, "Resumable uploads that may be unfinished at once."),
    .number("max-open-uploads-per-client", \.maximumOpenUploadsPerClient, ofOneClient),
    .number("max-queued-jobs", \.maximumQueuedJobs, "Jobs that may wait."),
    .number("max-queued-jobs-per-client", \.maximumQueuedJobsPerClient, ofOneClient),
    .number("max-event-streams", \.maximumEventStreams, "Event streams of the list (/v1/events) open at once."),
    .number("max-event-streams-per-client", \.maximumEventStreamsPerClient, ofOneClient),
    .number(
      "max-connections", \.httpLimits.connectionCount,
      "Connections open at once, at most the limit of descriptors less 64."),
    .number(
      "max-connections-per-client", ofOneClient, default: "a quarter of all, at least 16"
    ) { (count: Int, configuration) in configuration.httpLimits.connectionCountPerClient = count },
    .number("worker-memory-bytes", \.workerMemoryBytes, "Memory that a job's process may use.", .bytes),
  ]

  private static let disk: [Setting] = [
    .number("reserve-bytes", \.reservedDiskBytes, "Disk space that uploads leave free, and jobs half of it.", .bytes),
    .number(
      "max-conversion-bytes", \.maximumConversionBytes,
      "Disk space for a tenant's conversions, made for downloads (?format=); the least recently used go first.", .bytes),
    .number("upload-expiry", \.uploadExpirySeconds, "Time without a byte after which a resumable upload expires."),
    .time(
      "max-age", \.maximumAgeSeconds, "Age at which a recording is deleted, unless a job works on it.",
      default: "0, never"),
    Setting(
      "tenant-max-age", "TENANT=SECONDS", "The same for single tenants, separated by commas: acme=86400,lab=3600.",
      default: "none", set: setTenantAges),
    .time(
      "scrub-interval", \.scrubSeconds,
      "Time in which each recording's file is compared with its SHA-256 once, at 5 MB/s at most; 0 for never.",
      default: "2592000"),
  ]

  private static let ofWebhooks: [Setting] = [
    Setting(
      "webhook-secret", "TEXT",
      "Signs webhooks, at least 16 characters; without it, callback_url is refused. Only the variable is accepted: "
        + "other users can see flags.", default: "none", isSecret: true, set: setSecret),
    Setting(
      "webhook-secret-file", "FILE", "File with the secret that signs webhooks, instead of STILLWAVE_WEBHOOK_SECRET.",
      default: "none", set: readSecret),
    .networks(
      "webhook-networks", \.webhooks.networks,
      "Private networks that webhooks may go to, for example 10.0.0.0/8,fd00::/8."),
    .authorities(
      "webhook-ca", \.webhooks.authorities, "Certificates (PEM) of the authorities that webhooks over https trust."),
    Setting(
      "hook", "URL", "Service of your own that is asked before an upload is accepted; needs the secret of webhooks.",
      default: "none", set: setHook),
  ]

  /// The rows of every group in Markdown, for docs/operating.md.
  static var tables: String {
    Group.allCases.map { group in
      let rows = group.settings.map {
        "| `--\($0.name)` | `\($0.variable)` | \($0.unit.rawValue) | \($0.standard) | \($0.help) |\n"
      }
      return "### \(group.rawValue)\n\n"
        + "| flag | variable | unit | default | purpose |\n| --- | --- | --- | --- | --- |\n" + rows.joined()
    }.joined(separator: "\n")
  }
}

// MARK: Settings with rules of their own

extension Setting {
  private static let ofOneClient = "Of these, those of one client; past that, it gets 429."

  private static func networks(_ name: String, _ path: any Property<[Network]>, _ help: String) -> Setting {
    Setting(name, "NETWORKS", help, default: "none") { (text: String, configuration) throws(SettingError) in
      configuration[keyPath: path] = try elements(
        text, { Network($0) }, orThrow: { "--\(name) takes networks such as 10.0.0.0/8; “\($0)” is none." })
    }
  }

  private static func origins(_ name: String, _ path: any Property<AllowedOrigins>, _ help: String) -> Setting {
    Setting(name, "ORIGINS", help, default: "none") { (text: String, configuration) throws(SettingError) in
      let isAny = text.filter { $0 != "," && $0 != " " } == "*"
      let origins = try elements(
        isAny ? "" : text, { Origin($0) },
        orThrow: { "--\(name) takes origins such as https://app.example.com, or * alone; “\($0)” is neither." })
      configuration[keyPath: path] = isAny ? .any : .only(Set(origins))
    }
  }

  /// Parses elements separated by commas or spaces. Throws `message` for the first text that `make` returns nil for.
  private static func elements<Element>(
    _ text: String, _ make: (String) -> Element?, orThrow message: (String) -> String
  ) throws(SettingError) -> [Element] {
    var elements: [Element] = []
    for part in text.split(whereSeparator: { $0 == "," || $0 == " " }).map(String.init) {
      guard let element = make(part) else { throw SettingError(message(part)) }
      elements.append(element)
    }
    return elements
  }

  private static func setTenantLimits(_ text: String, _ configuration: inout Configuration) throws(SettingError) {
    configuration.tenantLimits = TenantLimits()
    for part in text.split(separator: ",") {
      let parts = part.split(separator: "=", omittingEmptySubsequences: false)
      guard parts.count == 2, let name = TenantLimits.Name(rawValue: String(parts[0])) else {
        let names = TenantLimits.Name.allCases.map(\.rawValue).joined(separator: ", ")
        throw SettingError("--tenant-limits takes NAME=VALUE with one of \(names); “\(part)” is none.")
      }
      let value = Double(String(parts[1])) ?? -1
      if let expected = name.expectation(of: value) {
        throw SettingError("--tenant-limits: \(name.rawValue) must be \(expected); it was “\(parts[1])”.")
      }
      configuration.tenantLimits[name] = value
    }
  }

  private static func setHosts(_ text: String, _ configuration: inout Configuration) throws(SettingError) {
    configuration.allowedHosts = Set(
      try elements(
        text, { HostGuard.isName($0) ? $0 : nil },
        orThrow: { "--allowed-hosts takes names such as audio.example.com; “\($0)” is none." }))
  }

  private static func setAddress(_ text: String, _ configuration: inout Configuration) throws(SettingError) {
    guard let address = ListeningAddress(text) else {
      throw SettingError("--listen is HOST:PORT, for example 127.0.0.1:8080; it was “\(text)”.")
    }
    (configuration.host, configuration.port) = (address.host, address.port)
  }

  private static func setTenantAges(_ text: String, _ configuration: inout Configuration) throws(SettingError) {
    configuration.tenantMaximumAges = [:]
    for part in text.split(separator: ",") {
      let parts = part.split(separator: "=", omittingEmptySubsequences: false)
      guard parts.count == 2, let tenant = Tenant(String(parts[0])), let age = Double(String(parts[1])), age > 0,
        age <= highest
      else { throw SettingError("--tenant-max-age takes TENANT=SECONDS, such as acme=86400; “\(part)” is none.") }
      configuration.tenantMaximumAges[tenant] = age
    }
  }

  private static func setSecret(_ text: String, _ configuration: inout Configuration) throws(SettingError) {
    guard !text.isEmpty else { return }
    guard let secret = WebhookSecret(text) else {
      throw SettingError("--webhook-secret must have at least \(WebhookSecret.leastBytes) characters.")
    }
    guard WebhookSecret.canBeUsed else {
      throw SettingError("--webhook-secret turns on webhooks, which need libcurl: install the package libcurl4.")
    }
    configuration.webhooks.secret = secret
  }

  private static func readSecret(_ path: String, _ configuration: inout Configuration) throws(SettingError) {
    guard !path.isEmpty else { return }
    let bytes: [UInt8]
    do throws(KeyFileError) { bytes = try KeyFile.contents(of: path) } catch {
      throw SettingError("--webhook-secret-file: “\(path)” can't be used: \(error).")
    }
    try setSecret(String(decoding: bytes.prefix { $0 != 0x0A && $0 != 0x0D }, as: UTF8.self), &configuration)
    guard configuration.webhooks.secret != nil else {
      throw SettingError("--webhook-secret-file: the first line of “\(path)” is empty.")
    }
  }

  private static func setHook(_ text: String, _ configuration: inout Configuration) throws(SettingError) {
    guard !text.isEmpty else { return }
    guard WebhookSecret.canBeUsed, UploadHook.isURL(text) else {
      throw SettingError("--hook must be an absolute http or https URL, and needs the package libcurl4.")
    }
    configuration.hookURL = text
  }

  private static func setBasePath(_ text: String, _ configuration: inout Configuration) throws(SettingError) {
    guard let base = BasePath(serviceAt: text) else {
      throw SettingError(
        "--base-path is a path such as /audio, of letters, digits and -._~, that doesn't begin with one of the "
          + "service's own (/v1, /viewer …); it was “\(text)”.")
    }
    configuration.basePath = base
  }
}
