import Workers

/// Probes a file and, if the probe has decoded all of it, builds its waveform at once: another process would take
/// longer to start than this takes.
struct TakeInRecording {
  let probe: ProbeRecording
  let work: IntakeWork

  /// Throws what the probe throws. If the waveform can't be built, its job will find out why.
  func run() throws(ProcessingError) -> Intake {
    let (found, isWhole) = try probe.runToEnd()
    guard isWhole, found.media == nil else { return Intake(probe: found) }
    return Intake(probe: found, analysis: try? analyze(found.shape.sampleRate, found.shape.codec))
  }

  private func analyze(_ sampleRate: Int, _ codec: String) throws(ProcessingError) -> Analysis {
    // Nobody waits for progress, and the service waits for the disk when it adds the file to the recording.
    var analysis = try AnalyzeRecording(
      source: probe.source, pyramid: work.pyramid, limits: probe.limits, findsNoiseRegions: true,
      soundMap: work.soundMap, isDurable: false
    ).run { _ in }
    let labels = EmbeddedLabelsWork(output: work.labels, sampleRate: sampleRate, codec: codec)
    let reading = ReadEmbeddedLabels(work: labels, source: probe.source, facts: nil, texts: nil)
    reading.run(&analysis)
    return analysis
  }
}
