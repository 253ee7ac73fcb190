// An upload that isn't a recording is removed at once. If the client's connection breaks before it reads that answer,
// it asks again; “there is no such upload” would make it send the whole file once more, only to get the same answer. So
// the answer is kept as long as answers under an Idempotency-Key are: a day, across restarts.

import FoundationEssentials
import Storage

/// The reason why an upload didn't become a recording.
struct UploadRefusal: Codable {
  /// The stable code from the probe.
  let code: String
  /// The sentence for the client.
  let detail: String
  /// The ID of the token that the upload was begun with; nil if it was begun with a key.
  let token: String?

  init(code: String, detail: String, token: String?) { (self.code, self.detail, self.token) = (code, detail, token) }

  /// Reads the stored refusal of `id`. nil if it wasn't refused, or too long ago.
  init?(of id: UploadID, in catalog: TenantCatalog) throws(StorageError) {
    guard let answer = try catalog.answer(scope: Self.scope(id), key: ""),
      answer.createdAt >= IdempotencyKeys.oldest(at: catalog.time),
      let refusal = try? JSONDecoder().decode(Self.self, from: Data(answer.body.utf8))
    else { return nil }
    self = refusal
  }

  /// The error that later requests for the upload throw.
  var error: ServiceError { .rejectedByProbe(code: code, detail: detail) }

  /// The refusal as it's stored, under an empty key, which no client can use.
  func answer(for id: UploadID, at time: Timestamp) -> StoredResponse? {
    guard let body = try? JSONEncoder().encode(self) else { return nil }
    return StoredResponse(
      scope: Self.scope(id), key: "", fingerprint: "", status: 0, location: "",
      body: String(decoding: body, as: UTF8.self), createdAt: time)
  }

  static func forget(_ id: UploadID, in catalog: TenantCatalog) throws(StorageError) {
    try catalog.removeAnswer(scope: scope(id), key: "")
  }

  private static func scope(_ id: UploadID) -> String { "refused upload \(id)" }
}
