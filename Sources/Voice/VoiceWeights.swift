import CCrypto
import CVoice
import Glibc

// The file of weights, which deploy/voice-weights writes:
//
//    0  "SWVW", then 1 as a byte (the version of this format) and three zeros
//    8  the version of the weights: 24 bytes of text, filled up with zeros
//   32  the SHA-256 of the rest
//   64  the weights as IEEE 754 binary16, little-endian, in the order that CVoice's networks.h says

/// The networks' weights, in single precision: 8.5 MB.
@safe package final class VoiceWeights: @unchecked Sendable {  // never changed
  /// The version that this program needs.
  package static let version = "deepfilternet3-1"
  /// The length of the file in bytes.
  package static let fileBytes = 64 + 2 * count
  /// The number of weights.
  package static let count = Int(voice_weight_count)

  private static let start = Array("SWVW".utf8) + [1, 0, 0, 0]

  private let memory: UnsafeMutablePointer<Float>

  /// Reads the file at `path`, which takes 10 ms, and checks it.
  package convenience init(path: String) throws(VoiceError) {
    try self.init(MappedWeights(path: path))
  }

  /// Converts weights that are mapped already, and checks them.
  package init(_ file: borrowing MappedWeights) throws(VoiceError) {
    let memory = UnsafeMutablePointer<Float>.allocate(capacity: Self.count)
    unsafe self.memory = memory
    let path = file.path
    try unsafe file.withBytes { (bytes: UnsafeRawBufferPointer) throws(VoiceError) in
      guard bytes.count >= 64, unsafe bytes.prefix(4).elementsEqual(Self.start.prefix(4)) else {
        throw .otherVersion(path: path, found: nil)
      }
      let name = unsafe String(decoding: bytes[8..<32].prefix { $0 != 0 }, as: UTF8.self)
      guard unsafe bytes.prefix(8).elementsEqual(Self.start), name == Self.version else {
        throw .otherVersion(path: path, found: name)
      }
      var digest = [UInt8](repeating: 0, count: 32)
      let content = unsafe UnsafeRawBufferPointer(rebasing: bytes[64...])
      unsafe _ = EVP_Digest(content.baseAddress, content.count, &digest, nil, EVP_sha256(), nil)
      guard bytes.count == Self.fileBytes, unsafe bytes[32..<64].elementsEqual(digest),
        let first = content.baseAddress
      else { throw .damaged(path: path) }
      unsafe voice_expand(memory, first.assumingMemoryBound(to: UInt8.self), Self.count)
    }
  }

  /// Creates weights from `count` numbers. For tests.
  package init(_ numbers: [Float]) {
    precondition(numbers.count == Self.count, "as many weights as the networks have")
    let memory = UnsafeMutablePointer<Float>.allocate(capacity: Self.count)
    unsafe memory.initialize(from: numbers, count: Self.count)
    unsafe self.memory = memory
  }

  deinit { unsafe memory.deallocate() }

  /// The address of the first weight.
  @unsafe var address: UnsafePointer<Float> { unsafe UnsafePointer(memory) }
}

/// A file of weights, mapped for reading.
@safe package struct MappedWeights: ~Copyable, @unchecked Sendable {  // never changed
  /// Where the file is.
  package let path: String
  private let bytes: UnsafeRawBufferPointer

  /// Maps the file without reading it.
  package init(path: String) throws(VoiceError) {
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw .missing(path: path) }
    defer { close(file) }
    var status = stat()
    guard unsafe fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size > 0 else {
      throw .damaged(path: path)
    }
    // No more than is needed, however long the file is.
    let count = min(Int(status.st_size), VoiceWeights.fileBytes + 1)
    let address = unsafe mmap(nil, count, PROT_READ, MAP_PRIVATE, file, 0)
    guard let address = unsafe address, unsafe address != MAP_FAILED else { throw .damaged(path: path) }
    self.path = path
    unsafe bytes = UnsafeRawBufferPointer(start: address, count: count)
  }

  deinit { unsafe _ = munmap(UnsafeMutableRawPointer(mutating: bytes.baseAddress), bytes.count) }

  fileprivate func withBytes<E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> Void) throws(E) {
    try unsafe body(bytes)
  }
}
