import AudioIO
import Denoise
import FoundationEssentials

// What a worker process tells the service: one JSON object a line on its standard output.
//
//   {"progress":{"fraction":0.42,"ready_frames":18874368,"total_frames":45000000}}     any number of times
//   {"unfenced":22}                                                                    once at most, at the start
//   {"probe":{…}} or {"analysis":{…}} or {"denoised":{…}} or {"noise_regions":[…]}
//   or {"spectrum":{…}} or {"converted":{…}}                                                               once, the
//                                                                                                          last line,
//                                                                                                          exit status
//                                                                                                          0
//   {"error":{"code":"…","detail":"…","retry":false}}                                  once, the last line, exit status
//                                                                                      1

/// One line from a worker. Exactly one member is set.
package struct WorkerReport: Codable, Sendable, Equatable {
  /// How far the worker is.
  package var progress: WorkerProgress?
  /// The errno with which the kernel refused the worker's filter of system calls; the work goes on without.
  package var unfenced: Int32?
  /// What `probe` found.
  package var probe: Probe?
  /// What `waveform` found.
  package var analysis: Analysis?
  /// What `denoise` made.
  package var denoised: DenoiseOutcome?
  /// What `convert` made.
  package var converted: ConversionOutcome?
  /// What `noise-regions` found, best first.
  package var noiseRegions: [NoiseRegion]?
  /// What `spectrum` measured.
  package var spectrum: PowerSpectrum?
  /// Why the worker gave up.
  package var error: WorkerFailure?

  /// A report with no member set yet.
  package init() {}

  /// The line, newline included.
  package func line() -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let data = (try? encoder.encode(self)) ?? Data()
    return Array(data) + [UInt8(ascii: "\n")]
  }

  /// nil where the line is none of a worker's, or says nothing or two things at once.
  package init?(line: ArraySlice<UInt8>) {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    guard let report = try? decoder.decode(WorkerReport.self, from: Data(line)) else { return nil }
    let isSet = [
      report.progress != nil, report.probe != nil, report.analysis != nil, report.denoised != nil, report.error != nil,
      report.noiseRegions != nil, report.spectrum != nil, report.unfenced != nil, report.converted != nil,
    ]
    guard isSet.count(where: { $0 }) == 1 else { return nil }
    self = report
  }
}

/// How far a worker is.
package struct WorkerProgress: Codable, Sendable, Equatable {
  /// 0 … 1 of the work, never falling.
  package var fraction: Double
  /// Frames whose waveform points are in the file now.
  package var readyFrames: Int64
  /// Frames in all, where the file says so dependably.
  package var totalFrames: Int64?
  /// A guess, where it doesn't.
  package var estimatedFrames: Int64?

  /// A value of known parts.
  package init(fraction: Double, readyFrames: Int64, totalFrames: Int64?, estimatedFrames: Int64?) {
    self.fraction = fraction
    self.readyFrames = readyFrames
    self.totalFrames = totalFrames
    self.estimatedFrames = estimatedFrames
  }
}

/// Why a worker gave up.
package struct WorkerFailure: Codable, Sendable, Equatable {
  /// Stable, snake_case.
  package var code: String
  /// A sentence for the client.
  package var detail: String
  /// Whether the same work may succeed another time: not where the file itself is at fault.
  package var retry: Bool

  /// A value of known parts.
  package init(code: String, detail: String, retry: Bool) {
    self.code = code
    self.detail = detail
    self.retry = retry
  }
}

/// Something about a file that its header got wrong, and what was done about it.
package struct Anomaly: Codable, Sendable, Equatable {
  /// Stable, snake_case.
  package var code: String
  /// A sentence for the client.
  package var detail: String

  /// A value of known parts.
  package init(code: String, detail: String) {
    self.code = code
    self.detail = detail
  }
}
