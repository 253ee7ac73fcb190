// An upload whose bytes are no recording is gone as soon as that is known. A client whose connection broke before it
// read so asks again; “there is no such upload” would have it send the whole file once more, for the same answer. So
// the answer is kept, for as long as answers under an Idempotency-Key are: a day, over restarts.

import FoundationEssentials
import Storage

/// Why an upload became no recording.
struct UploadRefusal: Codable {
  /// Stable, as the probe said it.
  let code: String
  /// The sentence for the client.
  let detail: String

  init(code: String, detail: String) { (self.code, self.detail) = (code, detail) }

  /// nil where `id` was not refused, or too long ago.
  init?(of id: UploadID, in catalog: Catalog) throws(StorageError) {
    guard let answer = try catalog.answer(scope: Self.scope(id), key: ""),
      answer.createdAt >= IdempotencyKeys.oldest(at: .now),
      let refusal = try? JSONDecoder().decode(Self.self, from: Data(answer.body.utf8))
    else { return nil }
    self = refusal
  }

  /// What every later request for the upload throws.
  var error: ServiceError { .rejectedByProbe(code: code, detail: detail) }

  /// As it is kept. No client's key is empty.
  func answer(for id: UploadID) -> KeptAnswer? {
    guard let body = try? JSONEncoder().encode(self) else { return nil }
    return KeptAnswer(
      scope: Self.scope(id), key: "", fingerprint: "", status: 0, location: "",
      body: String(decoding: body, as: UTF8.self))
  }

  static func forget(_ id: UploadID, in catalog: Catalog) throws(StorageError) {
    try catalog.removeAnswer(scope: scope(id), key: "")
  }

  private static func scope(_ id: UploadID) -> String { "refused upload \(id)" }
}
