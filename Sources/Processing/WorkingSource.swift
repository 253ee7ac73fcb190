import AudioIO
import Media

/// What a working copy is made of: sound that is decoded once, from its first frame to its last. Confined; blocks.
package protocol WorkingSource: AnyObject {
  /// What is decoded.
  var facts: MediaFacts { get }
  /// Of the file.
  var path: String { get }
  /// Frames given out.
  var position: Int64 { get }

  /// Gives the next frames to `body`, interleaved, full scale ±1, and returns how many there were; 0 at the end, where
  /// `body` isn't called.
  func read<E: Error>(_ body: (Span<Float>) throws(E) -> Void) throws(E) -> Int

  /// Throws if the sound ended for another reason than the file's end, or if there was none.
  func end() throws(ProcessingError)

  /// What reading all of it told. `notFinite`: samples that were none.
  func warnings(notFinite: Int64) -> [Anomaly]
}

extension MediaDecoding: WorkingSource {
  /// Ends ffmpeg.
  package func end() throws(ProcessingError) { try media { () throws(MediaError) in try finish() } }

  /// What the headers and the decoder told.
  package func warnings(notFinite: Int64) -> [Anomaly] {
    Anomaly.ofImport(facts, frames: position, notFinite: notFinite)
  }
}

/// The sound of a file that libsndfile decodes, yet can't seek in. The file is opened with the first read, behind the
/// fence.
package final class SoundDecoding: WorkingSource {
  /// What is decoded.
  package let facts: MediaFacts
  /// Of the file.
  package let path: String
  private let limits: AudioLimits
  private var reader: AudioReader?
  private var failure: AudioIOError?
  /// Frames given out.
  package private(set) var position: Int64 = 0

  /// Nothing is read before `read`.
  package init(path: String, facts: MediaFacts, limits: AudioLimits) {
    self.path = path
    self.facts = facts
    self.limits = limits
  }

  /// Opens the file, the first time.
  package func read<E: Error>(_ body: (Span<Float>) throws(E) -> Void) throws(E) -> Int {
    guard var reader = open() else { return 0 }
    // A body that throws has ended the work.
    let got = try reader.readFloat(body)
    position = reader.position
    self.reader = consume reader
    return got
  }

  private func open() -> AudioReader? {
    if let reader = reader.take() { return reader }
    guard failure == nil, position == 0 else { return nil }
    do { return try AudioReader(path: path, limits: limits) } catch {
      failure = error
      return nil
    }
  }

  /// Throws what opening the file threw, and `.empty` if it has no frame.
  package func end() throws(ProcessingError) {
    if let failure { throw .audio(failure) }
    guard position > 0 else { throw .audio(.empty) }
  }

  /// What the header and the decoder told.
  package func warnings(notFinite: Int64) -> [Anomaly] {
    guard let reader = reader.take() else { return [] }
    return Anomaly.ofReading(
      reader.map, claimedFrames: reader.claimedFrames, decodedFrames: position, nonFiniteSamples: notFinite,
      lostFrames: reader.lostFrames)
  }
}

/// What takes a cleaned recording's samples beside its working copy: the file that people get.
package protocol CleanedFile: AnyObject {
  /// Takes interleaved samples of full scale ±1.
  func append(_ samples: Span<Float>) throws(ProcessingError)
  /// Makes the file whole.
  func close() throws(ProcessingError)
}

extension MediaEncoding: CleanedFile {
  /// Gives them to ffmpeg.
  package func append(_ samples: Span<Float>) throws(ProcessingError) {
    try media { () throws(MediaError) in try write(samples) }
  }

  /// Waits for ffmpeg.
  package func close() throws(ProcessingError) { try media { () throws(MediaError) in try finish() } }
}

/// A file in the source's own format, written by libsndfile.
package final class SoundEncoding: CleanedFile {
  private let path: String
  private let format: AudioFormat
  private let source: String
  private var writer: AudioWriter?
  private var quantised: [Int16] = []

  /// Writes the file at `path`, as what `facts` tell of. Nothing is read or written before the first samples come.
  ///
  /// Throws `.unwritable` if libsndfile doesn't write such a file.
  package init(path: String, facts: MediaFacts, of source: String) throws(ProcessingError) {
    guard let format = facts.soundFormat, AudioWriter.canWrite(format) else {
      throw .audio(.unwritable(facts.soundFormat ?? facts.workingFormat))
    }
    self.path = path
    self.format = format
    self.source = source
  }

  /// Creates the file, the first time.
  package func append(_ samples: Span<Float>) throws(ProcessingError) {
    var writer: AudioWriter
    if let begun = self.writer.take() {
      writer = begun
    } else {
      do {
        writer = try AudioWriter(creating: path, format: format, expectedFrames: 0, tags: SoundTags(path: source))
      } catch {
        throw .audio(error)
      }
    }
    do { try writer.write(samples, quantised: &quantised) } catch { throw .audio(error) }
    self.writer = consume writer
  }

  /// Makes it durable.
  package func close() throws(ProcessingError) {
    guard let writer = writer.take() else { throw .audio(.empty) }
    do { try writer.finish() } catch { throw .audio(error) }
  }
}

extension MediaFacts {
  /// What libsndfile calls the file; nil for what ffmpeg reads.
  var soundFormat: AudioFormat? {
    guard demuxer == nil, let container = AudioContainer(rawValue: container.rawValue),
      let codec = AudioCodec.allCases.first(where: { $0.name == codec })
    else { return nil }
    return AudioFormat(container: container, codec: codec, sampleRate: sampleRate, channels: channels)
  }

  /// What is known of a file that libsndfile decodes and can't seek in; nil of others.
  init?(unseekable format: AudioFormat, claimedFrames: Int64?) {
    guard !format.isSeekable, let container = MediaContainer(rawValue: format.container.rawValue) else { return nil }
    var bits: Int?
    if case .integer(let count) = format.codec.sampleKind { bits = count }
    self.init(
      decodedInOrder: container, codec: format.codec.name, sampleRate: format.sampleRate, channels: format.channels,
      frames: claimedFrames, sampleBits: bits)
  }
}
