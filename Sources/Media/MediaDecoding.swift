import Glibc
import Terms

extension MediaFacts {
  /// Whether the clock may jump by hours, as a broadcast's does between two programs. Unless it is copying timestamps,
  /// ffmpeg ignores jumps of more than ten seconds, including the one to the first packet. So a hostile file can't
  /// cause a day of silence either.
  fileprivate var clockLeaps: Bool { demuxer?.hasForeignClock ?? false }

  /// Makes ffmpeg use frame 0 as the zero of such a clock. By default it uses the first packet, which may be part of a
  /// frame, or of pictures without a size, and is never played.
  fileprivate var clockWords: [String] {
    guard clockLeaps, let firstFrame else { return ["-copyts"] }
    let microseconds = (1e6 * Double(firstFrame) / Double(sampleRate)).rounded()
    return ["-seek_timestamp", "1", "-itsoffset", "\(Int64(-microseconds))us"]
  }
}

extension MediaFacts {
  /// The number of seconds by which the clock must be off to count as a jump.
  fileprivate var leap: Double {
    switch demuxer {
    // Its frames are shorter than those of other formats.
    case _ where isTelephone: 0.01
    // AVI has no timestamps: ffmpeg derives them from the preceding bytes, which is off if the bit rate varies.
    case .avi: 1e9
    // mkvmerge puts eight frames of ALAC into a block. ffmpeg knows only the first one's time, so the others are off by
    // as much as the block's length. Players play sound without pictures without a gap. Opus omits frames during
    // silence.
    case .matroska where !hasPictures && codec != "opus": 1
    default: 0.03
    }
  }
}

extension MediaFacts {
  /// Number of frames that ffmpeg collects before it converts and writes them, 32 KB; nil for those of a packet.
  ///
  /// Decoding 600 s of stereo into a file takes ffmpeg 0.52 s of processor time that way, and 0.61 s with the packets
  /// of AAC, 1024 frames. But it forgets what it has collected if the number of channels or the rate changes. In MP4,
  /// the header gives both for AAC, unless it leaves out that the packets have a second half of the spectrum (SBR),
  /// which has at most 24,000 Hz without it.
  fileprivate var framesPerPacket: Int? {
    demuxer == .mov && codec == "aac" && sampleRate > 24_000 ? max(8192 / channels, 1) : nil
  }
}

/// The sound of a file as ffmpeg decodes it. Frame 0 is at 0 on the file's clock, and silence fills gaps. Blocks. Use
/// it from one thread at a time.
package final class MediaDecoding {
  /// The facts about the file being decoded.
  package let facts: MediaFacts
  /// The path of the file.
  package let path: String
  /// The file that has the samples already; nil if they are only read.
  package let copy: DecodedCopy?
  private let run: FencedRun
  private var samples: [Float]
  /// Number of frames returned so far.
  package private(set) var position: Int64 = 0

  /// Samples per read.
  private static let samplesPerRead = 65_536

  /// A file for ffmpeg to write.
  package struct Target {
    /// The path of the file, which is created or replaced.
    package var path: String
    /// Number of bytes before the first sample, for `DecodedCopy.complete`.
    package var headBytes: Int

    /// Creates a value from its parts.
    package init(path: String, headBytes: Int) { (self.path, self.headBytes) = (path, headBytes) }
  }

  /// Starts decoding. Call it before this process fences itself in. Throws `.system` if ffmpeg can't be started or the
  /// file can't be created.
  /// - Parameter target: the file that becomes `copy`; nil for none. Not for AMR.
  package init(
    path: String, facts: MediaFacts, into target: Target? = nil, with ffmpeg: FFmpeg, in fencing: Fencing
  ) throws(MediaError) {
    precondition(target == nil || !facts.isTelephone, "ffmpeg doesn't write the silence at the end")
    self.facts = facts
    self.path = path
    samples = [Float](repeating: 0, count: max(Self.samplesPerRead / facts.channels, 1) * facts.channels)
    let output =
      target == nil
      ? Self.outputWords(facts) + Self.pipeWords
      : Self.outputWords(facts, packet: facts.framesPerPacket) + Self.copyWords
    if let start = facts.packedStart {
      let packets = try FencedRun(
        [ffmpeg.path] + FFmpeg.quietly + ffmpeg.inputWords(facts)
          + ["-map", "0:a:0", "-c", "copy", "-f", "amr", "pipe:1"], reading: path, in: fencing)
      run = try FencedRun(
        [ffmpeg.path] + FFmpeg.quietly + ["-copyts", "-itsoffset", "\(start)"] + ffmpeg.packedInputWords + output,
        in: fencing, from: packets)
    } else {
      run = try FencedRun(
        [ffmpeg.path] + FFmpeg.quietly + facts.clockWords + ffmpeg.inputWords(facts) + output,
        reading: path, writing: target?.path, startingAt: target?.headBytes, in: fencing)
    }
    copy = target.map { [run] in DecodedCopy(of: run, from: $0.headBytes) }
  }

  deinit { if copy != nil { run.stop() } }

  /// Without a clock, all output is sound. With a clock, sound before frame 0 is dropped, and silence precedes sound
  /// that begins later, exact to the frame. After that, silence is inserted only where the clock jumps by more than the
  /// milliseconds that some containers count in. Sound is never stretched. `packet`: number of frames to collect.
  private static func outputWords(_ facts: MediaFacts, packet: Int? = nil) -> [String] {
    var (words, filters) = (["-map", "0:a:0", "-vn", "-sn", "-dn"], [String]())
    if let first = facts.firstFrame {
      let start = facts.clockLeaps ? 0 : first
      let early = facts.firstIsLate.map { "asetpts=if(eq(N\\,0)\\,PTS-\($0)/SR/TB\\,PTS)," } ?? ""
      if facts.demuxer == .flv { filters.append(early + closingLeaps) }
      filters.append("aresample=async=1:first_pts=\(start):min_comp=0.00001:min_hard_comp=\(facts.leap)")
    }
    if let packet { filters.append("asetnsamples=n=\(packet):p=0") }
    if !filters.isEmpty { words += ["-af", filters.joined(separator: ",")] }
    if let layout = facts.layout { words += ["-channel_layout", layout] }
    words += ["-ar", "\(facts.sampleRate)", "-ac", "\(facts.channels)", "-c:a", "pcm_f32le", "-f", "f32le"]
    return words
  }

  /// Without buffering, every packet would be written alone: four times as many task switches.
  private static let pipeWords = ["-flush_packets", "0", "pipe:1"]

  /// Every packet is written alone, because ffmpeg 5.1 exits with 0 if the write that fails is the one of its buffer at
  /// the end. With the error rate of 1, it exits with 1 only if a write fails, or if it gives up: by default it exits
  /// with 69 if it can't decode most of the file.
  static let copyWords =
    ["-flush_packets", "1", "-max_error_rate", "1"] + FencedRun.progressWords(everySeconds: 0.02)
    + [FencedRun.sequentialOutputName]

  /// Ignores jumps of more than a minute, so that one wrong byte in a Flash video, whose clock spans 24 days, can't
  /// cause hours of silence.
  private static let closingLeaps =
    "asetpts=if(isnan(PREV_INPTS)\\,PTS\\,PREV_OUTPTS+if(gt(abs(PTS-PREV_INPTS)*TB\\,60)\\,0.02/TB\\,PTS-PREV_INPTS))"

  /// Passes the next frames to `body`, interleaved, full scale ±1, and returns their number. At the end, returns 0
  /// without calling `body`.
  package func read<E: Error>(_ body: (Span<Float>) throws(E) -> Void) throws(E) -> Int {
    let left = facts.endsAsPromised ? facts.promisedFrames.map { $0 - position } ?? .max : .max
    guard left > 0 else { return 0 }
    let got = if let copy { copy.read(into: &self.samples) } else { run.read(into: &self.samples) }
    var frames = Int(min(Int64(got / facts.channels), left))
    if frames == 0, facts.isTelephone, position > 0, left < .max { frames = takeSilence(upTo: left) }
    guard frames > 0 else { return 0 }
    position += Int64(frames)
    let samples = samples
    let span = samples.span
    try body(span.extracting(0..<frames * facts.channels))
    return frames
  }

  /// Returns the silence that a phone left out at the end.
  private func takeSilence(upTo left: Int64) -> Int {
    for index in samples.indices { samples[index] = 0 }
    return Int(min(Int64(samples.count / facts.channels), left))
  }

  /// Ends ffmpeg. Throws `.programFailed` if it failed before the sound ended, `.tooLong` if it used up its processor
  /// time, `.undecodable` if nothing was decoded, and `.system` if it couldn't write the copy.
  package func finish() throws(MediaError) {
    let signal = try copy.map { (file) throws(MediaError) in try file.end() } ?? run.end()
    if signal == SIGXCPU { throw .tooLong }
    if let failure = run.failure { throw .programFailed(failure) }
    guard position > 0 else { throw .undecodable(facts.container, codec: facts.codec) }
  }
}
