import Terms

// Reading on several cores. The recording is cut into segments of L frames. Each of W workers has its own reader,
// decodes the next segment that none has begun, and processes its samples at once, while they are in its core's cache.
// Only the results are passed on, in order:
//
//   worker 0   |--- 0 ---|--- 2 ---|--- 3 ---
//   worker 1   |----- 1 -----|--- 4 ---|
//
// At most two segments per worker are begun and not passed on, so memory is constant. Every worker decodes a little
// past its segment's end (the tail), and the next segment must begin with the same samples. If it doesn't, that
// segment's result is discarded and a single reader decodes the rest of the file from its start. This happens in a
// damaged file in which the decoder drops or repeats something, so that a seek lands in a different place. So the
// samples always equal those of an AudioReader.

/// Processes the samples of one segment after another, on the thread of the worker that decodes them.
package protocol SegmentWork: AnyObject, SendableMetatype {
  associatedtype Result: Sendable
  /// Begins a segment whose first frame is `frame`.
  func begin(at frame: Int64)
  /// Adds the segment's next samples, interleaved whole frames.
  func append(_ samples: Span<Int16>)
  /// Ends the segment. `tail`: the samples that follow it, as many as the reader was asked for unless the file ends.
  func finish(tail: Span<Int16>) -> Result
}

/// Reads a file from its first frame to its last, with several readers in parallel if that pays. The samples equal
/// those of an AudioReader.
///
/// Blocks. Use it from one thread at a time. Needs about 1 MB per worker besides its results.
package struct SegmentedReader<Work: SegmentWork>: ~Copyable {
  /// Minimum number of segments per worker.
  private static var segmentsPerWorker: Int64 { 2 }
  /// Minimum number of frames in a tail.
  private static var leastTail: Int64 { 1024 }

  /// The first frame of the next read.
  package private(set) var position: Int64 = 0
  /// Number of samples so far that were NaN or infinite; they are returned as 0.
  package private(set) var nonFiniteSamples: Int64 = 0
  /// Number of frames so far that couldn't be decoded although the file continues after them; they are returned as
  /// silence.
  package private(set) var lostFrames: Int64 = 0
  /// Samples so far that exceed full scale; see `AudioReader`.
  package private(set) var excess = Excess()
  /// Whether several readers are decoding.
  package private(set) var isParallel = false

  /// Decodes alone if that is better, or after two segments failed to match.
  private var reader: AudioReader
  private var queue: SegmentQueue<Work.Result>?
  private var segment = 0
  /// The samples that the current segment must begin with, and whether the file must end with them.
  private var tail: [Int16] = []
  private var endsWithTail = false
  private var isAtEnd = false

  /// Creates a reader of the file at `path`, which `reader` has just opened, with at most `workers` workers.
  ///
  /// Uses only one, and no work, if more would gain nothing: if the file is short, has many channels, or can't be
  /// decoded from its middle.
  /// - Parameters:
  ///   - segmentFrames: frames per segment.
  ///   - tailFrames: frames of tail that the work needs.
  ///   - work: makes a worker's work, on its thread.
  package init(
    _ reader: consuming AudioReader, path: String, workers: Int, segmentFrames: Int, tailFrames: Int = 0,
    work: @escaping @Sendable () -> Work
  ) {
    let pays = reader.format.channels <= 16 && reader.format.isCutAnywhere
    if workers > 1, pays,
      reader.claimedFrames ?? 0 >= Self.segmentsPerWorker * Int64(workers) * Int64(segmentFrames)
    {
      let queue = SegmentQueue<Work.Result>(limit: 2 * workers)
      let source = SegmentSource<Work>(
        path: path, map: reader.map, frames: Int64(segmentFrames), tailFrames: max(Self.leastTail, Int64(tailFrames)),
        work: work)
      for _ in 0..<workers where Threads.shared.run({ source.decode(into: queue) }) { isParallel = true }
      self.queue = queue
    }
    self.reader = reader
  }

  deinit { queue?.cancel() }

  /// Passes what follows to one of the two functions: samples, interleaved like those of `AudioReader.readInt16`, or
  /// the result of a segment's work.
  ///
  /// Returns the number of frames, or 0 at the end, without calling either. Throws what they throw.
  package mutating func read<E: Error>(
    _ samples: (Span<Int16>) throws(E) -> Void, result: (Work.Result) throws(E) -> Void
  ) throws(E) -> Int {
    while isParallel, !isAtEnd, let queue {
      let next = queue.take()
      guard matchesTail(next) else {
        decodeAlone()
        break
      }
      guard let next, let made = next.result else {
        isAtEnd = true
        break
      }
      segment += 1
      position += next.frames
      nonFiniteSamples += next.nonFiniteSamples
      lostFrames += next.lostFrames
      excess.add(next.excess)
      (tail, endsWithTail) = (next.tail, next.endsFile)
      try result(made)
      return Int(next.frames)
    }
    if isAtEnd { return 0 }
    let got = try reader.readInt16(samples)
    (position, nonFiniteSamples, lostFrames) = (reader.position, reader.nonFiniteSamples, reader.lostFrames)
    excess = reader.excess
    return got
  }

  /// Whether a segment begins, or the file ends, as the previous one's tail says.
  private func matchesTail(_ next: DecodedSegment<Work.Result>?) -> Bool {
    // A worker that couldn't open the file isn't a file without sound.
    guard segment > 0 else { return next != nil }
    guard let next else { return tail.isEmpty }
    if endsWithTail, next.frames * Int64(reader.format.channels) != tail.count { return false }
    return next.head.starts(with: tail)
  }

  /// Continues with a single reader, after the last samples known to be right.
  private mutating func decodeAlone() {
    queue?.cancel()
    isParallel = false
    while reader.position < position {
      let frames = Int(min(position - reader.position, Int64(reader.framesPerRead)))
      if reader.readInt16(upTo: frames, { _ in }) == 0 { break }
    }
  }
}

extension AudioFormat {
  /// Whether it's certain that decoding from the middle gives the same samples, and quick to get there.
  fileprivate var isCutAnywhere: Bool { isSeekable && (codec.isPlain || codec.isSlow) }
}

/// The parameters shared by all workers.
private struct SegmentSource<Work: SegmentWork>: Sendable {
  let path: String
  let map: SoundMap
  let frames: Int64
  let tailFrames: Int64
  let work: @Sendable () -> Work

  /// Decodes segments until the file ends or the queue is canceled.
  func decode(into queue: SegmentQueue<Work.Result>) {
    // The reader that made the map has already checked the limits.
    guard var reader = try? AudioReader(path: path, limits: .none, map: map) else {
      if let number = queue.begin() { queue.put(nil, number) }
      return
    }
    let work = work()
    while let number = queue.begin() {
      let segment = decode(from: Int64(number) * frames, with: work, &reader, queue)
      let isOver = segment == nil
      queue.put(segment, number)
      if isOver { return }
    }
  }

  /// Decodes a segment and its tail. Returns nil if the file ends before it or the queue is canceled.
  private func decode(
    from start: Int64, with work: Work, _ reader: inout AudioReader, _ queue: SegmentQueue<Work.Result>
  ) -> DecodedSegment<Work.Result>? {
    do { try reader.seek(to: start) } catch { return nil }
    let (nonFinite, lost) = (reader.nonFiniteSamples, reader.lostFrames)
    reader.excess = Excess()
    let headCount = Int(tailFrames) * reader.format.channels
    var segment = DecodedSegment<Work.Result>()
    work.begin(at: start)
    let isWhole = decode(to: start + frames, &reader, queue) { samples in
      segment.head.append(samples, upTo: headCount)
      work.append(samples)
    }
    segment.frames = reader.position - start
    guard segment.frames > 0, !queue.isCancelled else { return nil }
    segment.nonFiniteSamples = reader.nonFiniteSamples - nonFinite
    segment.lostFrames = reader.lostFrames - lost
    segment.excess = reader.excess
    let goesOn =
      isWhole
      && decode(to: start + frames + tailFrames, &reader, queue) { samples in
        segment.tail.append(samples, upTo: headCount)
      }
    segment.endsFile = !goesOn
    segment.result = work.finish(tail: segment.tail.span)
    return segment
  }

  /// Decodes up to `end`. Returns false if the file ends before.
  private func decode(
    to end: Int64, _ reader: inout AudioReader, _ queue: SegmentQueue<Work.Result>, _ body: (Span<Int16>) -> Void
  ) -> Bool {
    while reader.position < end, !queue.isCancelled {
      guard reader.readInt16(upTo: Int(min(end - reader.position, .max)), body) > 0 else { return false }
    }
    return true
  }
}

extension [Int16] {
  /// Appends samples as long as there are fewer than `limit`.
  fileprivate mutating func append(_ samples: Span<Int16>, upTo limit: Int) {
    for index in 0..<Swift.min(samples.count, Swift.max(limit - count, 0)) { append(samples[index]) }
  }
}
