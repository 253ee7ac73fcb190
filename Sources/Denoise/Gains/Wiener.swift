// The Wiener gain on the a-priori SNR of PriorSNR.swift:
//
//   G = ξ / (1 + ξ)
//
// Source: Scalart & Filho, "Speech enhancement based on a priori signal to noise estimation", ICASSP 1996. It differs
// from the log-spectral amplitude in that a bin's own power counts only through ξ: less musical noise, but weak speech
// is suppressed slightly more.
enum Wiener {
  /// Returns G, at most 1.
  @inline(__always)
  static func gain(prior: Float) -> Float { prior / (1 + prior) }
}
