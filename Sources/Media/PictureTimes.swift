// Pictures are stored in decoding order, each with the time at which it is shown. Muxers also need a decoding time that
// never decreases and is never later than the display time. Matroska stores none; ffmpeg (5.1 to 7) guesses it from the
// decoder, which is disabled here. Where the guess is later than a picture's own time, it moves the picture: by up to
// 40 ms in each of eleven videos from mkvmerge and VLC.
//
// So it is set here: the decoding time is the tenth largest of all display times so far. That never decreases, and it
// isn't later than a picture's own time as long as fewer than ten pictures that are shown later precede it; encoders
// put two or three there, and H.264 allows 16. Only the muxer's packet order depends on it; Matroska doesn't store it.

/// The timestamps of pictures copied into Matroska.
enum PictureTimes {
  /// The number of variables in an ffmpeg expression.
  private static let places = 10

  /// Returns the arguments for ffmpeg that keep each picture's timestamp. With `isCut`, those before 0 become 0.
  static func words(isCut: Bool) -> [String] {
    let decoding = "if(eq(PTS,NOPTS),DTS,\(decoding))"
    guard isCut else { return ["-bsf:v", "setts=pts=PTS:dts='\(decoding)'"] }
    return ["-bsf:v", "setts=pts='if(eq(PTS,NOPTS),PTS,max(PTS,0))':dts='max(\(decoding),0)'"]
  }

  /// An expression whose variables 0 to 9 hold the largest times so far, in ascending order. Initially they are a
  /// second before the first picture.
  private static var decoding: String {
    let last = places - 1
    let begin = (0...last).reduce("PTS-1/TB") { "st(\($1),\($0))" }
    let insert =
      (0..<last).map { "st(\($0),max(ld(\($0)),min(ld(\($0 + 1)),PTS)))" } + ["st(\(last),max(ld(\(last)),PTS))"]
    return "if(eq(N,0),\(begin));\(insert.joined(separator: ";"));ld(0)"
  }
}
