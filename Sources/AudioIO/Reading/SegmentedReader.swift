import Dispatch
import Synchronization

// Decoding on several cores. The recording is cut into segments of L frames; of W workers, each with a reader of its
// own, worker w decodes the segments w, w + W, w + 2W …, and the samples are handed on in order as they come:
//
//   worker 0   |--- 0 ---|--- 2 ---|--- 4 ---
//   worker 1   |--- 1 ---|--- 3 ---|
//
// A worker may be one segment ahead of what was handed on, so memory is constant and what has been handed on grows
// steadily. Every worker decodes a little past its segment's end (the tail); the next segment has to begin with the
// same samples. Where it doesn't (a damaged file of which the decoder drops or repeats something: where it continues
// after a seek is then another place), nothing of that segment is handed on: from there on the file is decoded by one
// reader from its start. So the samples are those of an AudioReader whatever the file.

/// Decodes a file from its first frame to its last, with several readers at once where that pays; the samples are an
/// AudioReader's.
///
/// Confined: one caller at a time; blocks. Takes 5 MB for each worker.
package struct SegmentedReader: ~Copyable {
  /// Samples of a segment: 24 s of 44.1 kHz stereo.
  private static let segmentSamples = 1 << 21
  /// Segments there must be for each worker.
  private static let segmentsPerWorker: Int64 = 2
  /// Frames of a tail.
  private static let tailFrames: Int64 = 1024

  /// The frame that the next read begins with.
  package private(set) var position: Int64 = 0
  /// Samples so far that were NaN or infinite; they were given as 0.
  package private(set) var nonFiniteSamples: Int64 = 0
  /// Frames so far that can't be decoded, though the file goes on behind them; they were given as silence.
  package private(set) var lostFrames: Int64 = 0
  /// Whether several readers are at work.
  package private(set) var isParallel = false

  /// Decodes alone where that is better, and where two segments don't meet.
  private var reader: AudioReader
  private let channels: Int
  private var queues: [ChunkQueue] = []
  private var segment = 0
  /// What the present segment has to begin with, as far as that hasn't been seen yet.
  private var tail: [Int16] = []
  /// Whether the file ends with the tail.
  private var endsWithTail = false
  private var isAtEnd = false

  /// Decodes the file at `path`, which `reader` has just opened, with so many workers at the most.
  ///
  /// There is only one where more would gain nothing: for what is not compressed, or short, or has more channels than a
  /// segment has room for. `segmentFrames` is for tests.
  package init(_ reader: consuming AudioReader, path: String, workers: Int, segmentFrames: Int? = nil) {
    let frames = Int64(segmentFrames ?? Self.segmentSamples / reader.format.channels)
    channels = reader.format.channels
    let pays = channels <= 16 && reader.format.codec.isSlow
    if workers > 1, pays, reader.claimedFrames ?? 0 >= Self.segmentsPerWorker * Int64(workers) * frames {
      let source = SegmentSource(path: path, map: reader.map, frames: frames, tailFrames: Self.tailFrames)
      let limit = Int(frames) / reader.framesPerRead + 4
      isParallel = true
      queues = (0..<workers).map { _ in ChunkQueue(limit: limit, samples: reader.framesPerRead * reader.format.channels)
      }
      for (number, queue) in queues.enumerated() {
        DispatchQueue(label: "decoder \(number)").async {
          source.decode(from: number, step: workers, into: queue)
        }
      }
    }
    self.reader = reader
  }

  deinit { for queue in queues { queue.cancel() } }

  /// Gives the next samples to `body`, interleaved, as `AudioReader.readInt16` does.
  ///
  /// Returns the number of frames, 0 at the end, where `body` isn't called. Throws what `body` throws.
  package mutating func readInt16<E: Error>(_ body: (Span<Int16>) throws(E) -> Void) throws(E) -> Int {
    while isParallel, !isAtEnd {
      let queue = queues[segment % queues.count]
      var chunk = queue.take()
      defer { queue.giveBack(&chunk.samples) }
      switch chunk.kind {
      case .samples:
        guard meets(chunk) else {
          decodeAlone()
          break
        }
        let frames = chunk.count / channels
        position += Int64(frames)
        nonFiniteSamples += chunk.nonFiniteSamples
        lostFrames += chunk.lostFrames
        try body(chunk.samples.span.extracting(0..<chunk.count))
        return frames
      case .tail: tail += chunk.samples.prefix(chunk.count)
      case .endOfSegment(let endsFile):
        segment += 1
        endsWithTail = endsFile
      case .endOfFile:
        if tail.isEmpty { isAtEnd = true } else { decodeAlone() }
      }
    }
    if isAtEnd { return 0 }
    let got = try reader.readInt16(body)
    (position, nonFiniteSamples, lostFrames) = (reader.position, reader.nonFiniteSamples, reader.lostFrames)
    return got
  }

  /// Whether the chunk begins with what is left of the tail.
  private mutating func meets(_ chunk: Chunk) -> Bool {
    if endsWithTail, chunk.count > tail.count { return false }
    let count = min(tail.count, chunk.count)
    guard count > 0 else { return true }
    defer { tail.removeFirst(count) }
    return chunk.samples.prefix(count).elementsEqual(tail.prefix(count))
  }

  /// Goes on with one reader, from where the workers' samples can be trusted.
  private mutating func decodeAlone() {
    for queue in queues { queue.cancel() }
    isParallel = false
    while reader.position < position {
      let frames = Int(min(position - reader.position, Int64(reader.framesPerRead)))
      if reader.readInt16(upTo: frames, { _ in }) == 0 { break }
    }
  }
}

extension AudioCodec {
  /// Whether decoding takes far longer than all that is done with the samples.
  package var isSlow: Bool {
    switch self {
    case .flacS8, .flacS16, .flacS24, .vorbis, .opus, .mp3: true
    default: false
    }
  }
}

/// What all workers know.
private struct SegmentSource: Sendable {
  let path: String
  let map: SoundMap
  let frames: Int64
  let tailFrames: Int64

  /// Decodes every `step`th segment until the file ends or nobody wants more.
  func decode(from first: Int, step: Int, into queue: ChunkQueue) {
    // The limits were those of the reader that the map comes from.
    guard var reader = try? AudioReader(path: path, limits: .none, map: map) else { return queue.put(.endOfFile) }
    var start = Int64(first) * frames
    while !queue.isCancelled {
      let end = start + frames
      do { try reader.seek(to: start) } catch { return queue.put(.endOfFile) }
      guard decode(to: end, as: .samples, from: &reader, into: queue) else { return queue.put(.endOfFile) }
      let isWhole = decode(to: end + tailFrames, as: .tail, from: &reader, into: queue)
      queue.put(.endOfSegment(endsFile: !isWhole))
      start += Int64(step) * frames
    }
  }

  /// Whether the file goes on to `end`.
  private func decode(
    to end: Int64, as kind: Chunk.Kind, from reader: inout AudioReader, into queue: ChunkQueue
  ) -> Bool {
    while reader.position < end {
      guard var samples = queue.room() else { return true }
      let (nonFinite, lost) = (reader.nonFiniteSamples, reader.lostFrames)
      let got = reader.readInt16(upTo: Int(min(end - reader.position, .max))) { span in
        var target = samples.mutableSpan
        for index in span.indices { target[index] = span[index] }
      }
      guard got > 0 else {
        queue.giveBack(&samples)
        return false
      }
      queue.put(
        Chunk(
          kind: kind, samples: samples, count: got * reader.format.channels,
          nonFiniteSamples: reader.nonFiniteSamples - nonFinite, lostFrames: reader.lostFrames - lost))
    }
    return true
  }
}

/// Some samples on their way from a worker, or a mark between them.
private struct Chunk: Sendable {
  enum Kind: Sendable {
    case samples, tail
    case endOfSegment(endsFile: Bool)
    case endOfFile
  }

  var kind: Kind
  /// Only the first `count` mean something.
  var samples: [Int16] = []
  var count = 0
  var nonFiniteSamples: Int64 = 0
  var lostFrames: Int64 = 0
}

/// What one worker has decoded and nobody has taken yet. The arrays go round and are never copied.
private final class ChunkQueue: Sendable {
  private struct State {
    var filled: [Chunk] = []
    var free: [[Int16]]
    var isCancelled = false
  }

  private let state: Mutex<State>
  private let ready = DispatchSemaphore(value: 0)
  private let rooms = DispatchSemaphore(value: 0)

  /// `limit` arrays of so many samples.
  init(limit: Int, samples: Int) {
    state = Mutex(State(free: (0..<limit).map { _ in [Int16](repeating: 0, count: samples) }))
    // One by one: a semaphore must not end below the value that it was made with.
    for _ in 0..<limit { rooms.signal() }
  }

  var isCancelled: Bool { state.withLock { $0.isCancelled } }

  /// An array to fill; waits until there is one. nil where nobody wants it any more.
  func room() -> [Int16]? {
    rooms.wait()
    let array = state.withLock { $0.isCancelled ? nil : $0.free.popLast() }
    // For the next time that is asked after a cancellation.
    if array == nil { rooms.signal() }
    return array
  }

  func put(_ chunk: Chunk) {
    state.withLock { $0.filled.append(chunk) }
    ready.signal()
  }

  func put(_ kind: Chunk.Kind) { put(Chunk(kind: kind)) }

  /// The next chunk; waits until there is one.
  func take() -> Chunk {
    ready.wait()
    return state.withLock { $0.filled.removeFirst() }
  }

  /// Takes the array out of the caller's hands, so that the next to fill it need not copy it.
  func giveBack(_ samples: inout [Int16]) {
    guard !samples.isEmpty else { return }
    var array: [Int16] = []
    swap(&array, &samples)
    state.withLock { [array] in $0.free.append(array) }
    rooms.signal()
  }

  /// Ends the worker at its next chunk.
  func cancel() {
    state.withLock { $0.isCancelled = true }
    rooms.signal()
  }
}
