import Terms

// How libsndfile 1.2.0 fails on some files, and the workarounds. They never modify the file: libsndfile gets other
// bytes to read.
//
//   WAV whose data size is 0, left by a recorder that crashed   decodes nothing. The size is corrected.
//   WAV of ADPCM whose size counts the padding, and of GSM      decodes another block. The size is corrected, or the
//                                                               frames of whole blocks are counted.
//   MP3 of varying rate without a count (see MPEGSurvey)        guesses from the first frames' bit rate: decodes 82 s
//                                                               of 600. A frame with the true count is put first.
//   MPEG layers I and II                                        assumes the first frame's bit rate. The frames are
//                                                               given more than once.
//   MP3 with a wrong count, or foreign bytes between frames     stops there. The count is corrected, the gaps are
//                                                               removed.
//   joined MP3, chained Ogg                                     decodes the first part. Each is opened separately.
//   Ogg that ends within a page                                 no length, no seeking. It gets only complete
//                                                               pages.
//   FLAC                                                        makes two system calls per 8 KB. PiecedFile reads
//                                                               ahead.
//   FLAC with more or fewer samples than its header says,       stops where the header says, or doesn't know the
//   or whose header doesn't say (see FLACSurvey)                length. The header is corrected.
//   FLAC with a damaged block                                   stops there. It is moved to the next block
//                                                               that can be decoded.
//   joined FLAC                                                 decodes the first part. Each is opened separately.
//   MP3, at first seek                                          reads all preceding frames: 0.8 s in two hours. It
//                                                               gets the frames from there on (see MPEGStream).

/// Where the sound is in a file. It is found by reading the file once, and takes a reader straight to any frame.
///
/// Pass it to every further reader of the same file.
package struct SoundMap: Sendable {
  /// One of several consecutive streams in a file.
  struct Stream: Sendable {
    enum Source: Sendable {
      /// The file as it is.
      case file
      case pieces([FilePiece])
      case mpeg(MPEGStream)
      case flac(FLACStream)
    }

    let source: Source
    /// The number of its first frame in the recording.
    let start: Int64
    /// Its known number of frames; nil if only libsndfile can tell, which occurs only in files with one stream.
    let frames: Int64?

    /// Returns what libsndfile must read to decode from `frame` on (nil for the file itself), and how many of its
    /// frames to discard; a negative number means that silence comes first. Only MPEG can be entered anywhere other
    /// than the start.
    func opening(at frame: Int64, path: String) throws(AudioIOError) -> (pieces: [FilePiece]?, skip: Int64) {
      switch source {
      case .file: (nil, 0)
      case .pieces(let pieces): (pieces, 0)
      case .mpeg(let stream): try stream.entry(before: frame, path: path)
      case .flac(let stream): (stream.pieces, 0)
      }
    }
  }

  /// How a file's bytes compare with its headers.
  package struct Findings: Sendable, Equatable {
    /// Number of consecutive streams that are decoded as one.
    package internal(set) var streams = 1
    /// Number of streams left out because their sample rate or number of channels differs or they can't be decoded.
    package internal(set) var streamsLeftOut = 0
    /// Duration of the streams left out, in seconds, as far as known.
    package internal(set) var secondsLeftOut = 0.0
    /// Whether the structure of a compressed file shows that its end is missing.
    package internal(set) var lacksEnd = false
    /// Whether an MP3 with a variable bit rate, or a FLAC file's header, doesn't give the length.
    package internal(set) var lacksLength = false
    /// The number of frames promised by an MP3's or FLAC file's header and the actual number, if they differ.
    package internal(set) var wrongCount: WrongCount?
    /// Bytes before the first frame of an MP3 that belong neither to a frame nor to a tag.
    package internal(set) var leadingBytes: Int64 = 0
    /// Bytes between the frames of an MP3 that belong to none of them.
    package internal(set) var foreignBytes: Int64 = 0
    /// Bytes after the last frame of an MP3, if they are most of the file.
    package internal(set) var trailingBytes: Int64 = 0
    /// Frames missing from a FLAC file, according to their numbers; silence replaces them.
    package internal(set) var missingFrames: Int64 = 0
  }

  /// The number of samples per channel that a header promises and the number found.
  package struct WrongCount: Sendable, Equatable {
    /// The number in the header.
    package let promised: Int64
    /// The number in the file.
    package let found: Int64
  }

  /// What the file's own header declares.
  package let header: ContainerHeader
  /// How the file's bytes compare with the header.
  package private(set) var findings = Findings()
  /// The streams to decode, in order; at least one.
  private(set) var streams: [Stream] = []

  /// Whether this is MP3 whose bit rate varies, so that its bytes aren't spread evenly over time.
  package var variesInRate: Bool {
    streams.contains { if case .mpeg(let stream) = $0.source { stream.isVarying } else { false } }
  }

  /// Reads the header of the file at `path`. For MP3, Ogg, and FLAC, reads the whole file, at the speed of the disk.
  ///
  /// Throws `.unsupportedMedia` if the format isn't supported.
  package init(path: String) throws(AudioIOError) {
    header = try ContainerHeader(path: path)
    switch header.container {
    case .wav: try surveyWave(path)
    case .mp3: try surveyMPEG(path)
    case .ogg: try surveyOgg(path)
    case .flac:
      try surveyFLAC(path, at: 0)
      // Without a readable head, leave it to libsndfile to reject the file.
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
    guard let declared = header.declaredDataBytes, let present = header.presentDataBytes, present > 0,
      declared == 0 || header.isGSM || header.countsPadding && declared <= present, let dataOffset = header.dataOffset,
      dataOffset < 1 << 20
    else { return }
    let length = declared == 0 ? present : header.isGSM ? min(declared, present) : declared - 1
    // libsndfile counts the padding of blocks of 65 bytes, each of 320 frames, as another block.
    let frames = header.isGSM ? length / 65 * 320 : nil
    guard declared == 0 || !header.isGSM else {
      return streams = [Stream(source: .file, start: 0, frames: frames)]
    }
    let size = UInt32(clamping: length)
    let sizeBytes = (0..<4).map { UInt8(truncatingIfNeeded: size >> (8 * UInt32($0))) }
    let pieces: [FilePiece] = [
      .range(0..<dataOffset - 4), .bytes(sizeBytes), .range(dataOffset..<dataOffset + length),
    ]
    streams = [Stream(source: .pieces(pieces), start: 0, frames: frames)]
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
    // A tag may also precede FLAC.
    if let begin = try FLACSurvey.begin(path: path) { return try surveyFLAC(path, at: begin) }
    let survey = try MPEGSurvey(path: path)
    let all = survey.streams.filter { $0.samples > 0 }
    guard survey.isMostlyFrames, !all.isEmpty, header.beginsWithMark || survey.isNearlyAllFrames else {
      // Two bytes that look like a frame, somewhere in a file of another format.
      if !header.beginsWithMark { throw .unsupportedMedia(found: nil) }
      return
    }
    findings.leadingBytes = survey.leadingBytes
    findings.lacksEnd = survey.isCut
    findings.foreignBytes = survey.foreignBytes
    findings.trailingBytes = survey.trailingBytes
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
      // The length may be false; a thousand of them must not overflow.
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

  /// Selects the streams of the kind with the most frames, because a recording has one sample rate and one number of
  /// channels.
  private mutating func choose<Found>(
    _ found: [Found], kind: (Found) -> String, rate: (Found) -> Int, frames: (Found) -> Int64,
    source: (Found) -> Stream.Source
  ) {
    let lengths = Dictionary(grouping: found, by: kind).mapValues { $0.map(frames).reduce(0, +) }
    // In case of a tie, the kind of the earlier stream.
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

  /// Returns the stream that contains `frame`, or the last one.
  func stream(of frame: Int64) -> Int { streams.lastIndex { $0.start <= frame } ?? 0 }

  /// Returns where a stream ends in the recording, or nil if only its decoder can tell.
  func end(of number: Int) -> Int64? {
    let stream = streams[number]
    if header.isGSM { return stream.frames }
    if case .mpeg = stream.source { return stream.frames.map { stream.start + $0 } }
    return number + 1 < streams.count ? streams[number + 1].start : nil
  }

  /// The total number of frames, if known.
  var frames: Int64? { streams.last.flatMap { last in last.frames.map { last.start + $0 } } }
}
