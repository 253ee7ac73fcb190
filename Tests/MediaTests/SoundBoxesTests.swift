import Foundation
import Terms
import Testing

@testable import Media

/// Reading the headers of an MP4 file in place of ffprobe.
final class SoundBoxesTests {
  private let folder = FileManager.default.temporaryDirectory.appending(path: "boxes-\(UUID().uuidString)").path

  init() throws { try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false) }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  private func run(_ words: [String]) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["ffmpeg", "-nostdin", "-v", "error", "-y"] + words
    try process.run()
    process.waitUntilExit()
    try #require(process.terminationStatus == 0, "\(words)")
  }

  /// Makes a file of 1.3 s and returns its path.
  private func make(_ name: String, rate: Int = 44_100, _ words: [String]) throws -> String {
    try run(["-f", "lavfi", "-i", "sine=d=1.3:r=\(rate)"] + words + ["\(folder)/\(name)"])
    return "\(folder)/\(name)"
  }

  /// Returns the facts about a file, found with and without ffprobe.
  private func facts(_ path: String) throws -> (MediaFacts, MediaFacts) {
    let ffmpeg = try #require(FFmpeg())
    let probes = try [true, false].map {
      try MediaProbe(path: path, demuxer: .mov, with: ffmpeg, in: .none, readsBoxes: $0)
    }
    return (try probes[0].facts(), try probes[1].facts())
  }

  private static let title = ["-metadata", "title=Æ", "-metadata", "artist=B", "-metadata", "track=1/2"]

  @Test(
    "the facts about plain AAC are those that ffprobe finds",
    arguments: [
      ("plain.m4a", 44_100, []), ("mono.m4a", 8000, ["-ac", "1"]), ("six.mp4", 48_000, ["-ac", "6"]),
      ("front.m4a", 48_000, ["-movflags", "+faststart"]), ("unedited.m4a", 44_100, ["-use_editlist", "0"]),
      ("late.m4a", 44_100, ["-metadata:s:a:0", "language=deu"] + title), ("slow.mp4", 22_050, ["-b:a", "16k"]),
    ] as [(String, Int, [String])])
  func plain(name: String, rate: Int, words: [String]) throws {
    let path = try make(name, rate: rate, ["-c:a", "aac"] + words)
    let found = try facts(path)
    #expect(found.0 == found.1)
    #expect(SoundBoxes(path: path) != nil)
    // An edit list that begins within the sound.
    let cut = "\(folder)/cut.m4a"
    try run(["-ss", "0.7", "-i", path, "-c", "copy", cut])
    let parts = try facts(cut)
    #expect(parts.0 == parts.1)
    #expect(SoundBoxes(path: cut) != nil)
  }

  @Test("without an edit list, sound ends with its packets, whatever the header says")
  func unedited() throws {
    for words in [[], ["-f", "lavfi", "-i", "color=s=16x16:d=1", "-map", "0:a", "-map", "1:v", "-c:v", "mpeg4"]] {
      let path = try make("unedited.mp4", words + ["-c:a", "aac", "-use_editlist", "0"])
      var bytes = try Data(contentsOf: URL(filePath: path))
      let whole = try facts(path).0.promisedFrames
      let length = try #require(bytes.range(of: Data("mdhd".utf8))).upperBound + 16
      bytes.replaceSubrange(length..<length + 4, with: [0, 0, 0x60, 0])
      try bytes.write(to: URL(filePath: path))
      let found = try facts(path)
      #expect(found.0 == found.1 && found.0.promisedFrames == whole && whole ?? 0 > 57_000)
    }
  }

  @Test(
    "the facts about files of other muxers are those that ffprobe finds", arguments: ["itunsmpb.m4a", "mp4mux.m4a"])
  func fixtures(name: String) throws {
    let fixtures = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../EndToEndTests/Fixtures")
    let found = try facts(fixtures.appending(path: name).path)
    #expect(found.0 == found.1)
  }

  @Test("files with other codecs, tracks, covers, or fragments are left to ffprobe")
  func others() throws {
    let picture = ["-f", "lavfi", "-i", "color=s=16x16:d=0.1"]
    let cover = ["-map", "0:a", "-map", "1:v", "-frames:v", "1", "-c:v", "png", "-disposition:v", "attached_pic"]
    for (index, words) in [
      ["-c:a", "alac"], ["-c:a", "aac", "-movflags", "frag_keyframe+empty_moov"],
      ["-map", "0:a", "-map", "0:a", "-c:a", "aac"], picture + ["-c:a", "aac"] + cover,
      picture + ["-map", "0:a", "-map", "1:v", "-c:a", "aac", "-c:v", "mpeg4"],
    ].enumerated() {
      #expect(SoundBoxes(path: try make("\(index).m4a", words)) == nil, "\(words)")
    }
    #expect(SoundBoxes(path: try make("quicktime.mov", ["-c:a", "aac"])) == nil)
  }

  @Test("the bit rate is that of the packets, whatever the headers say; tables that disagree are left to ffprobe")
  func bitRate() throws {
    let path = try make("plain.m4a", ["-c:a", "aac"])
    let bytes = try Data(contentsOf: URL(filePath: path))
    for (type, offset, isPlain) in [
      ("esds", 24, true), ("esds", 28, true), ("stsz", 19, true), ("stsz", 11, false), ("stsz", 7, false),
      ("stts", 7, false), ("stts", 11, false), ("stsc", 11, false), ("stsc", 15, false), ("stsc", 19, false),
      ("stco", 7, false), ("elst", 11, true), ("elst", 15, true), ("elst", 19, false), ("elst", 7, false),
    ] {
      var changed = bytes
      changed[try #require(bytes.range(of: Data(type.utf8))).upperBound + offset] ^= 1
      try changed.write(to: URL(filePath: path))
      #expect((SoundBoxes(path: path) != nil) == isPlain, "\(type)")
      guard isPlain else { continue }
      let found = try facts(path)
      #expect(found.0 == found.1, "\(type)")
    }
  }

  @Test("boxes in an order in which ffmpeg understands them differently are left to ffprobe")
  func order() throws {
    let path = try make("plain.m4a", ["-c:a", "aac"])
    let bytes = try Data(contentsOf: URL(filePath: path))
    func box(_ type: String) throws -> Range<Int> {
      let start = try #require(bytes.range(of: Data(type.utf8))).lowerBound - 4
      return start..<start + bytes[start..<start + 4].reduce(0) { $0 << 8 | Int($1) }
    }
    for (first, second) in [("mdhd", "hdlr"), ("hdlr", "minf"), ("mvhd", "trak"), ("stsd", "stts")] {
      let (one, other) = (try box(first), try box(second))
      try #require(one.upperBound == other.lowerBound, "\(first), \(second)")
      var changed = bytes
      changed.replaceSubrange(one.lowerBound..<other.upperBound, with: bytes[other] + bytes[one])
      try changed.write(to: URL(filePath: path))
      #expect(SoundBoxes(path: path) == nil, "\(first), \(second)")
    }
    // The order of the others is theirs.
    let (one, other) = (try box("stsc"), try box("stsz"))
    try #require(one.upperBound == other.lowerBound)
    var changed = bytes
    changed.replaceSubrange(one.lowerBound..<other.upperBound, with: bytes[other] + bytes[one])
    try changed.write(to: URL(filePath: path))
    let found = try facts(path)
    #expect(SoundBoxes(path: path) != nil && found.0 == found.1)
  }

  @Test("any byte of the headers may be wrong, and the file may end anywhere")
  func hostile() throws {
    let path = try make("plain.m4a", rate: 8000, ["-t", "0.1", "-c:a", "aac", "-movflags", "+faststart"] + Self.title)
    let bytes = try [UInt8](Data(contentsOf: URL(filePath: path)))
    let head = try #require(Data(bytes).range(of: Data("mdat".utf8))).lowerBound
    let file = "\(folder)/wrong"
    try Data(bytes).write(to: URL(filePath: file))
    let changed = try FileHandle(forUpdating: URL(filePath: file))
    func write(_ byte: UInt8, at place: Int) throws {
      try changed.seek(toOffset: UInt64(place))
      try changed.write(contentsOf: [byte])
    }
    for place in 0..<head {
      for value: UInt8 in [0, 0xFF] {
        try write(value, at: place)
        if let boxes = SoundBoxes(path: file) {
          let isSound = boxes.duration > 0 && boxes.duration < 1e11 && boxes.bitRate >= 0
          #expect(isSound && boxes.language.utf8.count == 3, "\(value) at \(place)")
        }
      }
      try write(bytes[place], at: place)
    }
    for place in (0..<head).reversed() {
      try changed.truncate(atOffset: UInt64(place))
      let isRead = SoundBoxes(path: file) != nil
      #expect(!isRead, "cut at \(place)")
    }
  }
}
