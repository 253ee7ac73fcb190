import ArgumentParser
import Processing
import Waveform

/// The options for how `stillwave waveform` draws pictures.
struct PictureOptions: ParsableArguments {
  @Option(help: "Width in pixels, 1 to 20000 (default: 1000). Not together with --scale.")
  var width: Int?

  @Option(help: "Height in pixels, 1 to 2000 (default: 200).")
  var height: Int?

  @Option(help: "Pixels of the PNG per pixel of width and height, 1 to 4; 2 suits high-resolution screens.")
  var pixelRatio: Double?

  @Option(
    help: ArgumentHelp(
      "Color of the loudness; peaks get a lighter shade. #rgb, #rrggbb, #rrggbbaa or a name.", valueName: "color"))
  var color: PictureColor?

  @Option(help: ArgumentHelp("Color of the background (default: transparent).", valueName: "color"))
  var background: PictureColor?

  @Flag(help: "Draw a time axis below the waveform.")
  var axis = false

  @Option(name: .customLong("style"), help: ArgumentHelp("Draw an outline or bars.", valueName: "wave|bars"))
  var look: PictureLook?

  @Option(
    help: ArgumentHelp(
      "Factor by which to enlarge the amplitude, or auto to fill the height.", valueName: "factor|auto"))
  var amplitudeScale: PictureAmplitude?

  @Option(help: ArgumentHelp("A second sound file to draw over the first.", valueName: "file"))
  var overlay: String?

  @Option(help: ArgumentHelp("Color of the second file.", valueName: "color"))
  var overlayColor: PictureColor?

  var style: PictureStyle {
    var style = PictureStyle()
    if let height { style.height = height }
    if let pixelRatio { style.pixelRatio = pixelRatio }
    style.color = color
    style.overlayColor = overlayColor
    if let background { style.background = background }
    style.axis = axis
    if let look { style.look = look }
    if let amplitudeScale { style.amplitude = amplitudeScale }
    return style
  }

  /// Whether any of these options was given.
  var isUsed: Bool { width != nil || overlay != nil || style != PictureStyle() }
}

extension PictureColor: ExpressibleByArgument {
  /// CSS's hexadecimal forms, or one of the names.
  package init?(argument: String) { self.init(argument) }
}

extension PictureLook: ExpressibleByArgument {}

extension PictureAmplitude: ExpressibleByArgument {
  /// `auto` or a factor.
  package init?(argument: String) {
    if argument == "auto" {
      self = .auto
    } else {
      guard let factor = Double(argument) else { return nil }
      self = .factor(factor)
    }
  }
}
