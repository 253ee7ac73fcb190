import Foundation
import Testing

@testable import Sounds

/// Pictures from the released program.
struct PictureTests {
  /// The width and height stored in a PNG file; nil if it isn't one.
  private func size(_ png: [UInt8]) -> [Int]? {
    guard png.count > 45, png.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) else { return nil }
    return [16, 20].map { offset in png[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) } }
  }

  @Test func theCommandDrawsWhatTheServiceDraws() throws {
    let server = try TestServer()
    let folder = server.folder
    let noisy = WAVFile(Sound.noisy(rate: 22_050, channels: 2, voice: Sound.tone)).bytes
    let short = WAVFile(Sound.noisy(rate: 8000, channels: 1, seconds: 2.6, voice: Sound.tone)).bytes
    try write(noisy, to: folder.file("noisy.wav"))
    try write(short, to: folder.file("short.wav"))
    let id = try #require(try server.client.uploadReady(noisy)["id"].string)
    let other = try #require(try server.client.uploadReady(short)["id"].string)
    for (query, arguments, expected) in [
      ("", [], [1000, 200]),
      (
        "width=300&height=90&pixel_ratio=2&axis=1&background=white&color=navy",
        [
          "--width", "300", "--height", "90", "--pixel-ratio", "2", "--axis", "--background", "white", "--color",
          "navy",
        ],
        [600, 180]
      ),
      (
        "start=1&end=1.01&channels=split&style=bars",
        ["--start", "1", "--end", "1.01", "--channels", "split", "--style", "bars"],
        [1000, 200]
      ),
      ("start=1&end=1.005&axis=1", ["--start", "1", "--end", "1.005", "--axis"], [1000, 200]),
      ("scale=512&amplitude_scale=auto", ["--scale", "512", "--amplitude-scale", "auto"], nil),
      (
        "overlay=\(other)&overlay_color=%23f808", ["--overlay", folder.file("short.wav"), "--overlay-color", "#f808"],
        [1000, 200]
      ),
    ] as [(String, [String], [Int]?)] {
      for form in ["png", "svg"] {
        let served = try server.client.get("/v1/recordings/\(id)/waveform.\(form)?\(query)")
        #expect(served.status == 200 && served["etag"] != nil, "\(served.text)")
        let output = folder.file("out.\(form)")
        let finished = try Command(
          try Program.path(), ["waveform", folder.file("noisy.wav"), "-o", output, "--progress", "none"] + arguments
        ).finish()
        try #require(finished.status == 0, "\(finished.errors)")
        let isSame = try contents(output) == served.body
        #expect(isSame, "\(form) \(query)")
        if form == "png", let expected { #expect(size(served.body) == expected) }
      }
    }
    #expect(try folder.names().filter { $0.contains("out.") } == ["out.png", "out.svg"], "nothing else is left")
  }

  @Test func optionsThatDoNotFitAreExplained() throws {
    let folder = try TemporaryFolder()
    let sound = folder.file("in.wav")
    try write(Clip.tone.bytes, to: sound)
    for (arguments, words) in [
      (["-o", folder.file("a.dat"), "--width", "9"], "pictures"),
      (["-o", folder.file("a.json"), "--axis"], "pictures"),
      (["-o", folder.file("a.png"), "--width", "9", "--scale", "256"], "--width"),
      (["-o", folder.file("a.png"), "--color", "pinkish"], "color"),
      (["-o", folder.file("a.png"), "--style", "x"], "style"),
      (["-o", folder.file("a.png"), "--height", "0"], "height"),
      (["-o", folder.file("a.svg"), "--width", "0"], "width"),
      (["-o", folder.file("a.png"), "--pixel-ratio", "9"], "pixel_ratio"),
      (["-o", folder.file("a.png"), "--overlay", folder.file("none.wav")], "open"),
      (["-o", folder.file("a.gif")], ".svg"),
    ] {
      let finished = try Command(try Program.path(), ["waveform", sound] + arguments).finish()
      #expect(finished.status != 0 && finished.status < 128 && finished.errors.contains(words), "\(finished.errors)")
      #expect(try folder.names() == ["in.wav"], "\(arguments)")
    }
  }
}
