import Foundation
import Testing

@testable import Sounds

/// A recording made by a test: its sound and its file format.
struct Clip: Sendable, CustomTestStringConvertible {
  enum Content: String, Sendable { case tone, sweep, noise, speech, silence, clicks }
  enum Kind: String, Sendable { case wav16, wav24, wavFloat, aiff, flac, vorbis, opus, mp3 }

  let content: Content
  let kind: Kind
  let rate: Int
  let channels: Int

  init(_ content: Content, _ kind: Kind, _ rate: Int, _ channels: Int) {
    (self.content, self.kind, self.rate, self.channels) = (content, kind, rate, channels)
  }

  var testDescription: String { "\(content) as \(kind), \(rate) Hz, \(channels) channels" }

  /// Three seconds of a tone between noise, as most tests upload them.
  static let tone = WAVFile(Sound.noisy(rate: 8000, channels: 1, seconds: 3, voice: Sound.tone))

  static let all = [
    Clip(.tone, .wav16, 8_000, 1), Clip(.tone, .wav16, 44_100, 2), Clip(.sweep, .wav24, 96_000, 2),
    Clip(.tone, .wavFloat, 48_000, 1), Clip(.sweep, .aiff, 22_050, 2), Clip(.tone, .flac, 44_100, 6),
    Clip(.noise, .wav16, 48_000, 6), Clip(.tone, .vorbis, 44_100, 2), Clip(.tone, .opus, 48_000, 1),
    Clip(.tone, .mp3, 44_100, 2), Clip(.speech, .mp3, 22_050, 1), Clip(.silence, .wav16, 16_000, 1),
    Clip(.clicks, .wav16, 11_025, 2), Clip(.speech, .wav16, 22_050, 1), Clip(.speech, .flac, 32_000, 2),
    Clip(.speech, .opus, 16_000, 2), Clip(.noise, .vorbis, 8_000, 1),
  ]

  /// The API's name of the format.
  var container: String {
    switch kind {
    case .wav16, .wav24, .wavFloat: "wav"
    case .aiff: "aiff"
    case .flac: "flac"
    case .vorbis, .opus: "ogg"
    case .mp3: "mp3"
    }
  }

  var codec: String {
    switch kind {
    case .wav16, .aiff: "pcm_s16"
    case .wav24: "pcm_s24"
    case .wavFloat: "pcm_f32"
    case .flac: "flac"
    case .vorbis: "vorbis"
    case .opus: "opus"
    case .mp3: "mp3"
    }
  }

  var isLossy: Bool { [.vorbis, .opus, .mp3].contains(kind) }
  /// Whether there is a voice between sections of noise.
  var isVoice: Bool { [.tone, .sweep, .speech].contains(content) }
  var fileName: String { "\(content)-\(rate)-\(channels).\(kind == .opus ? "opus" : container)" }

  /// Makes the sound and its file.
  func make(in folder: TemporaryFolder) throws -> (sound: Sound, path: String) {
    let sound = try sound(folder)
    let plain = folder.file("plain.wav")
    try write(WAVFile(sound).bytes, to: plain)
    let path = folder.file(fileName)
    switch kind {
    case .wav16: return (sound, plain)
    case .wav24: try Tool.sox.run([plain, "-b", "24", path])
    case .wavFloat: try Tool.sox.run([plain, "-e", "floating-point", "-b", "32", path])
    case .aiff, .flac: try Tool.sox.run([plain, path])
    case .vorbis: try Tool.sox.run([plain, "-C", "7", path])
    case .opus: try Tool.ffmpeg.run(["-v", "error", "-i", plain, "-c:a", "libopus", "-b:a", "160k", path])
    case .mp3: try Tool.ffmpeg.run(["-v", "error", "-i", plain, "-c:a", "libmp3lame", "-b:a", "160k", path])
    }
    return (sound, path)
  }

  private func sound(_ folder: TemporaryFolder) throws -> Sound {
    switch content {
    case .tone: return .noisy(rate: rate, channels: channels, voice: Sound.tone)
    case .sweep: return .noisy(rate: rate, channels: channels, voice: Sound.sweep)
    case .noise: return .noisy(rate: rate, channels: channels) { _, _ in 0 }
    case .silence: return .silence(rate: rate, channels: channels)
    case .clicks: return .clicks(rate: rate, channels: channels)
    case .speech:
      let spoken = folder.file("spoken.wav")
      let resampled = folder.file("resampled.wav")
      try Tool.espeak.run(["-w", spoken, "The rain in Spain stays mainly in the plain, says the old man."])
      try Tool.sox.run([spoken, "-r", "\(rate)", "-b", "16", resampled, "gain", "-n", "-6"])
      let voice = try WAVFile(reading: contents(resampled)).sound.channels[0]
      return .noisy(rate: rate, channels: channels, seconds: 2.5 + Double(voice.count) / Double(rate), level: 0.02) {
        time, _ in
        let frame = Int((time - 1.5) * Double(rate))
        return voice.indices.contains(frame) ? voice[frame] : 0
      }
    }
  }
}

/// Decodes any file with ffmpeg.
func decoded(_ bytes: [UInt8], _ folder: TemporaryFolder) throws -> Sound {
  let (coded, plain) = (folder.file("coded"), folder.file("decoded.wav"))
  try write(bytes, to: coded)
  try Tool.ffmpeg.run(["-v", "error", "-y", "-i", coded, "-c:a", "pcm_f32le", plain])
  return try WAVFile(reading: contents(plain)).sound
}

func sha256(ofFile path: String) throws -> String {
  let finished = try Command("/usr/bin/sha256sum", [path]).finish()
  return String(String(decoding: finished.output, as: UTF8.self).prefix(64))
}
