import CLinux
import Glibc
import Synchronization
import Voice
import Workers

/// The networks' weights in this process.
///
/// A fenced process can't open their file, so it is mapped before, and libsoxr is loaded. Without the file, neither
/// happens. Only a process that removes noise reads it: the service only looks whether it is there.
package final class VoiceModel: Sendable {
  /// The weights of this process.
  package static let shared = VoiceModel()
  private struct State: ~Copyable {
    var mapped: MappedWeights?
    var weights: VoiceWeights?
  }

  private let state = Mutex(State())

  /// Maps the file if it is there, and loads libsoxr.
  package func prepare(_ path: String) {
    guard VoiceFile.isInstalled(at: path) else { return }
    VoiceDenoiser.loadResampler()
    state.withLock { $0.mapped = try? MappedWeights(path: path) }
  }

  /// Returns the weights, for which the file is read once.
  func weights(_ path: String?) throws(ProcessingError) -> VoiceWeights {
    let path = path ?? VoiceFile.usualPath
    VoiceDenoiser.loadResampler()
    // A segment's blocks have other sizes than the ones before: kept, they take up to 25 MB more.
    stillwave_bound_kept_memory(1 << 18, 2)
    do throws(VoiceError) {
      return try state.withLock { (state) throws(VoiceError) in
        if let weights = state.weights { return weights }
        if state.mapped?.path != path { state.mapped = try MappedWeights(path: path) }
        guard let mapped = state.mapped.take() else { throw .missing(path: path) }
        let weights = try VoiceWeights(mapped)
        state.weights = weights
        return weights
      }
    } catch { throw .voice(error) }
  }
}
