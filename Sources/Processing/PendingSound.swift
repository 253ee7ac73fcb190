/// Samples given to the denoiser that it hasn't returned yet, in a ring.
struct PendingSound {
  private var samples: [Float] = []
  /// Where the oldest sample is.
  private var start = 0
  /// Number of samples.
  private var count = 0

  /// Appends samples of whole frames.
  mutating func append(_ more: Span<Float>) {
    if count + more.count > samples.count { grow(to: count + 2 * more.count) }
    let end = start + count, place = end < samples.count ? end : end - samples.count
    let first = min(more.count, samples.count - place)
    Self.copy(more.extracting(0..<first), into: &samples, at: place)
    Self.copy(more.extracting(first..<more.count), into: &samples, at: 0)
    count += more.count
  }

  /// Passes the oldest `wanted` samples to `body`, in one or two parts of whole frames, then removes them.
  mutating func take<E: Error>(_ wanted: Int, _ body: (Span<Float>) throws(E) -> Void) throws(E) {
    precondition(wanted <= count, "no more than waits is taken")
    let first = min(wanted, samples.count - start)
    if first > 0 { try body(samples.span.extracting(start..<(start + first))) }
    if first < wanted { try body(samples.span.extracting(0..<(wanted - first))) }
    start = first < wanted ? wanted - first : start + wanted
    count -= wanted
  }

  private mutating func grow(to capacity: Int) {
    let first = min(count, samples.count - start)
    var all = [Float](repeating: 0, count: capacity)
    Self.copy(samples.span.extracting(start..<(start + first)), into: &all, at: 0)
    Self.copy(samples.span.extracting(0..<(count - first)), into: &all, at: first)
    samples = all
    start = 0
  }

  @inline(__always)
  private static func copy(_ source: Span<Float>, into samples: inout [Float], at place: Int) {
    var all = samples.mutableSpan
    var target = all._mutatingExtracting(place..<(place + source.count))
    let count = target.count
    precondition(source.count == count)
    for index in 0..<count { target[index] = source[index] }
  }
}
