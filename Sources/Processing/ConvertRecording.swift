import AudioIO
import Glibc
import Media
import Terms
import Workers

/// Writes a recording's audio, or a part of it, in another format, frame for frame.
struct ConvertRecording {
  let source: String
  let output: String
  let format: OutputFormat
  /// The encoder to use; nil for libsndfile.
  var encoding: MediaEncoding?
  /// The frames to write; nil for all. A part doesn't get the recording's tags.
  var frames: Range<Int64>?

  /// Reads to the end and writes a durable file. Memory use is constant; calls `progress` after every chunk.
  func run(progress: (WorkerProgress) -> Void) throws(ProcessingError) -> ConversionOutcome {
    var reader = try audio { () throws(AudioIOError) in try AudioReader(path: source, limits: .none) }
    let length = ExpectedLength(reader, path: source)
    var writer: AudioWriter?
    if encoding == nil {
      let (source, path, isPart) = (reader.format, source, frames != nil)
      let expected = frames.map { Int64($0.count) } ?? length.total ?? length.estimate ?? .max
      let made = try audio { () throws(AudioIOError) in
        try AudioWriter(
          creating: output, format: format.format(for: source), expectedFrames: expected,
          tags: isPart ? SoundTags() : SoundTags(path: path))
      }
      writer = consume made
    }
    let part = frames ?? 0..<(.max)
    if part.lowerBound > 0 {
      do { try reader.seek(to: part.lowerBound) } catch { throw .audio(error) }
    }
    var quantised: [Int16] = []
    while reader.position < part.upperBound {
      let left = Int(clamping: part.upperBound - reader.position)
      let got = try reader.readFloat(upTo: left) { (samples) throws(ProcessingError) in
        if let encoding {
          try media { () throws(MediaError) in try encoding.write(samples) }
        } else {
          guard var file = writer.take() else { return }
          do throws(AudioIOError) { try file.write(samples, quantised: &quantised) } catch { throw .audio(error) }
          writer = consume file
        }
      }
      guard got > 0 else { break }
      progress(length.progress(read: reader.position, ready: 0))
    }
    guard reader.position > part.lowerBound else { throw .audio(.empty) }
    if frames != nil, reader.position < part.upperBound { throw .audio(.seekFailed(frame: reader.position)) }
    if let writer = writer.take() {
      do { try writer.finish() } catch { throw .audio(error) }
    }
    if let encoding { try media { () throws(MediaError) in try encoding.finish() } }
    return ConversionOutcome(frames: reader.position - part.lowerBound)
  }
}
