import Denoise
import FoundationEssentials
import Terms

// A worker process answers with one JSON object per line on its standard output.
//
//   {"unfenced":22}                                                                    at most once, at the start
//   {"progress":{"fraction":0.42,"ready_frames":18874368,"total_frames":45000000}}     any number of times
//
// The last line is the result, with exit status 0, or an error, with exit status 1:
//
//   {"probe":{…}}                                                                      once, for a probe
//   {"intake":{"probe":{…},"analysis":{…}}}                                            once, for a short recording
//   {"ffmpeg_works":true}                                                              once, for a check of ffmpeg
//   {"analysis":{…}}                                                                   once, for a waveform
//   {"denoised":{…}}                                                                   once, for a denoised copy
//   {"converted":{…}}                                                                  once, for a conversion
//   {"noise_regions":[…]}                                                              once, for noise regions
//   {"spectrum":{…}}                                                                   once, for a spectrum
//   {"loudness":{…}}                                                                   once, for a loudness
//   {"trimmed":{…}}                                                                    once, for a part
//   {"noise_profile":{…}}                                                              once, for a noise profile
//   {"error":{"code":"…","detail":"…","retry":false}}                                  once, instead of the result

/// One line from a worker.
package enum WorkerReport: Sendable, Equatable {
  /// The worker's progress.
  case progress(WorkerProgress)
  /// The errno if the kernel refused a part of the fence that it supports; the worker then fails.
  case unfenced(Int32)
  /// Why the worker failed.
  case failed(WorkerFailure)
  case probed(Probe)
  case takenIn(Intake)
  case ffmpegWorks(Bool)
  case analyzed(Analysis)
  case denoised(DenoiseOutcome)
  case converted(ConversionOutcome)
  /// The regions found, best first.
  case noiseRegions([NoiseRegion])
  case measured(PowerSpectrum)
  case loudness(MeasuredLoudness)
  case trimmed(TrimOutcome)
  case profileLearnt(NoiseProfileOutcome)

  /// Returns the line, including the newline.
  package func line() -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let data = (try? encoder.encode(self)) ?? Data()
    return Array(data) + [UInt8(ascii: "\n")]
  }

  /// Parses a line; nil if it isn't a worker's, doesn't have exactly one member, or can't be true: a worker that was
  /// taken over must not make the service compute with numbers that overflow.
  package init?(line: ArraySlice<UInt8>) {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    guard let report = try? decoder.decode(WorkerReport.self, from: Data(line)), report.isPlausible else { return nil }
    self = report
  }

  /// Whether this is the result of the given work.
  package func isResult(of work: WorkerRequest.Work) -> Bool {
    switch (work, self) {
    case (.probe, .probed), (.intake, .takenIn), (.ffmpegCheck, .ffmpegWorks), (.waveform, .analyzed),
      (.denoise, .denoised),
      (.convert, .converted), (.noiseRegions, .noiseRegions), (.spectrum, .measured), (.loudness, .loudness),
      (.trim, .trimmed), (.noiseProfile, .profileLearnt):
      true
    default: false
    }
  }

  /// Why the worker failed, if the report says so.
  package var failure: WorkerFailure? {
    if case .failed(let failure) = self { failure } else { nil }
  }
}

extension WorkerReport: Codable {
  private enum CodingKeys: String, CodingKey {
    case progress, unfenced, ffmpegWorks, denoised, converted, noiseRegions, loudness, trimmed
    case failed = "error"
    case probed = "probe"
    case takenIn = "intake"
    case analyzed = "analysis"
    case measured = "spectrum"
    case profileLearnt = "noiseProfile"
  }

  /// Throws unless there is exactly one member.
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
      case .takenIn: .takenIn(try value())
      case .ffmpegWorks: .ffmpegWorks(try value())
      case .analyzed: .analyzed(try value())
      case .denoised: .denoised(try value())
      case .converted: .converted(try value())
      case .noiseRegions: .noiseRegions(try value())
      case .measured: .measured(try value())
      case .loudness: .loudness(try value())
      case .trimmed: .trimmed(try value())
      case .profileLearnt: .profileLearnt(try value())
      }
  }

  /// Encodes the same form as `init(from:)` decodes.
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    switch self {
    case .progress(let progress): try container.encode(progress, forKey: .progress)
    case .unfenced(let errno): try container.encode(errno, forKey: .unfenced)
    case .failed(let failure): try container.encode(failure, forKey: .failed)
    case .probed(let probe): try container.encode(probe, forKey: .probed)
    case .takenIn(let intake): try container.encode(intake, forKey: .takenIn)
    case .ffmpegWorks(let works): try container.encode(works, forKey: .ffmpegWorks)
    case .analyzed(let analysis): try container.encode(analysis, forKey: .analyzed)
    case .denoised(let outcome): try container.encode(outcome, forKey: .denoised)
    case .converted(let outcome): try container.encode(outcome, forKey: .converted)
    case .noiseRegions(let regions): try container.encode(regions, forKey: .noiseRegions)
    case .measured(let spectrum): try container.encode(spectrum, forKey: .measured)
    case .loudness(let loudness): try container.encode(loudness, forKey: .loudness)
    case .trimmed(let outcome): try container.encode(outcome, forKey: .trimmed)
    case .profileLearnt(let outcome): try container.encode(outcome, forKey: .profileLearnt)
    }
  }
}
