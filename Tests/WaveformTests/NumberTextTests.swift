import Testing

@testable import Waveform

struct NumberTextTests {
  @Test func everySixteenBitNumberIsWrittenAsSwiftWritesIt() {
    let numbers = [Int16](Int16.min...Int16.max)
    var text = Array("[".utf8)
    NumberText.append(numbers.span, to: &text)
    let expected: String = "[" + numbers.map(\.description).joined(separator: ",")
    #expect(String(decoding: text, as: UTF8.self) == expected)
  }

  @Test func everyUnsignedNumberIsWrittenAsSwiftWritesIt() {
    let numbers = [UInt16](UInt16.min...UInt16.max)
    var text: [UInt8] = []
    NumberText.append(numbers.span, to: &text)
    let expected: String = numbers.map(\.description).joined(separator: ",")
    #expect(String(decoding: text, as: UTF8.self) == expected)
  }

  @Test func noNumbersAreNoText() {
    var text = Array("[".utf8)
    NumberText.append([Int16]().span, to: &text)
    #expect(text == Array("[".utf8))
  }
}
