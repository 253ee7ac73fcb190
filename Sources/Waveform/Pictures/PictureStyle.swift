/// What a waveform's picture is drawn like.
package enum PictureLook: String, Sendable, CaseIterable {
  /// A closed outline, as editors draw it.
  case wave
  /// Rounded bars, as players draw it.
  case bars
}

/// How far up full scale reaches in a picture.
package enum PictureAmplitude: Sendable, Hashable {
  /// The loudest peak that is shown, of both recordings, reaches a lane's edge.
  case auto
  /// 1 is full scale at a lane's edge; with more, quiet sound is drawn larger and loud sound is cut.
  case factor(Double)
}

/// How a waveform's picture looks. Lengths are CSS pixels; a PNG has `pixelRatio` of its own pixels for each.
package struct PictureStyle: Sendable, Hashable {
  /// The most pixels across, `pixelRatio` included.
  package static let widthLimit = 20_000
  /// The most CSS pixels down.
  package static let heightLimit = 2000
  /// The most pixels in all, `pixelRatio` included. A raster has a byte for each: no picture takes more than 8 MiB, and
  /// its PNG as much again at the worst.
  package static let pixelLimit = 1 << 23
  /// From 1, for plain screens, to 4.
  package static let pixelRatios = 1.0...4.0
  /// What an amplitude may be multiplied with.
  package static let amplitudeFactors = 0.01...1000.0
  /// The width where neither a width nor a scale is asked for.
  package static let defaultWidth = 1000

  /// The whole height, axis included.
  package var height = 200
  /// Pixels of a PNG for each CSS pixel, 1 … 4; in an SVG, points of the outline for each.
  package var pixelRatio = 1.0
  /// The loudness (RMS); the peaks are a lighter shade of it. nil: teal, or grey under an overlay.
  package var color: PictureColor?
  /// The same for the overlay. nil: teal.
  package var overlayColor: PictureColor?
  /// What it is drawn on.
  package var background = PictureColor(red: 0, green: 0, blue: 0, alpha: 0)
  /// Whether a time axis is drawn below.
  package var axis = false
  /// How large sound is drawn.
  package var amplitude = PictureAmplitude.factor(1)
  /// An outline or bars.
  package var look = PictureLook.wave

  /// The defaults: an outline of 200 pixels' height on nothing, without an axis.
  package init() {}

  static let teal = PictureColor.rgb(0x0d7a7e)
  static let grey = PictureColor.rgb(0x84898f)
  /// How much lighter the peaks are than the RMS.
  static let peakOpacity = 0.5

  /// Labels and ticks: readable on the background; on none, on light and dark pages alike.
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
