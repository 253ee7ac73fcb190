// BucketServer BUCKET ACCESSKEY SECRETKEY: serves an empty bucket in memory until it is killed, and prints its address.
// Each line of its standard input is the number of bytes that the bucket may hold from then on, or "refuse TEXT": reads
// of paths that contain TEXT are refused from then on; "refuse" ends that. "session NAME" makes a key NAME with the
// same secret and the session token NAME; earlier sessions expire. ACCESSKEY stays valid.

import Foundation
import ObjectStore

let words = CommandLine.arguments
guard words.count == 4 else { fatalError("BucketServer BUCKET ACCESSKEY SECRETKEY") }
let secret = words[3]
let lasting = S3Server.Key(words[2], secret)
let store = try S3Server(buckets: [words[1]], keys: [lasting])
FileHandle.standardOutput.write(Data("\(store.endpoint)\n".utf8))
Thread.detachNewThread {
  var sessions: [String] = []
  while let line = readLine() {
    if let bytes = Int(line) { store.setQuota(bytes: bytes) }
    let words = line.split(separator: " ").map(String.init)
    if words.first == "refuse" { store.refuseReads(of: words.count > 1 ? words[1] : nil) }
    if words.first == "session", words.count == 2 {
      sessions.append(words[1])
      store.setKeys(
        [lasting] + sessions.map { S3Server.Key($0, secret, sessionToken: $0, hasExpired: $0 != words[1]) })
    }
  }
}
// Ends with the process that started it.
while getppid() != 1 { try await Task.sleep(for: .seconds(1)) }
withExtendedLifetime(store) {}
