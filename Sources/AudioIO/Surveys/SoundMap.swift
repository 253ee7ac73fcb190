// What libsndfile 1.2.0 makes of some kinds of file, and what is done about it, without touching the file: it is given
// other bytes to read.
//
//   WAV whose data size is 0, left by a recorder that crashed   nothing is decoded. It is told the true size.
//   MP3 of varying rate without a count (see MPEGSurvey)        a guess of the first frames' bit rate is decoded: 82 s
//                                                               of 600. A frame with the true count is put first.
//   MPEG layers I and II                                        the first frame's bit rate is believed. The frames are
//                                                               given more than once.
//   MP3 with a wrong count, or foreign bytes between frames     it stops there. The count is put right, the frames
//                                                               closed up.
//   joined MP3, chained Ogg                                     the first part is decoded. Each is opened by itself.
//   Ogg that ends within a page                                 no length, no seeking. It ends with the last whole
//                                                               page.
//   FLAC                                                        two system calls for each 8 KB. It is read ahead by
//                                                               PiecedFile.
//   FLAC that holds more than its header says, or less, or      it stops where the header says; it doesn't know the
//   whose header doesn't know (see FLACSurvey)                  length. The header is put right.
//   FLAC with a damaged block                                   it stops there. It is set to the first block behind
//                                                               that can be decoded.
//   joined FLAC                                                 the first part is decoded. Each is opened by itself.
//   MP3, at first seek                                          all frames before are looked at: 0.8 s in two hours. It
//                                                               is given the frames from there on (see MPEGStream).

/// Where the sound is in a file: found by reading it once, it takes a reader straight to any frame.
///
/// A value to be passed to every further reader of the same file.
package struct SoundMap: Sendable {
  /// One of the streams that follow one another in a file.
  struct Stream: Sendable {
    enum Source: Sendable {
      /// The file as it is.
      case file
      case pieces([FilePiece])
      case mpeg(MPEGStream)
      case flac(FLACStream)
    }

    let source: Source
    /// Its first frame in the recording.
    let start: Int64
    /// What it is known to hold; nil where only libsndfile can say, which is in a file of one stream.
    let frames: Int64?

    /// What libsndfile is to be given to decode from `frame` on, nil for the file itself, and the frames of it to be
    /// thrown away, less than 0 where silence comes first. Only MPEG can be entered anywhere but at its beginning.
    func opening(at frame: Int64, path: String) throws(AudioIOError) -> (pieces: [FilePiece]?, skip: Int64) {
      switch source {
      case .file: (nil, 0)
      case .pieces(let pieces): (pieces, 0)
      case .mpeg(let stream): try stream.entry(before: frame, path: path)
      case .flac(let stream): (stream.pieces, 0)
      }
    }
  }

  /// What a file's bytes say about its headers.
  package struct Findings: Sendable, Equatable {
    /// Streams that follow one another and are decoded as one.
    public internal(set) var streams = 1
    /// Streams that are left out, for they have another sample rate or number of channels, or can't be decoded.
    public internal(set) var streamsLeftOut = 0
    /// Seconds of sound in these, as far as known.
    public internal(set) var secondsLeftOut = 0.0
    /// Whether the end of a compressed file is missing, by its own structure.
    public internal(set) var lacksEnd = false
    /// Whether nothing in an MP3 of varying bit rate, or a FLAC file's header, tells its length.
    public internal(set) var lacksLength = false
    /// Frames that an MP3's or a FLAC file's header promises and that it has, where they differ.
    public internal(set) var wrongCount: WrongCount?
    /// Bytes before the first frame of an MP3 that are neither frame nor tag.
    public internal(set) var leadingBytes: Int64 = 0
    /// Bytes between the frames of an MP3 that are none.
    public internal(set) var foreignBytes: Int64 = 0
    /// Frames that lack between those of a FLAC file, by their numbers; silence stands for them.
    public internal(set) var missingFrames: Int64 = 0
  }

  /// What a header promises, and what there is: samples per channel.
  package struct WrongCount: Sendable, Equatable {
    /// As the header has it.
    package let promised: Int64
    /// As the file has it.
    package let found: Int64
  }

  /// What the file's own header says.
  package let header: ContainerHeader
  /// What its bytes say about that.
  package private(set) var findings = Findings()
  /// Those that are decoded, in order; at least one.
  private(set) var streams: [Stream] = []

  /// Reads the header at `path`; of MP3, Ogg and FLAC all of the file, at the speed of the disk.
  ///
  /// Throws `.unsupportedMedia` for what is no sound that can be read here.
  package init(path: String) throws(AudioIOError) {
    header = try ContainerHeader(path: path)
    switch header.container {
    case .wav: try surveyWave(path)
    case .mp3: try surveyMPEG(path)
    case .ogg: try surveyOgg(path)
    case .flac:
      try surveyFLAC(path, at: 0)
      // Without a head that can be read it is for libsndfile to refuse.
      if streams.isEmpty { streams = [Stream(source: .pieces([.range(0..<header.fileSize)]), start: 0, frames: nil)] }
    default: break
    }
    if streams.isEmpty { streams = [Stream(source: .file, start: 0, frames: nil)] }
  }

  init(header: ContainerHeader, findings: Findings, streams: [Stream]) {
    self.header = header
    self.findings = findings
    self.streams = streams
  }

  private mutating func surveyWave(_ path: String) throws(AudioIOError) {
    guard header.declaredDataBytes == 0, let present = header.presentDataBytes, present > 0,
      let dataOffset = header.dataOffset, dataOffset < 1 << 20
    else { return }
    let size = UInt32(clamping: present)
    let sizeBytes = (0..<4).map { UInt8(truncatingIfNeeded: size >> (8 * UInt32($0))) }
    let pieces: [FilePiece] = [
      .range(0..<dataOffset - 4), .bytes(sizeBytes), .range(dataOffset..<dataOffset + present),
    ]
    streams = [Stream(source: .pieces(pieces), start: 0, frames: nil)]
  }

  private mutating func surveyFLAC(_ path: String, at begin: Int64) throws(AudioIOError) {
    let survey = try FLACSurvey(path: path, at: begin)
    let all = survey.streams
    findings.lacksEnd = survey.isCut
    findings.streamsLeftOut = survey.streamsLeftOut
    guard !all.isEmpty else { return }
    let kind = { (head: FLACHead) in "\(head.depth) \(head.sampleRate) \(head.channels)" }
    choose(all, kind: { kind($0.head) }, rate: \.head.sampleRate, frames: \.samples) { .flac($0) }
    findings.missingFrames = all.map(\.missing).reduce(0, +)
    let heads = all.filter { !$0.isHeadless }.map(\.head)
    let (counted, found) = (heads.compactMap(\.claimedFrames), all.map(\.samples).reduce(0, +))
    findings.lacksLength = counted.count < heads.count
    let promised = counted.reduce(0, +)
    if !findings.lacksLength, promised != found {
      findings.wrongCount = WrongCount(promised: promised, found: found)
    }
  }

  private mutating func surveyMPEG(_ path: String) throws(AudioIOError) {
    // A tag may stand before FLAC, too.
    if let begin = try FLACSurvey.begin(path: path) { return try surveyFLAC(path, at: begin) }
    let survey = try MPEGSurvey(path: path)
    let all = survey.streams.filter { $0.samples > 0 }
    guard survey.isMostlyFrames, !all.isEmpty, header.beginsWithMark || survey.isNearlyAllFrames else {
      // Two bytes that look like a frame, somewhere in a file of another kind.
      if !header.beginsWithMark { throw .unsupportedMedia(found: nil) }
      return
    }
    findings.leadingBytes = survey.leadingBytes
    findings.lacksEnd = survey.isCut
    findings.foreignBytes = survey.foreignBytes
    choose(all, kind: { "\($0.header.sampleRate) \($0.header.channels)" }, rate: \.header.sampleRate, frames: \.samples)
    {
      .mpeg($0)
    }
    let (counted, frames) = (all.compactMap(\.claimedFrames), all.map(\.frames).reduce(0, +))
    let promised = counted.reduce(0, +)
    if counted.count == all.count, promised != frames, promised != frames + Int64(all.count) {
      let samples = Int64(all[0].header.samples)
      findings.wrongCount = WrongCount(promised: promised * samples, found: frames * samples)
    }
    findings.lacksLength = all.contains { $0.claimedFrames == nil && $0.isVarying }
  }

  private mutating func surveyOgg(_ path: String) throws(AudioIOError) {
    let survey = try OggSurvey(path: path)
    findings.lacksEnd = !survey.hasEnd
    guard let first = survey.streams.first else { return }
    guard survey.streams.count > 1 else {
      streams = [Stream(source: .pieces([.range(first)]), start: 0, frames: nil)]
      return
    }
    var opened: [(range: Range<Int64>, format: AudioFormat, frames: Int64)] = []
    for range in survey.streams {
      // A length that is a lie; a thousand of them must not overflow.
      guard let file = try? SndfileHandle(reading: path, [.range(range)]), let format = AudioFormat(file.info),
        (1..<Int64(1) << 48).contains(file.info.frames)
      else {
        findings.streamsLeftOut += 1
        continue
      }
      opened.append((range, format, Int64(file.info.frames)))
    }
    let kind = { (format: AudioFormat) in "\(format.codec) \(format.sampleRate) \(format.channels)" }
    choose(opened, kind: { kind($0.format) }, rate: \.format.sampleRate, frames: \.frames) {
      .pieces([.range($0.range)])
    }
  }

  /// Takes the streams of the kind of which there is most; a recording has one sample rate and one number of channels.
  private mutating func choose<Found>(
    _ found: [Found], kind: (Found) -> String, rate: (Found) -> Int, frames: (Found) -> Int64,
    source: (Found) -> Stream.Source
  ) {
    let lengths = Dictionary(grouping: found, by: kind).mapValues { $0.map(frames).reduce(0, +) }
    // Of two that are equally long, that of the first stream.
    let most = lengths.values.max()
    let chosen = found.map(kind).first { lengths[$0] == most }
    var start: Int64 = 0
    for one in found {
      guard kind(one) == chosen else {
        findings.streamsLeftOut += 1
        findings.secondsLeftOut += Double(frames(one)) / Double(rate(one))
        continue
      }
      streams.append(Stream(source: source(one), start: start, frames: frames(one)))
      start += frames(one)
    }
    findings.streams = max(streams.count, 1)
  }

  /// The stream that `frame` is in, or the last one.
  func stream(of frame: Int64) -> Int { streams.lastIndex { $0.start <= frame } ?? 0 }

  /// Where a stream ends in the recording; nil where its decoder has to tell.
  func end(of number: Int) -> Int64? {
    let stream = streams[number]
    if case .mpeg = stream.source { return stream.frames.map { stream.start + $0 } }
    return number + 1 < streams.count ? streams[number + 1].start : nil
  }

  /// Frames of all streams, where the map knows.
  var frames: Int64? { streams.last.flatMap { last in last.frames.map { last.start + $0 } } }
}
