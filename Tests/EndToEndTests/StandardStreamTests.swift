import Foundation
import Testing

@testable import Sounds

/// Commands in pipelines: `-` for IN and OUT, readers that go away, closed streams. Each test is a line of bash with
/// the program as `$stillwave`, in a folder with a sound `in.wav`.
struct StandardStreamTests {
  /// Runs `line`. Also returns what is left in the folder besides `in.wav`, and in TMPDIR, which is inside it.
  private func run(_ line: String, with files: [String: [UInt8]] = [:], in folder: TemporaryFolder? = nil) throws -> (
    finished: Command.Finished, left: [String]
  ) {
    let folder = try folder ?? TemporaryFolder()
    if !FileManager.default.fileExists(atPath: folder.file("in.wav")) {
      let sound = Sound.noisy(rate: 16_000, channels: 2, seconds: 6, voice: Sound.tone)
      try write(WAVFile(sound).bytes, to: folder.file("in.wav"))
    }
    for (name, bytes) in files { try write(bytes, to: folder.file(name)) }
    let temporary = folder.file("tmp")
    try FileManager.default.createDirectory(atPath: temporary, withIntermediateDirectories: true)
    let script = "cd \"$1\"; stillwave=$2; export TMPDIR=$1/tmp; set -o pipefail\n" + line
    let finished = try Command("/bin/bash", ["-c", script, "bash", folder.path, try Program.path()]).finish()
    let left = try folder.names().filter { $0 != "in.wav" && $0 != "tmp" && files[$0] == nil }
    return (finished, left + (try FileManager.default.contentsOfDirectory(atPath: temporary)))
  }

  /// The hash of the standard output of `line`.
  private func digest(_ line: String) throws -> [UInt8] {
    let (finished, left) = try run("{ \(line); } | sha256sum")
    try #require(finished.status == 0, "\(line): \(finished.errors)")
    #expect(left == [], "\(line)")
    return finished.output
  }

  @Test(
    "a hyphen is standard input and output, with the same bytes as files",
    arguments: [
      ("denoise", "wav", "--noise 0.2-1.3"), ("denoise", "flac", "--format flac"), ("denoise", "opus", "--format opus"),
      ("waveform", "dat", "--format dat"), ("waveform", "png", "--format png --overlay in.wav"),
    ])
  func streams(command: String, ending: String, options: String) throws {
    let asFile = try run(
      "$stillwave \(command) in.wav -o out.\(ending) \(options) && cat out.\(ending) | sha256sum && rm out.\(ending)")
    try #require(asFile.finished.status == 0 && asFile.left == [], "\(asFile.finished.errors) \(asFile.left)")
    // Every Ogg stream has a different serial number.
    guard ending != "opus" else {
      let line =
        "$stillwave \(command) - -o - \(options) < in.wav > out && ffprobe -v error -show_streams out && rm out"
      let (finished, left) = try run(line)
      #expect(finished.status == 0 && left == [] && finished.lines.contains("codec_name=opus"), "\(finished.errors)")
      return
    }
    #expect(try digest("$stillwave \(command) - -o - \(options) < in.wav") == asFile.finished.output)
    #expect(try digest("cat in.wav | $stillwave \(command) - -o - \(options)") == asFile.finished.output)
    #expect(try digest("$stillwave \(command) in.wav -o - \(options)") == asFile.finished.output)
  }

  /// An index at the end, or one written last: these formats can't be read or written in one pass.
  @Test func formatsThatNeedSeekingWorkWithPipes() throws {
    let convert = "ffmpeg -v error -i in.wav -c:a aac in.m4a && "
    let (finished, left) = try run(
      convert
        + "cat in.m4a | $stillwave denoise - -o - > out && ffprobe -v error -show_format -show_streams out; "
        + "rm in.m4a out"
    )
    #expect(finished.status == 0 && left == [], "\(finished.errors)")
    #expect(finished.lines.contains("codec_name=aac") && finished.lines.contains("duration=6.000000"))
    let (regions, leftOfRegions) = try run(convert + "cat in.m4a | $stillwave noise-regions -; rm in.m4a")
    #expect(regions.status == 0 && regions.lines.count > 0 && leftOfRegions == [], "\(regions.errors)")
  }

  @Test(
    "an unusable stream is named, and nothing is left",
    arguments: [
      ("$stillwave denoise - -o out.wav < /dev/null", "Standard input is empty."),
      ("$stillwave waveform - -o out.dat <&-", "Standard input: Bad file descriptor."),
      ("$stillwave denoise in.wav -o - >&-", "Standard output: Bad file descriptor."),
      ("$stillwave denoise in.wav -o - > /dev/full", "Standard output: No space left on device."),
      ("$stillwave noise-regions in.wav >&-", "Standard output: Bad file descriptor."),
      ("$stillwave denoise in.wav -o out.wav --progress json >&-", "Standard output: Bad file descriptor."),
      ("$stillwave denoise - -o out.wav < bad.txt", "stillwave: "),
      ("$stillwave denoise in.wav -o /dev/null", "/dev/null: writing failed"),
      ("TMPDIR=/nowhere; $stillwave denoise in.wav -o -", "/nowhere"),
    ])
  func badStreams(line: String, complaint: String) throws {
    let (finished, left) = try run(line, with: ["bad.txt": Array("no sound".utf8)])
    #expect(finished.status == 1 && finished.errors.contains(complaint), "\(finished.status): \(finished.errors)")
    #expect(finished.output.isEmpty && left == [], "\(left)")
    var status = stat()
    #expect(unsafe stat("/dev/null", &status) == 0 && status.st_mode & S_IFMT == S_IFCHR)
  }

  /// If a closed stream's number weren't taken, the first opened file would get it.
  @Test func outputForAClosedStreamGoesIntoNoFile() throws {
    let (finished, left) = try run(
      "$stillwave denoise in.wav -o a.wav --noise 0.2-1.3 && $stillwave denoise in.wav -o b.wav --noise 0.2-1.3 "
        + "--progress bar <&- >&- 2>&- ; cmp a.wav b.wav && rm a.wav b.wav")
    #expect(finished.status == 0 && left == [], "\(finished.errors) \(left)")
  }

  @Test(
    "a reader that goes away ends a command like the signal would, and nothing is left",
    arguments: [
      "denoise in.wav -o out.wav --progress json", "waveform in.wav -o out.dat --progress json",
      "denoise - -o - < in.wav", "waveform - -o - --format png < in.wav", "noise-regions in.wav",
    ])
  func brokenPipes(line: String) throws {
    // The reader is gone before the program starts.
    let (finished, left) = try run("exec 5> >(:); wait $!; $stillwave \(line) >&5; echo $?")
    #expect(finished.lines == ["141"] && finished.errors == "" && left == [], "\(finished.output) \(left)")
  }

  @Test func aReaderThatStopsReadingEndsACommand() throws {
    // More than a pipe can hold.
    let (finished, left) = try run(
      "$stillwave denoise in.wav -o - --noise 0.2-1.3 | head -c 4; status=${PIPESTATUS[0]}; echo; echo $status")
    #expect(finished.lines == ["RIFF", "141"] && left == [], "\(finished.errors)")
  }

  @Test(
    "an extension of another format is rejected before any work",
    arguments: [
      ("in.wav", "b.mp4", ".wav"), ("in.wav", "b.clean", ".wav"), ("in.aiff", "b.m4a", ".aiff"),
      ("in.m4a", "b.wma", ".m4a"), ("in.m4a", "b.mkv", ".m4a"), ("in.wma", "b.wma", ".wav, .flac"),
    ])
  func endings(input: String, output: String, offered: String) throws {
    let (finished, left) = try run(
      "[ \(input) = in.wav ] || ffmpeg -v error -i in.wav \(input) || exit 9; "
        + "$stillwave denoise \(input) -o \(output); status=$?; [ \(input) = in.wav ] || rm \(input); exit $status")
    #expect(finished.status == 1 && left == [], "\(left)")
    #expect(
      finished.errors.contains("“.\(output.split(separator: ".")[1])”") && finished.errors.contains(offered),
      "\(finished.errors)")
  }

  @Test(
    "a matching extension, or none, keeps the format",
    arguments: [
      ("in.wav", "b", "pcm_s16le"), ("in.wav", "b.wave", "pcm_s16le"), ("in.aiff", "b.aif", "pcm_s16be"),
      ("in.m4a", "b.mp4", "aac"), ("in.wav", "b.mp4 --format flac", "flac"), ("in.wav", "b.FLAC", "flac"),
    ])
  func keptEndings(input: String, output: String, codec: String) throws {
    let name = output.split(separator: " ")[0]
    let (finished, left) = try run(
      "[ \(input) = in.wav ] || ffmpeg -v error -i in.wav \(input) || exit 9; "
        + "$stillwave denoise \(input) -o \(output) && ffprobe -v error -show_streams \(name)")
    #expect(finished.status == 0 && finished.lines.contains("codec_name=\(codec)"), "\(finished.errors)")
    #expect(Set(left) == Set([String(name)] + (input == "in.wav" ? [] : [input])))
  }

  @Test func warningsGoToStandardErrorOrIntoTheReport() throws {
    let cut = Array(
      WAVFile(Sound.noisy(rate: 16_000, channels: 1, seconds: 6, voice: Sound.tone)).bytes.prefix(150_001))
    for line in [
      "waveform cut.wav -o - --format dat", "denoise cut.wav -o - --progress none", "denoise - -o - < cut.wav",
    ] {
      let (finished, left) = try run("$stillwave \(line) > /dev/null", with: ["cut.wav": cut])
      #expect(finished.status == 0 && left == [] && finished.output.isEmpty)
      #expect(
        finished.errors.hasPrefix("stillwave: warning: The header promises 192000 bytes"), "\(line): \(finished.errors)"
      )
    }
    let (finished, _) = try run("$stillwave denoise cut.wav -o out.wav --progress json", with: ["cut.wav": cut])
    #expect(finished.errors.isEmpty)
    let last = try JSON(Array((finished.lines.last ?? "").utf8))
    #expect(last["denoised"]["warnings"][0]["code"].string == "truncated")
  }

  @Test(
    "a senseless command line gets an explanation",
    arguments: [
      "waveform in.wav -o -", "waveform in.wav -o - --format json --progress json",
      "denoise in.wav -o - --progress json",
      "waveform - --overlay - -o out.png", "waveform in.wav -o - --format gif",
    ])
  func contradictions(line: String) throws {
    let (finished, left) = try run("$stillwave \(line)")
    #expect(finished.status == 64 && !finished.errors.isEmpty && finished.output.isEmpty && left == [])
  }
}
