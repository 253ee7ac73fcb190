// ClaimRate URL fill JOBS
// ClaimRate URL claim|work NODES THREADS
// ClaimRate URL renew THREADS ROUNDS
//
// Uses a catalog in PostgreSQL as nodes do, without doing the jobs' work: fills it with queued jobs, claims and (with
// `work`) finishes all that are queued, or renews all leases. Prints the number of jobs, seconds, and refused claims.
// deploy/cluster-test --part claims runs it.

import Foundation
import PostgresStorage
import Storage
import Synchronization
import Terms

private func catalog(_ url: String, node: Int) throws -> Catalog {
  var settings = PostgresSettings(address: try PostgresAddress(url))
  settings.connectionWaitSeconds = 60
  if node == 0 { try PostgresSchema.migrator.migrate(settings) }
  let engine = PostgresEngine(settings)
  // Leases without an end in sight, so that another invocation can renew them.
  let holder = LeaseHolder(name: "node\(node)", terms: LeaseHolder.Terms(seconds: 3600))
  return Catalog(engine: engine, holder: holder, bus: PostgresBus(engine, settings))
}

/// Runs `body` on threads of its own and returns the seconds until the last one has ended.
private func seconds(threads: Int, _ body: @escaping @Sendable (Int) throws -> Void) -> Double {
  let group = DispatchGroup()
  let start = ContinuousClock.now
  for thread in 0..<threads {
    group.enter()
    Thread.detachNewThread {
      do { try body(thread) } catch { fatalError("\(error)") }
      group.leave()
    }
  }
  group.wait()
  return (.now - start) / .seconds(1)
}

private func fill(_ catalog: Catalog, jobs: Int) throws -> Double {
  let format = SoundShape(container: "wav", codec: "pcm_s16", sampleRate: 1000, channels: 2, frames: 1000)
  return seconds(threads: 8) { thread in
    for number in 0..<jobs where number % 8 == thread {
      let now = catalog.time
      let id = RecordingID(at: now)
      let job = Job(kind: .waveform, recording: id, createdAt: now)
      try catalog.insert(
        Recording(
          id: id, name: "\(number).wav", createdAt: now, bytes: 4044, sha256: String(repeating: "0", count: 64),
          format: format,
          waveformState: .queued, waveformJob: job.id, audioKey: ObjectKey(id, "audio.wav")), jobs: [job])
    }
  }
}

/// Each node has the whole queue, in the same order, and a claim decides.
private func claim(_ nodes: [Catalog], threads: Int, finishing: Bool) throws -> (jobs: Int, Double, refused: Int) {
  let ids = try nodes[0].unfinishedJobs().map(\.id)
  let next = nodes.map { _ in NextIndex() }
  let refused = Atomic(0)
  let time = seconds(threads: threads) { thread in
    let node = thread % nodes.count
    while let id = next[node].take(of: ids) {
      guard let claimed = try nodes[node].claim(id, building: { $0.recording }).written else {
        refused.add(1, ordering: .relaxed)
        continue
      }
      if finishing {
        _ = try nodes[node].finish(claimed.token, with: "{}") {
          ($0.waveformState, $0.waveformKey) = (.ready, ObjectKey($0.id, "waveform-\(claimed.token.name).pyramid"))
        }
      }
    }
  }
  return (ids.count, time, refused.load(ordering: .relaxed))
}

private final class NextIndex: Sendable {
  private let value = Atomic(0)

  func take(of ids: [JobID]) -> JobID? {
    let index = value.add(1, ordering: .relaxed).oldValue
    return index < ids.count ? ids[index] : nil
  }
}

private func renew(_ catalog: Catalog, threads: Int, rounds: Int) throws -> (renewals: Int, Double) {
  let tokens = try catalog.unfinishedJobs().compactMap(\.token)
  let time = seconds(threads: threads) { thread in
    for index in 0..<(rounds * tokens.count) where index % threads == thread {
      guard try catalog.renew(tokens[index % tokens.count]) else { fatalError("a lease was lost") }
    }
  }
  return (rounds * tokens.count, time)
}

private let words = CommandLine.arguments
private func number(_ index: Int) -> Int { words.count > index ? Int(words[index]) ?? 1 : 1 }
private func tell(_ jobs: Int, _ seconds: Double, refused: Int = 0) { print("\(jobs) \(seconds) \(refused)") }

guard words.count > 3 else {
  let usage = "ClaimRate URL fill JOBS | claim|work NODES THREADS | renew THREADS ROUNDS\n"
  FileHandle.standardError.write(Data(usage.utf8))
  exit(64)
}
switch words[2] {
case "fill": tell(number(3), try fill(catalog(words[1], node: 0), jobs: number(3)))
case "renew":
  let done = try renew(catalog(words[1], node: 0), threads: number(3), rounds: number(4))
  tell(done.renewals, done.1)
default:
  let nodes = try (0..<number(3)).map { try catalog(words[1], node: $0) }
  let done = try claim(nodes, threads: number(4), finishing: words[2] == "work")
  tell(done.jobs, done.1, refused: done.refused)
}
