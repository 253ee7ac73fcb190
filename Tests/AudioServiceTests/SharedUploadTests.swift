import Dispatch
import PresentRows
import Testing

@testable import AudioService
@testable import Storage

/// Uploads whose catalog another process uses too.
@Suite struct SharedUploadTests {
  private static let holder = LeaseHolder(name: "node", terms: LeaseHolder.Terms())

  @Test("an upload that another process makes a recording of, while this one is about to, is answered with it")
  func finishedMeanwhile() async throws {
    let bench = try TestBench(holder: Self.holder)
    let other = try Catalog(path: bench.store.catalogPath, holder: LeaseHolder(name: "other", terms: .init()))
    let id = try bench.tus.id(try await bench.tus.create(8))
    // The other one has received all bytes.
    try other.advance(id, to: 8, expiresAt: .now + 1000, by: try other.takeOver(id, at: 0).writer)
    let recording = RecordingID()
    let (hasBegun, mayEnd) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let making = Task.detached {
      try await blocking {
        try other.write { db in
          try db.run("UPDATE uploads SET recording = ? WHERE id = ?", [recording.text, id.text])
          hasBegun.signal()
          mayEnd.wait()
        }
      }
    }
    try await blocking { hasBegun.wait() }
    let reads = bench.catalog.readCount
    async let finished = bench.context.uploads.using(id, of: .none) { try await $0.finish() }
    // It has read the row, twice, and waits for the other's transaction.
    while bench.catalog.readCount < reads + 2 { await Task.yield() }
    mayEnd.signal()
    #expect(try await finished.recording == recording)
    try await making.value
  }
}
