import Testing

@testable import Waveform

struct PictureColorTests {
  @Test(arguments: [
    ("#f80", "ff8800ff"), ("#f808", "ff880088"), ("#0d7a7e", "0d7a7eff"), ("0D7A7E", "0d7a7eff"),
    ("#0d7a7e40", "0d7a7e40"), ("white", "ffffffff"), ("Teal", "008080ff"), ("transparent", "00000000"),
    ("fff", "ffffffff"),
  ])
  func aColourIsReadAsCSSWritesIt(text: String, hexadecimal: String) {
    #expect(PictureColor(text)?.hexadecimal == hexadecimal)
  }

  @Test(arguments: ["", "#", "#ff", "#fffff", "#fffffff", "#fffffffff", "ggg", "rgb(1,2,3)", "##fff", "#teal", "é"])
  func anInvalidColorIsRefused(text: String) { #expect(PictureColor(text) == nil) }

  @Test func everyNameIsAColour() {
    #expect(PictureColor.names.count == 18)
    for name in PictureColor.names { #expect(PictureColor(name) != nil, "\(name)") }
  }

  @Test func colorsAreBlendedByOpacityAndCoverage() {
    let (black, white) = (PictureColor.rgb(0), PictureColor.rgb(0xffffff))
    let clear = PictureColor(red: 0, green: 0, blue: 0, alpha: 0)
    #expect(black.over(white, coverage: 1) == black && black.over(white, coverage: 0) == white)
    #expect(black.over(white, coverage: 0.4) == .rgb(0x999999))
    #expect(white.over(clear, coverage: 0.4) == white.opacity(0.4))
    #expect(white.opacity(0.5).over(black, coverage: 0.5).hexadecimal == "404040ff")
    #expect(clear.over(clear, coverage: 1) == clear)
  }
}
