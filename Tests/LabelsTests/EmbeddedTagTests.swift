import Terms
import Testing

@testable import Labels

/// What files say of themselves.
@Suite struct EmbeddedTagTests {
  private static let png: [UInt8] =
    [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13] + Array("IHDR".utf8) + Bytes.big(40, 4)
    + Bytes.big(30, 4) + [8, 2, 0, 0, 0]
  private static let jpeg: [UInt8] =
    [0xFF, 0xD8, 0xFF, 0xE0, 0, 4, 1, 2, 0xFF, 0xFF, 0xC2, 0, 11, 8, 0, 30, 0, 40, 1, 1, 0x11, 0, 0xFF, 0xD9]
  private static let gif = Array("GIF89a".utf8) + [40, 0, 30, 0, 0, 0, 0]

  private func tags(_ bytes: [UInt8]) -> FileTags {
    var (file, labels) = (MemoryBytes(bytes), EmbeddedLabels())
    labels.addTags(of: &file, EmbeddedClock(duration: .ms(60_000)))
    return labels.tags
  }

  /// Expects that the cover of a file is this picture.
  private func expect(_ cover: FileCover?, _ type: String, _ picture: [UInt8], in file: [UInt8]) {
    #expect(cover?.type == type && cover?.width == 40 && cover?.height == 30)
    let start = Int(cover?.offset ?? 0)
    #expect(Array(file[start...].prefix(Int(cover?.bytes ?? 0))) == picture)
  }

  private static func chunk(_ name: String, _ content: [UInt8]) -> [UInt8] {
    Array(name.utf8) + Bytes.little(content.count, 4) + content + [UInt8](repeating: 0, count: content.count % 2)
  }

  @Test("ID3 tags have texts and covers", arguments: [2, 3, 4] as [UInt8])
  func id3(version: UInt8) {
    let names = version == 2 ? ["TT2", "TP2", "COM", "COM", "PIC"] : ["TIT2", "TPE2", "COMM", "COMM", "APIC"]
    func picture(_ type: UInt8, _ content: [UInt8]) -> [UInt8] {
      [0] + Array((version == 2 ? "PNG" : "image/png\0").utf8) + [type] + Array("cover\0".utf8) + content
    }
    let frames: [(String, [UInt8])] = [
      (names[0], [0] + Array("One\0Two".utf8)), (names[1], [3] + Array("Ä".utf8)),
      (names[2], [0] + Array("engiTunNORM\0 0000".utf8)), (names[3], [0] + Array("eng\0Remark".utf8)),
      (names[4], picture(4, Self.gif)), (names[4], picture(3, Self.png)),
    ]
    let file = [UInt8](ID3Bytes.tag(version, frames))
    let tags = tags(file)
    #expect(tags.title == "One; Two" && tags.albumArtist == "Ä" && tags.comment == "Remark" && tags.artist == nil)
    expect(tags.cover, "image/png", Self.png, in: file)
  }

  @Test("comments of FLAC have texts, and its blocks covers")
  func flac() {
    let comments = ["TITLE=T", "artist=A", "ARTIST=B", "album artist=C", "DATE=1999", "TRACKNUMBER=3/9"].flatMap {
      Bytes.little($0.utf8.count, 4) + Array($0.utf8)
    }
    let block = Bytes.little(0, 4) + Bytes.little(6, 4) + comments
    let picture =
      Bytes.big(3, 4) + Bytes.big(10, 4) + Array("image/jpeg".utf8) + Bytes.big(1, 4) + [65]
      + [UInt8](repeating: 0, count: 16) + Bytes.big(Self.jpeg.count, 4) + Self.jpeg
    let file =
      Array("fLaC".utf8) + [4] + Bytes.big(block.count, 3) + block + [0x86] + Bytes.big(picture.count, 3) + picture
    let tags = tags(file)
    #expect(tags.title == "T" && tags.artist == "A; B" && tags.albumArtist == "C")
    #expect(tags.date == "1999" && tags.track == "3/9")
    expect(tags.cover, "image/jpeg", Self.jpeg, in: file)
  }

  @Test("Broadcast Wave has a description, and a list has texts")
  func wave() {
    func field(_ text: String, _ length: Int) -> [UInt8] {
      Array(text.utf8) + [UInt8](repeating: 0, count: length - text.utf8.count)
    }
    let broadcast =
      field("Interview", 256) + field("Recorder", 64) + field("2026-01-02", 18) + Bytes.little(48_000, 8) + [1, 0]
    let list =
      Array("INFO".utf8) + Self.chunk("INAM", [0x47, 0x72, 0xFC, 0xDF, 0x65, 0]) + Self.chunk("ISFT", Array("X".utf8))
    let tags = tags(Array("RIFF\0\0\0\0WAVE".utf8) + Self.chunk("bext", broadcast) + Self.chunk("LIST", list))
    #expect(tags.comment == "Interview" && tags.date == "2026-01-02" && tags.timeReference == 48_000)
    #expect(tags.title == "Grüße" && tags.encoder == "Recorder; X" && tags.cover == nil)
  }

  @Test("APE tags at the end have texts and covers, also before an ID3v1 tag", arguments: [0, 128])
  func ape(behind: Int) {
    func item(_ name: String, _ value: [UInt8], _ flags: Int = 0) -> [UInt8] {
      Bytes.little(value.count, 4) + Bytes.little(flags, 4) + Array(name.utf8) + [0] + value
    }
    let items =
      item("Title", Array("T".utf8)) + item("Artist", Array("A\0B".utf8)) + item("Album Artist", Array("C".utf8))
      + item("Cover Art (Back)", Array("b.gif\0".utf8) + Self.gif, 2)
      + item("Cover Art (Front)", Array("f.png\0".utf8) + Self.png, 2)
      + item("REPLAYGAIN_TRACK_GAIN", Array("-6 dB".utf8)) + item("Data", [1, 0, 2], 2)
    func footer(_ length: Int) -> [UInt8] {
      Array("APETAGEX".utf8) + Bytes.little(2000, 4) + Bytes.little(length, 4) + Bytes.little(7, 4)
        + [UInt8](repeating: 0, count: 12)
    }
    let end = [UInt8](repeating: 1, count: behind)
    let file = [0xFF, 0xFB, 0x90, 0x64] + items + footer(items.count + 32) + end
    let found = tags(file)
    #expect(found.title == "T" && found.artist == "A; B" && found.albumArtist == "C")
    #expect(found.others == ["REPLAYGAIN_TRACK_GAIN", "DATA"])
    expect(found.cover, "image/png", Self.png, in: file)
    for length in 0..<items.count { _ = tags(Array(items[..<length]) + footer(length + 32) + end) }
    for length in [0, 31, items.count + 33, 1 << 30] { #expect(tags(items + footer(length) + end) == FileTags()) }
  }

  @Test("MP4 has a cover")
  func mp4() {
    func box(_ name: String, _ content: [UInt8]) -> [UInt8] {
      Bytes.big(content.count + 8, 4) + Array(name.utf8) + content
    }
    let cover = box("covr", box("data", [0, 0, 0, 14, 0, 0, 0, 0] + Self.png))
    let meta = box("udta", box("meta", [0, 0, 0, 0] + box("hdlr", [1]) + box("ilst", box("name", [1]) + cover)))
    let file = box("ftyp", Array("M4A ".utf8)) + box("mdat", [1, 2]) + box("moov", box("mvhd", [1]) + meta)
    expect(tags(file).cover, "image/png", Self.png, in: file)
    for length in 0..<file.count { _ = tags(Array(file[..<length])) }
  }

  @Test("what ffprobe reports has texts")
  func probe() {
    var labels = EmbeddedLabels()
    let report = #"{"format":{"tags":{"title":"T","album_artist":"A","time_reference":"7","software":"E"}}}"#
    labels.add(probe: Array(report.utf8), EmbeddedClock(duration: nil))
    #expect(labels.tags.title == "T" && labels.tags.albumArtist == "A" && labels.tags.encoder == "E")
    #expect(labels.tags.timeReference == 7)
  }

  @Test("long texts are cut, and what isn't a picture is no cover")
  func limits() {
    let long = String(repeating: "ä", count: 1 << 16)
    let script = Array("image/svg+xml\0".utf8) + [3, 0] + Array("<svg onload=alert(1)>".utf8)
    let tags = tags(ID3Bytes.tag(4, [("TIT2", [3] + Array(long.utf8)), ("APIC", [0] + script)]))
    #expect(tags.title?.utf8.count == 4096 && tags.cover == nil)
  }

  @Test("a service keeps only what a worker can have found")
  func plausible() {
    func cover(_ offset: Int64, _ bytes: Int64, type: String = "image/png", width: Int = 1) -> Bool {
      var tags = FileTags()
      tags.cover = FileCover(type: type, offset: offset, bytes: bytes, width: width, height: 1)
      return tags.isPlausible(fileBytes: 100)
    }
    #expect(cover(0, 100) && cover(90, 10))
    #expect(!cover(91, 10) && !cover(-1, 10) && !cover(0, 0) && !cover(1, .max) && !cover(.max, 1))
    #expect(!cover(0, 9, type: "text/html") && !cover(0, 9, width: 0))
    var tags = FileTags()
    tags.title = String(repeating: "a", count: 4097)
    #expect(!tags.isPlausible(fileBytes: 100))
  }
}
