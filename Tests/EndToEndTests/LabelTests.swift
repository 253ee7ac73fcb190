import Foundation
import Testing

@testable import Sounds

/// Timed text over the network and on the command line.
struct LabelTests {
  private let clip = WAVFile(Sound.noisy(rate: 8000, channels: 1, seconds: 3, voice: Sound.tone)).bytes

  private static let vtt = """
    WEBVTT

    00:00:00.500 --> 00:00:01.500
    <v Ann><00:00:00.500>Hello <00:00:01.000>world

    00:00:02.000 --> 00:00:02.750
    Grüße

    """

  @Test func tracksLiveWithTheirRecordingThroughRestartAndBackup() throws {
    let server = try TestServer()
    let id = try #require(try server.client.uploadReady(clip)["id"].string)
    let made = try server.client.send(
      "POST", "/v1/recordings/\(id)/labels?kind=transcript", ["Content-Type": "text/vtt"], .bytes(Array(Self.vtt.utf8)))
    try #require(made.status == 201, "\(made.text)")
    #expect(made.json["count"].int == 2 && made.json["words"].int == 2)
    let track = try #require(made["location"])
    #expect(try server.client.get(track + "?format=vtt").text == Self.vtt)
    #expect(try server.client.get(track + "?start=1.6&end=3").json["labels"].array?.count == 1)
    #expect(try server.client.get(track + "?q=gr%C3%BCSSE").json["labels"].array?.count == 1)
    let late = try server.client.send("PUT", track, ["If-Match": "\"x\""], .json("{\"labels\":[]}"))
    #expect(late.status == 412)
    let backup = server.folder.file("backup")
    #expect(try Command.stillwave("backup", "--data", server.data, "-o", backup).status == 0)
    let replaced = try server.client.send("PUT", track, ["If-Match": made["etag"] ?? ""], .json("{\"labels\":[]}"))
    #expect(replaced.status == 200 && replaced.json["count"].int == 0, "\(replaced.text)")
    try server.stop()

    let again = try TestServer(dataDirectory: server.data)
    #expect(try again.client.get(track).text == "{\"labels\":[]}")
    #expect(try again.client.delete("/v1/recordings/\(id)").status == 204)
    #expect(try again.client.get(track).status == 404)
    try again.stop()

    let restored = server.folder.file("restored")
    #expect(try Command.stillwave("restore", backup, "--data", restored).status == 0)
    let third = try TestServer(dataDirectory: restored)
    #expect(try third.client.get(track + "?format=vtt").text == Self.vtt)
    try third.stop()
  }

  @Test func badFilesAreRefusedWithTheirLine() throws {
    let server = try TestServer()
    let id = try #require(try server.client.uploadReady(clip)["id"].string)
    let path = "/v1/recordings/\(id)/labels"
    for (body, status, detail) in [
      (Array("1\n00:00:02,000 --> 00:00:01,000\na\n".utf8), 400, "Line 2, column 18: the end is before the start."),
      ((0..<4096).map { UInt8(truncatingIfNeeded: $0 &* 7) }, 400, "Line "),
      ([UInt8](repeating: 0x20, count: 17 << 20), 413, ""),
      (Array(String(repeating: "[00:01]a\n", count: 1_000_000).utf8), 400, "Line "),
      (Array(String(repeating: "1\t2\n", count: 1_000_000).utf8), 400, "Line 200001, column 1: "),
      (Array(("WEBVTT\n\n" + String(repeating: "00:01 --> 00:02\n", count: 1_000_000)).utf8), 400, "Line 200003, "),
      (Array(String(repeating: "00:01 --> 00:02\n\n", count: 1_000_000).utf8), 413, ""),
    ] {
      let answer = try server.client.send("POST", path, ["Content-Type": "text/plain"], .bytes(body))
      #expect(answer.status == status && (answer.json["detail"].string ?? "").hasPrefix(detail), "\(answer.text)")
    }
    #expect(try server.client.get(path).json["tracks"] == .array([]))
    try server.stop()
  }

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
