import Glibc
import Synchronization
import Voice

/// The networks' weights in this process.
///
/// A fenced process can't open their file, so it is mapped before, and libsoxr is loaded. Without the file, neither
/// happens. Only a process that removes noise reads it: the service only looks whether it is there.
package final class VoiceModel: Sendable {
  /// The weights of this process.
  package static let shared = VoiceModel()
  /// The version of the weights that this program needs.
  package static let version = VoiceWeights.version
  /// Where the weights are by default.
  package static let usualPath = "/usr/local/share/stillwave/voice.weights"
  /// The command that installs them.
  package static let command = "deploy/install voice"

  private struct State: ~Copyable {
    var mapped: MappedWeights?
    var weights: VoiceWeights?
  }

  private let state = Mutex(State())

  /// Returns whether there is a file that has the length of the weights, without reading it.
  package static func isInstalled(at path: String) -> Bool {
    var status = stat()
    return unsafe stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
      && status.st_size == VoiceWeights.fileBytes
  }

  /// Maps the file if it is there, and loads libsoxr.
  package func prepare(_ path: String) {
    guard Self.isInstalled(at: path) else { return }
    VoiceDenoiser.loadResampler()
    state.withLock { $0.mapped = try? MappedWeights(path: path) }
  }

  /// Returns the weights, for which the file is read once.
  func weights(_ path: String?) throws(ProcessingError) -> VoiceWeights {
    let path = path ?? Self.usualPath
    VoiceDenoiser.loadResampler()
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
