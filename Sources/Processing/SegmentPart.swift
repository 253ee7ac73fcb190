import AudioIO
import Denoise
import Waveform

/// What a segment adds to a recording's waveform and to the search for noise regions.
struct SegmentPart: Sendable {
  let waveform: PyramidPart
  /// Nil if noise regions aren't searched for.
  let noise: NoiseFrames?
}

/// Makes the parts of segments, on a worker's thread.
final class SegmentPartWork: SegmentWork {
  private var waveform: PyramidPartBuilder
  private var meter: NoiseMeter?
  private var noise = NoiseFrames()

  /// Samples per segment: 24 s of 44.1 kHz stereo.
  private static let segmentSamples = 1 << 21

  /// Returns the frames per segment.
  static func segmentFrames(channels: Int) -> Int {
    let block = Int(PyramidPartBuilder.alignment)
    return max(segmentSamples / channels / block, 1) * block
  }

  /// Creates work that uses `waveform` for segments. `meter`: nil if noise regions aren't searched for.
  init(_ waveform: PyramidPartBuilder, _ meter: consuming NoiseMeter?) {
    self.waveform = waveform
    self.meter = meter
  }

  func begin(at frame: Int64) {
    waveform.begin(at: frame)
    meter?.begin(at: frame)
    noise = NoiseFrames()
  }

  func append(_ samples: Span<Int16>) {
    meter?.append(samples, to: &noise)
    waveform.append(samples)
  }

  func finish(tail: Span<Int16>) -> SegmentPart {
    meter?.finish(&noise, tail: tail)
    return SegmentPart(waveform: waveform.finish(), noise: meter == nil ? nil : noise)
  }
}
