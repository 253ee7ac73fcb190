import HTTP
import Storage
import Testing
import Waveform

@testable import AudioService

@Suite struct SliceTableTests {
  private let recording = RecordingID()

  private func key(_ number: Int) -> SliceTable.Key {
    SliceTable.Key(recording: recording, query: WaveformQuery(start: Double(number)), form: .json)
  }

  private func slice(bytes count: Int) -> Representation {
    Representation(
      body: .bytes([UInt8](repeating: 0x41, count: count)), contentType: "application/json", etag: "\"a\"",
      cacheControl: "no-cache")
  }

  @Test func aSliceIsFoundAgainUntilOthersHavePushedItOut() {
    let table = SliceTable(limit: 100_000)
    table.keep(slice(bytes: 10_000), for: key(0))
    #expect(table[key(0)] != nil)
    #expect(table[key(1)] == nil)
    for number in 1..<20 { table.keep(slice(bytes: 10_000), for: key(number)) }
    #expect(table[key(0)] == nil)
    #expect(table[key(19)] != nil)
  }

  @Test func aSliceThatIsAskedForStays() {
    let table = SliceTable(limit: 100_000)
    table.keep(slice(bytes: 10_000), for: key(0))
    for number in 1..<40 {
      table.keep(slice(bytes: 10_000), for: key(number))
      #expect(table[key(0)] != nil)
    }
  }

  @Test func manySmallSlicesCountForWhatTheyTake() {
    let table = SliceTable(limit: 1 << 20)
    for number in 0..<10_000 { table.keep(slice(bytes: 20), for: key(number)) }
    #expect((0..<10_000).count { table[key($0)] != nil } < 400)
  }

  @Test func aSliceThatWouldPushOutAllOthersIsNotKept() {
    let table = SliceTable(limit: 1 << 20)
    table.keep(slice(bytes: 200_000), for: key(0))
    #expect(table[key(0)] == nil)
  }
}
