extension WaveformExtent {
  /// All of a finished pyramid; of one that is not finished, nothing.
  package init(finished file: PyramidFile) {
    let frames = file.totalFrames
    self.init(
      sampleRate: file.sampleRate, channels: file.channels, availableFrames: frames ?? 0, totalFrames: frames,
      isComplete: frames != nil)
  }
}
