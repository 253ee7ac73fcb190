import ArgumentParser
import AudioService
import Glibc

/// A list of settings, as a type.
protocol SettingList: Sendable { static var settings: [Setting] { get } }

/// The groups of the settings, as types.
enum Group {
  enum Main: SettingList { static let settings = Setting.Group.main.settings }
  enum Access: SettingList { static let settings = Setting.Group.access.settings }
  enum HTTP: SettingList { static let settings = Setting.Group.http.settings }
  enum Limits: SettingList { static let settings = Setting.Group.limits.settings }
  enum Disk: SettingList { static let settings = Setting.Group.disk.settings }
  enum Webhooks: SettingList { static let settings = Setting.Group.webhooks.settings }
  enum Cluster: SettingList { static let settings = Setting.Group.cluster.settings }
  enum Bucket: SettingList { static let settings = Setting.Group.bucket.settings }
}

enum SharedSettings: SettingList { static let settings = SharedStorage.settings }

/// The flags of a list of settings, made from its rows. ArgumentParser finds a type's options by its mirror and decodes
/// them by their names, so a type that mirrors a table has the table's options.
struct SettingFlags<List: SettingList>: ParsableArguments, CustomReflectable, Sendable {
  /// The texts of the given flags, by the setting's name.
  private(set) var given: [String: String] = [:]

  init() {}

  init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: Name.self)
    for setting in List.settings { given[setting.name] = try Self.text(setting.name, values, as: setting.argumentType) }
  }

  var customMirror: Mirror {
    Mirror(self, children: List.settings.map { ($0.name, Self.option($0, $0.argumentType)) })
  }

  private static func option<Value: ExpressibleByArgument>(_ setting: Setting, _: Value.Type) -> Any {
    Option<Value?>(
      name: .customLong(setting.name), help: ArgumentHelp(setting.summary, valueName: setting.valueName))
  }

  private static func text<Value: ExpressibleByArgument>(
    _ name: String, _ values: KeyedDecodingContainer<Name>, as _: Value.Type
  ) throws -> String? {
    try values.decode(Option<Value?>.self, forKey: Name(stringValue: name)).wrappedValue.map { "\($0)" }
  }

  /// The name of a setting.
  private struct Name: CodingKey {
    let stringValue: String
    let intValue: Int? = nil

    init(stringValue: String) { self.stringValue = stringValue }

    init?(intValue: Int) { nil }
  }
}

extension Setting {
  fileprivate var argumentType: any ExpressibleByArgument.Type {
    guard let type = type as? any ExpressibleByArgument.Type else { preconditionFailure("\(type) is no argument") }
    return type
  }
}

/// Returns the value of an environment variable; nil if it isn't set.
func environmentVariable(_ name: String) -> String? {
  unsafe getenv(name).map { unsafe String(cString: $0) }
}

/// Returns a setting's flag, or else its variable, for commands other than `serve`.
func setting(_ name: String, _ flag: String?) -> String? {
  flag ?? (Setting.all.first { $0.name == name }?.variable).flatMap(environmentVariable)
}
