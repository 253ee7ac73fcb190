import Terms

/// What operators see of a lane in which clients take turns.
struct LaneFigures: Sendable {
  /// The number of callers that wait for their turn.
  let waiting: Int
  /// How long callers waited for their turn.
  let waits: Histogram
  /// How long they were served.
  let runs: Histogram
}

extension Context {
  /// The lanes by their names in metrics.
  var lanes: [(name: String, figures: LaneFigures)] {
    [
      ("sound_probes", probes.sounds.figures), ("media_probes", probes.media.figures),
      ("previews", previews.figures), ("parts", parts.lane.figures), ("pictures", drawings.figures),
      ("samples", samples.figures), ("labels", labels.figures),
    ]
  }
}
