// Measures the service and prints each figure beside its baseline or bound.
//
//   Benchmarks BINARY [--seconds N] [--folder DIR] [--part main|waveforms|http]
//
// BINARY is the release build of `stillwave`. Nothing else should run on the machine. Times are medians of several runs,
// taken in turn with their baseline, so that a drift of the machine's speed changes both.
import Foundation

var arguments = CommandLine.arguments.dropFirst()
var seconds = 7200
var part: String?
var folder = NSTemporaryDirectory() + "stillwave-bench"
let parts: [(name: String, run: (String) throws -> Int)] = [
  ("main", { try MainJob(binary: $0, folder: folder, seconds: seconds).run() }),
  ("waveforms", { try WaveformFigures(binary: $0, folder: folder, seconds: seconds).run() }),
  ("http", { try HTTPLoad(binary: $0, folder: folder, seconds: seconds).run() }),
]
guard let binary = arguments.popFirst() else {
  print("usage: Benchmarks BINARY [--seconds N] [--folder DIR] [--part \(parts.map(\.name).joined(separator: "|"))]")
  exit(2)
}
while let flag = arguments.popFirst(), let value = arguments.popFirst() {
  if flag == "--seconds", let number = Int(value) { seconds = number / 10 * 10 }
  if flag == "--folder" { folder = value }
  if flag == "--part" { part = value }
}

do {
  try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
  var failures = 0
  for (name, run) in parts where part == nil || part == name { failures += try run(binary) }
  exit(failures == 0 ? 0 : 1)
} catch {
  print("benchmark failed: \(error)")
  exit(1)
}
