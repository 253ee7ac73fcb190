// These tests start the real program and talk to it over the network.
//
// Besides the program's own libraries, they need these Debian packages for clips in every format:
//   sox libsox-fmt-all ffmpeg espeak-ng
// STILLWAVE_NOISY_SPEECH can name a folder of real noisy speech; see RealSpeechTests.

import Foundation

/// A system program that makes the tests' clips.
enum Tool: String {
  case sox, ffmpeg, mkvmerge, lame, fallocate
  case espeak = "espeak-ng"

  /// Runs the tool to its end. If it fails or isn't installed, throws its message.
  func run(_ arguments: [String]) throws {
    let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin").split(separator: ":")
    guard let path = folders.map({ "\($0)/\(rawValue)" }).first(where: FileManager.default.isExecutableFile) else {
      throw ToolFailure(description: "\(rawValue) is missing: apt-get install sox libsox-fmt-all ffmpeg espeak-ng")
    }
    let finished = try Command(path, arguments).finish()
    guard finished.status == 0 else {
      throw ToolFailure(description: "\(rawValue) \(arguments): exit \(finished.status): \(finished.errors)")
    }
  }
}

struct ToolFailure: Error, CustomStringConvertible {
  let description: String
}

/// A folder for one test, removed when the test releases it.
final class TemporaryFolder: Sendable {
  let path: String

  init() throws {
    path = NSTemporaryDirectory() + "stillwave-e2e-" + UUID().uuidString.lowercased()
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  func file(_ name: String) -> String { path + "/" + name }

  /// The names in the folder, sorted.
  func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: path).sorted() }

  deinit { try? FileManager.default.removeItem(atPath: path) }
}

func contents(_ path: String) throws -> [UInt8] {
  // To its end, however short the reads: `Data(contentsOf:)` takes only the first page of a file in /proc.
  let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
  var bytes: [UInt8] = []
  while let piece = try file.read(upToCount: 1 << 20), !piece.isEmpty { bytes += piece }
  return bytes
}

func write(_ bytes: [UInt8], to path: String) throws { try Data(bytes).write(to: URL(fileURLWithPath: path)) }
