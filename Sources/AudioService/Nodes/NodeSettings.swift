import HTTP
import Webhooks

/// How the nodes of a cluster reach each other, to show waveforms that other nodes build. By default they don't.
struct NodeSettings: Sendable {
  /// What the nodes know each other by.
  var secret: NodeSecret?
  /// The address that only other nodes can reach.
  var listen: ListeningAddress?
  /// Where other nodes reach it; nil for `listen`.
  var address: ListeningAddress?

  /// Throws if the settings don't go together. `hasBucket` is whether the media are in a bucket.
  func check(_ role: ClusterSettings.Role, hasBucket: Bool) throws(SettingError) {
    guard secret != nil || listen != nil || address != nil else { return }
    guard hasBucket else {
      throw SettingError(
        "--cluster-listen, --cluster-address and --cluster-secret-file are for media in a bucket and need --media "
          + "s3://BUCKET. In a shared folder, every node shows growing waveforms without them.")
    }
    guard secret != nil else {
      throw SettingError(
        "--cluster-listen and --cluster-address need --cluster-secret-file, with the same file on every node.")
    }
    guard let listen else {
      guard address == nil else { throw SettingError("--cluster-address needs --cluster-listen.") }
      guard role == .api else {
        throw SettingError(
          "--cluster-secret-file needs --cluster-listen on a node that runs jobs: there, it answers the other nodes' "
            + "requests for the waveforms that it builds. Only with --role api, it isn't needed.")
      }
      return
    }
    guard address != nil || listen.namesOneMachine else {
      throw SettingError(
        "--cluster-listen on all addresses needs --cluster-address, the address at which other nodes reach this one.")
    }
  }

  /// Whether a host is one that other machines can't find this one by: they would reach themselves, or nothing.
  static func isLocal(_ host: String) -> Bool {
    if ["localhost", "localhost."].contains(host.lowercased()) || host.lowercased().hasSuffix(".localhost") {
      return true
    }
    return NetworkAddress(host)?.isOfThisMachine ?? false
  }

  /// Returns the address by which other nodes find this one, if it listens on `port`.
  func announced(port: UInt16) -> String? {
    guard let listen else { return nil }
    return (address ?? ListeningAddress(host: listen.host, port: port)).text
  }
}

extension ListeningAddress {
  /// `HOST:PORT`, with an IPv6 address in brackets.
  var text: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

  /// Whether other machines may find this one by it: it doesn't stand for all addresses.
  var namesOneMachine: Bool { !["", "0"].contains(host) && NetworkAddress(host)?.isUnspecified != true }

  /// Whether a text is an address that a node can be called at.
  static func canBeCalled(_ text: String) -> Bool {
    guard let address = ListeningAddress(text), address.text == text else { return false }
    return address.port > 0 && address.namesOneMachine && HostGuard.isName(text)
  }
}

extension Setting {
  /// Settings of nodes that call each other.
  static let nodes: [Setting] = [
    Setting(
      "cluster-listen", "HOST:PORT",
      "Address and port where only other nodes reach this one, for waveforms that it builds. With --media s3://….",
      default: "none"
    ) { (text: String, configuration) throws(SettingError) in
      configuration.cluster.nodes.listen = try address(text, "cluster-listen") { ListeningAddress($0) != nil }
    },
    Setting(
      "cluster-address", "HOST:PORT", "Address and port where other nodes reach it, if that differs.",
      default: "--cluster-listen"
    ) { (text: String, configuration) throws(SettingError) in
      configuration.cluster.nodes.address = try address(text, "cluster-address", ListeningAddress.canBeCalled)
    },
    Setting(
      "cluster-secret-file", "FILE",
      "File with a secret of at least \(NodeSecret.leastBytes) bytes, the same on every node, by which nodes know "
        + "each other.", default: "none", set: readNodeSecret),
  ]

  private static func address(
    _ text: String, _ name: String, _ isValid: (String) -> Bool
  ) throws(SettingError) -> ListeningAddress? {
    guard !text.isEmpty else { return nil }
    guard isValid(text), let address = ListeningAddress(text) else {
      throw SettingError("--\(name) is HOST:PORT, for example 10.0.0.1:8090; it was “\(text)”.")
    }
    return address
  }

  private static func readNodeSecret(_ path: String, _ configuration: inout Configuration) throws(SettingError) {
    configuration.cluster.nodes.secret = nil
    guard !path.isEmpty else { return }
    var bytes: [UInt8]
    do throws(KeyFileError) { bytes = try KeyFile.contents(of: path) } catch {
      throw SettingError("--cluster-secret-file: “\(path)” can't be used: \(error).")
    }
    // An editor may end the line on one node and not on another.
    while let last = bytes.last, last == 0x0A || last == 0x0D { bytes.removeLast() }
    guard let secret = NodeSecret(bytes) else {
      throw SettingError(
        "--cluster-secret-file: the secret in “\(path)” has \(bytes.count) bytes, and at least "
          + "\(NodeSecret.leastBytes) are needed.")
    }
    configuration.cluster.nodes.secret = secret
  }
}
