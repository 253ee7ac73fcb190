import Foundation

@testable import Waveform

extension Recording {
  /// Word-like bursts: a loud and a quiet half with silence in between. The second channel is half as loud.
  static func words(seconds: Double = 6, sampleRate: Int = 8000, channels: Int = 2, noise: Double = 0.02) -> Recording {
    var generator = SeededGenerator(state: 7)
    var samples: [Int16] = []
    for frame in 0..<Int(seconds * Double(sampleRate)) {
      let time = Double(frame) / Double(sampleRate)
      let word = max(0, sin(2 * .pi * time * 0.7)) * (0.4 + 0.5 * abs(sin(2 * .pi * time * 3.1)))
      // Louder upward than downward, like voices.
      let phase = 2 * Double.pi * 140 * time
      let voice = word * (0.55 * sin(phase) + 0.35 * cos(2 * phase))
      let hiss = (Double(generator.next() >> 11) / Double(1 << 53) - 0.5) * 2 * noise
      for channel in 0..<channels {
        let value = (voice + hiss) / Double(1 + channel)
        samples.append(Int16((min(max(value, -1), 1) * 32767).rounded()))
      }
    }
    return Recording(sampleRate: sampleRate, channels: channels, samples: samples)
  }

  /// Repeats a pattern of values.
  static func repeating(_ pattern: [Int16], frames: Int, sampleRate: Int = 8000) -> Recording {
    Recording(sampleRate: sampleRate, channels: 1, samples: (0..<frames).map { pattern[$0 % pattern.count] })
  }
}

extension PictureColor {
  static let clear = PictureColor(red: 0, green: 0, blue: 0, alpha: 0)
}

func query(_ start: Double? = nil, _ end: Double? = nil, width: Int) -> WaveformQuery {
  WaveformQuery(start: start, end: end, resolution: .width(width))
}

/// A recording with its pyramid, of which `extent` is visible.
struct PictureSource {
  let recording: Recording
  var extent: WaveformExtent
  private let pyramid: PyramidFile

  init(_ recording: Recording, available: Int64? = nil) throws {
    self.recording = recording
    extent = recording.extent
    if let available {
      extent.availableFrames = available
      extent.isComplete = false
    }
    pyramid = try recording.withPyramid { $0 }
  }

  func slice(_ window: WaveformWindow) throws -> WaveformSlice {
    guard window.needsSamples else { return try pyramid.slice(window) }
    return WaveformSlice(window, samples: recording.samples(window.frameRange).span)
  }
}

/// A picture and the slices that it is drawn from.
struct Drawing {
  let picture: WaveformPicture
  private let slice: WaveformSlice
  private let overlay: WaveformSlice?

  init(
    _ source: PictureSource, _ query: WaveformQuery, over overlaySource: PictureSource? = nil,
    _ style: (inout PictureStyle) -> Void = { _ in }
  ) throws {
    var changed = PictureStyle()
    style(&changed)
    picture = try WaveformPicture(query, style: changed, of: source.extent, overlay: overlaySource?.extent)
    slice = try source.slice(picture.window)
    if let window = picture.overlayWindow, let overlaySource {
      overlay = try overlaySource.slice(window)
    } else {
      overlay = nil
    }
  }

  func png() throws -> [UInt8] { try picture.png(slice, overlay: overlay) }
  func svg() -> String { String(decoding: picture.svg(slice, overlay: overlay), as: UTF8.self) }
  func canvas() -> Canvas { picture.canvas(slice, overlay: overlay) }

  func image() throws -> PNGImage {
    guard let image = PNGImage(try png()) else { throw WaveformError.pictureNotEncoded }
    return image
  }
}
