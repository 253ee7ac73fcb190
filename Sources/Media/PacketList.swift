import FoundationEssentials
import Glibc
import Terms

/// The first packets of a file in ffmpeg's "framecrc" format: stream 0 is the decoded sound, stream 1 the coded sound,
/// stream 2 the pictures.
struct PacketList {
  private(set) var sampleRate: Int?
  private(set) var channels: Int?
  /// ffmpeg's name for the channel layout.
  private(set) var layout: String?
  /// In seconds on the file's clock.
  private(set) var soundStart: Double?
  /// The first frames of sound: their start on the file's clock in seconds, and their number.
  private var sounds: [(start: Double, frames: Int)] = []
  /// The earliest time of a picture; they come in decoding order.
  private(set) var pictureStart: Double?
  /// The coded sound: the start of its first and last packet, the bytes before the last, and the bytes of the last.
  private var coded: (start: Double, end: Double, bytes: Double, last: Double)?
  /// Length of the first packet of coded sound, in seconds.
  private var packetSeconds = 0.0

  /// The codec of each stream.
  private var codecs: [Int: String] = [:]
  private var pictureSize: (width: Int, height: Int)?

  /// The sound track, if its codec is known.
  var tracks: TrackList? {
    guard let codec = codecs[1] else { return nil }
    let sound = TrackList.Answer.Stream(codec_name: codec, codec_type: "audio", index: 0)
    return TrackList([sound])
  }

  /// The pictures, if their size is known.
  var video: MediaFacts.Video? {
    guard let codec = codecs[2], let pictureSize, pictureSize.width > 0, pictureSize.height > 0 else { return nil }
    return MediaFacts.Video(codec: codec, width: pictureSize.width, height: pictureSize.height)
  }

  /// Bit rate of the coded sound in bits per second; nil if there is only one packet.
  var bitRate: Int? {
    guard let coded, coded.end > coded.start else { return nil }
    let rate = 8 * coded.bytes / (coded.end - coded.start)
    return (1...100_000_000).contains(rate) ? Int(rate) : nil
  }

  /// The time of the first packet in seconds, if the decoder returns less than it has; else nil.
  var packedStart: Double? {
    guard let coded, let sampleRate, let sound = sounds.first else { return nil }
    return packetSeconds * Double(sampleRate) > 1.5 * Double(sound.frames) ? coded.start : nil
  }

  init(text: [UInt8]) { read(text, firstStream: 0) }

  /// Adds the pictures from their separate run.
  mutating func add(pictures text: [UInt8]) { read(text, firstStream: 2) }

  private mutating func read(_ text: [UInt8], firstStream: Int) {
    var units: [Int: Double] = [:]
    for line in String(decoding: text, as: UTF8.self).split(separator: "\n") {
      if line.hasPrefix("#") {
        read(header: line.dropFirst(), firstStream, &units)
      } else {
        read(packet: line.split(separator: ",").map { $0.drop { $0 == " " } }, firstStream, units)
      }
    }
  }

  private mutating func read(header line: Substring, _ firstStream: Int, _ units: inout [Int: Double]) {
    let words = line.split { $0 == " " || $0 == ":" }
    guard words.count == 3, let stream = Int(words[1]).map({ $0 + firstStream }) else { return }
    switch words[0] {
    case "codec_id": codecs[stream] = String(words[2])
    case "dimensions" where stream == 2:
      let sides = words[2].split(separator: "x").compactMap { Int($0) }
      if sides.count == 2 { pictureSize = (sides[0], sides[1]) }
    case "sample_rate" where stream == 0: sampleRate = Int(words[2])
    case "channel_layout_name" where stream == 0: layout = String(words[2])
    case "tb":
      let parts = words[2].split(separator: "/").map { Double($0) }
      if parts.count == 2, let over = parts[0], let under = parts[1], under > 0 { units[stream] = over / under }
    default: break
    }
  }

  /// Marks a missing time: AVI doesn't say when a picture is shown.
  private static let noTime = -0x1p62

  private mutating func read(packet fields: [Substring], _ firstStream: Int, _ units: [Int: Double]) {
    guard fields.count > 4, let stream = Int(fields[0]).map({ $0 + firstStream }), let unit = units[stream],
      let time = Double(fields[2]), time > Self.noTime
    else { return }
    let seconds = time * unit
    if stream == 1, let bytes = Double(fields[4]) {
      if coded == nil { packetSeconds = (Double(fields[3]) ?? 0) * unit }
      let before = coded ?? (seconds, seconds, 0, 0)
      coded = (before.start, seconds, before.bytes + before.last, bytes)
    }
    if stream == 2 {
      // Pictures before an edit list's start are only for the decoder.
      let flags = fields.first { $0.hasPrefix("F=0x") }.flatMap { Int($0.dropFirst(4), radix: 16) } ?? 0
      guard flags & 4 == 0 else { return }
      pictureStart = min(pictureStart ?? seconds, seconds)
    }
    guard stream == 0, let frames = Int(fields[3]), let bytes = Int(fields[4]), frames > 0 else { return }
    sounds.append((seconds, frames))
    guard soundStart == nil else { return }
    (soundStart, channels) = (seconds, bytes / 4 / frames)
  }

  /// Returns the number of frames by which the first sound's timestamp is later than most of the following ones imply.
  /// GStreamer gives the encoder's delay, which belongs before 0, the same timestamp as the sound after it.
  ///
  /// Returns nil for differences from rounding to milliseconds, and for jumps, which decoding closes in place.
  func lateness(sampleRate: Double) -> Int64? {
    var (first, starts) = (0.0, [Double]())
    for sound in sounds {
      starts.append(sound.start - first)
      first += Double(sound.frames) / sampleRate
    }
    guard let begin = starts.first else { return nil }
    let late = begin - starts.sorted()[starts.count / 2]
    return (0.003...0.03).contains(late.magnitude) ? Int64((late * sampleRate).rounded()) : nil
  }
}
