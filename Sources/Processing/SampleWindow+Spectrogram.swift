import AudioIO
import Denoise
import Terms

extension SampleWindow {
  /// Returns the values of a tile. Decodes only the frames of its transforms, and whatever the codec needs to get
  /// there. Blocks. Throws `.unsupportedMedia` if the file has other channels than the tile's recording.
  package func values(of tile: SpectrogramTile) throws(AudioIOError) -> [UInt8] {
    guard reader.format.channels == tile.channelCount else { throw .unsupportedMedia(found: nil) }
    let isQuick = reader.format.isSeekable && !reader.format.codec.isSlow
    var builder = SpectrogramBuilder(tile, joining: isQuick ? Self.quickGap : Self.slowGap)
    while let frames = builder.nextFrames {
      let place = frames.lowerBound - tile.fileStart
      if reader.position != place { try reader.seek(to: place) }
      let got = reader.readFloat(upTo: Int(clamping: frames.count)) { builder.append($0) }
      guard got > 0 else { throw .seekFailed(frame: reader.position) }
    }
    return builder.finish()
  }

  /// Frames that are decoded sooner than a seek skips them: of PCM, and of other codecs.
  private static let (quickGap, slowGap) = (1024, 16_384)
}
