import Testing

@testable import AudioService

@Suite struct RecordingNameTests {
  @Test(
    "a client's name is kept without the path that browsers invent and without control characters",
    arguments: [
      ("talk.wav", "talk.wav"), ("AC/DC - Live.wav", "AC/DC - Live.wav"), ("C:\\fakepath\\talk.wav", "talk.wav"),
      ("c:\\FakePath\\AC/DC", "AC/DC"), ("../../etc/passwd", "../../etc/passwd"), ("", "recording.wav"),
      ("/", "recording.wav"), ("C:\\fakepath\\", "recording.wav"), ("../..\\", "recording.wav"),
      (".", "recording.wav"), ("..", "recording.wav"), ("  ", "recording.wav"), ("\u{0}\u{7}\r\n", "recording.wav"),
      ("a\u{0}b\nc.wav", "abc.wav"), (" a b.wav\t", "a b.wav"), (".hidden", ".hidden"),
      ("Ünïcödé 録音.flac", "Ünïcödé 録音.flac"),
    ])
  func harmless(given: String, kept: String) {
    #expect(RecordingName(given, extension: "wav").text == kept)
  }

  @Test(
    "characters that reverse or hide text are dropped, those that emoji and scripts need are kept",
    arguments: [
      ("a\u{202E}b\u{2066}c\u{200F}\u{FEFF}\u{AD}d", "abcd"), ("a\u{E0068}\u{E0069}\u{E007F}b", "ab"),
      (
        "England 🏴\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}!",
        "England 🏴\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}!"
      ),
      ("🏴a\u{E0067}b", "🏴ab"), ("👩\u{200D}🎤 🏳\u{FE0F}\u{200D}🌈", "👩\u{200D}🎤 🏳\u{FE0F}\u{200D}🌈"),
      ("می\u{200C}خواهم", "می\u{200C}خواهم"),
    ])
  func formatting(given: String, kept: String) {
    #expect(Array(RecordingName(given, extension: "wav").text.unicodeScalars) == Array(kept.unicodeScalars))
    #expect(RecordingName(typed: given).map { Array($0.text.unicodeScalars) } == Array(kept.unicodeScalars))
  }

  @Test func aSlashWithAnAccentIsStillASlash() {
    #expect(RecordingName.file("a/\u{301}b", extension: "wav") == "a_\u{301}b.wav")
  }

  @Test func aNamelessUploadIsNamedByItsExtension() {
    #expect(RecordingName(nil, extension: "flac").text == "recording.flac")
  }

  @Test func aLongNameIsCutBeforeItsExtensionAtAWholeCharacter() {
    let name = RecordingName(String(repeating: "ö", count: 300) + ".flac", extension: "flac").text
    #expect(name == String(repeating: "ö", count: 125) + ".flac")
    let plain = RecordingName(String(repeating: "x", count: 300), extension: "wav").text
    #expect(plain == String(repeating: "x", count: 255))
  }

  @Test func flagsAreCutBetweenPairs() {
    let name = RecordingName(String(repeating: "🇫🇷", count: 40) + ".wav", extension: "wav").text
    #expect(name == String(repeating: "🇫🇷", count: 31) + ".wav")
  }

  @Test func anEndlessCharacterIsNotAName() {
    let name = "e" + String(repeating: "\u{301}", count: 300)
    #expect(RecordingName(name, extension: "wav").text == "recording.wav")
  }

  @Test func aResultIsNamedAfterItsSource() {
    #expect(
      RecordingName.derived(from: "interview.wav", label: "denoised", extension: "flac") == "interview (denoised).flac")
    #expect(RecordingName.derived(from: "talk", label: "residue", extension: "wav") == "talk (residue).wav")
    #expect(RecordingName.derived(from: ".hidden", label: "denoised", extension: "wav") == ".hidden (denoised).wav")
    #expect(RecordingName.derived(from: "a.b.c", label: "denoised", extension: "wav") == "a.b (denoised).wav")
  }

  @Test func aResultsNameKeepsItsEndEvenIfTheSourcesIsLong() {
    let name = RecordingName.derived(
      from: String(repeating: "x", count: 251) + ".wav", label: "denoised", extension: "wav")
    #expect(name.hasSuffix("xx (denoised).wav") && name.utf8.count == 255)
  }
}
