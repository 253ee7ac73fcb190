import Testing

@testable import Sounds

/// Compares every form of a finished recording's waveform with its samples.
struct SliceChecks {
  private let client: HTTPClient
  private let path: String
  private let expected: ExpectedWaveform
  private let mix: [Int]
  private let lanes: [[Int]]

  init(_ client: HTTPClient, _ id: String, _ expected: ExpectedWaveform) {
    (self.client, self.expected) = (client, expected)
    path = "/v1/recordings/\(id)"
    mix = expected.mix
    lanes = (0..<expected.channels).map(expected.channel)
  }

  func all() throws {
    for scale in [256, 512, 4096, 300, 1000, 1 << 20] { try whole(scale: scale) }
    for (scale, start, end) in [(256, 0.5, 1.25), (1024, 3.9, 99), (64, 1.6, 1.9), (100, 2, 2.2), (1, 1.5, 1.51)] {
      try window(scale: scale, start: start, end: end)
    }
    for width in [1, 77, 2000, 20_000] { try fitting(width: width) }
    try measures()
    try binary()
    try playersForms()
    try isImmutable()
  }

  private func slice(_ query: String) throws -> JSON {
    let answer = try client.get("\(path)/waveform?\(query)")
    try #require(answer.status == 200, "\(answer.text)")
    let slice = answer.json
    #expect(slice["version"] == .number(2) && slice["sample_rate"].int == expected.rate)
    #expect(slice["complete"] == .bool(true))
    #expect(slice["available_frames"].int == expected.frames && slice["total_frames"].int == expected.frames)
    return slice
  }

  private func whole(scale: Int) throws {
    let pixels = 0..<expected.length(scale)
    for (channels, lanes) in [("mix", [mix]), ("split", self.lanes), ("0", [self.lanes[0]])] {
      for bits in [8, 16] {
        let slice = try slice("scale=\(scale)&channels=\(channels)&bits=\(bits)")
        #expect(slice["length"].int == pixels.count && slice["samples_per_pixel"].int == scale)
        #expect(slice["channels"].int == lanes.count && slice["bits"].int == bits && slice["start_frame"].int == 0)
        let known = expected.peaks(lanes, scale: scale, pixels: pixels, bits: bits)
        #expect(slice["data"].integers == known, "scale \(scale), \(channels), \(bits) bits")
      }
    }
  }

  /// A window is a part of the whole, with pixels counted from frame 0.
  private func window(scale: Int, start: Double, end: Double) throws {
    let first = Int((start * Double(expected.rate)).rounded()) / scale
    let endFrame = min(Int((end * Double(expected.rate)).rounded()), expected.frames)
    let pixels = first..<min((endFrame + scale - 1) / scale, expected.length(scale))
    let slice = try slice("scale=\(scale)&start=\(start)&end=\(end)&channels=split")
    #expect(slice["start_frame"].int == first * scale && slice["length"].int == pixels.count)
    let known = expected.peaks(lanes, scale: scale, pixels: pixels)
    #expect(slice["data"].integers == known, "scale \(scale), \(start) to \(end)")
  }

  /// `width` picks the smallest scale at which the window has at most that many pixels.
  private func fitting(width: Int) throws {
    var scale = 1
    while expected.length(scale) > width { scale += 1 }
    let slice = try slice("width=\(width)")
    #expect(slice["samples_per_pixel"].int == scale && slice["length"].int == expected.length(scale), "width \(width)")
    let known = expected.peaks([mix], scale: scale, pixels: 0..<expected.length(scale))
    #expect(slice["data"].integers == known, "width \(width)")
    if width == 2000 { #expect(try self.slice("") == slice) }
  }

  /// RMS and average, within one step of the exact value.
  private func measures() throws {
    for scale in [512, 64] {
      let query = "scale=\(scale)&start=1&end=2&channels=split&measures=rms,average"
      let slice = try slice(query)
      #expect(slice["data"] == .absent)
      let first = expected.rate / scale
      let pixels = first..<min((2 * expected.rate + scale - 1) / scale, expected.length(scale))
      for (lane, samples) in lanes.enumerated() {
        for (name, known) in [
          ("rms", expected.rms(samples, scale: scale, pixels: pixels)),
          ("average", expected.average(samples, scale: scale, pixels: pixels)),
        ] {
          let values = try #require(slice[name].integers)
          let own = stride(from: lane, to: values.count, by: lanes.count).map { Double(values[$0]) }
          #expect(own.count == known.count)
          #expect(zip(own, known).allSatisfy { abs($0 - $1) <= 1 }, "\(name) of channel \(lane) at \(scale)")
        }
      }
    }
    #expect(try slice("measures=peak,rms")["rms"].array != nil)
  }

  private func binary() throws {
    for (query, lanes, scale, bits, version) in [
      ("scale=256", [mix], 256, 16, 2), ("scale=2048&bits=8", [mix], 2048, 8, 2),
      ("scale=512&version=1", [mix], 512, 16, 1), ("scale=512&channels=split&bits=8", self.lanes, 512, 8, 2),
    ] {
      let answer = try client.get("\(path)/waveform.dat?\(query)")
      #expect(answer["content-type"] == "application/vnd.bbc.audiowaveform")
      let known = expected.dat(lanes, scale: scale, bits: bits, version: version)
      #expect(answer.body == known, ".dat?\(query)")
      #expect(answer["stillwave-start-frame"] == "0" && answer["stillwave-complete"] == "true")
      #expect(answer["stillwave-available-frames"] == "\(expected.frames)")
    }
    let accepted = try client.get(
      "\(path)/waveform?scale=256", ["Accept": "application/vnd.bbc.audiowaveform"])
    #expect(accepted.body == expected.dat([mix], scale: 256, bits: 16, version: 2))
  }

  /// The forms for other players.
  private func playersForms() throws {
    let strict = try client.get("\(path)/waveform.json?scale=512").json
    #expect(
      strict.members == ["bits", "channels", "data", "length", "sample_rate", "samples_per_pixel", "version"])
    #expect(strict["data"].integers == expected.peaks([mix], scale: 512, pixels: 0..<expected.length(512)))
    // Without a window: the whole, at the default width.
    let plain = try slice("")
    #expect(try client.get("\(path)/waveform.json").json["data"] == plain["data"])
    let dat = try client.get("\(path)/waveform.dat").body
    let scale = try #require(plain["samples_per_pixel"].int)
    #expect(dat == expected.dat([mix], scale: scale, bits: 16, version: 2))
    #expect(try client.get("\(path)/peaks.json").json["peaks"][0].array?.count == plain["data"].array?.count)
    // Values that have no place in the body.
    for form in ["waveform.json", "peaks.json", "waveform.dat"] {
      let answer = try client.get("\(path)/\(form)?scale=512&start=1")
      #expect(answer["stillwave-start-frame"] == "\(expected.rate / 512 * 512)", "\(form)")
      #expect(answer["stillwave-available-frames"] == "\(expected.frames)" && answer["stillwave-complete"] == "true")
      expectProblem(
        try client.get("\(path)/\(form)?scale=512&measures=peak,rms"), 400, "invalid_parameter",
        parameter: "measures")
      #expect(try client.get("\(path)/\(form)?start=\(Double(expected.frames) / Double(expected.rate))").status == 200)
    }
    let peaks = try client.get("\(path)/peaks.json?scale=512&channels=split").json
    #expect(peaks["peaks"].array?.count == expected.channels)
    #expect(peaks["duration"].double == Double(expected.frames) / Double(expected.rate))
    let first = expected.peaks([lanes[0]], scale: 512, pixels: 0..<expected.length(512))
    let values = (peaks["peaks"][0].array ?? []).compactMap(\.double)
    #expect(values.count == first.count)
    #expect(zip(values, first).allSatisfy { abs($0 - Double($1) / 32768) < 1e-4 })
  }

  private func isImmutable() throws {
    let answer = try client.get("\(path)/waveform?width=100")
    let tag = try #require(answer["etag"])
    #expect(answer["cache-control"] == "private, max-age=31536000, immutable")
    #expect(answer["x-content-type-options"] == "nosniff")
    #expect(answer["x-request-id"] != nil)
    let again = try client.get("\(path)/waveform?width=100", ["If-None-Match": tag])
    #expect(again.status == 304 && again["etag"] == tag && again.body.isEmpty)
    let head = try client.send("HEAD", "\(path)/waveform?width=100")
    #expect(head.status == 200 && head["content-length"] == "\(answer.body.count)")
    let beyond = try client.get("\(path)/waveform?start=1000&scale=256")
    #expect(beyond.status == 200 && beyond.json["length"] == .number(0) && beyond.json["data"] == .array([]))
  }
}
