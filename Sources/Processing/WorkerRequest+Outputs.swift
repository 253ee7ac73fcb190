import Glibc
import Workers

extension WorkerRequest {
  /// The files that the work may write.
  private var outputs: [String?] {
    switch work {
    case .probe, .ffmpegCheck, .spectrum: []
    case .intake(let work): [work.pyramid, work.soundMap, work.labels]
    case .waveform(let work): [work.pyramid, work.copy?.path, work.soundMap, work.labels?.output]
    case .denoise(let work):
      [
        work.output, work.parameters.loudness.map { _ in DenoiseRecording.between(work.output) }, work.pyramid,
        work.copy?.path, work.replacement?.output,
      ]
    case .convert(let work): [work.output, work.copy?.path]
    case .noiseRegions(let copy), .loudness(let copy): [copy?.path]
    case .trim(let work): [work.output, work.pyramid, work.copy?.path, work.replacement?.output]
    case .noiseProfile(let work): [work.output, work.copy?.path]
    }
  }

  /// Creates the files that the work may write, because a fenced worker can't, and returns their paths; nil if it must
  /// create others. ffmpeg's are there after `begin`.
  ///
  /// libsndfile keeps the packets of ALAC, which only CAF files have, in a file of its own until it knows their number.
  package func createOutputs() throws(ProcessingError) -> [String]? {
    let paths = outputs.compactMap(\.self)
    for path in paths {
      let file = unsafe open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o644)
      guard file >= 0 else { throw .system(operation: "create", path: path, errno: errno) }
      close(file)
    }
    return filesForFFmpeg.contains { Self.isCAF($0) } ? nil : paths
  }

  private static func isCAF(_ path: String) -> Bool {
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return false }
    defer { close(file) }
    var start = [UInt8](repeating: 0, count: 4)
    return unsafe read(file, &start, start.count) == start.count && start == Array("caff".utf8)
  }

  /// Removes the files into which nothing was written.
  package func removeUnusedOutputs() {
    for path in outputs.compactMap(\.self) {
      var status = stat()
      if unsafe stat(path, &status) == 0, status.st_size == 0 { unsafe _ = unlink(path) }
    }
  }
}
