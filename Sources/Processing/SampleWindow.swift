import AudioIO
import Synchronization
import Waveform

/// Slices finer than a pyramid's finest level, from the samples themselves. Safe to share between threads.
public final class SampleWindow: Sendable {
  /// The recording's sound file.
  public let path: String
  /// Where in the file the sound is, once that was looked for: in a long MP3 it takes longer than the slice.
  private let map = Mutex<SoundMap?>(nil)

  /// Slices of the recording whose sound file is at `path`. Nothing is read before the first of them.
  public init(path: String) { self.path = path }

  /// Decodes the window's frames and no others, but for what the codec needs to get there. Blocks.
  ///
  /// The first slice of an MP3 or Ogg file reads all of it, at the speed of the disk.
  public func slice(_ window: WaveformWindow) throws(AudioIOError) -> WaveformSlice {
    let range = window.frameRange
    var reader = try AudioReader(path: path, limits: .none, map: map.withLock { $0 })
    map.withLock { $0 = reader.map }
    var samples: [Int16] = []
    if !range.isEmpty {
      samples.reserveCapacity(range.count * reader.format.channels)
      try reader.seek(to: range.lowerBound)
      while reader.position < range.upperBound {
        let wanted = Int(range.upperBound - reader.position)
        let got = reader.readInt16(upTo: wanted) { span in
          for index in span.indices { samples.append(span[index]) }
        }
        guard got > 0 else { throw .seekFailed(frame: reader.position) }
      }
    }
    return WaveformSlice(window, samples: samples.span)
  }
}
