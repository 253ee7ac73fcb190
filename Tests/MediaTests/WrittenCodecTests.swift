import Terms
import Testing

@testable import Media

/// How the sound of files that replace others is coded.
struct WrittenCodecTests {
  private func facts(
    _ container: MediaContainer, _ codec: String, _ demuxer: Demuxer = .mov, sampleRate: Int = 48_000,
    channels: Int = 2, firstFrame: Int64? = nil, audioTracks: Int = 1, hasPictures: Bool = false, bitRate: Int? = nil
  ) -> MediaFacts {
    MediaFacts(
      demuxer: demuxer, container: container, codec: codec, sampleRate: sampleRate, channels: channels,
      firstFrame: firstFrame, bitRate: bitRate, promisesLength: false, endsAsPromised: false, audioTracks: audioTracks,
      video: hasPictures ? MediaFacts.Video(codec: "h264", width: 64, height: 48) : nil)
  }

  @Test("the codec is that of the source, or the closest one that the container and the encoder support")
  func codecs() {
    let cases: [(MediaFacts, String?)] = [
      (facts(.mp4, "aac", sampleRate: 96_000), "aac"), (facts(.mp4, "aac", sampleRate: 96_001), nil),
      (facts(.mp4, "aac", channels: 9), nil), (facts(.mp4, "pcm_s16"), "flac"), (facts(.m4a, "alac"), "alac"),
      (facts(.mov, "pcm_s16"), "pcm_s24"), (facts(.mov, "pcm_f32"), "pcm_f32"), (facts(.mov, "pcm_s32"), "pcm_f32"),
      (facts(.mkv, "aac", .matroska), "opus"), (facts(.mkv, "aac", .matroska, hasPictures: true), "aac"),
      (facts(.mkv, "pcm_s24", .matroska), "pcm_s24"), (facts(.mkv, "tta", .matroska), "flac"),
      (facts(.webm, "vorbis", .matroska), "opus"), (facts(.webm, "vorbis", .matroska, channels: 5), nil),
    ]
    for (source, codec) in cases { #expect(source.writtenCodec == codec, "\(source)") }
  }

  @Test("a film with H.263 stays one, in 3GP, which has no lossless sound")
  func phoneFilm() {
    var film = facts(.mp4, "alac", sampleRate: 16_000, channels: 1)
    film.pictures = "h263"
    #expect(film.writtenCodec == "aac" && film.losesSound && film.hasEditLists && film.muxerWords().last == "3gp")
  }

  @Test("an encoder's delay is dropped where a container has no times before 0")
  func delays() {
    let delays = [
      ("aac", 48_000, 1024), ("ac3", 48_000, 256), ("mp2", 48_000, 481), ("mp3", 44_100, 1105), ("opus", 48_000, 312),
      ("opus", 24_000, 156), ("alac", 48_000, 0),
    ]
    for (codec, sampleRate, delay) in delays {
      let words = facts(.ts, codec, .mpegts, sampleRate: sampleRate).streamWords(codec, bits: 128_000)
      #expect(words.last { $0.hasPrefix("atrim") } == (delay > 0 ? "atrim=start_sample=\(delay)" : nil), "\(codec)")
    }
  }

  @Test("the bit rate is the source's, or 128 kbit/s for each channel if that is more")
  func bitRates() {
    for (bitRate, expected) in [(nil, 256_000), (64_000, 256_000), (320_000, 320_000)] as [(Int?, Int)] {
      #expect(facts(.mp4, "aac", bitRate: bitRate).encoderWords.contains("\(expected)"))
    }
  }

  @Test("MP3 has the lowest of its rates that isn't below the sound's")
  func mp3Rates() {
    let rates = [1, 8000, 8001, 22_050, 32_001, 44_100, 48_000, 96_000].map(MediaEncoding.mp3Rate)
    #expect(rates == [8000, 8000, 11_025, 22_050, 44_100, 44_100, 48_000, 48_000])
  }

  @Test("three and four channels of Opus have its layouts")
  func layouts() {
    #expect((1...8).map(MediaEncoding.opusLayout) == [nil, nil, "3.0", "quad", nil, nil, nil, nil])
  }

  @Test("only sound with other tracks keeps the time before it")
  func starts() {
    #expect(facts(.mkv, "opus", .matroska, firstFrame: 24_000).writtenStart == 0)
    #expect(facts(.mkv, "opus", .matroska, firstFrame: 24_000, audioTracks: 2).writtenStart == 0.5)
    #expect(facts(.mkv, "opus", .matroska, firstFrame: 24_000, hasPictures: true).writtenStart == 0.5)
  }

  @Test("a part has one track of sound, or all of them if they can be cut at the same time")
  func parts() {
    #expect(facts(.mp4, "aac", audioTracks: 3, hasPictures: true).ofPart(from: 1, frames: 9)?.audioTracks == 3)
    #expect(
      facts(.mkv, "opus", .matroska, audioTracks: 3, hasPictures: true).ofPart(from: 1, frames: 9)?.audioTracks == 1)
  }
}
