@testable import Waveform

// The rules of audiowaveform's format, implemented literally and slowly.

/// Returns one lane of a recording, computed frame by frame.
func referenceLane(_ recording: Recording, mix: Bool, channel: Int) -> [Int16] {
  (0..<Int(recording.frames)).map { frame in
    let base = frame * recording.channels
    guard mix else { return recording.samples[base + channel] }
    let sum = (0..<recording.channels).reduce(0) { $0 + Int(recording.samples[base + $1]) }
    return Int16(sum / recording.channels)
  }
}

/// The exact values of a pixel, on the 16-bit scale.
struct ReferencePixel {
  let minimum, maximum: Int
  let rms, average: Double

  init(_ samples: ArraySlice<Int16>) {
    minimum = Int(samples.min() ?? 0)
    maximum = Int(samples.max() ?? 0)
    let squares = samples.reduce(0.0) { $0 + Double($1) * Double($1) }
    rms = (squares / Double(samples.count)).squareRoot()
    average = samples.reduce(0.0) { $0 + Double($1).magnitude } / Double(samples.count)
  }
}

/// Returns the frames covered by pixel `pixel` of a whole recording.
func referenceFrames(pixel: Int, scale: Int, frames: Int) -> Range<Int> {
  guard scale >= 256 else { return pixel * scale..<min((pixel + 1) * scale, frames) }
  return pixel * scale / 256 * 256..<min((pixel + 1) * scale / 256 * 256, frames)
}

/// Returns the number of pixels of a whole recording.
func referenceLength(scale: Int, frames: Int) -> Int {
  guard scale >= 256 else { return (frames + scale - 1) / scale }
  let points = (frames + 255) / 256
  return (points * 256 + scale - 1) / scale
}

/// Returns the pixels of a window of a complete recording.
func referencePixels(_ query: WaveformQuery, scale: Int, of recording: Recording) -> Range<Int> {
  let frames = Int(recording.frames)
  let rate = Double(recording.sampleRate)
  let start = Int(((query.start ?? 0) * rate).rounded())
  guard start < frames else { return start / scale..<start / scale }
  let whole = referenceLength(scale: scale, frames: frames)
  guard let end = query.end.map({ max(Int(($0 * rate).rounded()), start + 1) }), end < frames else {
    return start / scale..<whole
  }
  return start / scale..<(end + scale - 1) / scale
}

/// Returns how a slice differs from what the rules require, or nil if it doesn't.
func difference(_ slice: WaveformSlice, from recording: Recording) -> String? {
  let query = slice.window.query
  let scale = slice.window.scale
  let pixels = referencePixels(query, scale: scale, of: recording)
  let lanes: [[Int16]] =
    switch query.channels {
    case .mix: [referenceLane(recording, mix: true, channel: 0)]
    case .channel(let channel): [referenceLane(recording, mix: false, channel: channel)]
    case .split: (0..<recording.channels).map { referenceLane(recording, mix: false, channel: $0) }
    }
  guard slice.window.startFrame == Int64(pixels.lowerBound * scale) else { return "start frame" }
  guard slice.length == pixels.count, slice.lanes == lanes.count else { return "\(slice.length) pixels" }
  let divisor = query.bits == .eight ? 256 : 1
  let most = query.bits == .eight ? 127.0 : 32768.0
  let values = pixels.count * lanes.count
  guard slice.data.count == (query.measures.contains(.peak) ? 2 * values : 0),
    slice.rms.count == (query.measures.contains(.rms) ? values : 0),
    slice.average.count == (query.measures.contains(.average) ? values : 0)
  else { return "counts" }
  for (index, pixel) in pixels.enumerated() {
    let range = referenceFrames(pixel: pixel, scale: scale, frames: Int(recording.frames))
    for (lane, samples) in lanes.enumerated() {
      let exact = ReferencePixel(samples[range])
      let at = index * lanes.count + lane
      if !slice.data.isEmpty {
        guard Int(slice.data[2 * at]) == exact.minimum / divisor, Int(slice.data[2 * at + 1]) == exact.maximum / divisor
        else { return "peak of pixel \(pixel), lane \(lane)" }
      }
      // Below 256 frames, no intermediate value was rounded. (Halfway cases may round either way.)
      let slack = scale < 256 && divisor == 1 ? 0.5 + 1e-9 : 1
      if !slice.rms.isEmpty, (Double(slice.rms[at]) - min(exact.rms / Double(divisor), most)).magnitude > slack {
        return "rms of pixel \(pixel), lane \(lane): \(slice.rms[at]) for \(exact.rms)"
      }
      if !slice.average.isEmpty,
        (Double(slice.average[at]) - min(exact.average / Double(divisor), most)).magnitude > slack
      {
        return "average of pixel \(pixel), lane \(lane): \(slice.average[at]) for \(exact.average)"
      }
    }
  }
  return nil
}
