import CLinux
import Glibc
import Terms

// The working copy of a file that ffmpeg decodes is written by ffmpeg itself. Decoding 600 s of stereo takes ffmpeg
// 0.54 s of processor time that way. If instead it wrote 212 MB into a pipe, and this process read them and wrote them
// to the file, that would take this process 0.15 s more.
//
// Nothing holds ffmpeg back while it writes to a file. So its reports of progress, one every 20 ms, go to a pipe of
// 4 KB, which is read only when everything in the file has been read. If nothing reads them, ffmpeg 5.1 stops after
// eighteen, with 141 MB of decoded AAC. Newer versions report in a thread of their own and don't wait; there only the
// fence's limit for the size of the file holds.

/// A file into which ffmpeg writes the samples that it decodes, read here as it grows. Blocks. Use it from one thread
/// at a time.
@safe
package final class DecodedCopy {
  private let run: FencedRun
  /// The offset of the program's first byte.
  private let start: Int
  /// The offset of the next byte to read.
  private var place: Int
  /// Everything before this is on its way to the disk.
  private var startedSize = 0
  /// Whether the program had closed its standard output before the last read, so nothing more will be written.
  private var isOver = false
  /// The errno of the first read that failed.
  private var failure: Int32?

  /// Begins to read what `run`, which was started with this offset, writes.
  init(of run: FencedRun, from start: Int) {
    self.run = run
    self.start = start
    place = start
  }

  /// How long to wait for more, in milliseconds. In that time, ffmpeg writes about 3 MB of decoded AAC, which are still
  /// in the processor's cache when they are read.
  private static let pause: Int32 = 10

  /// Reads numbers in their in-memory representation, waiting until there are enough or the program ends. Returns how
  /// many, which is less than the array's count only at the end.
  func read(into numbers: inout [Float]) -> Int {
    let bytes = unsafe numbers.withUnsafeMutableBytes { buffer in
      var done = 0
      while done < buffer.count, failure == nil {
        let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
        let got = unsafe pread(run.outputFile, rest.baseAddress, rest.count, off_t(place + done))
        if got > 0 {
          done += got
        } else if got == 0 {
          guard !isOver else { break }
          isOver = run.closesOutput(within: Self.pause)
        } else if errno != EINTR {
          failure = errno
        }
      }
      return done
    }
    place += bytes
    startWriting()
    return bytes / MemoryLayout<Float>.size
  }

  /// Starts to write to disk what the cache has, every 8 MB, so that `complete` has little to wait for.
  private func startWriting() {
    guard place - startedSize >= 8 << 20 else { return }
    _ = sync_file_range(
      run.outputFile, off_t(startedSize), off_t(place - startedSize), UInt32(SYNC_FILE_RANGE_WRITE))
    startedSize = place
  }

  /// Replaces numbers that have been read, from the one with this index on.
  package func replace(_ numbers: Span<Float>, at index: Int) throws(MediaError) {
    try unsafe write(numbers.bytes, at: start + index * MemoryLayout<Float>.size)
  }

  /// Ends the program, which is no longer needed if it is still running. Returns the same as `FencedRun.end`.
  ///
  /// Throws `.system` if the file couldn't be read, or if the program couldn't write all of it.
  func end() throws(MediaError) -> Int32 {
    let signal = run.stop()
    if let failure { throw .system(operation: "read", errno: failure) }
    let size = run.outputSize
    guard size >= 0 else { throw .system(operation: "seek", errno: errno) }
    let status = run.exitStatus
    guard signal == SIGXFSZ || hasFailedToWrite(status, size - start) else {
      // Whatever made it give up, what it has decoded counts, as long as that could be written.
      if let status, status != 0, let number = run.tryWriting() { throw .system(operation: "write", errno: number) }
      return signal
    }
    // ffmpeg 5.1 doesn't say why, so this process tries. There may be room again by now, or only for root.
    throw .system(operation: "write", errno: run.tryWriting() ?? status.flatMap { Self.failedWrites[$0] } ?? ENOSPC)
  }

  /// Whether a program that exited with this status, and left this many bytes in the file, couldn't write all of them.
  private func hasFailedToWrite(_ status: Int32?, _ bytes: Int) -> Bool {
    guard let status, let reported = run.finallyReportedBytes else { return false }
    return status == 0 ? reported != bytes : reported > 0 && Self.failedWrites[status] != nil
  }

  /// The errors of writes, by exit status. ffmpeg 5.1 exits with 1; 7 and 9 exit with the low byte of the negative
  /// errno. Each writes its last report before that. EIO isn't among them: ffmpeg also says so of files that end early.
  private static let failedWrites: [Int32: Int32] = [
    1: ENOSPC, 256 - ENOSPC: ENOSPC, 256 - EDQUOT: EDQUOT, 256 - EFBIG: EFBIG,
  ]

  /// Writes the bytes before the first number, cuts the file after `count` numbers, and makes it durable. Call it after
  /// the decoding has been finished: nothing else can change the file then.
  package func complete(_ head: [UInt8], count: Int) throws(MediaError) {
    precondition(head.count == start, "the head fills its place")
    guard ftruncate(run.outputFile, off_t(start + count * MemoryLayout<Float>.size)) == 0 else {
      throw .system(operation: "truncate", errno: errno)
    }
    try unsafe write(head.span.bytes, at: 0)
    guard fsync(run.outputFile) == 0 else { throw .system(operation: "fsync", errno: errno) }
  }

  private func write(_ bytes: RawSpan, at offset: Int) throws(MediaError) {
    let failure: Int32? = unsafe bytes.withUnsafeBytes { buffer in
      var done = 0
      while done < buffer.count {
        let rest = unsafe UnsafeRawBufferPointer(rebasing: buffer[done...])
        let count = unsafe pwrite(run.outputFile, rest.baseAddress, rest.count, off_t(offset + done))
        if count < 0 && errno == EINTR { continue }
        guard count > 0 else { return errno }
        done += count
      }
      return nil
    }
    if let failure { throw .system(operation: "write", errno: failure) }
  }
}
