import Terms
import Waveform

// What a tenant may store is judged before work begins that adds to it. A length that can't be foreseen counts as
// little, because the files are counted when the job ends; one that can is expected to the byte, but for headers.

/// How many bytes the files of recordings are expected to take.
package enum ExpectedBytes {
  /// The file that a recording's sound is read from: its own or the working copy.
  package struct Source {
    let format: AudioFormat
    let bytes: Int64
    /// What part of it the result has, 0 … 1.
    let share: Double

    /// Describes a source of `bytes` bytes.
    package init(_ format: AudioFormat, bytes: Int64, share: Double = 1) {
      (self.format, self.bytes, self.share) = (format, bytes, share)
    }
  }

  /// Returns the length of a file in the format `target`, made from `source`: the source's share if it is of the same
  /// kind and lossless.
  package static func sound(_ target: AudioFormat, frames: Int64, from source: Source) -> Int64 {
    let isSameKind = target.container == source.format.container && target.codec.name == source.format.codec.name
    guard isSameKind, target.codec.sampleKind != .lossy else { return target.expectedBytes(frames: frames) }
    return Int64((Double(source.bytes) * source.share).rounded(.up))
  }

  /// Returns the length of a waveform's file.
  package static func waveform(sampleRate: Int, channels: Int, frames: Int64) -> Int64 {
    PyramidFile.byteCount(sampleRate: sampleRate, channels: channels, frames: frames)
  }

  /// Returns the length of what is made of an uploaded file of `bytes` bytes: its waveform and, if `media` says that it
  /// needs one, its working copy. 0 if the headers don't give the length of the sound.
  package static func made(of shape: SoundShape, _ media: MediaFacts?, bytes: Int64) -> Int64 {
    guard let media else {
      return shape.frames.map { waveform(sampleRate: shape.sampleRate, channels: shape.channels, frames: $0) } ?? 0
    }
    guard media.promisesLength, let frames = shape.frames ?? shape.estimatedFrames else { return 0 }
    let copy = media.workingFormat.expectedBytes(frames: frames)
    // FLAC is about as long as other lossless coding.
    return (media.workingFormat.container == .flac ? min(copy, bytes) : copy)
      + waveform(sampleRate: media.sampleRate, channels: media.channels, frames: frames)
  }
}
