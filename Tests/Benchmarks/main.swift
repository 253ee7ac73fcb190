// Measures the main job on a long recording and prints each figure beside its baseline or bound.
//
//   Benchmarks BINARY [--seconds N] [--folder DIR]
//
// BINARY is the release build of `stillwave`. Nothing else should run on the machine. Times are medians of five, taken in
// turn with their baseline, so that a drift of the machine's speed changes both.
import Foundation

var arguments = CommandLine.arguments.dropFirst()
var seconds = 7200
var folder = NSTemporaryDirectory() + "stillwave-bench"
guard let binary = arguments.popFirst() else {
  print("usage: Benchmarks BINARY [--seconds N] [--folder DIR]")
  exit(2)
}
while let flag = arguments.popFirst(), let value = arguments.popFirst() {
  if flag == "--seconds", let number = Int(value) { seconds = number / 10 * 10 }
  if flag == "--folder" { folder = value }
}

do {
  try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
  let failures = try MainJob(binary: binary, folder: folder, seconds: seconds).run()
  exit(failures == 0 ? 0 : 1)
} catch {
  print("benchmark failed: \(error)")
  exit(1)
}
