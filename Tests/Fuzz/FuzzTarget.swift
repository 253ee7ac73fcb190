// The entry points that libFuzzer calls (deploy/fuzz). These files are compiled together with the sources of HTTP as
// one module, and Labels as another, so that the fuzzer covers the parsers; SwiftPM doesn't build them.
//
// An input is exactly what a client would send, so the corpus stays readable. How it's split into reads is derived from
// the bytes themselves.

import Glibc

/// A parser under attack. `run` stops the process if a property doesn't hold.
struct FuzzTarget: Sendable {
  var name: String
  var run: @Sendable ([UInt8]) -> Void

  static let all = [
    FuzzTarget(name: "request", run: fuzzRequest), FuzzTarget(name: "chunked", run: fuzzChunked),
    FuzzTarget(name: "multipart", run: fuzzMultipart), FuzzTarget(name: "values", run: fuzzValues),
    FuzzTarget(name: "labels", run: fuzzLabels), FuzzTarget(name: "embedded", run: fuzzEmbedded),
    FuzzTarget(name: "boxes", run: fuzzBoxes),
  ]

  /// The target that deploy/fuzz requests.
  static let chosen: FuzzTarget = {
    let name = unsafe getenv("FUZZ_TARGET").map { unsafe String(cString: $0) } ?? ""
    guard let target = all.first(where: { $0.name == name }) else {
      fatalError("FUZZ_TARGET is one of \(all.map(\.name).joined(separator: ", ")), not “\(name)”")
    }
    return target
  }()
}

/// The name and arguments that libFuzzer expects.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  FuzzTarget.chosen.run(unsafe Array(UnsafeBufferPointer(start: bytes, count: count)))
  return 0
}

/// Stops if a property doesn't hold.
func check(_ holds: Bool, _ property: @autoclosure () -> String) {
  if !holds { fatalError(property()) }
}

extension [UInt8] {
  /// The input split into reads in several ways: single bytes, and twice in pieces whose sizes follow from the bytes.
  var splits: [[[UInt8]]] {
    var seed = UInt64(count)
    for byte in self { seed = (seed ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
    return [map { [$0] }, pieces(upTo: 7, &seed), pieces(upTo: 64, &seed)]
  }

  private func pieces(upTo longest: Int, _ seed: inout UInt64) -> [[UInt8]] {
    var pieces: [[UInt8]] = []
    var start = 0
    while start < count {
      seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      let end = Swift.min(count, start + 1 + Int(seed >> 33) % longest)
      pieces.append(Array(self[start..<end]))
      start = end
    }
    return pieces
  }
}
