import Foundation

/// A request for `stillwave worker` to build a recording's waveform.
enum WaveformRequest {
  /// Writes it to a file and returns its path. Without `threads`, the worker uses one per core.
  static func file(_ recording: String, in folder: String, threads: Int? = nil) throws -> String {
    let path = "\(folder)/request.json"
    let request = """
      {"ffmpeg":"ffmpeg","limits":{"channels":32,"durationSeconds":86400,"sampleRates":[1,768000]},\
      "source":"\(recording)",\(threads.map { "\"threads\":\($0)," } ?? "")"work":{"waveform":{"_0":{\
      "findsNoiseRegions":false,"pyramid":"\(pyramid(in: folder))"}}}}

      """
    try Data(request.utf8).write(to: URL(fileURLWithPath: path))
    return path
  }

  /// The file written by the worker.
  static func pyramid(in folder: String) -> String { "\(folder)/waveform.pyramid" }
}
