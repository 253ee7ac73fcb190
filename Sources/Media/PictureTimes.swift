// Pictures are stored in the order of decoding, each with the time at which it is shown. Muxers also want a time of
// decoding that never falls and is never later than that of showing. Matroska has none; ffmpeg (5.1 to 7) guesses it
// from the decoder, which is closed here, and where the guess is later than a picture's own time it moves the picture:
// up to 40 ms in each of eleven films by mkvmerge and VLC.
//
// So it is said here: the time of decoding is the tenth largest of all times of showing so far. That never falls, and
// it is not later than the time of any picture that fewer than ten shown later ones come before; encoders put two or
// three there, H.264 allows 16. Only the muxer's order of packets depends on it. Matroska doesn't store it.

/// The times of pictures that are copied into Matroska.
enum PictureTimes {
  /// As many as an expression of ffmpeg's has variables.
  private static let places = 10

  /// What ffmpeg is told, after which each picture has the time that it had.
  static let words = ["-bsf:v", "setts=pts=PTS:dts='if(eq(PTS,NOPTS),DTS,\(decoding))'"]

  /// Variables 0 to 9 hold the largest times so far, the least first. Before the first picture that is a second before
  /// it.
  private static var decoding: String {
    let last = places - 1
    let begin = (0...last).reduce("PTS-1/TB") { "st(\($1),\($0))" }
    let insert =
      (0..<last).map { "st(\($0),max(ld(\($0)),min(ld(\($0 + 1)),PTS)))" } + ["st(\(last),max(ld(\(last)),PTS))"]
    return "if(eq(N,0),\(begin));\(insert.joined(separator: ";"));ld(0)"
  }
}
