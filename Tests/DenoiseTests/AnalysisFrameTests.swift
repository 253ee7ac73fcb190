import Testing

@testable import Denoise

@Suite struct AnalysisFrameTests {
  @Test(
    "a frame is about 48 ms long and fast for FFTW",
    arguments: [
      (8000, 384), (11025, 512), (16000, 768), (22050, 1024), (24000, 1152), (32000, 1536), (37800, 1800),
      (44100, 2048), (48000, 2304),
      (88200, 4096), (96000, 4608), (192_000, 9216), (1, 16),
    ])
  func length(sampleRate: Int, length: Int) {
    let frame = AnalysisFrame(sampleRate: sampleRate)
    #expect(frame.length == length)
    #expect(frame.hop * 4 == length)
    #expect(frame.binCount == length / 2 + 1)
  }

  @Test func theSquaredWindowsOfFourFramesAddUpToTwo() {
    let frame = AnalysisFrame(sampleRate: 44100)
    let window = frame.window()
    for index in 0..<frame.hop {
      let sum = (0..<4).reduce(0.0) { $0 + Double(window[index + $1 * frame.hop] * window[index + $1 * frame.hop]) }
      #expect(abs(sum - 2) < 1e-6)
    }
  }
}
