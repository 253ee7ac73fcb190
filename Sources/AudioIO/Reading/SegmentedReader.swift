import Dispatch
import Synchronization

// Decoding on several cores. The recording is cut into segments of L frames. Each of W workers has its own reader;
// worker w decodes segments w, w + W, w + 2W …, and the samples are delivered in order:
//
//   worker 0   |--- 0 ---|--- 2 ---|--- 4 ---
//   worker 1   |--- 1 ---|--- 3 ---|
//
// A worker may be at most one segment ahead of delivery, so memory is constant and delivery is steady. Every worker
// decodes a little past its segment's end (the tail), and the next segment must begin with the same samples. If it
// doesn't, none of that segment is delivered and a single reader decodes the rest of the file from its start. This
// happens in a damaged file in which the decoder drops or repeats something, so that a seek lands in a different place.
// So the samples always equal those of an AudioReader.

/// Decodes a file from its first frame to its last, with several readers in parallel if that pays. The samples equal
/// those of an AudioReader.
///
/// Blocks. Use it from one thread at a time. Needs 5 MB per worker.
package struct SegmentedReader: ~Copyable {
  /// Samples per segment: 24 s of 44.1 kHz stereo.
  private static let segmentSamples = 1 << 21
  /// Minimum number of segments per worker.
  private static let segmentsPerWorker: Int64 = 2
  /// Frames in a tail.
  private static let tailFrames: Int64 = 1024

  /// The first frame of the next read.
  package private(set) var position: Int64 = 0
  /// Number of samples so far that were NaN or infinite; they are returned as 0.
  package private(set) var nonFiniteSamples: Int64 = 0
  /// Number of frames so far that couldn't be decoded although the file continues after them; they are returned as
  /// silence.
  package private(set) var lostFrames: Int64 = 0
  /// Whether several readers are decoding.
  package private(set) var isParallel = false

  /// Decodes alone if that is better, or after two segments failed to match.
  private var reader: AudioReader
  private let channels: Int
  private var queues: [ChunkQueue] = []
  private var segment = 0
  /// The samples that the current segment must begin with and that have not been compared yet.
  private var tail: [Int16] = []
  /// Whether the file ends with the tail.
  private var endsWithTail = false
  private var isAtEnd = false

  /// Creates a reader of the file at `path`, which `reader` has just opened, with at most `workers` workers.
  ///
  /// Uses only one if more would gain nothing: if the file is uncompressed or short, or has more channels than fit a
  /// segment. `segmentFrames` is for tests.
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

  /// Passes the next samples to `body`, interleaved, like `AudioReader.readInt16`.
  ///
  /// Returns the number of frames, or 0 at the end, without calling `body`. Throws what `body` throws.
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

  /// Whether the chunk begins with the rest of the tail.
  private mutating func meets(_ chunk: Chunk) -> Bool {
    if endsWithTail, chunk.count > tail.count { return false }
    let count = min(tail.count, chunk.count)
    guard count > 0 else { return true }
    defer { tail.removeFirst(count) }
    return chunk.samples.prefix(count).elementsEqual(tail.prefix(count))
  }

  /// Continues with a single reader, after the last samples known to be right.
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
  /// Whether decoding takes far longer than processing the samples.
  package var isSlow: Bool {
    switch self {
    case .flacS8, .flacS16, .flacS24, .vorbis, .opus, .mp3: true
    default: false
    }
  }
}

/// The parameters shared by all workers.
private struct SegmentSource: Sendable {
  let path: String
  let map: SoundMap
  let frames: Int64
  let tailFrames: Int64

  /// Decodes every `step`th segment until the file ends or the queue is canceled.
  func decode(from first: Int, step: Int, into queue: ChunkQueue) {
    // The reader that made the map has already checked the limits.
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

  /// Decodes up to `end`. Returns false if the file ends before.
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

/// Samples from a worker, or a mark between them.
private struct Chunk: Sendable {
  enum Kind: Sendable {
    case samples, tail
    case endOfSegment(endsFile: Bool)
    case endOfFile
  }

  var kind: Kind
  /// Only the first `count` samples are valid.
  var samples: [Int16] = []
  var count = 0
  var nonFiniteSamples: Int64 = 0
  var lostFrames: Int64 = 0
}

/// The chunks that one worker has decoded and that have not been taken. The arrays circulate without being copied.
private final class ChunkQueue: Sendable {
  private struct State {
    var filled: [Chunk] = []
    var free: [[Int16]]
    var isCancelled = false
  }

  private let state: Mutex<State>
  private let ready = DispatchSemaphore(value: 0)
  private let rooms = DispatchSemaphore(value: 0)

  /// Creates a queue with `limit` arrays of `samples` samples each.
  init(limit: Int, samples: Int) {
    state = Mutex(State(free: (0..<limit).map { _ in [Int16](repeating: 0, count: samples) }))
    // Signals one by one: a semaphore must not be destroyed below its initial value.
    for _ in 0..<limit { rooms.signal() }
  }

  var isCancelled: Bool { state.withLock { $0.isCancelled } }

  /// Returns an array to fill, waiting until one is free, or nil after cancellation.
  func room() -> [Int16]? {
    rooms.wait()
    let array = state.withLock { $0.isCancelled ? nil : $0.free.popLast() }
    // Keeps the semaphore signaled for later calls after a cancellation.
    if array == nil { rooms.signal() }
    return array
  }

  func put(_ chunk: Chunk) {
    state.withLock { $0.filled.append(chunk) }
    ready.signal()
  }

  func put(_ kind: Chunk.Kind) { put(Chunk(kind: kind)) }

  /// Removes and returns the next chunk, waiting until there is one.
  func take() -> Chunk {
    ready.wait()
    return state.withLock { $0.filled.removeFirst() }
  }

  /// Takes the array from the caller, so that filling it again doesn't copy it.
  func giveBack(_ samples: inout [Int16]) {
    guard !samples.isEmpty else { return }
    var array: [Int16] = []
    swap(&array, &samples)
    state.withLock { [array] in $0.free.append(array) }
    rooms.signal()
  }

  /// Stops the worker at its next chunk.
  func cancel() {
    state.withLock { $0.isCancelled = true }
    rooms.signal()
  }
}
