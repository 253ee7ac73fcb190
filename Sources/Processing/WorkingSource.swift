import AudioIO
import Media
import Terms
import Workers

/// The source of a working copy: audio decoded once, from the first frame to the last. Not for concurrent use; blocks.
protocol WorkingSource: AnyObject {
  /// The facts about the file.
  var facts: MediaFacts { get }
  /// The path of the file.
  var path: String { get }
  /// The number of frames read.
  var position: Int64 { get }

  /// Passes the next frames to `body`, interleaved with full scale ±1, and returns their number; 0 at the end, without
  /// calling `body`.
  func read<E: Error>(_ body: (Span<Float>) throws(E) -> Void) throws(E) -> Int

  /// The working copy, if it has the samples already when they are read; its head is still missing then.
  var copy: DecodedCopy? { get }

  /// Throws if the audio ended for a reason other than the end of the file, or if there was none.
  func end() throws(ProcessingError)

  /// Returns the warnings after reading everything. `notFinite` is the number of non-finite samples.
  func warnings(notFinite: Int64) -> [Warning]
}

extension MediaDecoding: WorkingSource {
  /// Waits for ffmpeg to end.
  func end() throws(ProcessingError) { try media { () throws(MediaError) in try finish() } }

  /// Returns the warnings from the headers and the decoder.
  func warnings(notFinite: Int64) -> [Warning] {
    Warning.ofImport(facts, frames: position, notFinite: notFinite)
  }
}

/// The audio of a file that libsndfile can decode but not seek in. The file is opened on the first read, inside the
/// fence.
final class SoundDecoding: WorkingSource {
  let facts: MediaFacts
  let path: String
  let copy: DecodedCopy? = nil
  private let limits: AudioLimits
  private var reader: AudioReader?
  private var failure: AudioIOError?
  private(set) var position: Int64 = 0

  /// Creates a source; nothing is read before `read`.
  init(path: String, facts: MediaFacts, limits: AudioLimits) {
    self.path = path
    self.facts = facts
    self.limits = limits
  }

  /// Opens the file on the first call.
  func read<E: Error>(_ body: (Span<Float>) throws(E) -> Void) throws(E) -> Int {
    guard var reader = open() else { return 0 }
    // If `body` throws, the work ends.
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

  /// Throws the error from opening the file, or `.empty` if it has no frames.
  func end() throws(ProcessingError) {
    if let failure { throw .audio(failure) }
    guard position > 0 else { throw .audio(.empty) }
  }

  /// Returns the warnings from the header and the decoder.
  func warnings(notFinite: Int64) -> [Warning] {
    guard let reader = reader.take() else { return [] }
    return Warning.ofReading(
      reader.map, claimedFrames: reader.claimedFrames, decodedFrames: position, nonFiniteSamples: notFinite,
      lostFrames: reader.lostFrames)
  }
}

/// Receives a cleaned recording's samples along with its working copy, and writes the file that users get.
protocol CleanedFile: AnyObject {
  /// Appends interleaved samples with full scale ±1.
  func append(_ samples: Span<Float>) throws(ProcessingError)
  /// Completes the file.
  func close() throws(ProcessingError)
}

extension MediaEncoding: CleanedFile {
  /// Passes the samples to ffmpeg.
  func append(_ samples: Span<Float>) throws(ProcessingError) {
    try media { () throws(MediaError) in try write(samples) }
  }

  /// Waits for ffmpeg to end.
  func close() throws(ProcessingError) { try media { () throws(MediaError) in try finish() } }
}

/// A file in the source's own format, written by libsndfile.
final class SoundEncoding: CleanedFile {
  private let path: String
  private let format: AudioFormat
  private let source: String
  private var writer: AudioWriter?
  private var quantised: [Int16] = []

  /// Creates a writer for the file at `path` in the format that `facts` describe. Nothing is read or written before the
  /// first samples.
  ///
  /// Throws `.unwritable` if libsndfile can't write such a file.
  init(path: String, facts: MediaFacts, of source: String) throws(ProcessingError) {
    guard let format = facts.soundFormat, format.isWritable else {
      throw .audio(.unwritable(facts.soundFormat ?? facts.workingFormat))
    }
    self.path = path
    self.format = format
    self.source = source
  }

  /// Creates the file on the first call.
  func append(_ samples: Span<Float>) throws(ProcessingError) {
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

  /// Makes the file durable.
  func close() throws(ProcessingError) {
    guard let writer = writer.take() else { throw .audio(.empty) }
    do { try writer.finish() } catch { throw .audio(error) }
  }
}
