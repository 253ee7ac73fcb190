import Foundation
import Testing

@testable import Sounds

/// The same work, file by file without a service.
struct CommandTests {
  @Test func denoiseWritesACleanerFileOfTheSameKind() throws {
    let folder = try TemporaryFolder()
    let sound = Sound.noisy(rate: 22_050, channels: 2, voice: Sound.tone)
    let input = folder.file("in.wav")
    try write(WAVFile(sound).bytes, to: input)
    for (ending, arguments) in [
      ("wav", ["--noise", "0.2-1.3"]), ("flac", []), ("ogg", ["--reduction", "30"]),
      ("wav", ["--method", "none", "--box", "3.6-4.3,0-11025,-60"]),
    ] {
      let output = folder.file("out.\(ending)")
      let finished = try Command(try Program.path(), ["denoise", input, "-o", output] + arguments).finish()
      try #require(finished.status == 0, "\(finished.errors)")
      let cleaned = try decoded(contents(output), try TemporaryFolder())
      #expect(cleaned.rate == 22_050 && cleaned.channels.count == 2)
      let removed = Loudness.decibels(sound.part(0, 3.6, 4.3)) - Loudness.decibels(cleaned.part(0, 3.6, 4.3))
      #expect(removed > 12, "\(ending): \(removed) dB")
    }
    #expect(try folder.names() == ["in.wav", "out.flac", "out.ogg", "out.wav"])
  }

  @Test("others can read a result if the umask permits, whichever program wrote it")
  func modes() throws {
    let folder = try TemporaryFolder()
    let material = try PositionRow.Material(in: folder)
    for (source, name) in [(material.sound, "b.wav"), (material.film, "b.mp4")] {
      for (mask, mode) in [("022", 0o644), ("027", 0o640)] {
        let line = #"umask "$0" && exec "$1" denoise "$2" -o "$3""#
        let words = ["-c", line, mask, try Program.path(), source, folder.file(name)]
        let finished = try Command("/bin/sh", words).finish()
        try #require(finished.status == 0, "\(finished.errors)")
        let attributes = try FileManager.default.attributesOfItem(atPath: folder.file(name))
        #expect(attributes[.posixPermissions] as? Int == mode, "\(name)")
        try FileManager.default.removeItem(atPath: folder.file(name))
      }
    }
  }

  @Test func noiseRegionsAreLinesOrOneObject() throws {
    let folder = try TemporaryFolder()
    let input = folder.file("in.wav")
    try write(WAVFile(Sound.noisy(rate: 16_000, channels: 1, seconds: 4, voice: Sound.tone)).bytes, to: input)
    let lines = try Command.stillwave("noise-regions", input)
    let object = try Command.stillwave("noise-regions", input, "--json", "--limit", "1")
    #expect(lines.status == 0 && object.status == 0)
    let regions = try JSON(Array(object.lines[0].utf8))["regions"]
    #expect(object.lines.count == 1 && regions[1] == .absent)
    let (start, end) = (try #require(regions[0]["start"].double), try #require(regions[0]["end"].double))
    #expect(lines.lines.first?.hasPrefix("\(start)-\(end)  ") == true)
    let cleaned = try Command.stillwave(
      "denoise", input, "-o", folder.file("out.wav"), "--noise", "\(start)-\(end)")
    #expect(cleaned.status == 0)
    #expect(try Command.stillwave("noise-regions", input, "--limit", "0").status != 0)
  }

  @Test(arguments: ["waveform", "denoise"])
  func progressIsOneObjectPerLineAndNeverDecreases(_ command: String) throws {
    let folder = try TemporaryFolder()
    let input = folder.file("in.wav")
    try write(WAVFile(Sound.noisy(rate: 44_100, channels: 2, seconds: 20, voice: Sound.tone)).bytes, to: input)
    let output = folder.file(command == "waveform" ? "out.dat" : "out.wav")
    let finished = try Command.stillwave(command, input, "-o", output, "--progress", "json")
    #expect(finished.status == 0)
    let lines = try finished.lines.map { try JSON(Array($0.utf8)) }
    let fractions = lines.compactMap(\.["progress"]["fraction"].double)
    #expect(fractions.count >= 2 && fractions == fractions.sorted() && fractions.last == 1)
    #expect(fractions.count == lines.count - 1, "the last line tells the outcome")
    #expect(lines.last?.members == [command == "waveform" ? "analysis" : "denoised"])
    #expect(lines.last?[command == "waveform" ? "analysis" : "denoised"]["frames"] == .number(882_000))
  }

  @Test(arguments: [[], ["serve"], ["waveform"], ["denoise"]])
  func everyCommandHasHelp(_ command: [String]) throws {
    let finished = try Command(try Program.path(), command + ["--help"]).finish()
    #expect(finished.status == 0 && finished.errors.isEmpty)
    let text = String(decoding: finished.output, as: UTF8.self)
    #expect(text.contains("USAGE: stillwave") && text.contains("OVERVIEW:"))
  }

  @Test func theHelpOfServeHasEverySettingOfTheDocumentation() throws {
    let document = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appending(path: "../../docs/operating.md").standardized.path
    let rows = String(decoding: try contents(document), as: UTF8.self).split(separator: "\n")
      .filter { $0.hasPrefix("| `--") }.map { $0.components(separatedBy: " | ") }
    let help = try Command.stillwave("serve", "--help").output
    // Lines of the help are as wide as 80 columns, with indents.
    let words = String(decoding: help, as: UTF8.self).split(whereSeparator: \.isWhitespace).joined(separator: " ")
    for row in rows {
      let (flag, unit, standard) = (row[0].dropFirst(3).dropLast(), row[2], row[3])
      #expect(words.contains("\(flag) <"), "\(flag)")
      #expect(words.contains("(\(unit.isEmpty ? "" : "\(unit); ")default: \(standard))"), "\(flag)")
    }
    #expect(rows.count == words.components(separatedBy: "default: ").count - 1)
  }

  /// An invalid command line or input: the status isn't 0, a sentence explains the error, and no file appears.
  @Test func aFailureLeavesNothingBehindAndSaysWhy() throws {
    let folder = try TemporaryFolder()
    let (sound, text) = (folder.file("in.wav"), folder.file("in.txt"))
    try write(Clip.tone.bytes, to: sound)
    try write(Array("no sound".utf8), to: text)
    let out = folder.file("out.dat")
    let cleaned = folder.file("out.wav")
    for arguments in [
      ["waveform", text, "-o", out], ["waveform", folder.file("none.wav"), "-o", out], ["waveform", sound],
      ["waveform", sound, "-o", folder.file("out.mp4")], ["waveform", sound, "-o", folder.file("none/out.dat")],
      ["waveform", sound, "-o", out, "--bits", "12"], ["waveform", sound, "-o", out, "--channels", "7"],
      ["waveform", sound, "-o", out, "--start", "2", "--end", "1"], ["waveform", sound, "-o", out, "--scale", "0"],
      ["denoise", text, "-o", cleaned], ["denoise", sound, "-o", cleaned, "--noise", "1-9"],
      ["denoise", sound, "-o", cleaned, "--noise", "1-1.01"], ["denoise", sound, "-o", cleaned, "--noise", "2-1"],
      ["denoise", sound, "-o", cleaned, "--strength", "strong", "--reduction", "9"],
      ["denoise", sound, "-o", folder.file("none/out.wav")], ["denoise", sound], ["polish", sound],
    ] {
      let finished = try Command(try Program.path(), arguments).finish()
      #expect(finished.status != 0 && finished.status < 128, "\(arguments): \(finished.status)")
      #expect(!finished.errors.isEmpty, "\(arguments)")
      #expect(try folder.names() == ["in.txt", "in.wav"], "\(arguments)")
    }
    // For programs, the error is a line of JSON.
    let finished = try Command.stillwave("waveform", text, "-o", out, "--progress", "json")
    let error = try JSON(finished.output)["error"]
    #expect(finished.status != 0 && error["code"].string == "unsupported_media" && error["detail"].string != nil)
  }

  @Test(arguments: ["waveform", "denoise", "noise-regions"])
  func aMissingFileIsNamed(_ command: String) throws {
    let folder = try TemporaryFolder()
    let input = folder.file("none.wav")
    let output = command == "noise-regions" ? [] : ["-o", folder.file(command == "waveform" ? "out.dat" : "out.wav")]
    let finished = try Command(try Program.path(), [command, input] + output).finish()
    #expect(finished.status == 1)
    #expect(finished.errors == "stillwave: \(input) could not be used: open failed: No such file or directory.\n")
  }

  @Test func anInterruptedCommandLeavesNothingBehind() throws {
    let folder = try TemporaryFolder()
    let input = folder.file("in.wav")
    try write(LongClip.wave(), to: input)
    let command = try Command(
      try Program.path(), ["denoise", input, "-o", folder.file("out.wav"), "--noise", "1-3", "--progress", "json"])
    let hasBegun = try eventually { try folder.names().count > 1 }
    #expect(hasBegun)
    command.signal(SIGTERM)
    #expect(try command.finish().status == 128 + SIGTERM)
    #expect(try folder.names() == ["in.wav"])
  }

  @Test func theOldFileStaysUntilTheNewOneIsComplete() throws {
    let folder = try TemporaryFolder()
    let (input, output) = (folder.file("in.txt"), folder.file("out.wav"))
    try write(Array("no sound".utf8), to: input)
    try write([1, 2, 3], to: output)
    #expect(try Command.stillwave("denoise", input, "-o", output).status != 0)
    #expect(try contents(output) == [1, 2, 3])
  }

  @Test func serveRefusesADirectoryThatAnotherServiceUses() throws {
    let server = try TestServer()
    let second = try Command.stillwave("serve", "--listen", "127.0.0.1:0", "--data", server.data)
    #expect(second.status != 0 && second.errors.contains("--data"))
    #expect(try server.client.get("/healthz").status == 200)
  }
}
