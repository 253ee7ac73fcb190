import Glibc
import Voice

/// The file of weights that the method `voice` needs.
package enum VoiceFile {
  /// The version of the weights that this program needs.
  package static let version = VoiceWeights.version
  /// Where the weights are by default.
  package static let usualPath = "/usr/local/share/stillwave/voice.weights"
  /// The command that installs them.
  package static let command = "deploy/install voice"

  /// Returns whether there is a file that has the length of the weights, without reading it.
  package static func isInstalled(at path: String) -> Bool {
    var status = stat()
    return unsafe stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
      && status.st_size == VoiceWeights.fileBytes
  }
}
