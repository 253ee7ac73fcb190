import AudioIO
import Denoise
import Terms
import Waveform
import Workers

/// Writes one window of a recording's spectrogram to a PNG file.
package struct ExportSpectrogram: Sendable {
  /// The recording's audio file.
  package let source: String
  /// The window, and how to show it.
  package let query: SpectrogramQuery
  /// The colors.
  package let palette: PicturePalette

  /// Creates a task from its parts.
  package init(source: String, query: SpectrogramQuery, palette: PicturePalette) {
    (self.source, self.query, self.palette) = (source, query, palette)
  }

  /// Throws `.spectrogram` without writing anything if the query doesn't fit the recording. Decodes only what is shown,
  /// unless the file doesn't say reliably how long it is.
  package func write(to path: String) throws(ProcessingError) {
    let sound = try audio { () throws(AudioIOError) in try SampleWindow(path: source) }
    let (format, frames) = (sound.reader.format, try audio { () throws(AudioIOError) in try sound.frameCount() })
    let extent = SpectrogramExtent(
      sampleRate: format.sampleRate, channels: format.channels, availableFrames: frames, length: frames,
      isComplete: true)
    let tile: SpectrogramTile
    do { tile = try SpectrogramTile(query, of: extent) } catch { throw .spectrogram(error) }
    let values = try audio { () throws(AudioIOError) in try sound.values(of: tile) }
    let png = try waveform { () throws(WaveformError) in
      try palette.png(values, width: tile.columnCount, height: tile.height)
    }
    try ExportWaveform.writeFile(path) { (write) throws(ProcessingError) in try write(png) }
  }
}

extension SampleWindow {
  /// Returns the recording's length, which is decoded unless the file is known to state it reliably.
  fileprivate func frameCount() throws(AudioIOError) -> Int64 {
    if let frames = reader.promisedFrames { return frames }
    while reader.readInt16({ _ in }) > 0 {}
    return reader.position
  }
}
