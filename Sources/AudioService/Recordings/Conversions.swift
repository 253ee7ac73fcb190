import Glibc
import HTTP
import Jobs
import Storage
import Terms
import Workers

/// `GET …/audio?format=`: a recording's audio in a format that the client can play, made by a job on first use and kept
/// while there is space.
struct Conversions: Sendable {
  let context: Context

  /// The formats that a client can request.
  enum Format: String, CaseIterable {
    case wav, flac, mp3, ogg, opus

    var outputFormat: OutputFormat {
      guard let format = OutputFormat(rawValue: rawValue) else { preconditionFailure("every format is one") }
      return format
    }
  }

  /// A converted file to be served.
  struct File: Sendable {
    let conversion: Conversion
    let content: FileContent
    let format: AudioFormat
  }

  /// Returns the conversion's file, or nil if the recording's own file has that format. Waits a few seconds for the job
  /// that makes it, and for the one that decodes the recording first, then throws a problem with Retry-After.
  func file(of recording: Recording, as format: Format, for caller: Caller) async throws -> File? {
    guard let source = recording.audioFormat else { throw ServiceError.notReady(recording.id) }
    let target = try Self.target(source, format)
    if recording.media == nil, target.container == source.container, target.codec.name == source.codec.name {
      return nil
    }
    if let kept = try await kept(recording.id, format, target, caller) { return kept }
    guard caller.mayConvert else { throw AccessError.noConversion }
    let deadline = context.waitDeadline
    let recording = try await decoded(recording, by: deadline, caller)
    // Only now: a kept conversion is served even if the source is gone.
    try await context.checkSound(of: recording)
    _ = try await context.succeeded(
      Self.job(of: recording, source, as: format, target, at: caller.catalog.time), of: recording, until: deadline,
      for: caller, orStill: RequestError.converting)
    if let kept = try await kept(recording.id, format, target, caller) { return kept }
    throw ServiceError.workerUnavailable(reason: "a conversion was forgotten as soon as it was made")
  }

  /// Returns the job that converts a recording.
  static func job(
    of recording: Recording, _ source: AudioFormat, as format: Format, _ target: AudioFormat, at time: Timestamp
  ) -> Job {
    Job(
      kind: .convert, recording: recording.id, createdAt: time,
      expectedBytes: ExpectedBytes.sound(
        target, frames: Self.frames(of: recording, at: target.sampleRate), from: recording.expectedSource(source)),
      parameters: RowJSON.text(ConvertJob.Parameters(format: format.outputFormat)))
  }

  /// Returns the job that makes a conversion; nil if it is kept, or the recording's own file has that format.
  func missing(_ recording: Recording, as format: Format, _ caller: Caller) async throws -> Job? {
    guard let source = recording.audioFormat else { throw ServiceError.notReady(recording.id) }
    let target = try Self.target(source, format)
    let isOwn = target.container == source.container && target.codec.name == source.codec.name
    if recording.media == nil, isOwn { return nil }
    guard try await kept(recording.id, format, target, caller) == nil else { return nil }
    return Self.job(of: recording, source, as: format, target, at: caller.catalog.time)
  }

  /// Returns the row of a conversion that is kept, and the format of its file; nil if there is none. Doesn't look for
  /// the file.
  func known(
    _ recording: Recording, as format: Format, _ caller: Caller
  ) async throws -> (Conversion, AudioFormat)? {
    guard let source = recording.audioFormat else { return nil }
    let (catalog, id) = (caller.catalog, recording.id)
    let row = try await context.work.run { () throws(StorageError) -> Conversion? in
      guard let row = try catalog.conversion(of: id, to: format.rawValue) else { return nil }
      try catalog.touch(row)
      return row
    }
    return try row.map { ($0, try Self.target(source, format)) }
  }

  /// The recording once its working copy has been made, if it needs one. An unfinished result of noise removal is
  /// returned as it is.
  private func decoded(
    _ recording: Recording, by deadline: Clock.Instant, _ caller: Caller
  ) async throws -> Recording {
    guard recording.media != nil, recording.workingKey == nil, recording.bytes != nil,
      recording.waveformState != .failed, let reading = recording.waveformJob,
      let job = try await context.wait(for: reading, until: deadline, caller)
    else { return recording }
    guard job.state.isFinished else { throw RequestError.decoding(job.id) }
    let (catalog, id) = (caller.catalog, recording.id)
    return try await context.work.run { () throws(StorageError) in try catalog.recording(id) } ?? recording
  }

  /// The most channels that are mixed down to MP3's two. ffmpeg guesses the layout: it knows layouts of up to 8
  /// channels, of 16, and of 24, and of the latter two it drops all channels after the eighth or ninth.
  private static let mixedDownChannels = 8

  /// Returns the format of the result. Throws if no such file can hold the recording.
  static func target(_ source: AudioFormat, _ format: Format) throws -> AudioFormat {
    let kind = format.outputFormat
    switch try kind.encoder(for: source) {
    case nil: return try kind.format(for: source)
    case .opus: return AudioFormat(container: .ogg, codec: .opus, sampleRate: 48_000, channels: source.channels)
    case .mp3 where source.channels > mixedDownChannels:
      throw RequestError.tooManyChannelsForMP3(source.channels, limit: mixedDownChannels)
    case .mp3: return AudioFormat(container: .mp3, codec: .mp3, sampleRate: 48_000, channels: min(source.channels, 2))
    }
  }

  /// Frames of the whole recording at another sample rate; as far as known.
  private static func frames(of recording: Recording, at rate: Int) -> Int64 {
    Int64(
      Double(recording.format.frames ?? recording.format.estimatedFrames ?? 0)
        * Double(rate) / Double(recording.format.sampleRate))
  }

  /// Whether an error says that a conversion's file is gone or damaged.
  private static func isLoss(_ error: any Error) -> Bool {
    switch error {
    case StorageError.damagedObject, FileContentError.notAFile: true
    case FileContentError.io(_, _, let number): [ENOENT, ENOTDIR, ELOOP, EIO].contains(number)
    default: false
    }
  }

  private func kept(
    _ id: RecordingID, _ format: Format, _ target: AudioFormat, _ caller: Caller
  ) async throws -> File? {
    let (catalog, objects) = (caller.catalog, context.objects)
    return try await context.storeWork.run(as: .transfer(caller.client)) {
      guard let conversion = try catalog.conversion(of: id, to: format.rawValue) else { return nil }
      let opened: FileContent?
      do { opened = try objects.localFile(conversion.key).withPath(FileContent.init(path:)) } catch {
        // Any other failure may pass, and then the file is still there.
        guard Self.isLoss(error) else { throw error }
        opened = nil
      }
      guard let content = opened, content.length == conversion.bytes else {
        // The file was lost or truncated, so it's made again.
        let look = objects.look(at: conversion.key)
        if look != .unknown, look != .present(bytes: conversion.bytes) { try catalog.forget(conversion) }
        return nil
      }
      try catalog.touch(conversion)
      return File(conversion: conversion, content: content, format: target)
    }
  }
}
