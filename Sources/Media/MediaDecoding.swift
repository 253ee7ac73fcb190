import Glibc

extension MediaFacts {
  /// Whether the clock may leap by hours, as a broadcast's does between two programs: ffmpeg, unless it is to copy
  /// times, takes a leap of more than ten seconds for none, the one to the first packet included. So a hostile file
  /// makes no silence of a day either.
  fileprivate var clockLeaps: Bool { demuxer?.hasForeignClock ?? false }

  /// What makes ffmpeg take frame 0 for the 0 of such a clock. Left to itself it takes the first packet for it, which
  /// may be part of a frame, or of pictures without a size: nothing that is played.
  fileprivate var clockWords: [String] {
    guard clockLeaps, let firstFrame else { return ["-copyts"] }
    let microseconds = (1e6 * Double(firstFrame) / Double(sampleRate)).rounded()
    return ["-seek_timestamp", "1", "-itsoffset", "\(Int64(-microseconds))us"]
  }
}

extension MediaFacts {
  /// The clock leaps where it is off by more seconds than this.
  fileprivate var leap: Double {
    switch demuxer {
    // A frame is shorter than that of others.
    case .amr: 0.01
    // It has no times: ffmpeg makes some of the bytes before, which is off where their number varies.
    case .avi: 1e9
    // mkvmerge puts eight frames of ALAC into a block, and ffmpeg, which knows the first one's time alone, has the
    // others' off by as much as the block is long. Players play sound alone without a gap. Opus leaves frames out while
    // nobody speaks.
    case .matroska where !hasPictures && codec != "opus": 1
    default: 0.03
    }
  }
}

/// The sound of a file as ffmpeg decodes it: frame 0 is where the file's clock is at 0, silence stands for what is
/// missing. Confined; blocks.
package final class MediaDecoding {
  /// What is decoded.
  package let facts: MediaFacts
  /// Of the file.
  package let path: String
  private let run: FencedRun
  private var samples: [Float]
  /// Frames given out.
  package private(set) var position: Int64 = 0

  /// Samples read at a time.
  private static let samplesPerRead = 65_536

  /// Starts to decode, before this process fences itself in. Throws `.system` where ffmpeg can't be started.
  package init(path: String, facts: MediaFacts, with ffmpeg: FFmpeg, in fencing: Fencing) throws(MediaError) {
    self.facts = facts
    self.path = path
    samples = [Float](repeating: 0, count: max(Self.samplesPerRead / facts.channels, 1) * facts.channels)
    run = try FencedRun(
      [ffmpeg.path] + FFmpeg.quietly + facts.clockWords + ffmpeg.inputWords(facts)
        + Self.outputWords(facts) + ["pipe:1"], reading: path, in: fencing)
  }

  /// Without a clock all that comes is sound. With one, what comes before frame 0 is dropped and silence put before
  /// what begins after it, to the frame; later, where the clock leaps by more than the milliseconds that some
  /// containers count in. Nothing is stretched.
  private static func outputWords(_ facts: MediaFacts) -> [String] {
    var words = ["-map", "0:a:0", "-vn", "-sn", "-dn"]
    if let first = facts.firstFrame {
      let start = facts.clockLeaps ? 0 : first
      let early = facts.firstIsLate.map { "asetpts=if(eq(N\\,0)\\,PTS-\($0)/SR/TB\\,PTS)," } ?? ""
      let filter = facts.demuxer == .flv ? early + closingLeaps + "," : ""
      words += ["-af", filter + "aresample=async=1:first_pts=\(start):min_comp=0.00001:min_hard_comp=\(facts.leap)"]
    }
    if let layout = facts.layout { words += ["-channel_layout", layout] }
    return words + ["-ar", "\(facts.sampleRate)", "-ac", "\(facts.channels)", "-c:a", "pcm_f32le", "-f", "f32le"]
  }

  /// Takes a leap of more than a minute for none, so that one wrong byte in a Flash video, whose clock has 24 days,
  /// makes no hours of silence.
  private static let closingLeaps =
    "asetpts=if(isnan(PREV_INPTS)\\,PTS\\,PREV_OUTPTS+if(gt(abs(PTS-PREV_INPTS)*TB\\,60)\\,0.02/TB\\,PTS-PREV_INPTS))"

  /// Gives the next frames to `body`, interleaved, full scale ±1, and returns how many there were; 0 at the end, where
  /// `body` isn't called.
  package func read<E: Error>(_ body: (Span<Float>) throws(E) -> Void) throws(E) -> Int {
    let left = facts.endsAsPromised ? facts.promisedFrames.map { $0 - position } ?? .max : .max
    guard left > 0 else { return 0 }
    var frames = Int(min(Int64(run.read(into: &samples) / facts.channels), left))
    if frames == 0, facts.demuxer == .amr, position > 0, left < .max { frames = takeSilence(upTo: left) }
    guard frames > 0 else { return 0 }
    position += Int64(frames)
    let samples = samples
    let span = samples.span
    try body(span.extracting(0..<frames * facts.channels))
    return frames
  }

  /// What a telephone left out at the end.
  private func takeSilence(upTo left: Int64) -> Int {
    for index in samples.indices { samples[index] = 0 }
    return Int(min(Int64(samples.count / facts.channels), left))
  }

  /// Ends ffmpeg. Throws `.programFailed` if it failed before the sound ended, `.tooLong` if it used up its processor
  /// time, and `.undecodable` where nothing came.
  package func finish() throws(MediaError) {
    if run.end() == SIGXCPU { throw .tooLong }
    if let failure = run.failure { throw .programFailed(failure) }
    guard position > 0 else { throw .undecodable(facts.container, codec: facts.codec) }
  }
}
