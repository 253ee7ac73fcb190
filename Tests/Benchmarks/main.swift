// Measures the service and prints each figure with its baseline or bound.
//
//   Benchmarks BINARY [--seconds N] [--folder DIR] [--minutes N]
//              [--part main|waveforms|denoise|http|uploads|tiny|starts|labels|viewer]
//
// Seconds are the length of the measured recording: 600 or more, in tens; 7200 by default. Minutes are how long the
// viewer is scrolled, by default 1. BINARY is the release build of `stillwave`. Nothing else should run on the machine.
// Times are medians of several runs, alternating with their baseline, so that a drift in the machine's speed affects
// both.
import Foundation

var arguments = CommandLine.arguments.dropFirst()
var seconds = 7200
var minutes = 1.0
var part: String?
var folder = NSTemporaryDirectory() + "stillwave-bench"
let parts: [(name: String, run: (String) throws -> Int)] = [
  ("main", { try MainJob(binary: $0, folder: folder, seconds: seconds).run() }),
  ("waveforms", { try WaveformFigures(binary: $0, folder: folder, seconds: seconds).run() }),
  ("denoise", { try DenoiseFigures(binary: $0, folder: folder, seconds: seconds).run() }),
  ("http", { try HTTPLoad(binary: $0, folder: folder, seconds: seconds).run() }),
  ("uploads", { try UploadLoad(binary: $0, folder: folder, seconds: seconds).run() }),
  ("tiny", { try TinyUploads(binary: $0, folder: folder).run() }),
  ("starts", { try StartFigures(binary: $0, folder: folder).run() }),
  ("labels", { try LabelFigures(binary: $0, folder: folder).run() }),
  ("viewer", { try ViewerBudget(binary: $0, minutes: minutes).run() }),
]

@MainActor func giveUp() -> Never {
  let names = parts.map(\.name).joined(separator: "|")
  print("usage: Benchmarks BINARY [--seconds N, from 600] [--folder DIR] [--part \(names)] [--minutes N]")
  exit(2)
}

guard let binary = arguments.popFirst() else { giveUp() }
while let flag = arguments.popFirst() {
  guard let value = arguments.popFirst() else { giveUp() }
  switch flag {
  case "--seconds":
    guard let number = Int(value), number >= 600 else { giveUp() }
    seconds = number / 10 * 10
  case "--minutes":
    guard let number = Double(value), number > 0, number <= 600 else { giveUp() }
    minutes = number
  case "--folder": folder = value
  case "--part":
    guard parts.contains(where: { $0.name == value }) else { giveUp() }
    part = value
  default: giveUp()
  }
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
