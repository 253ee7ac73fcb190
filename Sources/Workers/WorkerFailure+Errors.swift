import Denoise
import Glibc
import Terms
import Voice
import Waveform

// Maps everything that can go wrong with a file to a stable code and a text for the client.

extension WorkerFailure {
  /// A file whose header alone takes more processor time to read than an upload may use.
  package static let probeTooSlow = WorkerFailure(
    code: "probe_too_slow",
    detail:
      "Probing this file takes more processor time than an upload may use: it has too many or too large headers, tags "
      + "or tracks. Save the sound as a new file, for example as FLAC.", retry: false)

  /// Creates a failure whose sentence says what is wrong and, if there's a remedy, what would be right. `namesPaths`
  /// says if paths may be named, because the reader is the person who supplied the files.
  package init(_ error: ProcessingError, namesPaths: Bool = false) {
    switch error {
    case .audio(let error): self.init(error)
    case .media(let error): self.init(error)
    case .waveform(let error): self.init(error, namesPaths: namesPaths)
    case .spectrogram(let error):
      let complaint = QueryComplaint(error)
      self.init(code: complaint.code, detail: complaint.detail, retry: false)
    case .denoise(.regionTooShort(let frames, let needed)):
      self.init(
        code: "noise_region_too_short",
        detail:
          "The noise region has \(Words.count(frames, "frame")); at least \(needed) are needed at this sample rate.",
        retry: false)
    case .denoise(.silentRegion):
      self.init(
        code: "silent_noise",
        detail: "The noise region contains only digital silence; choose one in which the noise is heard.", retry: false)
    case .recordingTooShort(let frames, let needed):
      self.init(
        code: "recording_too_short",
        detail:
          "The recording has \(Words.count(frames, "frame")); learning its noise takes at least \(needed) at this sample "
          + "rate. The profile of another recording can be used instead.", retry: false)
    case .regionOutside(let start, let end, let duration):
      self.init(
        code: "noise_region_outside",
        detail: "The noise region \(Words.seconds(start))–\(Words.seconds(end)) s is not within the recording"
          + (duration.map { ", which lasts \(Words.seconds($0)) s." } ?? "."), retry: false)
    case .windowOutside(let start, let end):
      self.init(
        code: "window_outside",
        detail: "The window \(Words.seconds(start))–\(Words.seconds(end)) s is not within the recording.",
        retry: false)
    case .boxAbove(let number, let limit):
      self.init(
        code: "box_outside",
        detail: "Box \(number), counted from 0, reaches over \(limit) Hz, which is half the recording's sample rate.",
        retry: false)
    case .profile(let path, let fault):
      self.init(
        code: "profile_unusable", detail: "\(namesPaths ? path : "The noise profile") \(Self.words(for: fault)).",
        retry: false)
    case .needsFFmpeg:
      self.init(code: Self.needsFFmpegCode, detail: "Only ffmpeg can read this file.", retry: false)
    case .voice(let error): self.init(error, namesPaths: namesPaths)
    case .system(let operation, let path, let number):
      self = Self.system(operation, number, path: namesPaths ? path : nil)
    case .request(let fault):
      let what =
        switch fault {
        case .truncated: "is cut off"
        case .tooLong: "is longer than \(WorkerRequest.sizeLimit) bytes"
        case .malformed: "can't be read"
        }
      self.init(code: "worker_failed", detail: "The worker's request \(what).", retry: false)
    }
  }

  private init(_ error: VoiceError, namesPaths: Bool) {
    let what =
      switch error {
      case .missing(let path): namesPaths ? "there is no \(path)" : "its weights aren't installed"
      case .damaged(let path): "\(namesPaths ? path : "the file of its weights") is damaged"
      case .otherVersion(let path, nil): "\(namesPaths ? path : "its file") isn't a file of weights"
      case .otherVersion(let path, let found?):
        "\(namesPaths ? path : "the file of its weights") has the version “\(found)”, not “\(VoiceWeights.version)”"
      case .noResampler: "libsoxr isn't installed"
      }
    self.init(
      code: "method_unavailable", detail: "“voice” can't be used: \(what). “\(VoiceFile.command)” installs it.",
      retry: false)
  }

  private static func words(for fault: NoiseProfileFile.Fault) -> String {
    switch fault {
    case .unreadable(let number): "can't be read: \(unsafe String(cString: strerror(number)))"
    case .tooLong(let limit): "is longer than \(limit) bytes, so it isn't a noise profile"
    case .malformed: "isn't a noise profile: that is a JSON object with “frequencies” and “power_db”"
    case .density(let fault): "isn't a valid noise profile: \(fault.words)"
    }
  }

  private init(_ error: WaveformError, namesPaths: Bool) {
    if case .io(let operation, let path, let number) = error {
      self = Self.system(operation, number, path: namesPaths ? path : nil)
    } else if let complaint = QueryComplaint(error) {
      self.init(code: complaint.code, detail: complaint.detail, retry: false)
    } else {
      self.init(code: "waveform_failed", detail: "The waveform could not be built: \(error).", retry: false)
    }
  }

  private init(_ error: MediaError) {
    switch error {
    case .missingProgram(let container):
      self.init(
        code: "unsupported_media",
        detail: "This is \(container.words); it is read by ffmpeg, which is missing here. Install it (on Debian: "
          + "apt-get install ffmpeg), or name the program with --ffmpeg or STILLWAVE_FFMPEG.", retry: false)
    case .missingEncoder:
      self.init(
        code: "unsupported_output",
        detail: "This format doesn't have the recording's sample rate or channels; ffmpeg, which would resample it, is "
          + "missing here. wav or flac can hold it.", retry: false)
    case .noAudio(let container):
      self.init(code: "unsupported_media", detail: "This is \(container.words) without an audio track.", retry: false)
    case .undecodable(let container, nil):
      self.init(
        code: "unsupported_media", detail: "This looks like \(container.words), but ffmpeg can't read it.",
        retry: false)
    case .undecodable(let container, let codec?):
      self.init(
        code: "unsupported_media",
        detail: "This is \(container.words), but not a single frame of its sound (\(codec)) could be decoded.",
        retry: false)
    case .tooSlow: self = .probeTooSlow
    case .encoderFailed:
      self.init(code: "encoder_failed", detail: "ffmpeg could not write the result.", retry: true)
    case .tooLong:
      self.init(
        code: "cpu_limit", detail: "ffmpeg took more processor time on this recording than is allowed.", retry: true)
    case .programFailed(let failure): self.init(failure)
    case .system(let operation, let number):
      self = Self.system(operation, number)
    }
  }

  private init(_ failure: ProgramFailure) {
    switch failure {
    case .crashed(let signal):
      self.init(code: "decoder_failed", detail: "ffmpeg crashed on this file (signal \(signal)).", retry: true)
    case .outOfMemory:
      self.init(code: "memory_limit", detail: "ffmpeg ran out of memory on this file.", retry: true)
    case .killed:
      self.init(
        code: "worker_failed", detail: "ffmpeg was killed, perhaps by the system because memory ran out.",
        retry: true)
    case .notStarted(let status):
      self.init(code: "worker_failed", detail: "ffmpeg could not be started (status \(status)).", retry: true)
    }
  }

  private init(_ error: AudioIOError) {
    switch error {
    case .unsupportedMedia(let found):
      self.init(code: "unsupported_media", detail: Self.unsupported(found: found), retry: false)
    case .undecodable(let code, _):
      self.init(
        code: "unsupported_media", detail: "The file looks like audio, but can't be decoded: \(Self.words(for: code)).",
        retry: false)
    case .empty:
      self.init(code: "unsupported_media", detail: "Not a single frame of sound could be decoded.", retry: false)
    case .channelsOutOfRange(let channels, let limit):
      self.init(
        code: "unsupported_format",
        detail: "The file has \(Words.count(channels, "channel")); 1 to \(limit) are allowed.",
        retry: false)
    case .sampleRateOutOfRange(let hertz, let limits):
      self.init(
        code: "unsupported_format",
        detail: "The sample rate is \(hertz) Hz; \(limits.lowerBound) to \(limits.upperBound) Hz are allowed.",
        retry: false)
    case .durationOutOfRange(let seconds, let limit):
      self.init(
        code: "unsupported_format",
        detail: "The recording lasts \(Words.seconds(seconds)) s; at most \(Words.seconds(limit)) s are allowed.",
        retry: false)
    case .unwritable(let format):
      self.init(
        code: "unsupported_output",
        detail: "\(Self.name(of: format)) can't hold \(Words.count(format.channels, "channel")) at "
          + "\(format.sampleRate) Hz; wav can.", retry: false)
    case .seekFailed(let frame):
      self.init(code: "seek_failed", detail: "The decoder could not seek to frame \(frame).", retry: false)
    case .writeFailed(let code, let reason):
      // Only the reasons that this project gives have no code.
      let what = code == 0 ? reason : "the encoder failed (error \(code))"
      self.init(code: "write_failed", detail: "The result could not be written: \(what).", retry: true)
    case .system(let operation, let number):
      self = Self.system(operation, number)
    }
  }

  /// The code of a look at a file that only ffmpeg can read, without ffmpeg.
  package static let needsFFmpegCode = "needs_ffmpeg"

  /// Not retried, because the disk will still be full half a second later.
  package static let diskFull = WorkerFailure(
    code: "disk_full", detail: "The service's disk doesn't have enough room for the result.", retry: false)

  /// Returns what one of libsndfile's errors means; its own sentences are for programmers.
  private static func words(for code: Int32) -> String {
    switch code {
    case 1: "its header isn't complete"
    case 4: "its codec isn't supported"
    default: "its header is damaged, or contradicts itself"
    }
  }

  /// A container that has only one codec is called by that codec's name.
  private static func name(of format: AudioFormat) -> String {
    let (container, codec) = (format.container.rawValue, format.codec.name)
    return container == codec ? container : "\(container) with \(codec)"
  }

  private static func system(_ operation: String, _ number: Int32, path: String? = nil) -> WorkerFailure {
    if [ENOSPC, EDQUOT].contains(number) {
      return .diskFull
    }
    // On a thread that blocks SIGXFSZ, exceeding the limit is reported as this error.
    if number == EFBIG {
      return WorkerFailure(
        code: "output_limit", detail: "The work on this recording wrote a longer file than is allowed.", retry: true)
    }
    return WorkerFailure(
      code: "io_error",
      detail:
        "\(path ?? "A file") could not be used: \(operation) failed: \(unsafe String(cString: strerror(number))).",
      retry: true)
  }

  private static func unsupported(found: String?) -> String {
    let what = found.map { "This is \($0)." } ?? "This is not a known kind of audio."
    return "\(what) These can be read: WAV, RF64, W64, AIFF, AU, CAF, FLAC, Ogg Vorbis, Opus and MP3, and with ffmpeg "
      + "MP4, M4A, MOV, WebM, Matroska, AAC, AMR, Windows Media, AC-3, the other kinds of Ogg, MPEG-TS and -PS, AVI, "
      + "FLV, WavPack, Monkey's Audio, Musepack, True Audio, DTS, DSF, VOC and the other kinds of CAF."
  }
}
