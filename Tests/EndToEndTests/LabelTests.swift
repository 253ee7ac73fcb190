import Foundation
import Testing

/// Timed text on the command line.
struct LabelTests {
  private static let vtt = """
    WEBVTT

    00:00:00.500 --> 00:00:01.500
    <v Ann><00:00:00.500>Hello <00:00:01.000>world

    00:00:02.000 --> 00:00:02.750
    Grüße

    """

  @Test func labelsConvertWritesWhatTheEndingSays() throws {
    let folder = try TemporaryFolder()
    let input = folder.file("in.vtt")
    try write(Array(Self.vtt.utf8), to: input)
    let expected = [
      "out.lrc": "[00:00.50]<00:00.50>Hello <00:01.00>world<00:01.50>\n[00:01.50]\n[00:02.00]Grüße\n[00:02.75]\n",
      "out.srt": "1\n00:00:00,500 --> 00:00:01,500\nHello world\n\n2\n00:00:02,000 --> 00:00:02,750\nGrüße\n",
      "out.txt": "0.500000\t1.500000\tHello world\n2.000000\t2.750000\tGrüße\n",
      "out.vtt": Self.vtt,
    ]
    for (name, text) in expected {
      let finished = try Command.stillwave("labels", "convert", input, "-o", folder.file(name))
      try #require(finished.status == 0, "\(finished.errors)")
      #expect(try String(decoding: contents(folder.file(name)), as: UTF8.self) == text)
      #expect(finished.errors.isEmpty == (name == "out.vtt"), "\(finished.errors)")
    }
    let toStandard = try Command.stillwave("labels", "convert", input, "-o", "-", "--format", "json")
    #expect(String(decoding: toStandard.output, as: UTF8.self).hasPrefix("{\"labels\":[{\"start\":0.5,\"end\":1.5,"))
    try write(Array("WEBVTT\n\n00:02.000 --> 00:01.000\n".utf8), to: input)
    let refused = try Command.stillwave("labels", "convert", input, "-o", folder.file("bad.srt"))
    #expect(refused.status == 1 && refused.errors.contains("in.vtt: Line 3, column 15: the end is before the start."))
    #expect(try Command.stillwave("labels", "convert", input, "-o", folder.file("bad.doc")).status == 64)
    #expect(try folder.names() == ["in.vtt", "out.lrc", "out.srt", "out.txt", "out.vtt"])
  }
}
