import CSndfile
import Glibc

// What libsndfile 1.2.0 makes of two kinds of damage, and what is done about it, without touching the file: it is given
// other bytes to read for the header.
//
//   WAV whose data size is 0, left by a recorder that crashed     nothing is decoded. It is told the true size.
//   MP3 without a frame that counts the others (see MPEGSurvey)   a guess of the first frames' bit rate is decoded: 82 s
//                                                                 of 600. A frame with the true count is put first.

/// A file with other bytes in place of its first ones, for libsndfile to read.
@safe
final class MendedFile {
  private let descriptor: Int32
  private let head: [UInt8]
  /// Where in the file what follows the head begins.
  private let tailOffset: Int64
  private let length: Int64
  private var position: Int64 = 0

  /// nil where the file needs no mending. Reads all of an MP3 file without a count.
  static func ifNeeded(_ header: ContainerHeader, path: String) throws(AudioIOError) -> MendedFile? {
    switch header.container {
    case .wav:
      guard header.declaredDataBytes == 0, let present = header.presentDataBytes, present > 0,
        let dataOffset = header.dataOffset, dataOffset < 1 << 20
      else { return nil }
      var file = try ByteWindow(path: path)
      guard let start = try file.bytes(at: 0, count: Int(dataOffset) - 4) else { return nil }
      let size = UInt32(clamping: present)
      let sizeBytes = (0..<4).map { UInt8(truncatingIfNeeded: size >> (8 * UInt32($0))) }
      return try MendedFile(path: path, head: Array(start) + sizeBytes, tailOffset: dataOffset)
    case .mp3:
      let survey = try MPEGSurvey(path: path, onlyWithoutCount: true)
      guard let count = survey.countingFrame else { return nil }
      return try MendedFile(path: path, head: count, tailOffset: survey.firstOffset)
    default: return nil
    }
  }

  private init(path: String, head: [UInt8], tailOffset: Int64) throws(AudioIOError) {
    descriptor = unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .system(operation: "open", errno: errno) }
    self.head = head
    self.tailOffset = tailOffset
    length = Int64(head.count) + max(Int64(lseek(descriptor, 0, SEEK_END)) - tailOffset, 0)
  }

  deinit { close(descriptor) }

  private func read(_ target: UnsafeMutableRawBufferPointer) -> Int {
    var done = 0
    if position < head.count {
      let part = head[Int(position)...].prefix(target.count)
      unsafe target.copyBytes(from: part)
      done = part.count
    }
    while done < target.count {
      let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: target[done...])
      let offset = tailOffset + position + Int64(done) - Int64(head.count)
      let got = unsafe pread(descriptor, rest.baseAddress, rest.count, off_t(offset))
      guard got > 0 else { break }
      done += got
    }
    position += Int64(done)
    return done
  }

  private func seek(_ offset: Int64, from whence: Int32) -> Int64 {
    let base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? position : length
    let (sum, overflow) = base.addingReportingOverflow(offset)
    guard !overflow, sum >= 0 else { return -1 }
    position = sum
    return sum
  }

  /// libsndfile's way to a file that is not its own; the pointer it passes on is `opaque`.
  static func callbacks() -> SF_VIRTUAL_IO {
    unsafe SF_VIRTUAL_IO(
      get_filelen: { unsafe MendedFile.of($0).length },
      seek: { offset, whence, file in unsafe MendedFile.of(file).seek(offset, from: whence) },
      read: { bytes, count, file in
        sf_count_t(unsafe MendedFile.of(file).read(UnsafeMutableRawBufferPointer(start: bytes, count: Int(count))))
      },
      write: { _, _, _ in 0 },
      tell: { unsafe MendedFile.of($0).position })
  }

  /// Valid as long as the object is kept alive.
  @unsafe
  var opaque: UnsafeMutableRawPointer { unsafe Unmanaged.passUnretained(self).toOpaque() }

  private static func of(_ opaque: UnsafeMutableRawPointer?) -> MendedFile {
    guard let opaque = unsafe opaque else { preconditionFailure("libsndfile lost its file") }
    return unsafe Unmanaged<MendedFile>.fromOpaque(opaque).takeUnretainedValue()
  }
}
