import AudioIO
import Denoise
import Glibc
import Media
import SoundFiles
import Terms
import Testing

@testable import Processing
@testable import Workers

/// What clients read about recordings, results and failures.
struct WarningTests {
  @Test("fewer frames than promised are a truncated file, more are a longer one")
  func lengths() {
    #expect(Warning.decodedFrames(5, claimed: 6).code == "truncated")
    #expect(Warning.decodedFrames(7, claimed: 6).code == "longer_than_claimed")
  }

  @Test("seconds left out are rounded to tenths")
  func leftOut() { #expect(Warning.leftOut(2, seconds: 0.26).detail.hasSuffix("they are left out (0.3 s).")) }

  @Test(
    "tags that a result lacks are named, and ReplayGain always",
    arguments: [
      ("asf", "wav", false, ["album artist", "composer", "MOOD", "the cover", "REPLAYGAIN_TRACK_GAIN"]),
      ("wav", "rf64", false, ["REPLAYGAIN_TRACK_GAIN"]), ("mkv", "mkv", true, ["REPLAYGAIN_TRACK_GAIN"]),
      ("mp4", "mp4", true, ["MOOD", "REPLAYGAIN_TRACK_GAIN"]),
      ("mp3", "aiff", false, ["album artist", "composer", "track", "MOOD", "the cover", "REPLAYGAIN_TRACK_GAIN"]),
      ("ts", "ts", true, ["title", "album artist", "composer", "track", "MOOD", "REPLAYGAIN_TRACK_GAIN"]),
    ])
  func tags(source: String, container: String, isCopied: Bool, names: [String]) {
    var tags = FileTags()
    (tags.title, tags.albumArtist, tags.composer, tags.track, tags.encoder) = ("a", "b", "c", "3/9", "e")
    tags.cover = FileCover(type: "image/png", offset: 0, bytes: 1, width: 1, height: 1)
    for name in ["replaygain_track_gain".uppercased(), "MOOD", "MOOD"] { tags.note(name) }
    let target = TagTarget(container, from: source, isCopied: isCopied)
    #expect(target.leftOut(tags) == names)
    #expect(Warning.ofTags(tags, in: target).map(\.code) == ["tags_left_out"])
    for name in ["LOCATION-ENG", "TIMECODE", "chapters"] { tags.note(name) }
    #expect(["mp4", "mkv", "rf64"].contains(container) == (target.leftOut(tags) == names))
    #expect(Warning.ofTags(nil, in: target).isEmpty && Warning.ofTags(FileTags(), in: target).isEmpty)
  }

  @Test("results in MP3 have a varying bit rate, which concerns players alone")
  func seeking() {
    for (container, found) in [("mp3", [Warning.seeksInexactly]), ("wav", [])] {
      #expect(TagTarget(container, from: "wav", isCopied: false).warnings == found)
    }
    #expect(!Warning.seeksInexactly.isAboutWork && Warning.endsWithin.isAboutWork)
  }

  @Test("frames that a file lacks are reported, whether or not the reader has noticed")
  func missing() throws {
    let folder = try TemporaryFolder()
    let format = AudioFormat(container: .flac, codec: .flacS16, sampleRate: 44_100, channels: 2)
    try encode(swell(frames: 100_000, channels: 2, sampleRate: 44_100, peak: 0.9), to: folder("whole"), format)
    var bytes = try contents(folder("whole"))
    bytes.removeSubrange(bytes.count / 3..<bytes.count / 3 * 2)
    for (name, codes) in [("whole", []), (try folder.file("damaged", bytes), ["frames_missing"])] {
      let map = try SoundMap(path: name == "whole" ? folder(name) : name)
      let warnings = Warning.ofReading(
        map, claimedFrames: 100_000, decodedFrames: 100_000, nonFiniteSamples: 0, lostFrames: 0)
      #expect(warnings.map(\.code).filter { $0 != "truncated" } == codes)
    }
  }

  @Test("a loudness is missed by more than half a LU")
  func loudness() {
    for (found, code) in [(-17, "loudness_missed"), (-16.4, nil), (nil, "loudness_missed")] as [(Double?, String?)] {
      let loudness = MeasuredLoudness(integratedLufs: found, rangeLu: nil, truePeakDbtp: nil)
      #expect(Warning.ofLoudness(loudness, target: -16)?.code == code)
    }
  }

  @Test("a profile lacks a band if it ends below 98 % of half the rate")
  func profiles() throws {
    for (end, channels, codes) in [
      (23_600.0, 2, []), (23_500, 2, ["profile_bands"]), (24_000, 1, ["profile_channels"]),
    ] {
      let density = try NoiseDensity(frequencies: [0, end], powerDB: [[-80, -80], [-80, -80]])
      #expect(Warning.ofProfile(density, sampleRate: 48_000, channels: channels).map(\.code) == codes)
    }
  }

  @Test("each failure has its code")
  func failures() {
    let cases: [(ProcessingError, String)] = [
      (.system(operation: "write", path: "x", errno: ENOSPC), "disk_full"),
      (.system(operation: "write", path: "x", errno: EDQUOT), "disk_full"),
      (.system(operation: "write", path: "x", errno: EFBIG), "output_limit"),
      (.system(operation: "write", path: "x", errno: EIO), "io_error"), (.media(.tooLong), "cpu_limit"),
      (.media(.tooSlow), "probe_too_slow"), (.media(.programFailed(.outOfMemory)), "memory_limit"),
      (.media(.programFailed(.killed)), "worker_failed"),
      (.media(.programFailed(.crashed(signal: 11))), "decoder_failed"),
    ]
    for (error, code) in cases { #expect(WorkerFailure(error).code == code, "\(error)") }
  }
}
