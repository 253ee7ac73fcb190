import Terms

// Rare formats that libsndfile reads, recognized by their first bytes (its `guess_file_type`). If the mark is short or
// missing, a mandatory size or name is checked too.
//
//   NIST SPHERE   "NIST_1A"                        IRCAM   64 A3 0? 00, or reversed
//   PARIS (PAF)   " paf", "fap "                   PVF     "PVF1"
//   Amiga (SVX)   "FORM" size "8SVX" or "16SV"     AVR     "2BIT"
//   FastTracker   "Extended Instrument: "          Psion   "ALawSoundFile**"
//   MIDI dump     F0 7E channel 01                 MATLAB  5: "MATLAB 5.0"; 4: a matrix named "samplerate"
//   HTK           frames (32 bits), period, 2 bytes per sample, kind 0: 12-byte header, then samples
//   Akai MPC2000  01 04, name of 17, level, tune, stereo (0 or 1), start, loop end, end (32 bits each) …: 42 bytes,
//                 samples

extension AudioContainer {
  /// Returns nil for any other format. `head`: the first 40 bytes or more, if the file has that many. `fileSize`: in
  /// bytes.
  static func rare(_ head: [UInt8], fileSize: Int64) -> AudioContainer? {
    if let found = marks.first(where: { head.starts(with: $0.0.utf8) })?.1 { return found }
    guard head.count >= 34 else { return nil }
    func big(_ offset: Int) -> Int64 { head[offset..<offset + 4].reduce(0) { $0 << 8 | Int64($1) } }
    func little(_ offset: Int) -> Int64 { head[offset..<offset + 4].reversed().reduce(0) { $0 << 8 | Int64($1) } }
    if big(0) == 0x464F_524D, [0x3853_5658, 0x3136_5356].contains(big(8)) { return .svx }
    if big(0) & 0xFFFF_F8FF == 0x64A3_0000 || big(0) & 0xFFF8_FFFF == 0xA364 { return .ircam }
    if head[0] == 0xF0, head[1] == 0x7E, head[3] == 1 { return .sds }
    if head[20...].starts(with: "samplerate".utf8), [0, 1000].contains(big(0)) { return .mat4 }
    if big(8) == 0x2_0000, big(0) > 0, 12 + 2 * big(0) == fileSize { return .htk }
    let channels: Int64 = head[21] == 0 ? 1 : 2
    if head[0] == 1, head[1] == 4, head[21] <= 1, little(30) > 0, 42 + 2 * channels * little(30) == fileSize {
      return .mpc2k
    }
    return nil
  }

  private static let marks: [(String, AudioContainer)] = [
    ("NIST_1A", .nist), (" paf", .paf), ("fap ", .paf), ("PVF1", .pvf), ("2BIT", .avr), ("ALawSoundFile**", .wve),
    ("Extended Instrument: ", .xi), ("MATLAB 5.0", .mat5),
  ]
}
