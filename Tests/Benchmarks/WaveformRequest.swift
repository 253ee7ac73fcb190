import Foundation

/// Requests for `stillwave worker` to build a recording's waveform.
enum WaveformRequest {
  /// Writes the request of a waveform job to a file and returns its path.
  /// - Parameters:
  ///   - threads: by default one per core.
  ///   - findsNoiseRegions: as in a job of the service; if false, only the waveform is built.
  ///   - facts: the probe's facts about a file that needs a working copy, as JSON.
  static func file(
    _ recording: String, in folder: String, threads: Int? = nil, findsNoiseRegions: Bool = true, facts: String? = nil
  ) throws -> String {
    let copy = facts.map { #""copy":{"facts":\#($0),"path":"\#(folder)/working"},"# } ?? ""
    return try write(
      recording, in: folder, threads: threads,
      work: """
        {"waveform":{"_0":{\(copy)"findsNoiseRegions":\(findsNoiseRegions),"pyramid":"\(pyramid(in: folder))",\
        "soundMap":"\(folder)/sound.map"}}}
        """)
  }

  /// Writes a request to probe a file, as the service does before a job.
  static func probe(_ recording: String, in folder: String) throws -> String {
    try write(recording, in: folder, threads: nil, work: #"{"probe":{}}"#)
  }

  /// Returns a folder beside others, for a job that runs at the same time as another one.
  static func folder(_ number: Int, in folder: String) throws -> String {
    let path = "\(folder)/job-\(number)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    return path
  }

  private static func write(_ recording: String, in folder: String, threads: Int?, work: String) throws -> String {
    let path = "\(folder)/request.json"
    let request = """
      {"ffmpeg":"ffmpeg","limits":{"channels":32,"durationSeconds":86400,"sampleRates":[1,768000]},\
      "source":"\(recording)",\(threads.map { "\"threads\":\($0)," } ?? "")"work":\(work)}

      """
    try Data(request.utf8).write(to: URL(fileURLWithPath: path))
    return path
  }

  /// Returns the facts in a probe's report, in the form of a request.
  static func facts(in report: String) throws -> String? {
    let object = try JSONSerialization.jsonObject(with: Data(report.utf8)) as? [String: [String: Any]]
    guard let facts = object?["probe"]?["media"] else { return nil }
    return try String(decoding: JSONSerialization.data(withJSONObject: camelCased(facts)), as: UTF8.self)
  }

  /// Reports name their members in snake case, requests in camel case.
  private static func camelCased(_ value: Any) -> Any {
    if let values = value as? [Any] { return values.map(camelCased) }
    guard let members = value as? [String: Any] else { return value }
    return Dictionary(
      uniqueKeysWithValues: members.map { name, value in
        let words = name.split(separator: "_")
        return (words.prefix(1).joined() + words.dropFirst().map(\.capitalized).joined(), camelCased(value))
      })
  }

  /// The file written by the worker.
  static func pyramid(in folder: String) -> String { "\(folder)/waveform.pyramid" }
}
