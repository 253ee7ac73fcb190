/// How the waveform in a picture is drawn.
package enum PictureLook: String, Sendable, CaseIterable {
  /// A closed outline, as in audio editors.
  case wave
  /// Rounded bars, as in music players.
  case bars
}

/// The vertical scale of a picture.
package enum PictureAmplitude: Sendable, Hashable {
  /// The loudest peak shown, in either recording, reaches the edge of a lane.
  case auto
  /// At 1, full scale reaches the edge of a lane. Larger factors enlarge quiet sound and clip loud sound.
  case factor(Double)
}

/// The style of a waveform picture. Lengths are in CSS pixels; a PNG has `pixelRatio` pixels for each.
package struct PictureStyle: Sendable, Hashable {
  /// Maximum width in pixels, after applying `pixelRatio`.
  package static let widthLimit = 20_000
  /// Maximum height in CSS pixels.
  package static let heightLimit = 2000
  /// Maximum number of pixels, after applying `pixelRatio`. A raster has one byte per pixel, so no picture takes more
  /// than 8 MiB, and its PNG at most the same again.
  package static let pixelLimit = 1 << 23
  /// Allowed pixel ratios, from 1 for standard screens to 4.
  package static let pixelRatios = 1.0...4.0
  /// Allowed amplitude factors.
  package static let amplitudeFactors = 0.01...1000.0
  /// The width if neither a width nor a scale is requested.
  package static let defaultWidth = 1000

  /// Total height, including the axis.
  package var height = 200
  /// A PNG's pixels per CSS pixel, 1 … 4; for an SVG, the outline's points per CSS pixel.
  package var pixelRatio = 1.0
  /// The color of the loudness (RMS); the peaks are a lighter shade of it. Nil: teal, or gray under an overlay.
  package var color: PictureColor?
  /// The color of the overlay's loudness. Nil: teal.
  package var overlayColor: PictureColor?
  /// The color of the background.
  package var background = PictureColor(red: 0, green: 0, blue: 0, alpha: 0)
  /// Whether to draw a time axis at the bottom.
  package var axis = false
  /// The vertical scale.
  package var amplitude = PictureAmplitude.factor(1)
  /// Whether to draw an outline or bars.
  package var look = PictureLook.wave

  /// Creates the default style: an outline 200 pixels high on a transparent background, without an axis.
  package init() {}

  static let teal = PictureColor.rgb(0x0d7a7e)
  static let grey = PictureColor.rgb(0x84898f)
  /// How much lighter the peaks are than the RMS.
  static let peakOpacity = 0.5

  /// The color of labels and ticks: readable on the background or, without one, on both light and dark pages.
  var axisColor: PictureColor {
    guard background.alpha >= 128 else { return .rgb(0x808890) }
    let brightness = 2 * Int(background.red) + 5 * Int(background.green) + Int(background.blue)
    return brightness > 8 * 128 ? .rgb(0x5c626b) : .rgb(0xa6adb6)
  }

  /// Throws `.pictureOutOfRange` for a value outside its range.
  func check() throws(WaveformError) {
    guard (1...Self.heightLimit).contains(height) else {
      throw .pictureOutOfRange(parameter: "height", value: Double(height), lowest: 1, highest: Double(Self.heightLimit))
    }
    guard Self.pixelRatios.contains(pixelRatio) else {
      throw .pictureOutOfRange(
        parameter: "pixel_ratio", value: pixelRatio, lowest: Self.pixelRatios.lowerBound,
        highest: Self.pixelRatios.upperBound)
    }
    if case .factor(let factor) = amplitude, !Self.amplitudeFactors.contains(factor) {
      throw .pictureOutOfRange(
        parameter: "amplitude_scale", value: factor, lowest: Self.amplitudeFactors.lowerBound,
        highest: Self.amplitudeFactors.upperBound)
    }
  }
}
