import Terms

// The written forms of a waveform. A form is a sequence of sections, each an opening and a run of numbers, and a
// closing:
//
//   json         {"version":2,"channels":…,"sample_rate":…,"samples_per_pixel":…,"bits":…,"length":…
//                ,"data":[ … ],"rms":[ … ],"average":[ … ]        as requested
//                ,"start_frame":…,"available_frames":…,"total_frames":…[,"estimated_frames":…],"complete":…}
//   strictJSON   the first seven members, and a final newline like audiowaveform's
//   peaksJSON    {"peaks":[[ … ],[ … ]],"duration":…}: min, max, min, max … of a lane, in −1 … 1 with six decimals
//                (1/60 of a 16-bit step)
//   dat          little-endian (audiowaveform, doc/DataFormat.md):
//                int32 version: 1 or 2; uint32 flags: bit 0 set for 8 bits, no other; int32 sample rate;
//                int32 samples per pixel; uint32 length: pixels; int32 channels, in version 2 only;
//                then for each pixel, for each channel: minimum, maximum, as int8 or int16

/// A window written in one of the forms: in one go from a slice of all of it, or piece by piece, so that a response of
/// any length needs only the memory of one piece.
package struct WaveformDocument: Sendable {
  /// The window that is written.
  package let window: WaveformWindow
  /// The form in which it is written.
  package let form: WaveformForm

  private struct Section: Sendable {
    var opening: [UInt8]
    var numbers: Numbers
  }

  private enum Numbers: Sendable {
    /// Minimum and maximum in JSON.
    case peaks, rms, average
    /// Minimum and maximum of one lane, as fractions in JSON.
    case fractions(lane: Int)
    /// Minimum and maximum in binary.
    case binary
  }

  private var sections: [Section] = []
  private var closing: [UInt8] = []

  /// Creates a document. Call `WaveformWindow.check` first to find out whether the form supports the query.
  package init(_ window: WaveformWindow, as form: WaveformForm) {
    self.init(window, as: form, length: window.pixelCount)
  }

  fileprivate init(_ window: WaveformWindow, as form: WaveformForm, length: Int) {
    self.window = window
    self.form = form
    switch form {
    case .json: planJSON(length)
    case .strictJSON:
      var opening = head(length)
      opening.append(contentsOf: ",\"data\":[".utf8)
      sections = [Section(opening: opening, numbers: .peaks)]
      closing = Array("]}\n".utf8)
    case .peaksJSON: planPeaks()
    case .dat(let version): sections = [Section(opening: datHeader(version, length), numbers: .binary)]
    }
  }

  /// The total size in bytes if it is known in advance, which it is for `.dat`.
  package var byteCount: Int64? {
    guard case .dat = form else { return nil }
    return Int64(sections[0].opening.count) + window.numberCount * (window.query.bits == .eight ? 1 : 2)
  }

  /// Returns the whole document, from the slice of its whole window.
  package func bytes(of slice: WaveformSlice) -> [UInt8] {
    var text: [UInt8] = []
    text.reserveCapacity(7 * (slice.data.count + slice.rms.count + slice.average.count) + 400)
    for section in sections {
      text.append(contentsOf: section.opening)
      write(section.numbers, of: slice, to: &text)
    }
    text.append(contentsOf: closing)
    return text
  }

  /// Returns the document in pieces of about `numbers` numbers each.
  package func pieces(ofNumbers numbers: Int) -> Pieces { Pieces(document: self, numbers: numbers) }

  /// A document's pieces, in order.
  package struct Pieces: Sendable {
    private let document: WaveformDocument
    private let numbers: Int
    private var section = 0
    private var pixel = 0

    fileprivate init(document: WaveformDocument, numbers: Int) {
      (self.document, self.numbers) = (document, numbers)
    }

    /// Returns the next piece, or nil after the last. Calls `slice` for the complete slice of one part of the window at
    /// a time.
    package mutating func next<Failure: Error>(
      _ slice: (WaveformWindow) throws(Failure) -> WaveformSlice
    ) throws(Failure) -> [UInt8]? {
      guard section <= document.sections.count else { return nil }
      guard section < document.sections.count else {
        section += 1
        return document.closing.isEmpty ? nil : document.closing
      }
      let present = document.sections[section]
      let last = min(pixel + pixelsEach(present.numbers), document.window.pixelCount)
      var text = pixel == 0 ? present.opening : document.separator
      if pixel < last {
        var part = document.window.part(pixel..<last)
        if case .fractions(let lane) = present.numbers, part.lanes > 1 { part = part.lane(lane) }
        document.write(present.numbers, of: try slice(part), to: &text)
      }
      pixel = last
      if pixel == document.window.pixelCount { (section, pixel) = (section + 1, 0) }
      return text
    }

    private func pixelsEach(_ kind: Numbers) -> Int {
      switch kind {
      case .peaks, .binary: max(1, numbers / (2 * document.window.lanes))
      case .rms, .average: max(1, numbers / document.window.lanes)
      case .fractions: max(1, numbers / 2)
      }
    }
  }

  // MARK: Sections

  private mutating func planJSON(_ length: Int) {
    let measures = window.query.measures
    var before = head(length)
    func plan(_ measure: Measures, _ name: StaticString, _ numbers: Numbers) {
      guard measures.contains(measure) else { return }
      before.append(literal: name)
      sections.append(Section(opening: before, numbers: numbers))
      before = [UInt8(ascii: "]")]
    }
    plan(.peak, ",\"data\":[", .peaks)
    plan(.rms, ",\"rms\":[", .rms)
    plan(.average, ",\"average\":[", .average)
    let extent = window.extent
    let total = extent.isComplete ? extent.availableFrames : extent.totalFrames
    closing = before
    closing.reserveCapacity(128)
    closing.append(literal: ",\"start_frame\":")
    closing.append(decimal: window.startFrame)
    closing.append(literal: ",\"available_frames\":")
    closing.append(decimal: extent.availableFrames)
    closing.append(literal: ",\"total_frames\":")
    if let total {
      closing.append(decimal: total)
    } else {
      closing.append(literal: "null")
    }
    if total == nil, let estimate = extent.estimatedFrames {
      closing.append(literal: ",\"estimated_frames\":")
      closing.append(decimal: estimate)
    }
    closing.append(literal: extent.isComplete ? ",\"complete\":true}" : ",\"complete\":false}")
  }

  private mutating func planPeaks() {
    for lane in 0..<window.lanes {
      sections.append(
        Section(opening: Array((lane == 0 ? "{\"peaks\":[[" : "],[").utf8), numbers: .fractions(lane: lane)))
    }
    let seconds = Double(window.frameRange.count) / Double(window.extent.sampleRate)
    closing = Array("]],\"duration\":\(seconds)}".utf8)
  }

  /// Returns the members before the numbers. Interpolating them took about as long as writing a thousand numbers.
  private func head(_ length: Int) -> [UInt8] {
    var head: [UInt8] = []
    head.reserveCapacity(128)
    func add(_ name: StaticString, _ number: Int) {
      head.append(literal: name)
      head.append(decimal: Int64(number))
    }
    add("{\"version\":", 2)
    add(",\"channels\":", window.lanes)
    add(",\"sample_rate\":", window.extent.sampleRate)
    add(",\"samples_per_pixel\":", window.scale)
    add(",\"bits\":", window.query.bits.rawValue)
    add(",\"length\":", length)
    return head
  }

  /// Version 1 has no channel count, so several lanes are written as version 2, as audiowaveform does.
  private func datHeader(_ version: Int, _ length: Int) -> [UInt8] {
    let isFirst = version == 1 && window.lanes == 1
    var words = [
      isFirst ? 1 : 2, window.query.bits == .eight ? 1 : 0, UInt32(window.extent.sampleRate),
      UInt32(clamping: window.scale), UInt32(length),
    ]
    if !isFirst { words.append(UInt32(window.lanes)) }
    return words.flatMap { word in
      stride(from: UInt32(0), to: 32, by: 8).map { UInt8(truncatingIfNeeded: word >> $0) }
    }
  }

  private var separator: [UInt8] {
    if case .dat = form { return [] }
    return [UInt8(ascii: ",")]
  }

  // MARK: Numbers

  private func write(_ numbers: Numbers, of slice: WaveformSlice, to text: inout [UInt8]) {
    switch numbers {
    case .peaks: NumberText.append(slice.data.span, to: &text)
    case .rms: NumberText.append(slice.rms.span, to: &text)
    case .average: NumberText.append(slice.average.span, to: &text)
    case .fractions(let lane): writeFractions(of: slice, lane: slice.lanes == 1 ? 0 : lane, to: &text)
    case .binary where window.query.bits == .sixteen: writeWords(slice.data.span, to: &text)
    case .binary: text.append(contentsOf: slice.data.lazy.map { UInt8(truncatingIfNeeded: $0) })
    }
  }

  /// The file is little-endian, as is every processor that the service runs on.
  private func writeWords(_ words: Span<Int16>, to text: inout [UInt8]) {
    precondition(Int16(1).littleEndian == 1)
    unsafe words.withUnsafeBytes { unsafe text.append(contentsOf: $0) }
  }

  private func writeFractions(of slice: WaveformSlice, lane: Int, to text: inout [UInt8]) {
    let fullScale = window.query.bits == .eight ? 128 : 32768
    for pixel in 0..<slice.data.count / (2 * slice.lanes) {
      if pixel > 0 { text.append(UInt8(ascii: ",")) }
      let index = 2 * (pixel * slice.lanes + lane)
      Self.appendFraction(Int(slice.data[index]), of: fullScale, to: &text)
      text.append(UInt8(ascii: ","))
      Self.appendFraction(Int(slice.data[index + 1]), of: fullScale, to: &text)
    }
  }

  /// Appends `value / fullScale` with up to six decimals: -0.5, 0, 0.250031, -1.
  private static func appendFraction(_ value: Int, of fullScale: Int, to text: inout [UInt8]) {
    var millionths = (value.magnitude * 2_000_000 / UInt(fullScale) + 1) / 2
    if value < 0 { text.append(UInt8(ascii: "-")) }
    text.append(UInt8(ascii: "0") + UInt8(millionths / 1_000_000))
    millionths %= 1_000_000
    guard millionths > 0 else { return }
    text.append(UInt8(ascii: "."))
    var unit: UInt = 100_000
    while millionths > 0 {
      text.append(UInt8(ascii: "0") + UInt8(millionths / unit))
      millionths %= unit
      unit /= 10
    }
  }
}

extension WaveformSlice {
  /// Returns the API's own form: audiowaveform's version 2 object with additional members.
  package func json() -> [UInt8] { written(as: .json) }

  /// Returns audiowaveform's file, byte for byte: only its seven members, and a newline.
  package func strictJSON() -> [UInt8] { written(as: .strictJSON) }

  /// Returns wavesurfer.js's form: one array per lane, and the duration of the pixels in seconds.
  package func peaksJSON() -> [UInt8] { written(as: .peaksJSON) }

  /// Returns the slice as a `.dat` file of version 2, or 1.
  package func dat(version: Int = 2) -> [UInt8] { written(as: .dat(version: version)) }

  private func written(as form: WaveformForm) -> [UInt8] {
    WaveformDocument(window, as: form, length: length).bytes(of: self)
  }
}
