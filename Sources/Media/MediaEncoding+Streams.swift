import Terms

// How to code sound that replaces that of a transport or program stream, of AVI, Flash video, CAF, WavPack, True Audio,
// Creative Voice, or of G.726 in WAV.

extension MediaFacts {
  /// Returns the encoder's arguments, with `bits` per second if the codec has a choice.
  func streamWords(_ codec: String, bits: Int) -> [String] {
    let words =
      switch codec {
      case "aac": ["aac", "-b:a:0", "\(min(bits, 6 * sampleRate * channels))"]
      case "mp2": ["mp2", "-b:a:0", sampleRate < 32_000 ? "160000" : "384000"]
      case "mp3": ["libmp3lame", "-q:a:0", "0"]
      case "ac3": ["ac3", "-b:a:0", "640000"]
      case "opus": ["libopus", "-ar:a:0", "48000", "-b:a:0", "\(min(bits, 256_000 * channels))"]
      case "alac": ["alac", "-sample_fmt:a:0", "s32p"]
      case "wavpack": ["wavpack", "-sample_fmt:a:0", isInteger ? "s32p" : "fltp"]
      case "tta": ["tta", "-sample_fmt:a:0", "s32"]
      case "adpcm_g726": ["g726", "-b:a:0", "\(min(max(bitRate ?? 32_000, 16_000), 40_000) / 8000 * 8000)"]
      case "pcm_s16", "pcm_s24": [codec + "le"]
      default: [codec]
      }
    let delay = delay(of: codec)
    return ["-c:a:0"] + words + (delay > 0 ? ["-filter:a:0", "atrim=start_sample=\(delay)"] : [])
  }

  /// Number of frames that ffmpeg's encoder returns before the first that it was given. These containers have no times
  /// before 0, or no times at all. So that many of the first frames are dropped, which puts all others at the right
  /// time.
  private func delay(of codec: String) -> Int {
    switch codec {
    case "aac": 1024
    case "ac3": 256
    case "mp2": 481
    case "mp3": 1105
    case "opus": (312 * sampleRate + 24_000) / 48_000
    default: 0
    }
  }

  /// Arguments for containers whose times start at 0. A packet before 0 would shift all others or be taken for the last
  /// one.
  var streamMuxerWords: [String] {
    guard [.ts, .mpg, .flv].contains(container) else { return [] }
    return ["-bsf:a:0", "noise=drop=lt(pts\\,0)", "-muxdelay", "0", "-muxpreload", "0"]
  }
}
