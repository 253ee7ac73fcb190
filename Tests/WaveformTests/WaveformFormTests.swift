import Foundation
import Terms
import Testing

@testable import Waveform

struct WaveformFormTests {
  private let recording = Recording(
    sampleRate: 1000, channels: 2, samples: [0, 0, -32768, 32767, 16384, -1, 100, 300, 3, 4])

  private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

  private func slice(_ query: WaveformQuery) throws -> WaveformSlice {
    let window = try WaveformWindow(query, of: recording.extent)
    return WaveformSlice(window, samples: recording.samples(window.frameRange).span)
  }

  @Test func jsonHasAudiowaveformsMembersAndOursInOrder() throws {
    let slice = try slice(
      WaveformQuery(start: 0.002, resolution: .scale(2), channels: .split, measures: [.peak, .rms, .average]))
    #expect(
      text(slice.json()) == """
        {"version":2,"channels":2,"sample_rate":1000,"samples_per_pixel":2,"bits":16,"length":2,\
        "data":[100,16384,-1,300,3,3,4,4],"rms":[11585,212,3,4],"average":[8242,151,3,4],\
        "start_frame":2,"available_frames":5,"total_frames":5,"complete":true}
        """)
  }

  @Test func pointsHaveAllMeasuresAsNumbersInSectionsOfWholeWords() throws {
    var query = WaveformQuery(start: 0.002, resolution: .scale(1), channels: .split, measures: [.peak, .rms, .average])
    let head: [UInt8] = [
      0x53, 0x57, 0x50, 0x54, 1, 0, 7, 16, 0xE8, 3, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0,
    ]
    let data: [UInt8] = [0, 64, 0, 64, 255, 255, 255, 255, 100, 0, 100, 0, 44, 1, 44, 1, 3, 0, 3, 0, 4, 0, 4, 0]
    let values: [UInt8] = [0, 64, 1, 0, 100, 0, 44, 1, 3, 0, 4, 0]
    #expect(try slice(query).points() == head + data + values + values)
    (query.bits, query.channels, query.measures) = (.eight, .channel(0), [.rms, .average])
    let bytes = try slice(query).points()
    #expect(Array(bytes[6..<8]) == [6, 8] && bytes[20] == 1)
    #expect(Array(bytes[32...]) == [64, 0, 0, 0, 64, 0, 0, 0])
  }

  @Test func dataIsPresentOnlyWithPeaks() throws {
    let slice = try slice(WaveformQuery(resolution: .scale(5), measures: .rms))
    #expect(
      text(slice.json()) == """
        {"version":2,"channels":1,"sample_rate":1000,"samples_per_pixel":5,"bits":16,"length":1,\
        "rms":[3664],"start_frame":0,"available_frames":5,"total_frames":5,"complete":true}
        """)
  }

  @Test func anUnknownLengthIsNullWithAnEstimate() throws {
    let extent = WaveformExtent(
      sampleRate: 1000, channels: 2, availableFrames: 512, totalFrames: nil, estimatedFrames: 9000, isComplete: false)
    let window = try WaveformWindow(WaveformQuery(start: 1, resolution: .scale(256)), of: extent)
    #expect(
      text(WaveformSlice(window, samples: [Int16]().span).json()) == """
        {"version":2,"channels":1,"sample_rate":1000,"samples_per_pixel":256,"bits":16,"length":0,"data":[],\
        "start_frame":768,"available_frames":512,"total_frames":null,"estimated_frames":9000,"complete":false}
        """)
  }

  @Test func peaksAreFractionsOfFullScalePerChannel() throws {
    var query = WaveformQuery(resolution: .scale(2), channels: .split)
    #expect(
      text(try slice(query).peaksJSON()) == """
        {"peaks":[[-1,0,0.003052,0.5,0.000092,0.000092],[0,0.999969,-0.000031,0.009155,0.000122,0.000122]],\
        "duration":0.005}
        """)
    query.bits = .eight
    #expect(
      text(try slice(query).peaksJSON()) == """
        {"peaks":[[-1,0,0,0.5,0,0],[0,0.992188,0,0.007813,0,0]],"duration":0.005}
        """)
  }

  @Test func everyPeakReadsBackAsItsSample() throws {
    let samples = [Int16](Int16.min...Int16.max)
    for base in stride(from: 0, to: samples.count, by: 16_384) {
      let part = Recording(sampleRate: 1, channels: 1, samples: Array(samples[base..<base + 16_384]))
      let window = try WaveformWindow(WaveformQuery(resolution: .scale(1)), of: part.extent)
      let bytes = WaveformSlice(window, samples: part.samples.span).peaksJSON()
      let object = try #require(try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any])
      let peaks = try #require(object["peaks"] as? [[Double]])
      let back = stride(from: 0, to: peaks[0].count, by: 2).map { Int16((peaks[0][$0] * 32768).rounded()) }
      #expect(back == part.samples)
    }
  }

  @Test func missingSamplesLeaveOnlyWholePixels() throws {
    let window = try WaveformWindow(WaveformQuery(resolution: .scale(2), channels: .channel(0)), of: recording.extent)
    let slice = WaveformSlice(window, samples: recording.samples(0..<3).span)
    #expect(slice.length == 1 && slice.data == [-32768, 0])
  }

  @Test func aFormThatCannotHoldTheAnswerThrows() throws {
    let extent = WaveformExtent(
      sampleRate: 44_100, channels: 2, availableFrames: 1 << 33, totalFrames: 1 << 33, isComplete: true)
    let whole = try WaveformWindow(WaveformQuery(resolution: .scale(8192), channels: .split), of: extent)
    try whole.check(.dat(version: 2))
    #expect(throws: WaveformError.tooManyNumbers(count: 1 << 22, limit: 1_000_000, parameter: "scale")) {
      try whole.check(.json)
    }
    #expect(throws: WaveformError.versionUnavailable(version: 1, lanes: 2)) { try whole.check(.dat(version: 1)) }
    #expect(throws: WaveformError.versionUnavailable(version: 3, lanes: 2)) { try whole.check(.dat(version: 3)) }
    let one = try WaveformWindow(WaveformQuery(resolution: .width(1)), of: extent)
    try one.check(.json)
    #expect(throws: WaveformError.scaleOutOfRange(scale: 1 << 33, limit: 0x7fff_ffff)) {
      try one.check(.dat(version: 2))
    }
    let rms = try WaveformWindow(WaveformQuery(measures: [.peak, .rms]), of: extent)
    try rms.check(.json)
    try rms.check(.points)
    for form in [WaveformForm.strictJSON, .peaksJSON, .dat(version: 2)] {
      #expect(throws: WaveformError.measureNotInForm) { try rms.check(form) }
    }
  }

  @Test(
    arguments: [WaveformForm.json, .strictJSON, .peaksJSON, .dat(version: 2), .dat(version: 1), .points],
    [1, 2, 5, 100])
  func aDocumentInPiecesIsTheWholeDocument(form: WaveformForm, numbers: Int) throws {
    for channels in [ChannelSelection.mix, .split, .channel(1)] {
      for bits in [SampleBits.eight, .sixteen] {
        let measures: Measures = [.json, .points].contains(form) ? [.peak, .rms, .average] : .peak
        let query = WaveformQuery(resolution: .scale(1), channels: channels, measures: measures, bits: bits)
        let window = try WaveformWindow(query, of: recording.extent)
        let document = WaveformDocument(window, as: form)
        let whole = document.bytes(of: WaveformSlice(window, samples: recording.samples(window.frameRange).span))
        var pieces = document.pieces(ofNumbers: numbers)
        var joined: [UInt8] = []
        while let piece = pieces.next({ WaveformSlice($0, samples: recording.samples($0.frameRange).span) }) {
          #expect(!piece.isEmpty)
          joined += piece
        }
        #expect(joined == whole)
        if let count = document.byteCount { #expect(count == Int64(whole.count)) }
      }
    }
  }

  @Test func anEmptyDocumentAlsoComesInPieces() throws {
    let window = try WaveformWindow(WaveformQuery(start: 5, resolution: .scale(1)), of: recording.extent)
    for form in [WaveformForm.json, .strictJSON, .peaksJSON, .dat(version: 2), .points] {
      let document = WaveformDocument(window, as: form)
      var pieces = document.pieces(ofNumbers: 10)
      var joined: [UInt8] = []
      while let piece = pieces.next({ WaveformSlice($0, samples: [Int16]().span) }) { joined += piece }
      #expect(joined == document.bytes(of: WaveformSlice(window, samples: [Int16]().span)))
    }
  }
}
