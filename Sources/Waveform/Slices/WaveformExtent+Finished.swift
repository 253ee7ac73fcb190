extension WaveformExtent {
  /// Creates the extent of a finished pyramid, or an empty extent if it isn't finished.
  package init(finished file: PyramidFile) {
    let frames = file.totalFrames
    self.init(
      sampleRate: file.sampleRate, channels: file.channels, availableFrames: frames ?? 0, totalFrames: frames,
      isComplete: frames != nil)
  }
}
