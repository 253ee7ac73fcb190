// LeaseNode DATA PROGRAM NAME SECONDS AHEAD: works as the node NAME on the jobs of the data folder DATA, which it
// doesn't lock, with PROGRAM in the workers' place, until none is left. Leases last SECONDS, and its clock for them is
// AHEAD seconds fast.

import AudioIO
import Foundation
import Jobs
import Storage
import Terms

private struct NoLog: JobLog {
  func job(_ job: Job) {}
  func notice(_ message: String, _ metadata: [String: String]) {}
  func failure(_ message: String, _ metadata: [String: String]) {
    FileHandle.standardError.write(Data("\(message) \(metadata)\n".utf8))
  }
}

private func run(data: String, program: String, name: String, seconds: Double, ahead: Double) async throws {
  let terms = LeaseHolder.Terms(
    seconds: seconds, renewalSeconds: 0.1, marginSeconds: seconds / 6, graceSeconds: seconds)
  let store = try MediaStore(directory: data)
  let catalog = try Catalog(
    path: store.catalogPath, holder: LeaseHolder(name: name, terms: terms, now: { .now + ahead }))
  catalog.keepDescriptions(in: store.descriptions) { id, error in print("\(id): \(error)") }
  let workers = WorkerSettings(program: program, ffmpeg: "ffmpeg", audioLimits: AudioLimits(), memoryBytes: 1 << 30)
  let settings = JobSettings(
    workers: workers,
    lifecycle: .init(
      places: 3, maximumAttempts: 3, retryPauseSeconds: 0.01, stallSeconds: 1000, secondsPerProcessorSecond: 1000),
    maximumQueued: 1000, maximumQueuedPerClient: 1000, reservedDiskBytes: 0, maximumConversionBytes: 1 << 30)
  let work = WorkQueue(label: "node")
  let runner = JobRunner(
    settings, catalog: catalog, blobs: Blobs(store, of: catalog), scratch: Scratch(store), work: work,
    storeWork: StoreQueue(on: work),
    log: NoLog()
  ) {
    JobError(title: "failed", status: 500, detail: $0.detail, code: $0.code)
  }
  try runner.resume()
  while try !catalog.unfinishedJobs().isEmpty { try await Task.sleep(for: .milliseconds(20)) }
  // Ends the attempts whose jobs others have finished.
  await runner.stop()
}

private let words = CommandLine.arguments
guard words.count == 6, let seconds = Double(words[4]), let ahead = Double(words[5]) else {
  FileHandle.standardError.write(Data("LeaseNode DATA PROGRAM NAME SECONDS AHEAD\n".utf8))
  exit(64)
}
do { try await run(data: words[1], program: words[2], name: words[3], seconds: seconds, ahead: ahead) } catch {
  FileHandle.standardError.write(Data("\(error)\n".utf8))
  exit(1)
}
