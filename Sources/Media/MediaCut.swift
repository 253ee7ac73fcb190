// A part of a video has the same pictures, not coded again. Pictures depend on earlier ones, back to the last key
// picture, which may be seconds before the start of the part. Its sound is new anyway and begins exactly at the start.
//
//   mp4, mov   All pictures from the last key picture on are copied; an edit list hides those before the start. Players
//              begin with the picture that is shown at the start. Its timestamp becomes the start, because a track can
//              only begin at a picture (ffmpeg's reader would show all of them up to one picture early).
//   mkv, webm  The same pictures are copied. There are no edit lists, so those before the start get the start as their
//              timestamp: a player decodes them at once and shows the last one.
//   others     have neither: the first key picture at or after the start is the first that is copied.
//
// All others keep their distance to the sound. Pictures that begin at or after the end are left out.

/// A part of a file on the file's own clock.
package struct MediaCut: Sendable, Equatable {
  private let start: Double
  private let seconds: Double
  private let container: MediaContainer
  private let hasEditLists: Bool

  /// - Parameters:
  ///   - start: in seconds from the first frame of the sound.
  ///   - seconds: the length.
  package init(start: Double, seconds: Double, of facts: MediaFacts) {
    self.start = facts.writtenStart + start
    self.seconds = seconds
    container = facts.container
    hasEditLists = facts.hasEditLists
  }

  /// Whether ffmpeg must not shift the times of all tracks so that none is negative: an encoder's delay before 0 would
  /// move the pictures. The muxers of these formats store times before 0; others need the shift that comes with
  /// seeking.
  var keepsClock: Bool { [.mkv, .webm].contains(container) }

  /// ffmpeg's arguments before the input.
  var inputWords: [String] {
    let seeking = ["-seek_timestamp", "1", "-ss", microseconds(start)]
    return keepsClock ? ["-itsoffset", microseconds(-start)] + seeking : seeking + ["-t", microseconds(seconds)]
  }

  /// ffmpeg's arguments for copied tracks.
  var copyWords: [String] {
    // With the clock kept, the input's limit would count from its start. It must not cut the last sample.
    keepsClock
      ? ["-copyinkf", "-t", microseconds(seconds + 20e-6)] : hasEditLists ? ["-copyinkf"] : ["-copypriorss", "0"]
  }

  private func microseconds(_ seconds: Double) -> String { "\(Int64((seconds * 1e6).rounded()))us" }

  /// ffmpeg's arguments that let the picture shown at the start begin there.
  static let alignedPictures = ["-bsf:v", "setts=pts='if(lt(PTS,0)*gt(PTS+DURATION,0),0,PTS)':dts=DTS"]
}

extension MediaFacts {
  /// The facts about a part of such a file, with `frames` frames if that is known; nil if none can be written.
  package func ofPart(frames: Int64?) -> MediaFacts? {
    guard var facts = ofResult else { return nil }
    if facts.firstFrame != nil { facts.firstFrame = 0 }
    (facts.firstIsLate, facts.isCut, facts.lacksLength, facts.silentSeconds) = (nil, nil, nil, nil)
    (facts.promisedFrames, facts.promisesLength, facts.endsAsPromised) = (frames, false, false)
    (facts.audioTracks, facts.leadingBytes) = (hasEditLists ? audioTracks : 1, nil)
    facts.others?.covers = 0
    facts.others?.plainCovers = []
    facts.others?.sensors = []
    facts.others?.data = 0
    facts.others?.attachments = 0
    if !hasEditLists { facts.others?.subtitles = 0 }
    return facts
  }

  /// Whether a part of the file is again a file of this kind: it has pictures, or its sound can be written without
  /// loss.
  package var hasPartOfItsKind: Bool {
    demuxer != nil && writtenCodec != nil && (hasPictures || isLossless && !losesSound)
  }
}
