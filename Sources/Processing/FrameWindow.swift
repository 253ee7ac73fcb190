import AudioIO
import Denoise
import Terms
import Workers

/// The frames of a recording to write, and the frames that must be read to make them the same as in the whole.
struct FrameWindow {
  var wanted: Range<Int64> = 0..<Int64.max
  /// The frames to edit, which are more than the wanted ones if there are boxes.
  var edited: Range<Int64> = 0..<Int64.max
  var read: Range<Int64> = 0..<Int64.max

  /// Creates a window; the whole recording if `window` is nil.
  init(_ window: TimeWindow?, of format: AudioFormat, _ parameters: DenoiseParameters) {
    guard let window else { return }
    wanted = window.frames(sampleRate: format.sampleRate)
    edited = parameters.edit == nil ? wanted : BoxEditor.sound(for: wanted, sampleRate: format.sampleRate)
    read =
      parameters.settings.method == .editOnly
      ? edited
      : NoiseRemover.sound(
        for: edited, settings: parameters.settings, sampleRate: format.sampleRate, channels: format.channels)
  }

  /// Returns the wanted part of the interleaved `samples`, which begin at frame `position`.
  func wanted(of samples: Span<Float>, at position: Int64, channels: Int) -> Range<Int> {
    let frames = Int64(samples.count / channels)
    let from = min(max(wanted.lowerBound - position, 0), frames)
    let to = min(max(wanted.upperBound - position, from), frames)
    return (Int(from) * channels)..<(Int(to) * channels)
  }
}
