import Foundation
import Testing

/// A file format as written by one program: a row of the table in docs/formats.md.
struct PositionRow: Sendable {
  let kind, program, file: String
  /// The program and its arguments, in which SOUND stands for a WAV file of beeps, ALAC for the same in an m4a, FILM
  /// for an mp4 of beeps and flashes whose pictures are reordered, and OUT for the file to make; nil for a file in
  /// Fixtures (see its README).
  let command: String?

  init(_ kind: String, _ program: String, _ file: String, _ command: String? = nil) {
    (self.kind, self.program, self.file, self.command) = (kind, program, file, command)
  }

  /// The inputs for making a row's file.
  struct Material {
    let folder: TemporaryFolder
    let sound, alac, film: String

    init(in folder: TemporaryFolder) throws {
      self.folder = folder
      let beeps = MediaClip(
        fileName: "sound.wav", container: "", codec: "", rate: 48_000, hasVideo: false, words: ["-t", "2.5"])
      sound = try beeps.make(in: folder)
      alac = folder.file("alac-sound.m4a")
      try Tool.ffmpeg.run(["-v", "error", "-i", sound, "-c:a", "alac", alac])
      let words = ["-map", "1:v", "-map", "0:a", "-c:v", "libx264", "-bf", "3", "-pix_fmt", "yuv420p", "-c:a", "aac"]
      let flashes = MediaClip(
        fileName: "film.mp4", container: "", codec: "", rate: 48_000, hasVideo: true, words: words + ["-t", "2.5"])
      film = try flashes.make(in: folder)
    }
  }

  /// Makes the file and returns its path.
  func make(_ material: Material) throws -> String {
    guard let command else {
      return URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(path: "Fixtures/\(file)").path
    }
    let path = material.folder.file(file)
    let names = ["SOUND": material.sound, "ALAC": material.alac, "FILM": material.film, "OUT": path]
    let words = command.split(separator: " ").map { names[String($0)] ?? String($0) }
    let quietly = words[0] == "ffmpeg" ? ["-v", "error", "-nostdin", "-y"] : []
    let finished = try Command("/usr/bin/env", [words[0]] + quietly + words.dropFirst()).finish()
    try #require(finished.status == 0, "\(command): \(finished.errors)")
    return path
  }

  static let all = [
    PositionRow("WAV", "SoX", "sox.wav", "sox SOUND OUT"),
    PositionRow("FLAC", "SoX", "sox.flac", "sox SOUND OUT"),
    PositionRow("MP3", "LAME", "lame.mp3", "lame --quiet SOUND OUT"),
    PositionRow("MP3 without LAME's tag", "LAME", "lame-t.mp3", "lame --quiet -t SOUND OUT"),
    PositionRow("the same, 22.05 kHz", "LAME", "lame-22.mp3", "lame --quiet -t --resample 22.05 SOUND OUT"),
    PositionRow("MP3", "SoX", "sox.mp3", "sox SOUND OUT"),
    PositionRow("MP3", "ffmpeg", "ffmpeg.mp3", "ffmpeg -i SOUND OUT"),
    PositionRow("Ogg: Vorbis", "SoX", "sox.ogg", "sox SOUND OUT"),
    PositionRow("Ogg: Opus", "ffmpeg", "ffmpeg.opus", "ffmpeg -i SOUND -c:a libopus OUT"),
    PositionRow("Ogg: FLAC", "ffmpeg", "ffmpeg.oga", "ffmpeg -i SOUND -c:a flac OUT"),
    PositionRow("m4a: AAC", "ffmpeg", "ffmpeg.m4a", "ffmpeg -i SOUND -c:a aac OUT"),
    PositionRow("m4a: AAC, iTunSMPB in place of an edit list", "ffmpeg, mutagen", "itunsmpb.m4a"),
    PositionRow("m4a: AAC, neither", "GStreamer mp4mux", "mp4mux.m4a"),
    PositionRow("m4a: ALAC", "ffmpeg", "alac.m4a", "ffmpeg -i SOUND -c:a alac OUT"),
    PositionRow("mka: Vorbis", "GStreamer matroskamux", "matroskamux.mka"),
    PositionRow("mka: AAC", "mkvmerge", "aac.mka", "mkvmerge -q -o OUT -D FILM"),
    PositionRow("mka: FLAC", "ffmpeg", "flac.mka", "ffmpeg -i SOUND -c:a flac OUT"),
    PositionRow("mka: ALAC", "mkvmerge", "alac.mka", "mkvmerge -q -o OUT ALAC"),
    PositionRow("mka: PCM", "mkvmerge", "pcm.mka", "mkvmerge -q -o OUT SOUND"),
    PositionRow("webm: Opus", "GStreamer webmmux", "webmmux.webm"),
    PositionRow("webm: Opus", "ffmpeg", "ffmpeg.webm", "ffmpeg -i SOUND -c:a libopus OUT"),
    PositionRow("AAC (ADTS)", "ffmpeg", "ffmpeg.aac", "ffmpeg -i SOUND -c:a aac OUT"),
    PositionRow("AC-3", "ffmpeg", "ffmpeg.ac3", "ffmpeg -i SOUND -c:a ac3 OUT"),
    PositionRow("WMA", "ffmpeg", "ffmpeg.wma", "ffmpeg -i SOUND -c:a wmav2 OUT"),
    PositionRow("mp4", "ffmpeg", "ffmpeg.mp4", "ffmpeg -i FILM -c copy OUT"),
    PositionRow(
      "mp4, fragmented", "ffmpeg", "fragmented.mp4", "ffmpeg -i FILM -c copy -movflags frag_keyframe+empty_moov OUT"),
    PositionRow(
      "mp4, pictures 0.3 s late", "ffmpeg", "late.mp4",
      "ffmpeg -i FILM -itsoffset 0.3 -i FILM -map 1:v -map 0:a -c copy OUT"),
    PositionRow(
      "mp4, sound 0.3 s late", "ffmpeg", "sound.mp4",
      "ffmpeg -i FILM -itsoffset 0.3 -i FILM -map 0:v -map 1:a -c copy OUT"),
    PositionRow("mp4: FLAC", "ffmpeg", "flac.mp4", "ffmpeg -i FILM -c:v copy -c:a flac -strict -2 OUT"),
    PositionRow("mp4", "GStreamer mp4mux", "mp4mux.mp4"),
    PositionRow("mov", "GStreamer qtmux", "qtmux.mov"),
    PositionRow("mov: PCM", "ffmpeg", "pcm.mov", "ffmpeg -i FILM -c:v copy -c:a pcm_s16le OUT"),
    PositionRow("mkv", "mkvmerge", "mkvmerge.mkv", "mkvmerge -q -o OUT FILM"),
    PositionRow("mkv, pictures 0.3 s late", "mkvmerge", "late.mkv", "mkvmerge -q -o OUT --sync 0:300 FILM"),
    PositionRow("mkv, sound 0.3 s late", "mkvmerge", "sound.mkv", "mkvmerge -q -o OUT --sync 1:300 FILM"),
    PositionRow("mkv, begins between key pictures", "mkvmerge", "cut.mkv", "mkvmerge -q -o OUT --sync 0:-300 FILM"),
    PositionRow("mkv: PCM", "mkvmerge", "pcm.mkv", "mkvmerge -q -o OUT -A FILM SOUND"),
    PositionRow("mkv", "GStreamer matroskamux", "matroskamux.mkv"),
    PositionRow("mkv", "VLC", "vlc.mkv"),
    PositionRow("mkv", "ffmpeg", "ffmpeg.mkv", "ffmpeg -i FILM -c copy OUT"),
    PositionRow("mkv: Opus", "ffmpeg", "opus.mkv", "ffmpeg -i FILM -c:v copy -c:a libopus OUT"),
    PositionRow("webm", "ffmpeg", "film.webm", "ffmpeg -i FILM -c:v libvpx -deadline realtime -c:a libopus OUT"),
    PositionRow("TS", "ffmpeg", "ffmpeg.ts", "ffmpeg -i FILM -c copy OUT"),
    PositionRow("TS: MP2, sound alone", "ffmpeg", "mp2.ts", "ffmpeg -i SOUND -c:a mp2 OUT"),
    PositionRow("TS: AC-3", "ffmpeg", "ac3.ts", "ffmpeg -i FILM -c:v copy -c:a ac3 OUT"),
    PositionRow("TS", "GStreamer mpegtsmux", "mpegtsmux.ts"),
    PositionRow("PS: MP2", "ffmpeg", "ffmpeg.mpg", "ffmpeg -i FILM -c:v mpeg2video -c:a mp2 OUT"),
    PositionRow("AVI: MP3", "ffmpeg", "mp3.avi", "ffmpeg -i FILM -c:v mpeg4 -c:a libmp3lame OUT"),
    PositionRow("AVI: MP3, sound alone", "ffmpeg", "sound.avi", "ffmpeg -i SOUND -c:a libmp3lame OUT"),
    PositionRow("AVI: AC-3", "ffmpeg", "ac3.avi", "ffmpeg -i FILM -c:v mpeg4 -c:a ac3 OUT"),
    PositionRow("AVI: MP2", "ffmpeg", "mp2.avi", "ffmpeg -i FILM -c:v mpeg4 -c:a mp2 OUT"),
    PositionRow("AVI: PCM", "ffmpeg", "pcm.avi", "ffmpeg -i FILM -c:v mpeg4 -c:a pcm_s16le OUT"),
    PositionRow("AVI: MP3", "GStreamer avimux", "avimux.avi"),
    PositionRow("FLV", "ffmpeg", "ffmpeg.flv", "ffmpeg -i FILM -c copy OUT"),
    PositionRow("FLV: MP3, sound alone", "ffmpeg", "sound.flv", "ffmpeg -i SOUND -ar 44100 -c:a libmp3lame OUT"),
    PositionRow("FLV", "GStreamer flvmux", "flvmux.flv"),
    PositionRow("CAF: Opus", "ffmpeg", "opus.caf", "ffmpeg -i SOUND -c:a libopus OUT"),
    PositionRow("CAF: ALAC", "ffmpeg", "alac.caf", "ffmpeg -i SOUND -c:a alac OUT"),
    PositionRow("WavPack", "wavpack", "wavpack.wv"),
    PositionRow("True Audio", "ffmpeg", "ffmpeg.tta", "ffmpeg -i SOUND OUT"),
    PositionRow("VOC", "SoX", "sox.voc", "sox SOUND OUT"),
    PositionRow("DTS", "ffmpeg", "ffmpeg.dts", "ffmpeg -i SOUND -c:a dca -strict -2 -f dts OUT"),
    PositionRow("WAV: GSM 6.10", "SoX", "gsm.wav", "sox SOUND -r 8000 -e gsm-full-rate OUT"),
  ]
}
