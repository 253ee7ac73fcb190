import Terms
import Testing

@testable import AudioIO

struct MPEGFrameHeaderTests {
  @Test("padding is four bytes in layer I, and one in the others")
  func padding() {
    #expect(
      MPEGFrameHeader(0xFFFF_1000)?.length == 32 && MPEGFrameHeader(0xFFFF_1200)?.length == 36)
    #expect(
      MPEGFrameHeader(0xFFFB_9000)?.length == 417 && MPEGFrameHeader(0xFFFB_9200)?.length == 418)
  }

  @Test("the side information follows the header, or its checksum")
  func sideInformation() {
    #expect(MPEGFrameHeader(0xFFFB_9000)?.sideInformation == 4..<36)
    #expect(MPEGFrameHeader(0xFFFA_9000)?.sideInformation == 6..<38)
  }
}
