import CSndfile
import Glibc
import Terms

/// An open libsndfile handle and its file. Use it from one thread at a time.
@safe
struct SndfileHandle: ~Copyable {
  private let file: OpaquePointer
  let info: SF_INFO
  /// The open file; nil if libsndfile uses callbacks.
  private let descriptor: Int32?
  /// Kept alive for libsndfile's callbacks; nil if it reads from a descriptor.
  private let virtualFile: AnyObject?

  /// Opens the file at `path` for decoding, or only the given pieces of it.
  init(reading path: String, _ pieces: [FilePiece]? = nil) throws(AudioIOError) {
    if let pieces {
      try self.init(reading: try PiecedFile(path: path, pieces: pieces))
    } else {
      try self.init(descriptorOf: path)
    }
  }

  /// Opens a descriptor instead of a name: libsndfile treats files named `.vox`, `.gsm`, or `.au` as headerless sound
  /// whatever their bytes, and extensions can be wrong.
  private init(descriptorOf path: String) throws(AudioIOError) {
    let descriptor = unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .system(operation: "open", errno: errno) }
    var info = SF_INFO()
    // libsndfile closes the descriptor, even if opening fails.
    guard let file = unsafe sf_open_fd(descriptor, Int32(SFM_READ), &info, 1) else { throw Self.failure() }
    unsafe self.file = file
    self.info = info
    (self.descriptor, virtualFile) = (descriptor, nil)
  }

  /// Opens `source` for decoding.
  private init(reading source: PiecedFile) throws(AudioIOError) {
    var info = SF_INFO()
    var callbacks = PiecedFile.callbacks()
    guard let file = unsafe sf_open_virtual(&callbacks, Int32(SFM_READ), &info, source.opaque) else {
      throw Self.failure()
    }
    unsafe self.file = file
    self.info = info
    (descriptor, virtualFile) = (nil, source)
  }

  /// Opens `target` for encoding.
  init(writing target: EncodedFile, info: SF_INFO) throws(AudioIOError) {
    var info = info
    var callbacks = EncodedFile.callbacks()
    guard let file = unsafe sf_open_virtual(&callbacks, Int32(SFM_WRITE), &info, target.opaque) else {
      throw Self.failure()
    }
    unsafe self.file = file
    self.info = info
    (descriptor, virtualFile) = (nil, target)
  }

  private static func failure() -> AudioIOError {
    unsafe .undecodable(code: sf_error(nil), reason: message(nil))
  }

  /// Writes what the encoder still buffers and corrects the header. `EncodedFile` records any failure.
  consuming func close() {}

  deinit { _ = withExtendedLifetime(virtualFile) { unsafe sf_close(file) } }

  /// Returns libsndfile's text for the last error of `file`, or of the last failed open.
  private static func message(_ file: OpaquePointer?) -> String {
    guard let text = unsafe sf_strerror(file) else { return "unknown error" }
    return unsafe String(cString: text)
  }

  var errorCode: Int32 { unsafe sf_error(file) }
  var errorMessage: String { unsafe Self.message(file) }

  /// Whether the number of frames that libsndfile claims is plausible.
  var hasKnownLength: Bool { (0..<Int64.max / 2).contains(info.frames) }

  /// Returns the number of frames read, 0 at the end. Use it only for integer codecs: samples of a transform codec that
  /// exceed full scale wrap around.
  func read(into buffer: borrowing PageBuffer<Int16>, frames: Int) -> Int {
    precondition(frames * Int(info.channels) <= buffer.count, "buffer too small")
    return unsafe buffer.withPointer { unsafe Int(sf_readf_short(file, $0, sf_count_t(frames))) }
  }

  /// Returns the number of frames read, 0 at the end. Samples are left-justified in 32 bits.
  func read(into buffer: borrowing PageBuffer<Int32>, frames: Int) -> Int {
    precondition(frames * Int(info.channels) <= buffer.count, "buffer too small")
    return unsafe buffer.withPointer { unsafe Int(sf_readf_int(file, $0, sf_count_t(frames))) }
  }

  /// Returns the number of frames read, 0 at the end. Full scale is ±1.
  func read(into buffer: borrowing PageBuffer<Float>, frames: Int) -> Int {
    precondition(frames * Int(info.channels) <= buffer.count, "buffer too small")
    return unsafe buffer.withPointer { unsafe Int(sf_readf_float(file, $0, sf_count_t(frames))) }
  }

  /// Returns the number of frames read, 0 at the end. Full scale is ±1.
  func read(into buffer: borrowing PageBuffer<Double>, frames: Int) -> Int {
    precondition(frames * Int(info.channels) <= buffer.count, "buffer too small")
    return unsafe buffer.withPointer { unsafe Int(sf_readf_double(file, $0, sf_count_t(frames))) }
  }

  func write(_ buffer: borrowing PageBuffer<Int16>, frames: Int) -> Int {
    unsafe buffer.withPointer { unsafe Int(sf_writef_short(file, $0, sf_count_t(frames))) }
  }

  /// Writes left-justified 32-bit samples.
  func write(_ buffer: borrowing PageBuffer<Int32>, frames: Int) -> Int {
    unsafe buffer.withPointer { unsafe Int(sf_writef_int(file, $0, sf_count_t(frames))) }
  }

  func write(_ buffer: borrowing PageBuffer<Float>, frames: Int) -> Int {
    unsafe buffer.withPointer { unsafe Int(sf_writef_float(file, $0, sf_count_t(frames))) }
  }

  func write(_ buffer: borrowing PageBuffer<Double>, frames: Int) -> Int {
    unsafe buffer.withPointer { unsafe Int(sf_writef_double(file, $0, sf_count_t(frames))) }
  }

  /// Seeks to a frame and returns it, or nil if libsndfile can't.
  func seek(to frame: Int64) -> Int64? {
    let found = unsafe sf_seek(file, frame, Int32(SEEK_SET))
    return found < 0 ? nil : found
  }

  /// Seeks to a frame of PCM and returns its place in the file, in bytes; nil if libsndfile can't get there or uses
  /// callbacks.
  func place(of frame: Int64) -> Int64? {
    guard let descriptor, seek(to: frame) == frame else { return nil }
    return Int64(lseek(descriptor, 0, SEEK_CUR))
  }

  /// Returns a text tag of this kind with its terminating zero, or nil if it is missing or empty.
  func text(_ kind: Int32) -> [CChar]? {
    guard let text = unsafe sf_get_string(file, kind), unsafe text[0] != 0 else { return nil }
    return unsafe Array(UnsafeBufferPointer(start: text, count: strlen(text) + 1))
  }

  /// Sets a text tag. Call this before writing the first sample.
  func setText(_ kind: Int32, _ text: [CChar]) { _ = unsafe sf_set_string(file, kind, text) }

  /// What each channel is, in libsndfile's numbers; empty if the file doesn't say.
  var channelMap: [Int32] {
    var map = [Int32](repeating: 0, count: Int(info.channels))
    let size = Int32(map.count * MemoryLayout<Int32>.size)
    return unsafe sf_command(file, Int32(SFC_GET_CHANNEL_MAP_INFO), &map, size) != 0 ? map : []
  }

  /// Sets what each channel is. Call this before writing the first sample. Returns false if the file can't say it.
  func setChannelMap(_ map: [Int32]) -> Bool {
    var map = map
    let size = Int32(map.count * MemoryLayout<Int32>.size)
    return unsafe !map.isEmpty && sf_command(file, Int32(SFC_SET_CHANNEL_MAP_INFO), &map, size) != 0
  }

  /// Sets the compression, 0 (best quality) … 1 (smallest file), for codecs that offer a choice.
  func setCompression(_ level: Double) {
    var level = level
    _ = unsafe sf_command(file, Int32(SFC_SET_COMPRESSION_LEVEL), &level, Int32(MemoryLayout<Double>.size))
  }

  func setVariableBitRate() {
    var mode = Int32(SF_BITRATE_MODE_VARIABLE)
    _ = unsafe sf_command(file, Int32(SFC_SET_BITRATE_MODE), &mode, Int32(MemoryLayout<Int32>.size))
  }

  static func canWrite(_ info: SF_INFO) -> Bool {
    var info = info
    return unsafe sf_format_check(&info) != 0
  }
}
