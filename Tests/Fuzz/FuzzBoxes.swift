// An MP4 file whose headers are read without ffprobe. The sources that read them are compiled into this module.

import Glibc

/// A file without a name that holds one input at a time.
private let (file, path): (Int32, String) = {
  var name = Array("/tmp/stillwave-fuzz-XXXXXX".utf8CString)
  let file = unsafe mkstemp(&name)
  unsafe unlink(&name)
  guard file >= 0 else { fatalError("no temporary file can be made") }
  return (file, "/proc/self/fd/\(file)")
}()

func fuzzBoxes(_ input: [UInt8]) {
  let written = unsafe input.withUnsafeBytes { unsafe pwrite(file, $0.baseAddress, $0.count, 0) }
  check(written == input.count && ftruncate(file, off_t(input.count)) == 0, "the file can't be written")
  let extent = BoxExtent(path: path)
  guard let boxes = SoundBoxes(path: path) else { return }
  check(extent.verdict == .whole && !extent.isFragmented, "an incomplete file was read")
  check(boxes.duration > 0 && boxes.duration < 1e11, "the duration is \(boxes.duration)")
  check(boxes.bitRate >= 0, "the bit rate is \(boxes.bitRate)")
  check(boxes.language.utf8.count == 3, "the language is \(boxes.language)")
}
