import Jobs
import Storage

@testable import AudioService

// Shorter calls for tests of a service without keys, whose tenant is the empty one.

extension UploadSessionTable {
  func create(length: Int64, metadata: String?, for client: Client) async throws -> UploadID {
    try await create(length: length, metadata: metadata, of: .none, for: client)
  }

  func using<R>(_ id: UploadID, _ body: (UploadSession) async throws -> R) async throws -> R {
    try await using(id, of: .none, body)
  }
}

extension WaveformTable {
  func open(_ id: RecordingID) async throws -> OpenWaveform { try await open(id, of: .none) }

  func known(_ id: RecordingID) -> OpenWaveform? { known(id, of: .none) }
}
