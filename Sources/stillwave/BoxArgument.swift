import ArgumentParser
import Denoise

/// `START-END,MINHZ-MAXHZ,DB`; empty times or frequencies mean all of them.
struct BoxArgument: ExpressibleByArgument {
  let box: EditBox

  init?(argument: String) {
    let parts = argument.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 3, let gain = Double(parts[2]), SoundEdit.gains.contains(gain) else { return nil }
    func range(_ text: String) -> (Double?, Double?)? {
      if text.isEmpty { return (nil, nil) }
      return WindowArgument(argument: text).map { ($0.window.start, $0.window.end) }
    }
    guard let time = range(parts[0]), let band = range(parts[1]) else { return nil }
    box = EditBox(start: time.0, end: time.1, minHz: band.0, maxHz: band.1, gainDB: gain)
  }
}
