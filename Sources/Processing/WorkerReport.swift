import AudioIO
import Denoise
import FoundationEssentials

// What a worker process answers: one JSON object a line on its standard output.
//
//   {"progress":{"fraction":0.42,"ready_frames":18874368,"total_frames":45000000}}     any number of times
//   {"unfenced":22}                                                                    at most once, at the start
//   {"probe":{…}}, {"ffmpeg_works":true}, {"analysis":{…}}, {"denoised":{…}},
//   {"converted":{…}}, {"noise_regions":[…]} or {"spectrum":{…}}                       once, the last line, exit status 0
//   {"error":{"code":"…","detail":"…","retry":false}}                                  once, the last line, exit status 1

/// One line from a worker.
package enum WorkerReport: Sendable, Equatable {
  /// How far the worker is.
  case progress(WorkerProgress)
  /// The errno with which the kernel refused a part of the fence that it has; the worker gives up.
  case unfenced(Int32)
  /// Why the worker gave up.
  case failed(WorkerFailure)
  case probed(Probe)
  case ffmpegWorks(Bool)
  case analyzed(Analysis)
  case denoised(DenoiseOutcome)
  case converted(ConversionOutcome)
  /// Best first.
  case noiseRegions([NoiseRegion])
  case measured(PowerSpectrum)

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
    self = report
  }

  /// Why the worker gave up, if that is what it reports.
  package var failure: WorkerFailure? {
    if case .failed(let failure) = self { failure } else { nil }
  }
}

extension WorkerReport: Codable {
  private enum CodingKeys: String, CodingKey {
    case progress, unfenced, ffmpegWorks, denoised, converted, noiseRegions
    case failed = "error"
    case probed = "probe"
    case analyzed = "analysis"
    case measured = "spectrum"
  }

  /// Throws unless there is exactly one of the members.
  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    guard let key = container.allKeys.first, container.allKeys.count == 1 else {
      throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "not one member"))
    }
    func value<Value: Decodable>() throws -> Value { try container.decode(Value.self, forKey: key) }
    self =
      switch key {
      case .progress: .progress(try value())
      case .unfenced: .unfenced(try value())
      case .failed: .failed(try value())
      case .probed: .probed(try value())
      case .ffmpegWorks: .ffmpegWorks(try value())
      case .analyzed: .analyzed(try value())
      case .denoised: .denoised(try value())
      case .converted: .converted(try value())
      case .noiseRegions: .noiseRegions(try value())
      case .measured: .measured(try value())
      }
  }

  /// As it is decoded.
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    switch self {
    case .progress(let progress): try container.encode(progress, forKey: .progress)
    case .unfenced(let errno): try container.encode(errno, forKey: .unfenced)
    case .failed(let failure): try container.encode(failure, forKey: .failed)
    case .probed(let probe): try container.encode(probe, forKey: .probed)
    case .ffmpegWorks(let works): try container.encode(works, forKey: .ffmpegWorks)
    case .analyzed(let analysis): try container.encode(analysis, forKey: .analyzed)
    case .denoised(let outcome): try container.encode(outcome, forKey: .denoised)
    case .converted(let outcome): try container.encode(outcome, forKey: .converted)
    case .noiseRegions(let regions): try container.encode(regions, forKey: .noiseRegions)
    case .measured(let spectrum): try container.encode(spectrum, forKey: .measured)
    }
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
