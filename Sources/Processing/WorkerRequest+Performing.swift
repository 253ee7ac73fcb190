import AudioIO
import Glibc
import Media
import Terms
import Workers

extension WorkerRequest {
  /// Performs the work, for which all other programs have been started, and reports progress to its argument. Call it
  /// once.
  package typealias Begun = ((WorkerProgress) -> Void) throws(ProcessingError) -> WorkerReport

  /// Starts ffmpeg if the work needs it, which the fence would prevent. The source isn't read before the returned
  /// function is called.
  package func begin() throws(ProcessingError) -> Begun { try begin(OpenedFiles()) }

  func begin(_ opened: OpenedFiles) throws(ProcessingError) -> Begun {
    switch work {
    case .probe: try beginProbe()
    case .intake(let work): try begin(work)
    case .ffmpegCheck: try beginFFmpegCheck()
    case .waveform(let work): try begin(work)
    case .denoise(let work): try begin(work, opened)
    case .convert(let work): try begin(work)
    case .noiseRegions(let copy): try beginNoiseRegions(copy)
    case .loudness(let copy): try beginLoudness(copy)
    case .trim(let work): try begin(work)
    case .noiseProfile(let work): try begin(work, opened)
    case .spectrum(let window):
      { (_) throws(ProcessingError) in
        .measured(try MeasureSpectrum(source: source, window: window, limits: limits, map: opened.map).run())
      }
    }
  }

  /// The number of threads that the work uses besides the first.
  package var helperCount: Int {
    switch work {
    case .waveform: threadCount > 1 ? decoderCount : 0
    case .denoise: threadCount > 1 ? 1 : 0
    default: 0
    }
  }

  /// More than four threads would take more memory and wait for the disk.
  private var decoderCount: Int { min(threadCount, 4) }

  private func beginProbe() throws(ProcessingError) -> Begun {
    let look = try look()
    return { (_) throws(ProcessingError) in
      let probe = ProbeRecording(source: source, limits: limits)
      guard let look else { return .probed(try probe.run()) }
      return .probed(try probe.run(look))
    }
  }

  private func begin(_ work: IntakeWork) throws(ProcessingError) -> Begun {
    let look = try look()
    return { (_) throws(ProcessingError) in
      let probe = ProbeRecording(source: source, limits: limits)
      if let look { return .takenIn(Intake(probe: try probe.run(look))) }
      return .takenIn(try TakeInRecording(probe: probe, work: work).run())
    }
  }

  private func beginFFmpegCheck() throws(ProcessingError) -> Begun {
    let check = try media { () throws(MediaError) in try FFmpegCheck(encoder(), in: fencing) }
    return { (_) throws(ProcessingError) in .ffmpegWorks(check.works()) }
  }

  private func begin(_ work: WaveformWork) throws(ProcessingError) -> Begun {
    let decoding = try decode(work.copy)
    let reading = work.labels.map { labels in
      ReadEmbeddedLabels(work: labels, source: source, facts: work.copy?.facts, texts: texts(work.copy))
    }
    return { (progress) throws(ProcessingError) in
      var analysis: Analysis
      if let decoding, let copy = work.copy {
        analysis = try ImportRecording(
          decoding: decoding, working: copy.path, pyramid: work.pyramid, limits: limits,
          findsNoiseRegions: work.findsNoiseRegions
        ).run(progress: progress)
      } else {
        analysis = try AnalyzeRecording(
          source: source, pyramid: work.pyramid, limits: limits, threads: decoderCount,
          findsNoiseRegions: work.findsNoiseRegions, soundMap: work.soundMap
        ).run(progress: progress)
      }
      reading?.run(&analysis)
      return .analyzed(analysis)
    }
  }

  /// Begins to read the timed text of a file that ffmpeg reads; nil if that can't be started, because the sound matters
  /// more.
  private func texts(_ copy: WorkingCopy?) -> MediaTexts? {
    guard let facts = copy?.facts, let demuxer = facts.demuxer else { return nil }
    return try? MediaTexts(path: source, facts: facts, with: reader(demuxer), in: fencing)
  }

  private func begin(_ work: DenoiseWork, _ opened: OpenedFiles) throws(ProcessingError) -> Begun {
    let decoding = try decode(work.copy)
    var (encoding, tracks): ((any CleanedFile)?, CopiedTracks?) = (nil, nil)
    if let replacement = work.replacement { (encoding, tracks) = try encode(replacement) }
    let (cleaned, kept) = (encoding, tracks)
    // Before the fence, which closes the file.
    let weights = work.parameters.settings.method == .voice ? try VoiceModel.shared.weights(voice) : nil
    return { (progress) throws(ProcessingError) in
      let recording = DenoiseRecording(
        source: try sound(decoding, work.copy, progress), output: work.output, pyramid: work.pyramid,
        parameters: work.parameters, limits: limits, findsNoiseRegions: work.findsNoiseRegions,
        profilePath: work.profilePath, opened: opened, knownRegions: work.noiseRegions, window: work.window,
        isDurable: work.isDurable,
        usesSecondThread: threadCount > 1, texts: work.texts, encoding: cleaned, weights: weights)
      var outcome =
        if let target = work.parameters.loudness {
          try recording.run(
            toLoudness: target, isLossy: work.replacement.map { !$0.facts.isLossless }, progress: progress)
        } else {
          try recording.run(progress: progress)
        }
      if let kept { outcome.warnings += Warning.leftOut(kept) }
      return .denoised(outcome)
    }
  }

  private func encode(
    _ replacement: DenoiseWork.Replacement, cut window: TimeWindow? = nil
  ) throws(ProcessingError) -> (any CleanedFile, CopiedTracks?) {
    let (original, facts, path) = (replacement.original, replacement.facts, replacement.output)
    if facts.demuxer == nil { return (try SoundEncoding(path: path, facts: facts, of: original), nil) }
    return try media { () throws(MediaError) in
      let (ffmpeg, fencing) = (try encoder(), writingFencing)
      let cut = window.map { MediaCut(start: $0.start, seconds: $0.end - $0.start, of: facts) }
      let tracks =
        if let cut, facts.video != nil, try !cut.hasPictures(of: original, facts, with: ffmpeg, in: fencing) {
          CopiedTracks.none(of: facts)
        } else {
          try CopiedTracks.writable(
            of: original, facts, tryingAt: path, isCut: cut != nil, with: ffmpeg, in: fencing)
        }
      let encoding = try MediaEncoding(
        replacingSoundOf: original, facts, keeping: tracks, cut: cut, into: path, with: ffmpeg, in: fencing)
      return (encoding, tracks)
    }
  }

  private func begin(_ work: TrimWork) throws(ProcessingError) -> Begun {
    let decoding = try decode(work.copy)
    var (encoding, tracks): ((any CleanedFile)?, CopiedTracks?) = (nil, nil)
    if let replacement = work.replacement { (encoding, tracks) = try encode(replacement, cut: work.window) }
    let (copied, kept) = (encoding, tracks)
    return { (progress) throws(ProcessingError) in
      var outcome = try TrimRecording(
        source: sound(decoding, work.copy, progress), window: work.window, output: work.output, pyramid: work.pyramid,
        limits: limits, texts: work.texts, encoding: copied
      ).run(progress: progress)
      if let kept { outcome.warnings += Warning.leftOut(kept) }
      outcome.lacksPictures = kept?.lacksPictures ?? false
      return .trimmed(outcome)
    }
  }

  private func begin(_ work: ConvertWork) throws(ProcessingError) -> Begun {
    let decoding = try decode(work.copy)
    var encoding: MediaEncoding?
    if let shape = work.resampled, let codec = OutputFormat.Encoder(rawValue: work.format.rawValue) {
      encoding = try media { () throws(MediaError) in
        try MediaEncoding(
          path: work.output, codec: codec, sampleRate: shape.sampleRate, channels: shape.channels, with: encoder(),
          in: writingFencing)
      }
    }
    let encoded = encoding
    return { (progress) throws(ProcessingError) in
      .converted(
        try ConvertRecording(
          source: sound(decoding, work.copy, progress), output: work.output, format: work.format, encoding: encoded,
          frames: work.frames
        ).run(progress: progress))
    }
  }

  private func beginLoudness(_ copy: WorkingCopy?) throws(ProcessingError) -> Begun {
    let decoding = try decode(copy)
    return { (progress) throws(ProcessingError) in
      let source = try sound(decoding, copy, progress)
      return .loudness(try MeasureLoudness(source: source, limits: limits).run(progress: progress))
    }
  }

  private func beginNoiseRegions(_ copy: WorkingCopy?) throws(ProcessingError) -> Begun {
    let decoding = try decode(copy)
    return { (progress) throws(ProcessingError) in
      let search = FindNoiseRegions(source: try sound(decoding, copy, progress), limits: limits)
      return .noiseRegions(
        try search.run { frames, fraction in
          progress(WorkerProgress(fraction: fraction, readyFrames: frames, totalFrames: nil, estimatedFrames: nil))
        })
    }
  }

  private func begin(_ work: NoiseProfileWork, _ opened: OpenedFiles) throws(ProcessingError) -> Begun {
    let decoding = try decode(work.copy)
    return { (progress) throws(ProcessingError) in
      let sound = try sound(decoding, work.copy, progress)
      return .profileLearnt(
        try LearnNoiseProfile(source: sound, work: work, limits: limits, opened: opened).run(progress: progress))
    }
  }

  /// Returns a file that libsndfile can read: the source itself, or its working copy, which is made first.
  private func sound(
    _ decoding: (any WorkingSource)?, _ copy: WorkingCopy?, _ progress: (WorkerProgress) -> Void
  ) throws(ProcessingError) -> String {
    guard let decoding, let copy else { return source }
    // The import is a small part of the work. It is reported as 0, so that the fraction never decreases later.
    _ = try ImportRecording(decoding: decoding, working: copy.path, limits: limits).run { _ in
      progress(WorkerProgress(fraction: 0, readyFrames: 0, totalFrames: nil, estimatedFrames: nil))
    }
    return copy.path
  }

  private var threadCount: Int { threads ?? sysconf(Int32(_SC_NPROCESSORS_ONLN)) }
}

// MARK: ffmpeg

extension WorkerRequest {
  /// Returns the facts needed to make a working copy of the source; nil if it's read directly. Only for commands:
  /// workers get the facts in their request.
  package func facts() throws(ProcessingError) -> MediaFacts? {
    guard let look = try look() else { return nil }
    return try media { () throws(MediaError) in try look.facts() }
  }

  /// Begins to probe the source; nil if ffmpeg isn't needed to read it.
  private func look() throws(ProcessingError) -> MediaProbe? {
    guard let demuxer = Demuxer(path: source) else { return nil }
    guard ffmpeg != Self.noFFmpeg else { throw .needsFFmpeg }
    return try media { () throws(MediaError) in
      try MediaProbe(path: source, demuxer: demuxer, with: reader(demuxer), in: fencing)
    }
  }

  /// Begins to decode the source. A file that libsndfile can't seek in is decoded from its start.
  private func decode(_ copy: WorkingCopy?) throws(ProcessingError) -> (any WorkingSource)? {
    guard let copy else { return nil }
    let facts = copy.facts
    guard let demuxer = facts.demuxer else { return SoundDecoding(path: source, facts: facts, limits: limits) }
    let head = try facts.directHead(frames: 0)
    return try media { () throws(MediaError) in
      try MediaDecoding(
        path: source, facts: facts, into: head.map { .init(path: copy.path, headBytes: $0.count) },
        with: reader(demuxer), in: head == nil ? fencing : writingFencing)
    }
  }

  private func reader(_ demuxer: Demuxer) throws(MediaError) -> FFmpeg {
    try FFmpeg.find(ffmpeg, toRead: source, as: demuxer)
  }

  private func encoder() throws(MediaError) -> FFmpeg {
    guard let found = FFmpeg(ffmpeg) else { throw .missingEncoder }
    return found
  }

  /// The fence of a program that writes no files, with the worker's limits. For a command, the program keeps the user's
  /// identity: the file is theirs, and keeps its mode.
  private var fencing: Fencing {
    var limits = programLimits
    limits.outputBytes = 0
    return Fencing(limits: limits.text, dropsRoot: fence != nil)
  }

  /// The fence of a program that writes the worker's file.
  private var writingFencing: Fencing { Fencing(limits: programLimits.text, dropsRoot: fence != nil) }

  private var programLimits: WorkerFence {
    fence ?? WorkerFence(memoryBytes: 4 << 30, processorSeconds: 1_000_000_000, outputBytes: 1 << 62)
  }
}
