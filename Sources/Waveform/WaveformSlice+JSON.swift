// The JSON forms. Members, in this order:
//
//   json()        version channels sample_rate samples_per_pixel bits length [data] [rms] [average]
//                 start_frame available_frames total_frames [estimated_frames] complete
//   strictJSON()  the first seven, and the newline audiowaveform ends with
//   peaksJSON()   peaks (per lane min, max, min, max … in −1 … 1, six decimals: 1/60 of a 16-bit step), duration

extension WaveformSlice {
  /// The API's own form: audiowaveform's version 2 object with members of ours beside it.
  public func json() -> [UInt8] {
    let extent = window.extent
    var text = head()
    if window.query.measures.contains(.peak) {
      text.append(contentsOf: ",\"data\":[".utf8)
      NumberText.append(data.span, to: &text)
      text.append(UInt8(ascii: "]"))
    }
    if window.query.measures.contains(.rms) {
      text.append(contentsOf: ",\"rms\":[".utf8)
      NumberText.append(rms.span, to: &text)
      text.append(UInt8(ascii: "]"))
    }
    if window.query.measures.contains(.average) {
      text.append(contentsOf: ",\"average\":[".utf8)
      NumberText.append(average.span, to: &text)
      text.append(UInt8(ascii: "]"))
    }
    let total = extent.isComplete ? extent.availableFrames : extent.totalFrames
    var tail = ",\"start_frame\":\(window.startFrame),\"available_frames\":\(extent.availableFrames)"
    tail += ",\"total_frames\":\(total.map { "\($0)" } ?? "null")"
    if total == nil, let estimate = extent.estimatedFrames { tail += ",\"estimated_frames\":\(estimate)" }
    tail += ",\"complete\":\(extent.isComplete)}"
    text.append(contentsOf: tail.utf8)
    return text
  }

  /// audiowaveform's file, byte for byte: its seven members alone, and a newline.
  public func strictJSON() -> [UInt8] {
    var text = head()
    text.append(contentsOf: ",\"data\":[".utf8)
    NumberText.append(data.span, to: &text)
    text.append(contentsOf: "]}\n".utf8)
    return text
  }

  /// wavesurfer.js's form: one array per lane, and the seconds that the pixels cover.
  public func peaksJSON() -> [UInt8] {
    let fullScale = window.query.bits == .eight ? 128 : 32768
    var text: [UInt8] = []
    text.reserveCapacity(10 * data.count + 64)
    text.append(contentsOf: "{\"peaks\":[".utf8)
    for lane in 0..<lanes {
      text.append(contentsOf: (lane == 0 ? "[" : ",[").utf8)
      for pixel in 0..<data.count / (2 * lanes) {
        if pixel > 0 { text.append(UInt8(ascii: ",")) }
        let index = 2 * (pixel * lanes + lane)
        Self.appendFraction(Int(data[index]), of: fullScale, to: &text)
        text.append(UInt8(ascii: ","))
        Self.appendFraction(Int(data[index + 1]), of: fullScale, to: &text)
      }
      text.append(UInt8(ascii: "]"))
    }
    let seconds = Double(window.frameRange.count) / Double(window.extent.sampleRate)
    text.append(contentsOf: "],\"duration\":\(seconds)}".utf8)
    return text
  }

  private func head() -> [UInt8] {
    var text: [UInt8] = []
    text.reserveCapacity(7 * (data.count + rms.count + average.count) + 400)
    let extent = window.extent
    text.append(
      contentsOf: """
        {"version":2,"channels":\(lanes),"sample_rate":\(extent.sampleRate),"samples_per_pixel":\(window.scale),\
        "bits":\(window.query.bits.rawValue),"length":\(length)
        """.utf8)
    return text
  }

  /// `value / fullScale` with as many of six decimals as it needs: -0.5, 0, 0.250031, -1.
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
