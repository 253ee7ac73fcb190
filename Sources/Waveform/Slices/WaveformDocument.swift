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
//   points       little-endian: "SWPT"; uint16 version: 1; uint8 measures: 1 peak, 2 rms, 4 average, added; uint8 bits;
//                uint32 sample rate, samples per pixel, length; uint16 channels, 0; int64 start frame;
//                then, as requested, minima and maxima as in dat, rms, averages, as uint8 or uint16 for each pixel, for
//                each channel, each followed by zeros up to a multiple of four bytes

/// A window written in one of the forms: in one go from a slice of all of it, or piece by piece, so that a response of
/// any length needs only the memory of one piece.
package struct WaveformDocument: Sendable {
  /// The window that is written.
  package let window: WaveformWindow
  /// The form in which it is written.
  package let form: WaveformForm

  private enum Numbers: Sendable {
    /// `peaks` are minimum and maximum.
    case peaks, rms, average
    /// Minimum and maximum of one lane, as fractions in JSON.
    case fractions(lane: Int)
  }

  private let sections: [Numbers]
  /// The number of pixels that is written.
  private let length: Int

  /// Creates a document. Call `WaveformWindow.check` first to find out whether the form supports the query.
  package init(_ window: WaveformWindow, as form: WaveformForm) {
    self.init(window, as: form, length: window.pixelCount)
  }

  fileprivate init(_ window: WaveformWindow, as form: WaveformForm, length: Int) {
    (self.window, self.form, self.length) = (window, form, length)
    switch form {
    case .json, .points:
      let measures = window.query.measures
      let all: [(Measures, Numbers)] = [(.peak, .peaks), (.rms, .rms), (.average, .average)]
      sections = measures == .peak ? [.peaks] : all.filter { measures.contains($0.0) }.map(\.1)
    case .strictJSON, .dat: sections = [.peaks]
    case .peaksJSON: sections = (0..<window.lanes).map { .fractions(lane: $0) }
    }
  }

  /// The total size in bytes if it is known in advance, which it is for the binary forms.
  package var byteCount: Int64? {
    guard form.isBinary else { return nil }
    var around: [UInt8] = []
    for section in sections.indices { open(section, in: &around) }
    close(&around)
    return Int64(around.count) + sections.reduce(0) { $0 + byteCount(of: $1) }
  }

  /// The size of a section's numbers in a binary form.
  private func byteCount(of numbers: Numbers) -> Int64 {
    let each: Int64 = if case .peaks = numbers { 2 } else { 1 }
    return each * Int64(length) * Int64(window.lanes) * (window.query.bits == .eight ? 1 : 2)
  }

  /// Returns the whole document, from the slice of its whole window.
  package func bytes(of slice: WaveformSlice) -> [UInt8] {
    var text: [UInt8] = []
    text.reserveCapacity(7 * (slice.data.count + slice.rms.count + slice.average.count) + 400)
    for section in sections.indices {
      open(section, in: &text)
      write(sections[section], of: slice, to: &text)
    }
    close(&text)
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
        var closing: [UInt8] = []
        document.close(&closing)
        return closing.isEmpty ? nil : closing
      }
      let present = document.sections[section]
      let last = min(pixel + pixelsEach(present), document.window.pixelCount)
      var text: [UInt8] = []
      if pixel == 0 { document.open(section, in: &text) } else { document.separate(&text) }
      if pixel < last {
        var part = document.window.part(pixel..<last)
        if case .fractions(let lane) = present, part.lanes > 1 { part = part.lane(lane) }
        document.write(present, of: try slice(part), to: &text)
      }
      pixel = last
      if pixel == document.window.pixelCount { (section, pixel) = (section + 1, 0) }
      return text
    }

    private func pixelsEach(_ kind: Numbers) -> Int {
      switch kind {
      case .peaks: max(1, numbers / (2 * document.window.lanes))
      case .rms, .average: max(1, numbers / document.window.lanes)
      case .fractions: max(1, numbers / 2)
      }
    }
  }

  // MARK: Sections

  /// Appends what comes before a section's numbers. Interpolating the members took about as long as writing a thousand
  /// numbers.
  private func open(_ section: Int, in text: inout [UInt8]) {
    text.append(addingCapacity: Self.mostAround) { text in
      switch (form, sections[section]) {
      case (.json, let numbers), (.strictJSON, let numbers):
        if section == 0 { writeHead(to: &text) } else { text.append(literal: "]") }
        switch numbers {
        case .rms: text.append(literal: ",\"rms\":[")
        case .average: text.append(literal: ",\"average\":[")
        case .peaks, .fractions: text.append(literal: ",\"data\":[")
        }
      case (.peaksJSON, _): text.append(literal: section == 0 ? "{\"peaks\":[[" : "],[")
      case (.dat(let version), _): writeHeader(version, to: &text)
      case (.points, _):
        if section == 0 { writePointsHeader(to: &text) } else { pad(sections[section - 1], in: &text) }
      }
    }
  }

  /// Appends zeros, so that a section of `points` begins at a multiple of four bytes.
  private func pad(_ section: Numbers, in bytes: inout OutputSpan<UInt8>) {
    for _ in 0..<(-byteCount(of: section) & 3) { bytes.append(0) }
  }

  /// Appends what comes after the numbers of the last section.
  private func close(_ text: inout [UInt8]) {
    switch form {
    case .json: text.append(addingCapacity: Self.mostAround, initializingWith: writeExtent)
    case .strictJSON: text.append(literal: "]}\n")
    case .peaksJSON:
      let seconds = Double(window.frameRange.count) / Double(window.extent.sampleRate)
      text.append(contentsOf: "]],\"duration\":\(seconds)}".utf8)
    case .dat: break
    case .points: text.append(addingCapacity: 3) { text in pad(sections[sections.count - 1], in: &text) }
    }
  }

  /// An upper bound on the bytes before or after a section: names and up to six numbers.
  private static let mostAround = 256

  private func writeHead(to text: inout OutputSpan<UInt8>) {
    text.append(literal: "{\"version\":2,\"channels\":")
    text.append(decimal: Int64(window.lanes))
    text.append(literal: ",\"sample_rate\":")
    text.append(decimal: Int64(window.extent.sampleRate))
    text.append(literal: ",\"samples_per_pixel\":")
    text.append(decimal: Int64(window.scale))
    text.append(literal: ",\"bits\":")
    text.append(decimal: Int64(window.query.bits.rawValue))
    text.append(literal: ",\"length\":")
    text.append(decimal: Int64(length))
  }

  private func writeExtent(to text: inout OutputSpan<UInt8>) {
    let extent = window.extent
    let total = extent.knownFrames
    text.append(literal: "],\"start_frame\":")
    text.append(decimal: window.startFrame)
    text.append(literal: ",\"available_frames\":")
    text.append(decimal: extent.availableFrames)
    text.append(literal: ",\"total_frames\":")
    if let total {
      text.append(decimal: total)
    } else {
      text.append(literal: "null")
    }
    if total == nil, let estimate = extent.estimatedFrames {
      text.append(literal: ",\"estimated_frames\":")
      text.append(decimal: estimate)
    }
    text.append(literal: extent.isComplete ? ",\"complete\":true}" : ",\"complete\":false}")
  }

  /// Version 1 has no channel count, so several lanes are written as version 2, as audiowaveform does.
  private func writeHeader(_ version: Int, to bytes: inout OutputSpan<UInt8>) {
    let isFirst = version == 1 && window.lanes == 1
    bytes.append(little: UInt32(isFirst ? 1 : 2))
    bytes.append(little: UInt32(window.query.bits == .eight ? 1 : 0))
    bytes.append(little: UInt32(window.extent.sampleRate))
    bytes.append(little: UInt32(clamping: window.scale))
    bytes.append(little: UInt32(length))
    if !isFirst { bytes.append(little: UInt32(window.lanes)) }
  }

  private func writePointsHeader(to bytes: inout OutputSpan<UInt8>) {
    bytes.append(literal: "SWPT")
    bytes.append(little: UInt16(1))
    bytes.append(UInt8(window.query.measures.rawValue))
    bytes.append(UInt8(window.query.bits.rawValue))
    bytes.append(little: UInt32(window.extent.sampleRate))
    bytes.append(little: UInt32(window.scale))
    bytes.append(little: UInt32(length))
    bytes.append(little: UInt16(window.lanes))
    bytes.append(little: UInt16(0))
    bytes.append(little: window.startFrame)
  }

  /// Appends what comes between two pieces of a section.
  private func separate(_ text: inout [UInt8]) {
    if !form.isBinary { text.append(UInt8(ascii: ",")) }
  }

  // MARK: Numbers

  private func write(_ numbers: Numbers, of slice: WaveformSlice, to text: inout [UInt8]) {
    switch numbers {
    case .peaks where form.isBinary: write(slice.data.span, to: &text)
    case .rms where form.isBinary: write(slice.rms.span, to: &text)
    case .average where form.isBinary: write(slice.average.span, to: &text)
    case .peaks: NumberText.append(slice.data.span, to: &text)
    case .rms: NumberText.append(slice.rms.span, to: &text)
    case .average: NumberText.append(slice.average.span, to: &text)
    case .fractions(let lane): writeFractions(of: slice, lane: slice.lanes == 1 ? 0 : lane, to: &text)
    }
  }

  /// Appends numbers of the query's bits, little-endian like every processor that the service runs on.
  private func write<Number: FixedWidthInteger & BitwiseCopyable>(_ numbers: Span<Number>, to bytes: inout [UInt8]) {
    precondition(Int16(1).littleEndian == 1)
    if window.query.bits == .eight {
      for index in numbers.indices { bytes.append(UInt8(truncatingIfNeeded: numbers[index])) }
    } else {
      unsafe numbers.withUnsafeBytes { unsafe bytes.append(contentsOf: $0) }
    }
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

  /// Returns the binary form with all measures that were requested.
  package func points() -> [UInt8] { written(as: .points) }

  /// Returns the slice as a `.dat` file of version 2, or 1.
  package func dat(version: Int = 2) -> [UInt8] { written(as: .dat(version: version)) }

  private func written(as form: WaveformForm) -> [UInt8] {
    WaveformDocument(window, as: form, length: length).bytes(of: self)
  }
}

extension OutputSpan<UInt8> {
  /// Appends the bytes of a number, the lowest first.
  mutating func append<Number: FixedWidthInteger>(little number: Number) {
    for shift in stride(from: 0, to: Number.bitWidth, by: 8) { append(UInt8(truncatingIfNeeded: number >> shift)) }
  }
}
