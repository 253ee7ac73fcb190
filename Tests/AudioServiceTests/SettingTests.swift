import Foundation
import HTTP
import Testing

@testable import AudioService

/// The table of settings, which makes the flags, the variables, `--help` and a table of docs/operating.md.
///
///     STILLWAVE_TABLES=remake deploy/test --filter SettingTests
@Suite struct SettingTests {
  private static let all = Setting.all

  /// Two values of each setting that is no number.
  private static let examples: [String: (String, String)] = [
    "listen": ("127.0.0.9:1", "[::1]:2"), "data": ("one", "two"), "ffmpeg": ("one", "two"),
    "webhook-secret": ("sixteen letters.", ""), "webhook-networks": ("10.0.0.0/8", "fd00::/8"),
    "webhook-ca": ("/dev/null", ""), "log-level": ("debug", "error"), "allowed-hosts": ("one.example", "two.example"),
    "cors-origin": ("https://one.example", "*"), "embed-origins": ("https://one.example", "*"),
    "trusted-proxies": ("10.0.0.0/8,127.0.0.1", "fd00::/8"),
    "base-path": ("/one", "/two"), "keys": ("one", "two"), "token-secret-file": ("one", "two"),
    "audit-log": ("one", "two"), "metrics-tenants": ("true", "false"), "tenant-max-age": ("a=1", "a=2"),
    "admin-listen": ("127.0.0.9:1", "[::1]:2"),
    "webhook-secret-file": ("/proc/version", ""), "catalog": ("postgres://one/x", "postgres://two/x"),
    "media": ("file:///one", "file:///two"), "node": ("one", "two"), "role": ("api", "work"),
    "s3-endpoint": ("http://one", "https://two:7480"), "tenant-limits": ("recordings=1", "recordings=2,queued_jobs=0"),
    "s3-credentials": ("one", "two"), "s3-ca": ("/dev/null", "/dev/zero"),
    "scratch": ("one", "two"), "s3-public-endpoint": ("https://one", "https://two"),
    "cache-control": ("public", "private"), "cluster-listen": ("10.0.0.1:1", "[fd00::1]:2"),
    "cluster-address": ("10.0.0.1:1", "one.example:2"), "cluster-secret-file": ("/proc/version", ""),
  ]
  /// Settings that others need.
  private static let companions = ["catalog": "postgres://h/x", "media": "file:///m"]
  private static let bucketCompanions = [
    "catalog": "postgres://h/x", "media": "s3://bucket", "s3-credentials": "key",
  ]

  private static let nodeCompanions = bucketCompanions.merging([
    "cluster-listen": "0.0.0.0:8090", "cluster-address": "one:8090", "cluster-secret-file": "/proc/version",
    "role": "api",
  ]) { $1 }

  private func dump(_ flags: [String: String], _ variables: [String: String] = [:]) throws -> String {
    var configuration = try Configuration(flags: flags, variable: { variables[$0] })
    let secret = configuration.webhooks.secret == nil ? "no secret" : "a secret"
    configuration.webhooks.secret = nil
    return "\(configuration) \(secret)"
  }

  @Test(
    "every setting can be given by its flag and its variable; the flag wins",
    arguments: all.filter { !$0.isSecret && $0.name != "hook" }.map(\.name))
  func precedence(name: String) throws {
    let setting = try #require(Self.all.first { $0.name == name })
    let (one, two) = Self.examples[name] ?? ("7", "9")
    let isOfNodes = ["catalog", "media", "node", "role", "lease", "drain"].contains(name)
    let isOfBuckets = ["scratch", "max-cache-bytes"].contains(name) || name.hasPrefix("s3-")
    let companions =
      name.hasPrefix("cluster-")
      ? Self.nodeCompanions : isOfNodes ? Self.companions : isOfBuckets ? Self.bucketCompanions : [:]
    var others = companions.filter { $0.key != name }
    // The address can't be without the secret, but the secret without the address.
    if name == "cluster-secret-file" { others = others.filter { !$0.key.hasPrefix("cluster-") } }
    if name == "s3-public-endpoint" { others["s3-redirects"] = "1" }
    func dump(flag: String?, variable: String? = nil) throws -> String {
      let flags = others.merging(flag.map { [name: $0] } ?? [:]) { $1 }
      return try self.dump(flags, variable.map { [setting.variable: $0] } ?? [:])
    }
    let byFlag = try dump(flag: one)
    if others.isEmpty { #expect(try byFlag != dump(flag: nil), "it changes nothing") }
    #expect(try dump(flag: nil, variable: one) == byFlag)
    #expect(try dump(flag: one, variable: two) == byFlag)
    #expect(try dump(flag: two, variable: one) != byFlag)
  }

  @Test(
    "a password in the catalog's URL is refused as a flag",
    arguments: [
      "postgres://u:p4ss@h/x", "postgresql://u:p4ss@h1,h2:5433/x", "postgres://h/x?password=p4ss",
    ])
  func passwords(url: String) throws {
    let media = ["media": "file:///m"]
    #expect(
      performing: { try dump(media.merging(["catalog": url]) { $1 }) },
      throws: { "\($0)".contains("STILLWAVE_CATALOG") && !"\($0)".contains("p4ss") })
    #expect(try dump(media, ["STILLWAVE_CATALOG": url]).contains("p4ss"))
    #expect(try dump(media.merging(["catalog": "postgres://u@h:5432/x"]) { $1 }).contains("u@h:5432"))
  }

  @Test(
    "settings of a bucket that can't be used or don't go together are refused, with the reason",
    arguments: [
      (["media": "s3://b"], "3 to 63"), (["media": "s3://bucket/a//b"], "a prefix consists of"),
      (["media": "s3://bucket?color=red"], "has the option “color”"),
      (["media": "s3://bucket?endpoint=http://a", "s3-endpoint": "http://b"], "“endpoint” twice"),
      (["s3-endpoint": "store:7480"], "--s3-endpoint is http"), (["s3-endpoint": "http://s/path"], "without a path"),
      (["media": "s3://bucket?region=a%20b"], "a region is a name"),
      (["media": "s3://bucket?style=host"], "has the option “style”"),
      (["media": "s3://bucket?encryption=none"], "has the option “encryption”"),
      (["max-cache-bytes": "0"], "greater than 0"),
      (["s3-redirects": "604801"], "--s3-redirects is 0, for never, or at most 604800 seconds; it was 604801."),
      (["s3-redirects": "-1"], "--s3-redirects is 0"), (["s3-public-endpoint": "https://x"], "needs --s3-redirects"),
      (["s3-redirects": "9", "s3-public-endpoint": "https://x/y"], "--s3-public-endpoint is http:// or https://"),
      (["s3-credentials": ""], "needs a key"), (["catalog": ""], "need --catalog"),
      (["keys": "k"], "needs --token-secret-file"),
      (["media": "file:///m", "s3-credentials": "", "scratch": "x"], "need --media s3://BUCKET"),
      (["media": "file:///m"], "need --media s3://BUCKET"),
      (["media": "file:///m", "s3-credentials": "", "s3-redirects": "9"], "need --media s3://BUCKET"),
    ])
  func buckets(flags: [String: String], reason: String) {
    #expect(
      performing: { try dump(Self.bucketCompanions.merging(flags) { $1 }) }, throws: { "\($0)".contains(reason) })
  }

  @Test(
    "settings of a cluster that can't be used or don't go together are refused, with the reason",
    arguments: [
      (["catalog": "mysql://x/y", "media": "file:///m"], "--catalog is a URL such as postgres://"),
      (["catalog": "postgres://h/x"], "--catalog needs --media"),
      (["catalog": "postgres://h/x", "media": "ftp://bucket"], "--media is the URL of a folder"),
      (["media": "s3://bucket"], "need --catalog"), (["media": "file:///m"], "need --catalog"),
      (["role": "worker"], "--role is all, api or work"), (["node": "../x"], "--node takes letters"),
    ])
  func cluster(flags: [String: String], reason: String) {
    #expect(performing: { try dump(flags) }, throws: { "\($0)".contains(reason) })
  }

  @Test(
    "settings of nodes that call each other that can't be used or don't go together are refused, with the reason",
    arguments: [
      (["cluster-listen": "8090"], "--cluster-listen is HOST:PORT"),
      (["cluster-listen": "10.0.0.1:70000"], "it was “10.0.0.1:70000”"),
      (["cluster-address": "10.0.0.1"], "--cluster-address is HOST:PORT"),
      (["cluster-address": "10.0.0.1:0"], "--cluster-address is HOST:PORT"),
      (["cluster-address": "0.0.0.0:1"], "--cluster-address is HOST:PORT"),
      (["cluster-address": "a/b:1"], "--cluster-address is HOST:PORT"),
      (["cluster-address": "a@b:1"], "--cluster-address is HOST:PORT"),
      (["cluster-address": "fd00::1:1"], "--cluster-address is HOST:PORT"),
      (["cluster-address": ""], "on all addresses needs --cluster-address"),
      (["cluster-listen": "[::]:1", "cluster-address": ""], "on all addresses needs --cluster-address"),
      (["cluster-listen": "[0:0::0]:1", "cluster-address": ""], "on all addresses needs --cluster-address"),
      (["cluster-listen": "[::ffff:0.0.0.0]:1", "cluster-address": ""], "on all addresses needs --cluster-address"),
      (["cluster-address": "[::0]:1"], "--cluster-address is HOST:PORT"),
      (["cluster-listen": ""], "--cluster-address needs --cluster-listen"),
      (["cluster-listen": "", "cluster-address": "", "role": "all"], "on a node that runs jobs"),
      (["cluster-secret-file": ""], "need --cluster-secret-file"),
      (["cluster-secret-file": "/dev/null"], "“/dev/null” can't be used: it is not a regular file"),
      (["cluster-secret-file": "/nowhere"], "“/nowhere” can't be used"),
      (["media": "file:///m", "s3-credentials": ""], "need --media s3://BUCKET"),
    ])
  func nodes(flags: [String: String], reason: String) {
    #expect(
      performing: { try dump(Self.nodeCompanions.merging(flags) { $1 }) }, throws: { "\($0)".contains(reason) })
  }

  @Test func theAddressOfANodeIsTheOneItListensOnUnlessAnotherIsNamed() throws {
    var flags = Self.nodeCompanions
    func announced() throws -> String? {
      try Configuration(flags: flags, variable: { _ in nil }).cluster.nodes.announced(port: 7)
    }
    #expect(try announced() == "one:8090")
    (flags["cluster-listen"], flags["cluster-address"]) = ("[fd00::1]:0", nil)
    #expect(try announced() == "[fd00::1]:7")
    flags["cluster-listen"] = nil
    #expect(try announced() == nil, "a node without jobs")
  }

  @Test func theKeyOfABucketComesFromTheEnvironmentOrAFileAndIsNotShown() throws {
    var flags = Self.bucketCompanions
    flags["s3-credentials"] = nil
    let shown = try dump(flags, ["AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "p4ss"])
    #expect(!shown.contains("p4ss"))
    let configuration = try Configuration(flags: flags) { ["AWS_SHARED_CREDENTIALS_FILE": "/x"][$0] }
    #expect(configuration.cluster.bucket.credentials != nil)
    #expect(throws: SettingError.self) {
      try Configuration(flags: flags) { ["AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": ""][$0] }
    }
  }

  @Test func secretsAreRefusedAsFlags() throws {
    let (secret, variable) = ("sixteen letters.", "STILLWAVE_WEBHOOK_SECRET")
    #expect(try dump([:], [variable: secret]).hasSuffix("a secret"))
    #expect(
      performing: { try dump(["webhook-secret": secret]) },
      throws: {
        "\($0)".contains("--webhook-secret-file") && !"\($0)".contains(secret)
      })
    #expect(Self.all.filter(\.isSecret).map(\.name) == ["webhook-secret"])
  }

  @Test func aHookNeedsASecretToSignWith() throws {
    let hook = "http://127.0.0.1:9/ask"
    #expect(performing: { try dump(["hook": hook]) }, throws: { "\($0)".contains("STILLWAVE_WEBHOOK_SECRET") })
    let secret = ["STILLWAVE_WEBHOOK_SECRET": "sixteen letters."]
    #expect(try dump(["hook": hook], secret) != dump([:], secret))
    #expect(throws: SettingError.self) { try dump(["hook": "ftp://x"], secret) }
  }

  @Test func keysAndSharedCachesDoNotGoTogether() throws {
    #expect(
      performing: { try dump(["keys": "k", "cache-control": "public"]) },
      throws: { "\($0)".contains("--cache-control public can't be used with --keys") })
    #expect(try dump(["keys": "k", "cache-control": "private"]) == dump(["keys": "k"]))
  }

  @Test func everySettingHasANameOfItsOwnAndTheVariableOfThatName() {
    #expect(Set(Self.all.map(\.name)).count == Self.all.count)
    for setting in Self.all {
      #expect(setting.variable == "STILLWAVE_" + setting.name.uppercased().replacing("-", with: "_"))
      #expect(!setting.help.isEmpty && setting.help.hasSuffix(".") && !setting.standard.isEmpty)
    }
  }

  @Test("a default is the one in force, as people read it")
  func defaults() throws {
    let standard = Dictionary(uniqueKeysWithValues: Self.all.map { ($0.name, $0.standard) })
    #expect(standard["listen"] == "127.0.0.1:8080" && standard["data"] == "stillwave-data")
    #expect(standard["max-upload-bytes"] == "8 GiB" && standard["reserve-bytes"] == "256 MiB")
    #expect(standard["upload-expiry"] == "24 h" && standard["idle-timeout"] == "60")
    #expect(standard["max-sample-rate"] == "768000" && standard["max-connections"] == "8192")
    // A number is given as the flag takes it, or in a unit that says what it is.
    let sizes = ["KiB": 1024.0, "MiB": 0x1p20, "GiB": 0x1p30, "h": 3600]
    for setting in Self.all {
      let words = setting.standard.split(separator: " ")
      guard let number = Double(words[0]), words.count <= 2 else { continue }
      let value = number * (words.count == 2 ? sizes[String(words[1]), default: 1] : 1)
      guard value > 0 else { continue }
      let text = setting.type is Double.Type ? "\(value)" : "\(Int(value))"
      #expect(try dump([setting.name: text]) == dump([:]), "\(setting.name)")
    }
    #expect(Configuration().workerCount == ProcessInfo.processInfo.activeProcessorCount)
    #expect(Configuration().httpLimits.connectionCountPerClient == nil && Configuration().maximumAgeSeconds == nil)
  }

  @Test(
    "a value that makes no sense is refused with the setting's name",
    arguments: [
      ("workers", "0", "--workers must be greater than 0; it was 0."),
      ("workers", "two", "STILLWAVE_WORKERS can't be “two”."),
      ("workers", "9300000000000000000", "STILLWAVE_WORKERS can't"),
      ("max-upload-bytes", "-1", "--max-upload-bytes must be greater than 0; it was -1."),
      ("idle-timeout", "0", "--idle-timeout must be greater than 0 and at most 315360000; it was 0.0."),
      ("idle-timeout", "315360001", "at most 315360000"), ("idle-timeout", "nan", "at most 315360000"),
      ("max-age", "-1", "--max-age must be 0, for never, or at most 315360000; it was -1.0."),
      ("max-connections-per-client", "0", "--max-connections-per-client must be greater than 0; it was 0."),
      ("listen", "8080", "--listen is HOST:PORT, for example 127.0.0.1:8080; it was “8080”."),
      ("listen", "a:70000", "--listen is HOST:PORT"), ("log-level", "loud", "or critical; it was “loud”."),
      ("allowed-hosts", "a,b/c", "--allowed-hosts takes names such as audio.example.com; “b/c” is none."),
      ("cors-origin", "*,https://a.example", "--cors-origin takes origins such as https://app.example.com, or * alone"),
      ("trusted-proxies", "10.0.0.0/40", "--trusted-proxies takes networks such as 10.0.0.0/8; “10.0.0.0/40” is none."),
      (
        "webhook-networks", "example.com",
        "--webhook-networks takes networks such as 10.0.0.0/8; “example.com” is none."
      ),
      ("tenant-limits", "bytes=1", "with one of stored_bytes, recordings, queued_jobs"),
      ("tenant-limits", "recordings", "“recordings” is none."), ("tenant-limits", "recordings=1=2", "is none."),
      ("tenant-limits", "queued_jobs=1.5", "queued_jobs must be a whole number, 0 or more; it was “1.5”."),
      ("tenant-limits", "requests_per_second=nan", "must be 0, or a number from 0.00001"),
      ("webhook-secret", "short", "--webhook-secret must have at least 16 characters."),
      ("webhook-ca", "/none", "--webhook-ca: “/none” can't be read."),
      ("s3-ca", "/none", "--s3-ca: “/none” can't be read."),
      ("base-path", "/v1/a", "--base-path is a path such as /audio"),
      ("role", "none", "--role is all, api or work; it was “none”."),
      ("lease", "2", "--lease is 3 to 3600 seconds; it was 2.0."),
      ("cache-control", "shared", "--cache-control is private or public; it was “shared”."),
    ])
  func refusals(name: String, text: String, message: String) throws {
    let setting = try #require(Self.all.first { $0.name == name })
    let error = #expect(throws: SettingError.self) {
      try Configuration(flags: [:], variable: { $0 == setting.variable ? text : nil })
    }
    #expect(error?.description.contains(message) == true, "\(error?.description ?? "")")
  }

  @Test func anEmptyTextIsAsIfNoneHadBeenGiven() throws {
    for name in [
      "webhook-secret-file", "webhook-ca", "webhook-networks", "allowed-hosts", "cors-origin", "trusted-proxies",
      "tenant-limits",
    ] {
      #expect(try dump([name: ""]) == dump([:]), "\(name)")
    }
    #expect(try dump(["max-age": "0"]) == dump([:]))
  }

  // MARK: The documentation

  @Test("the address and the data folder come first, and every group has settings")
  func groups() {
    #expect(Self.all.prefix(2).map(\.name) == ["listen", "data"])
    for group in Setting.Group.allCases { #expect(!group.settings.isEmpty, "\(group)") }
  }

  @Test("docs/operating.md has the tables of settings")
  func documentation() throws {
    let document = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appending(path: "../../docs/operating.md").standardized
    let text = try String(contentsOf: document, encoding: .utf8)
    let begin = "<!-- settings -->\n"
    let parts = text.components(separatedBy: begin)
    try #require(parts.count == 2, "docs/operating.md has no place for the settings")
    let written = try #require(parts[1].components(separatedBy: "<!-- end -->").first)
    guard ProcessInfo.processInfo.environment["STILLWAVE_TABLES"] == "remake" else {
      #expect(written == Setting.tables, "docs/operating.md is out of date; STILLWAVE_TABLES=remake writes it")
      return
    }
    try text.replacing(begin + written, with: begin + Setting.tables)
      .write(to: document, atomically: true, encoding: .utf8)
  }
}
