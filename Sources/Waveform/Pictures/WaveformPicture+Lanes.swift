// The common input of both picture formats: slices as outlines or points, scaled for drawing.

extension WaveformPicture {
  /// Returns the factor applied to samples with full scale 1.
  func amplitudeFactor(_ slice: WaveformSlice, _ overlay: WaveformSlice?) -> Float {
    switch style.amplitude {
    case .factor(let factor): return Float(factor)
    case .auto:
      let peak = [slice.data, overlay?.data ?? []].joined().reduce(0) { max($0, Int($1.magnitude)) }
      return peak == 0 ? 1 : 32768 / Float(peak)
    }
  }

  /// Returns a lane's outline, scaled and shaped for drawing.
  func envelope(of layer: PictureLayer, _ slice: WaveformSlice, _ lane: Int, _ factor: Float) -> Envelope {
    var envelope = Envelope(
      slice, lane: min(lane, slice.lanes - 1), start: layer.start, framesPerColumn: layer.framesPerColumn,
      columns: layer.columns)
    envelope.amplify(factor)
    switch style.look {
    case .wave: envelope.join()
    case .bars: envelope.mirror()
    }
    return envelope
  }

  /// Returns samples as points of a line, each in the middle of its share of the width.
  func samplePoints(
    of layer: PictureLayer, _ slice: WaveformSlice, _ lane: Int, _ place: PictureLayout.Lane, _ factor: Float,
    width: Float
  ) -> [PicturePoint] {
    let lane = min(lane, slice.lanes - 1)
    return (0..<slice.length).map { index in
      let frame = Double(slice.window.startFrame) + Double(index) + 0.5
      let value = Float(slice.data[2 * (index * slice.lanes + lane)]) / 32768 * factor
      return PicturePoint(x: Float((frame - layer.start) / layer.frames) * width, y: place.y(min(max(value, -1), 1)))
    }
  }
}
