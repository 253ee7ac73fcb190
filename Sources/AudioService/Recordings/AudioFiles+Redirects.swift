// With --s3-redirects, a client that wants a whole file, or a range of it, gets 307 and a presigned URL of the bucket,
// so that the bytes don't pass through this node. 307 and not 302, because it promises that the method stays the same,
// and the signature is for GET only. The node sends the content itself
//
//   to HEAD          the signature isn't for it, and clients learn the length by it
//   to scripts       the bucket may not allow a page's origin to read (CORS). Browsers say what a request is for
//                    (Sec-Fetch-Mode), except over http: then all of theirs that aren't said to be something else
//   several ranges   stores send the whole instead
//   If-Range         with the tag that this node has given, If-Match and If-Unmodified-Since: the client would repeat
//                    them to the store, which has other tags and dates
//   a part           it is decoded here
//   if the store fails, or the object isn't there: the node may have it, or knows what to say

import HTTP
import Storage

extension AudioFiles {
  /// Returns the response that sends the client to an object in the bucket; nil if this node must send the content.
  /// `bytes` is the object's length.
  func redirect(
    _ representation: Representation, of key: ObjectKey, bytes: Int64?, for request: HTTPRequest, _ caller: Caller
  ) async throws -> HTTPResponse? {
    guard let redirects = context.redirects, let store = context.media.bucket?.store, let bytes,
      request.mayBeRedirected, request.fields["If-Range"] != representation.fields["ETag"]
    else { return nil }
    let fields = ["Content-Type", "Content-Disposition", "Cache-Control"].compactMap { name in
      representation.fields[name].map { (name: name.lowercased(), value: $0) }
    }
    let seconds = min(redirects.seconds, caller.secondsLeft ?? redirects.seconds)
    let url = try await context.storeWork.run {
      store.url(of: key, bytes: bytes, by: redirects, seconds: seconds, answering: fields)
    }
    // Not kept: the address ends, and a recording may be deleted.
    return url.map { HTTPResponse(.temporaryRedirect, fields: ["Location": $0, "Cache-Control": "no-store"]) }
  }
}

extension HTTPRequest {
  /// Whether another server's answer will do; see above.
  var mayBeRedirected: Bool {
    method == .get && fields["Range"]?.contains(",") != true && !mayBeOfScript
      && !["Origin", "If-Match", "If-Unmodified-Since"].contains(where: fields.contains)
  }

  private var mayBeOfScript: Bool {
    if let mode = fields["Sec-Fetch-Mode"] { return !["navigate", "no-cors"].contains(mode) }
    return fields["User-Agent"]?.hasPrefix("Mozilla/") ?? false
  }
}
