import Denoise
import Terms
import Voice
import Waveform

/// Why work on a file failed.
package enum ProcessingError: Error, Sendable {
  case audio(AudioIOError)
  case media(MediaError)
  case waveform(WaveformError)
  case denoise(DenoiseError)
  case spectrogram(SpectrogramError)
  /// The whole recording is too short to learn its noise from, which takes `needed` frames.
  case recordingTooShort(frames: Int64, needed: Int64)
  /// The noise region isn't within the recording; `duration` is nil if it's known only at the end.
  case regionOutside(start: Double, end: Double, duration: Double?)
  /// No frame of the window is within the recording.
  case windowOutside(start: Double, end: Double)
  /// A box of an edit, by its number from 0, reaches over half the sample rate, `limit`.
  case boxAbove(number: Int, limit: Double)
  /// The file of a noise profile that was learned before can't be used.
  case profile(path: String, NoiseProfileFile.Fault)
  /// Only ffmpeg can read the file, and the request has none.
  case needsFFmpeg
  /// The method `voice` can't be used.
  case voice(VoiceError)
  /// A system call on a file failed.
  case system(operation: String, path: String, errno: Int32)
  /// A worker was given no whole `WorkerRequest`.
  case request(RequestFault)

  /// What is wrong with a request.
  package enum RequestFault: Sendable {
    case truncated, tooLong, malformed
  }
}
