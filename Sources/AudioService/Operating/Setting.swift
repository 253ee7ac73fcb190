import Glibc
import HTTP

/// One setting of the service: its flag, its variable, its line in `--help`, and its row in docs/operating.md.
package struct Setting: Sendable {
  /// The unit of a number.
  enum Unit: String, Sendable {
    case bytes, seconds, hertz
    case none = ""
  }

  /// The flag without its dashes, for example `max-upload-bytes`.
  package let name: String
  /// The name of the value in `--help`, for example `DIR`; nil for the name.
  package let valueName: String?
  let unit: Unit
  /// The default as shown to people, for example `8 GiB`.
  let standard: String
  /// What the setting does, in sentences.
  let help: String
  /// Whether the value is a secret, which is refused as a flag: other users of the machine can see flags.
  let isSecret: Bool
  /// The type that the flag's text is parsed as.
  package let type: any (LosslessStringConvertible & Sendable).Type
  private let read: @Sendable (String, inout Configuration) throws(SettingError) -> Bool

  /// Creates a setting. `set` throws if the value is invalid.
  init<Value: LosslessStringConvertible & Sendable>(
    _ name: String, _ valueName: String?, _ help: String, _ unit: Unit = .none, default standard: String,
    isSecret: Bool = false,
    set: @escaping @Sendable (Value, inout Configuration) throws(SettingError) -> Void
  ) {
    (self.name, self.valueName, self.unit, self.standard, self.help) = (name, valueName, unit, standard, help)
    type = Value.self
    self.isSecret = isSecret
    read = { text, configuration throws(SettingError) in
      guard let value = Value(text) else { return false }
      try set(value, &configuration)
      return true
    }
  }

  /// The environment variable, for example `STILLWAVE_MAX_UPLOAD_BYTES`.
  package var variable: String { "STILLWAVE_" + name.uppercased().map { $0 == "-" ? "_" : String($0) }.joined() }

  /// The text for `--help`: what the setting does, its unit, and its default.
  package var summary: String { "\(help) (\(unit == .none ? "" : "\(unit.rawValue); ")default: \(standard))" }

  /// Applies the text of a flag or a variable to a configuration.
  fileprivate func set(_ text: String, in configuration: inout Configuration) throws(SettingError) {
    guard try read(text, &configuration) else { throw SettingError("\(variable) can't be “\(text)”.") }
  }
}

/// An error in a setting, described in a sentence for the operator.
package struct SettingError: Error, CustomStringConvertible {
  /// The sentence.
  package let description: String

  init(_ description: String) { self.description = description }
}

extension Configuration {
  /// Creates a configuration from the defaults, the variables, and the flags; a flag takes precedence over its
  /// variable.
  ///
  /// `flags` are texts by the setting's name. `variable` returns the value of an environment variable, or nil if it
  /// isn't set. Throws if a text is invalid.
  package init(flags: [String: String], variable: (String) -> String?) throws(SettingError) {
    self.init()
    for setting in Setting.all {
      if setting.isSecret, flags[setting.name] != nil { throw .secretOnCommandLine(setting) }
      guard let text = flags[setting.name] ?? variable(setting.variable) else { continue }
      try setting.set(text, in: &self)
    }
    try cluster.check()
    try cluster.bucket.complete(variable)
    guard cluster.bucket.address == nil || keysPath == nil || tokenSecretPath != nil else {
      throw SettingError(
        "--keys with --media s3://… needs --token-secret-file, with the same file on every node: there is no folder in "
          + "which nodes could share a secret.")
    }
    guard cacheScope == .private || keysPath == nil else {
      throw SettingError(
        "--cache-control public can't be used with --keys: a cache that clients share would give the recordings of one "
          + "tenant to others. Leave out one of the two.")
    }
    if let url = flags["catalog"], ClusterSettings.hasPassword(url) {
      throw SettingError(
        "--catalog with a password isn't accepted on the command line, where other users can see it. Set "
          + "STILLWAVE_CATALOG, or give the password with PGPASSWORD or a password file.")
    }
    guard hookURL == nil || webhooks.secret != nil else {
      throw SettingError("--hook signs its questions, so it needs STILLWAVE_WEBHOOK_SECRET or --webhook-secret-file.")
    }
  }
}

extension SettingError {
  fileprivate static func secretOnCommandLine(_ setting: Setting) -> SettingError {
    SettingError(
      "--\(setting.name) isn't accepted on the command line, where other users can see it. Set \(setting.variable), or "
        + "give the file that holds it with --\(setting.name)-file.")
  }
}

// MARK: Kinds of settings

extension Setting {
  /// The property of the configuration that holds a value.
  typealias Property<Value> = WritableKeyPath<Configuration, Value> & Sendable

  /// The maximum time and rate: ten years in seconds, which stands for never.
  static let highest = 315_360_000.0

  /// A number greater than 0; a Double is a time in seconds or a rate.
  static func number<Value: LosslessStringConvertible & Sendable & Comparable & Numeric>(
    _ name: String, _ path: any Property<Value>, _ help: String, _ unit: Unit? = nil, default standard: String? = nil
  ) -> Setting {
    let unit = unit ?? (Value.self == Double.self ? .seconds : .none)
    let standard = standard ?? unit.text(of: Configuration()[keyPath: path])
    return number(name, help, unit, default: standard) { $1[keyPath: path] = $0 }
  }

  /// Returns a setting whose value a closure sets.
  static func number<Value: LosslessStringConvertible & Sendable & Comparable & Numeric>(
    _ name: String, _ help: String, _ unit: Unit = .none, default standard: String,
    set: @escaping @Sendable (Value, inout Configuration) -> Void
  ) -> Setting {
    Setting(name, nil, help, unit, default: standard) { (value: Value, configuration) throws(SettingError) in
      guard value > 0, (value as? Double ?? 0) <= highest else {
        let limit = value is Double ? " and at most \(Int(highest))" : ""
        throw SettingError("--\(name) must be greater than 0\(limit); it was \(value).")
      }
      set(value, &configuration)
    }
  }

  static func text(_ name: String, _ valueName: String, _ path: any Property<String>, _ help: String) -> Setting {
    Setting(name, valueName, help, default: Configuration()[keyPath: path]) { $1[keyPath: path] = $0 }
  }

  /// A text that may be left out; an empty one is as if none had been given.
  static func optionalText(
    _ name: String, _ valueName: String, _ path: any Property<String?>, _ help: String, default standard: String
  ) -> Setting {
    Setting(name, valueName, help, default: standard) { $1[keyPath: path] = $0.isEmpty ? nil : $0 }
  }

  /// A file of certificates, which must be readable.
  static func authorities(_ name: String, _ path: any Property<String?>, _ help: String) -> Setting {
    Setting(name, "FILE", help, default: "the system's") { (file: String, configuration) throws(SettingError) in
      guard !file.isEmpty else { return }
      guard unsafe access(file, R_OK) == 0 else { throw SettingError("--\(name): “\(file)” can't be read.") }
      configuration[keyPath: path] = file
    }
  }

  /// One of a few words.
  static func choice<Value: RawRepresentable<String> & CaseIterable & Sendable>(
    _ name: String, _ path: any Property<Value>, _ help: String
  ) -> Setting {
    let values = Dictionary(uniqueKeysWithValues: Value.allCases.map { ($0.rawValue, $0) })
    let names = Value.allCases.map(\.rawValue)
    let known = names.dropLast().joined(separator: ", ") + " or " + (names.last ?? "")
    return Setting(name, nil, help, default: Configuration()[keyPath: path].rawValue) {
      (text: String, configuration) throws(SettingError) in
      guard let value = values[text] else { throw SettingError("--\(name) is \(known); it was “\(text)”.") }
      configuration[keyPath: path] = value
    }
  }

  /// A time that may be 0, which stands for `nil`: never.
  static func time(
    _ name: String, _ path: any Property<Double?>, _ help: String, default standard: String
  ) -> Setting {
    Setting(name, nil, help, .seconds, default: standard) { (seconds: Double, configuration) throws(SettingError) in
      guard (0...highest).contains(seconds) else {
        throw SettingError("--\(name) must be 0, for never, or at most \(Int(highest)); it was \(seconds).")
      }
      configuration[keyPath: path] = seconds > 0 ? seconds : nil
    }
  }

  /// A time within a range.
  static func time(
    _ name: String, _ path: any Property<Double>, in range: ClosedRange<Double>, _ help: String
  ) -> Setting {
    let standard = "\(Int(Configuration()[keyPath: path]))"
    return Setting(name, nil, help, .seconds, default: standard) {
      (seconds: Double, configuration) throws(SettingError) in
      guard range.contains(seconds) else {
        throw SettingError(
          "--\(name) is \(Int(range.lowerBound)) to \(Int(range.upperBound)) seconds; it was \(seconds).")
      }
      configuration[keyPath: path] = seconds
    }
  }
}

extension Setting.Unit {
  /// Returns a default as shown to people: `8 GiB`, `24 h`, or the number.
  fileprivate func text(of value: some LosslessStringConvertible & Sendable) -> String {
    guard let number = Double("\(value)") else { return "\(value)" }
    let sizes: [(size: Double, name: String)] =
      switch self {
      case .bytes: [(0x1p30, " GiB"), (0x1p20, " MiB"), (0x1p10, " KiB")]
      case .seconds: [(3600, " h")]
      default: []
      }
    let unit = sizes.first { number.truncatingRemainder(dividingBy: $0.size) == 0 } ?? (1, "")
    return "\(Int(number / unit.size))\(unit.name)"
  }
}
