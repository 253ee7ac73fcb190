import Terms

// Besides pictures and sound, a file may contain other tracks, some of which ffmpeg's muxers reject, each in its own
// way: a subtitle format that the container doesn't support, a cover without dimensions. One rejected track would lose
// the whole result. So the set of tracks is first tried without packets; if it is rejected, a smaller set is used.
//
//   subtitles, further audio     copied
//   covers                       in mp4 and m4a; mov has no place for them, and Matroska treats them as a video of one
//                                picture
//   attachments                  in Matroska
//   GoPro's sensors (gpmd)       in mp4 and mov
//   time code, chapters          written again from the headers
//   other data (Apple's mebx)    left out: ffmpeg 5.1 drops them or their description

/// The tracks of a file that are copied alongside the new sound.
package struct CopiedTracks: Sendable, Equatable {
  /// The facts about the file.
  package let facts: MediaFacts
  private let extent: Extent

  private enum Extent { case all, withoutExtras, picturesAlone, none }

  /// Nothing but the new sound.
  package static func none(of facts: MediaFacts) -> CopiedTracks { CopiedTracks(facts, .none) }

  private init(_ facts: MediaFacts, _ extent: Extent) {
    (self.facts, self.extent) = (facts, extent)
  }

  /// Returns as many tracks of the file at `original` as ffmpeg can write to this container, which it tries at `path`.
  /// Blocks for a few tenths of a second; a plain recording of pictures and one sound track needs no trial. With
  /// `isCut`, only those that can be cut like the pictures.
  ///
  /// Throws `.system` if ffmpeg can't be started.
  package static func writable(
    of original: String, _ facts: MediaFacts, tryingAt path: String, isCut: Bool = false, with ffmpeg: FFmpeg,
    in fencing: Fencing
  ) throws(MediaError) -> CopiedTracks {
    // Only MP4 and MOV have edit lists, which cut every track at the same time; in others, whole packets of the tracks
    // would remain before the start.
    if isCut, !facts.hasEditLists { return CopiedTracks(facts, .picturesAlone) }
    for extent in isCut ? [Extent.withoutExtras] : [.all, .withoutExtras] {
      let tracks = CopiedTracks(facts, extent)
      guard tracks.needsTrial else { return tracks }
      let input = ffmpeg.inputWords(facts, copiesCovers: tracks.hasCovers)
      let trial = try FencedRun(
        [ffmpeg.path] + FFmpeg.quietly + ["-copyts"] + input + tracks.words(sound: []) + ["-t", "0"]
          + facts.muxerWords() + ["-y", FencedRun.outputName], reading: original, writing: path, in: fencing)
      // Transport and program streams have no header: without a packet, nothing is written.
      if trial.finishInput(orEmpty: facts.isStream) { return tracks }
    }
    return CopiedTracks(facts, .picturesAlone)
  }

  private var others: MediaFacts.OtherTracks { facts.others ?? MediaFacts.OtherTracks() }

  private var isAlone: Bool { [.picturesAlone, .none].contains(extent) }

  private var needsTrial: Bool { !extras.isEmpty || others.subtitles > 0 || facts.audioTracks > 1 }

  var hasCovers: Bool { !covers.isEmpty }

  private var covers: [Int] { extent == .all && [.mp4, .m4a].contains(facts.container) ? others.plainCovers : [] }

  private var sensors: [Int] { extent == .all && [.mp4, .mov].contains(facts.container) ? others.sensors : [] }

  private var attachments: Int { extent == .all && facts.container == .mkv ? others.attachments : 0 }

  private var extras: [String] {
    (covers + sensors).flatMap { ["-map", "0:\($0)"] } + (attachments > 0 ? ["-map", "0:t"] : [])
  }

  /// Returns ffmpeg's arguments that map the tracks in their order. `sound` names the new one.
  func words(sound: [String], cut: MediaCut? = nil) -> [String] {
    let beside = ["-map", "0:a?", "-map", "-0:a:0", "-map", "0:s?"]
    // A video cut out of a longer one may begin with frames that depend on earlier ones.
    return (extent == .none ? [] : ["-map", "0:V?"]) + sound + (isAlone ? [] : beside) + extras
      + ["-c", "copy"] + (cut?.copyWords ?? ["-copyinkf"])
  }

  /// Whether the file's pictures are left out.
  package var lacksPictures: Bool { extent == .none && facts.hasPictures }

  /// The tracks left out, as text: "1 cover", "2 tracks of data".
  package var leftOut: [String] {
    let counts = [
      (isAlone ? facts.audioTracks - 1 : 0, "track of sound", "tracks of sound"),
      (isAlone ? others.subtitles : 0, "track of subtitles", "tracks of subtitles"),
      (others.data - sensors.count, "track of data", "tracks of data"),
      (others.attachments - attachments, "attachment", "attachments"),
      (others.covers - covers.count, "cover", "covers"),
      (lacksPictures ? 1 : 0, "track of pictures (no key picture begins in the part)", ""),
    ]
    return counts.filter { $0.0 > 0 }.map { "\($0.0) \($0.0 == 1 ? $0.1 : $0.2)" }
  }
}
