import SoundFiles
import Terms
import Testing

@testable import AudioIO

struct OutputFormatTests {
  private func target(_ output: OutputFormat, _ source: AudioFormat) -> String {
    do {
      let format = try output.format(for: source)
      #expect(format.sampleRate == source.sampleRate && format.channels == source.channels)
      return "\(format.container) \(format.codec)"
    } catch { return "unwritable" }
  }

  private func source(_ container: AudioContainer, _ codec: AudioCodec, _ rate: Int = 48_000, _ channels: Int = 2)
    -> AudioFormat
  { AudioFormat(container: container, codec: codec, sampleRate: rate, channels: channels) }

  @Test(
    arguments: [
      (.wav, .pcmU8, "pcmU8", "flacS8"), (.aiff, .pcmS8, "pcmU8", "flacS8"), (.wav, .pcmS16, "pcmS16", "flacS16"),
      (.flac, .flacS24, "pcmS24", "flacS24"), (.wav, .pcmS32, "pcmS32", "flacS24"),
      (.wav, .pcmF32, "pcmF32", "flacS24"),
      (.wav, .pcmF64, "pcmF32", "flacS24"), (.mp3, .mp3, "pcmS16", "flacS16"), (.ogg, .opus, "pcmS16", "flacS16"),
      (.wav, .muLaw, "pcmS16", "flacS16"), (.caf, .alac20, "pcmS24", "flacS24"), (.au, .g721, "pcmS16", "flacS16"),
    ] as [(AudioContainer, AudioCodec, String, String)])
  func losslessFilesKeepTheDepthTheyCanHold(container: AudioContainer, codec: AudioCodec, wav: String, flac: String) {
    #expect(target(.wav, source(container, codec)) == "wav \(wav)")
    #expect(target(.flac, source(container, codec)) == "flac \(flac)")
  }

  @Test func lossyFilesHoldOnlySomeRatesAndChannels() {
    let rates = [4000, 8000, 11_025, 16_000, 22_050, 44_100, 48_000, 96_000, 192_000, 384_000, 768_000]
    func writable(_ output: OutputFormat, _ expected: [Int]) {
      #expect(rates.filter { target(output, source(.wav, .pcmS16, $0)) != "unwritable" } == expected, "\(output)")
    }
    writable(.wav, rates)
    writable(.flac, Array(rates.dropLast()))
    writable(.mp3, [8000, 11_025, 16_000, 22_050, 44_100, 48_000])
    writable(.opus, [8000, 16_000, 48_000])
    writable(.ogg, Array(rates.dropLast(2)))
    let channels = [1, 2, 3, 6, 8, 9, 32]
    func holds(_ output: OutputFormat, _ expected: [Int]) {
      #expect(
        channels.filter { target(output, source(.wav, .pcmS16, 48_000, $0)) != "unwritable" } == expected, "\(output)")
    }
    holds(.wav, channels)
    holds(.flac, [1, 2, 3, 6, 8])
    holds(.mp3, [1, 2])
    holds(.opus, [1, 2, 3, 6, 8])
    holds(.ogg, [1, 2, 3, 6, 8])
  }

  @Test("FLAC has the rates that its frames can hold; others become WAV, and so does such a FLAC file")
  func flacRates() throws {
    let folder = try TemporaryFolder()
    let expected = [(1, true), (65_535, true), (65_537, false), (88_200, true), (96_001, false), (655_360, false)]
    for (rate, isHeld) in expected {
      let wave = source(.wav, .pcmS16, rate, 1)
      #expect((target(.flac, wave) != "unwritable") == isHeld, "\(rate)")
      #expect(target(.same, source(.flac, .flacS16, rate, 1)) == (isHeld ? "flac flacS16" : "wav pcmS16"), "\(rate)")
      if isHeld {
        try encode([Float](repeating: 0.1, count: 99), to: folder("file"), OutputFormat.flac.format(for: wave))
      }
    }
  }

  @Test func unwritableFormatsAreNamed() {
    #expect(throws: AudioIOError.unwritable(source(.mp3, .mp3, 96_000))) {
      try OutputFormat.mp3.format(for: source(.wav, .pcmS16, 96_000))
    }
  }

  @Test("libsndfile agrees with the table of what it can write, except where it then fails to")
  func tableIsLibsndfiles() {
    for container in AudioContainer.allCases {
      for codec in AudioCodec.allCases {
        for channels in [1, 2, 3, 8, 9, 256, 257, 1024, 1025] {
          let format = source(container, codec, 8000, channels)
          let fails = [.dwvw12, .mp1, .mp2, .alac20].contains(codec) || codec == .mp3 && container == .wav
          let isOtherFLAC = (container == .flac) != [.flacS8, .flacS16, .flacS24].contains(codec)
          let accepts = SndfileHandle.canWrite(format.sndfileInfo) && !fails && !isOtherFLAC
          #expect(format.isWritable == accepts, "\(container) \(codec) \(channels)")
        }
      }
    }
  }

  @Test func sameMeansTheSourcesFormatIfItCanBeWritten() throws {
    for container in AudioContainer.allCases {
      for codec in AudioCodec.allCases {
        let same = source(container, codec, 8000, 1)
        guard same.isWritable else { continue }
        #expect(target(.same, same) == "\(container) \(codec)")
      }
    }
  }

  @Test func unwritableFormatsBecomeTheNearestRelative() {
    #expect(target(.same, source(.mp3, .mp2)) == "mp3 mp3")
    #expect(target(.same, source(.caf, .alac20)) == "caf alac24")
    #expect(target(.same, source(.wav, .mp3)) == "wav pcmS16")
  }

  /// Every promised format can actually be created, written, and read again.
  @Test func everyPromisedFormatCanBeWritten() throws {
    let folder = try TemporaryFolder()
    let samples = swell(frames: 4_000, channels: 1, sampleRate: 8000)
    for container in AudioContainer.allCases {
      for codec in AudioCodec.allCases {
        for output in OutputFormat.allCases {
          let origin = source(container, codec, 8000, 1)
          guard let format = try? output.format(for: origin) else {
            Issue.record("\(container) \(codec) as \(output)")
            continue
          }
          guard output == .same || (container == .wav && codec == .pcmS16) else { continue }
          do { try encode(samples, to: folder("file"), format) } catch {
            Issue.record("\(container) \(codec) as \(output) \(format): \(error)")
            continue
          }
          #expect(try SoundFiles.format(of: folder("file")).codec == format.codec, "\(container) \(codec)")
          #expect(try decode(folder("file")).count >= samples.count, "\(container) \(codec)")
        }
      }
    }
  }
}
