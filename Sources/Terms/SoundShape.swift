/// The format and length of a sound, as the API shows them.
package struct SoundShape: Codable, Sendable, Equatable {
  /// The container: "wav", "flac", "ogg" …
  package var container: String
  /// The codec: "pcm_s16", "vorbis" …
  package var codec: String
  /// In Hz.
  package var sampleRate: Int
  /// Number of channels.
  package var channels: Int
  /// Number of frames; nil until it is known for certain.
  package var frames: Int64?
  /// Number of frames suggested by the file, while `frames` is nil.
  package var estimatedFrames: Int64?
  /// Creates a shape; the lengths may be set later.
  package init(
    container: String, codec: String, sampleRate: Int, channels: Int, frames: Int64? = nil,
    estimatedFrames: Int64? = nil
  ) {
    self.container = container
    self.codec = codec
    self.sampleRate = sampleRate
    self.channels = channels
    self.frames = frames
    self.estimatedFrames = estimatedFrames
  }

  /// Sets the length, now that it is known for certain.
  package mutating func setLength(frames: Int64) {
    self.frames = frames
    estimatedFrames = nil
  }

  /// In seconds; nil until it is known for certain.
  package var duration: Double? { frames.map { Double($0) / Double(sampleRate) } }
}
