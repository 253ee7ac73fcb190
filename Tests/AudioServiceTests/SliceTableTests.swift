import HTTP
import PresentRows
import Storage
import Synchronization
import Testing
import Waveform

@testable import AudioService

@Suite struct SliceTableTests {
  private let recording = RecordingID()

  private func key(_ number: Int) -> SliceTable.Key {
    SliceTable.Key(tenant: .none, recording: recording, query: WaveformQuery(start: Double(number)), form: .json)
  }

  private func slice(bytes count: Int) -> Representation {
    Representation(
      body: .bytes([UInt8](repeating: 0x41, count: count)), contentType: "application/json", etag: "\"a\"",
      cacheControl: "no-cache")
  }

  @Test func manySmallSlicesCountWithTheirOverhead() {
    let table = SliceTable(limit: 1 << 20) { _ in 0 }
    for number in 0..<10_000 { table.keep(slice(bytes: 20), for: key(number), version: 0) }
    #expect((0..<10_000).count { table[key($0)] != nil } < 400)
  }

  @Test func aSliceOfUsualSizeKeepsItsBytes() throws {
    let table = SliceTable { _ in 0 }
    for number in 0..<200 {
      let bytes = (0..<20_000).map { UInt8(truncatingIfNeeded: $0 &* number) }
      let slice = Representation(
        body: .bytes(bytes), contentType: "application/json", etag: nil, cacheControl: "no-cache")
      table.keep(slice, for: key(number), version: 0)
      // Each repeated use moves it from one half to the other.
      let first = try #require(table[key(0)])
      #expect(first.body.bytesAtHand == [UInt8](repeating: 0, count: 20_000))
      #expect(table[key(number)]?.body.bytesAtHand == bytes)
    }
  }

  @Test func slicesGoByTheVersionOfTheirRecording() {
    let changed = recording
    let isChanged = Atomic(false)
    let table = SliceTable { $0 == changed && isChanged.load(ordering: .relaxed) ? 1 : 0 }
    let other = SliceTable.Key(tenant: .none, recording: RecordingID(), query: WaveformQuery(), form: .json)
    for key in [key(0), other] { table.keep(slice(bytes: 10_000), for: key, version: table.version(key)) }
    isChanged.store(true, ordering: .relaxed)
    #expect(table[key(0)] == nil && table[other] != nil)
  }

  @Test func theSecondRequestIsRecognized() {
    let table = SliceTable { _ in 0 }
    #expect((0..<100).map { table.noteRequest(key($0)) }.allSatisfy { !$0 })
    #expect(table.noteRequest(key(99)))
  }

  @Test func aStreamedSliceIsNotCached() {
    let table = SliceTable { _ in 0 }
    let stream = Representation(
      body: .stream(length: 50_000) { nil }, contentType: "application/json", etag: nil, cacheControl: "no-cache")
    table.keep(stream, for: key(0), version: 0)
    #expect(table[key(0)] == nil)
  }
}
