import AudioIO
import CLinux
import Glibc
import Terms
import Waveform
import Workers

/// A child of the service that has one recording open: answers requests about its samples until the service closes the
/// pair of sockets. See `ReaderRequest` for what is sent.
///
/// The recording's file and its map come as descriptors. It fences itself in before it reads either of them, and then
/// can open nothing but the recording's file.
package struct ReaderService {
  /// How many parts are decoded at a time without decoding anything twice. Each takes half a megabyte.
  private static let openParts = 4

  private let socket: Int32
  private let sound: Sound

  /// Serves the service at the other end of `socket` until it closes it. Call it before this process has other threads.
  package static func serve(_ socket: Int32) {
    var opening = [UInt8](repeating: 0, count: 4096 + 256)
    var (file, map): (Int32, Int32) = (-1, -1)
    let count = unsafe opening.withUnsafeMutableBytes { opening in
      unsafe stillwave_receive_order(socket, opening.baseAddress, opening.count, &file, &map)
    }
    guard count > 0 else { return }
    let words = String(decoding: opening.prefix(count), as: UTF8.self).dropLast()
      .split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
    guard words.count == 3, let fence = WorkerFence(text: String(words[0])) else { return }
    VoiceModel.shared.prepare(String(words[2]))
    // The name of an open file, which leads to it even after it was deleted. It has no other for this process.
    let path = "/proc/self/fd/\(file)"
    if let refusal = fence.enter(source: path, folder: nil, threads: 1) {
      send(.failed(WorkerFailure(code: "worker_failed", detail: "The fence failed (errno \(refusal)).", retry: true)))
      return
    }
    ReaderService(socket: socket, sound: Sound(path: path, map: words[1] == "1" ? map : nil)).run()

    func send(_ report: WorkerReport) { _ = writeWhole(report.line(), to: socket) }
  }

  private func run() {
    var received: [UInt8] = []
    // What the work of the next line writes and reads.
    var (output, profile): (Int32, Int32) = (-1, -1)
    var piece = [UInt8](repeating: 0, count: 4096)
    while true {
      while let first = received.first {
        let end: Int
        if first == UInt8(ascii: "{") {
          guard received.count <= WorkerRequest.sizeLimit else { return }
          guard let newline = received.firstIndex(of: UInt8(ascii: "\n")) else { break }
          end = newline + 1
          guard let request = WorkerRequest(line: received[..<newline]) else { return }
          let report = report(of: request, output, profile)
          for file in [output, profile] where file >= 0 { close(file) }
          (output, profile) = (-1, -1)
          guard writeWhole(report.line(), to: socket) else { return }
        } else {
          guard received.count >= 4 else { break }
          end = 4 + Int(UInt32(little: received[..<4]))
          guard end <= 4 + ReaderRequest.byteLimit else { return }
          guard received.count >= end else { break }
          guard let request = ReaderRequest(received[4..<end]), writeWhole(answer(request), to: socket) else { return }
        }
        received.removeSubrange(..<end)
      }
      var files: (Int32, Int32) = (-1, -1)
      let count = unsafe piece.withUnsafeMutableBytes { piece in
        unsafe stillwave_receive_order(socket, piece.baseAddress, piece.count, &files.0, &files.1)
      }
      guard count > 0 else { return }
      if files.0 >= 0 { (output, profile) = files }
      received += piece.prefix(count)
    }
  }

  private func report(of request: WorkerRequest, _ output: Int32, _ profile: Int32) -> WorkerReport {
    do throws(ProcessingError) {
      return try sound.report(of: request, output >= 0 ? output : nil, profile >= 0 ? profile : nil)
    } catch {
      return .failed(WorkerFailure(error))
    }
  }

  private func answer(_ request: ReaderRequest) -> [UInt8] {
    let content: [UInt8]
    do throws(AudioIOError) { content = try sound.answer(request) } catch {
      return WorkerReport.failed(WorkerFailure(.audio(error))).line()
    }
    var bytes = [ReaderRequest.isAnswer]
    bytes.reserveCapacity(ReaderRequest.answerHeadBytes + content.count)
    bytes.append(little: UInt32(content.count))
    return bytes + content
  }

  /// The open recording. Confined to the process's only thread.
  private final class Sound {
    private let path: String
    private let mapFile: Int32?
    private var map: SoundMap?
    private var slices: SampleWindow?
    /// The last one was used last.
    private var parts: [Part] = []

    private final class Part {
      let frames: Range<Int64>
      var stream: WaveStream
      /// The next byte that it can return without a seek.
      var place: Int64 = 0

      init(_ frames: Range<Int64>, path: String, map: SoundMap) throws(AudioIOError) {
        self.frames = frames
        stream = try WaveStream(path: path, map: map, frames: frames)
      }
    }

    init(path: String, map: Int32?) { (self.path, mapFile) = (path, map) }

    func answer(_ request: ReaderRequest) throws(AudioIOError) -> [UInt8] {
      switch request {
      case .pixels(let window):
        return try samples().slice(window).bytes
      case .tile(let tile): return try samples().values(of: tile)
      case .partPixels(let window, let start): return try samples().slice(window, ofFileFrom: start).bytes
      case .partLength(let frames): return [UInt8](little: try part(frames, at: 0).stream.header.fileBytes)
      case .plainLayout:
        guard let layout = try samples().reader.plainLayout else { return [] }
        return [UInt8](little: layout.start) + [UInt8(layout.sampleBytes), layout.isBigEndian ? 1 : 0]
      case .part(let frames, let place, let limit):
        let part = try part(frames, at: place)
        let bytes = try part.stream.bytes(from: place)
        part.place = place + Int64(bytes.count)
        return Int64(bytes.count) > limit ? Array(bytes.prefix(Int(limit))) : bytes
      }
    }

    private func samples() throws(AudioIOError) -> SampleWindow {
      if let slices { return slices }
      let slices = try SampleWindow(path: path, map: soundMap())
      self.slices = slices
      return slices
    }

    func report(
      of request: WorkerRequest, _ output: Int32?, _ profile: Int32?
    ) throws(ProcessingError) -> WorkerReport {
      var request = request
      request.source = path
      let map = try audio { () throws(AudioIOError) in try soundMap() }
      let perform = try request.begin(OpenedFiles(map: map, output: output, profile: profile))
      return try perform { _ in }
    }

    /// Returns the part that continues at this byte, or another one with the same frames.
    private func part(_ frames: Range<Int64>, at place: Int64) throws(AudioIOError) -> Part {
      let found =
        parts.lastIndex { $0.frames == frames && $0.place == place } ?? parts.lastIndex { $0.frames == frames }
      let part = if let found { parts.remove(at: found) } else { try Part(frames, path: path, map: soundMap()) }
      parts.append(part)
      if parts.count > ReaderService.openParts { parts.removeFirst() }
      return part
    }

    /// The map that a job has stored; if there is none, or it doesn't fit the file, the file is read in full.
    private func soundMap() throws(AudioIOError) -> SoundMap {
      if let map { return map }
      var found: SoundMap?
      if let mapFile { found = try SoundMap(path: path, keptIn: mapFile) }
      let map = if let found { found } else { try SoundMap(path: path) }
      self.map = map
      return map
    }
  }
}

/// Writes all bytes. Returns false if the other end is closed.
private func writeWhole(_ bytes: [UInt8], to socket: Int32) -> Bool {
  var done = 0
  while done < bytes.count {
    let count = unsafe bytes.withUnsafeBytes {
      unsafe write(socket, $0.baseAddress.map { unsafe $0 + done }, $0.count - done)
    }
    if count < 0 && errno == EINTR { continue }
    guard count > 0 else { return false }
    done += count
  }
  return true
}
