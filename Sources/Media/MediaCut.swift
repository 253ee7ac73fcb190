import Terms

// A part of a video has the same pictures, not coded again. Pictures depend on earlier ones, back to the last key
// picture, which may be seconds before the start of the part. Its sound is new anyway and begins exactly at the start.
//
//   mp4, mov   All pictures from the last key picture on are copied; an edit list hides those before the start. Players
//              begin with the picture that is shown at the start. Its timestamp becomes the start, because a track can
//              only begin at a picture (ffmpeg's reader would show all of them up to one picture early).
//   mkv, webm  The same pictures are copied. There are no edit lists, so those before the start get the start as their
//              timestamp: a player decodes them at once and shows the last one.
//   others     have neither: the first key picture at or after the start is the first that is copied. A part in which
//              none begins has no pictures. AVI has no timestamps, only places for pictures: the first is shown from
//              the start, and those after it are shown up to half a picture early or late. Sound and pictures seldom
//              begin at the same time, so a part from the very start keeps the file's clock, and with it the first key
//              picture.
//
// All others keep their distance to the sound. Pictures that begin at or after the end are left out.

/// A part of a file on the file's own clock.
package struct MediaCut: Sendable, Equatable {
  private let start: Double
  private let seconds: Double
  private let container: MediaContainer
  private let hasEditLists: Bool
  /// Whether pictures and sound keep their times on the file's clock, because nothing before them is cut off.
  private let keepsBeginning: Bool

  /// - Parameters:
  ///   - start: in seconds from the first frame of the sound.
  ///   - seconds: the length.
  package init(start: Double, seconds: Double, of facts: MediaFacts) {
    // Times in Flash video are whole milliseconds; a key picture at the start isn't after it.
    let exact = facts.writtenStart + start
    self.start = facts.container == .flv ? (exact * 1000).rounded(.down) / 1000 : exact
    self.seconds = seconds
    container = facts.container
    hasEditLists = facts.hasEditLists
    keepsBeginning = facts.keepsBeginning(ofPartFrom: start)
  }

  /// The time on the part's clock at which its sound begins, in seconds.
  var soundStart: Double { keepsBeginning ? start : 0 }

  /// Whether ffmpeg must not shift the times of all tracks so that none is negative: an encoder's delay before 0 would
  /// move the pictures. The muxers of these formats store times before 0; others need the shift that comes with
  /// seeking.
  var keepsClock: Bool { keepsBeginning || [.mkv, .webm].contains(container) }

  /// ffmpeg's arguments before the input.
  var inputWords: [String] {
    if keepsBeginning { return [] }
    let seeking = ["-seek_timestamp", "1", "-ss", microseconds(start)]
    return keepsClock ? ["-itsoffset", microseconds(-start)] + seeking : seeking + ["-t", microseconds(seconds)]
  }

  /// Whether pictures of the file at `original` are copied: in files that are cut at key pictures, one must begin in
  /// the part. Blocks while ffmpeg looks for it.
  ///
  /// Throws `.system` if ffmpeg can't be started.
  package func hasPictures(
    of original: String, _ facts: MediaFacts, with ffmpeg: FFmpeg, in fencing: Fencing
  ) throws(MediaError) -> Bool {
    guard facts.hasPictures, !keepsClock, !hasEditLists else { return facts.hasPictures }
    let run = try FencedRun(
      [ffmpeg.path] + FFmpeg.quietly + inputWords + ffmpeg.inputWords(facts) + ["-map", "0:V?", "-c", "copy"]
        + copyWords + ["-frames:v", "1", "-f", "framecrc", "pipe:1"],
      reading: original, in: fencing)
    // A line for each packet follows those about the streams.
    return run.text(upTo: 65_536).split(separator: UInt8(ascii: "\n")).contains { $0.first != UInt8(ascii: "#") }
  }

  /// ffmpeg's arguments for copied tracks.
  var copyWords: [String] {
    // With the clock kept, the input's limit would count from its start. It must not cut the last sample.
    keepsClock
      ? ["-copyinkf", "-t", microseconds(soundStart + seconds + 20e-6)]
      : hasEditLists ? ["-copyinkf"] : ["-copypriorss", "0"]
  }

  private func microseconds(_ seconds: Double) -> String { "\(Int64((seconds * 1e6).rounded()))us" }

  /// ffmpeg's arguments that let the picture shown at the start begin there.
  static let alignedPictures = ["-bsf:v", "setts=pts='if(lt(PTS,0)*gt(PTS+DURATION,0),0,PTS)':dts=DTS"]
}
