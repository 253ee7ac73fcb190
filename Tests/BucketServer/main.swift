// BucketServer BUCKET ACCESSKEY SECRETKEY: serves an empty bucket in memory until it is killed, and prints its address.
// Each line of its standard input is the number of bytes that the bucket may hold from then on, or "refuse TEXT": reads
// of paths that contain TEXT are refused from then on; "refuse" ends that.

import Foundation
import ObjectStore

let words = CommandLine.arguments
guard words.count == 4 else { fatalError("BucketServer BUCKET ACCESSKEY SECRETKEY") }
let store = try ObjectStore(buckets: [words[1]], keys: [ObjectStore.Key(words[2], words[3])])
FileHandle.standardOutput.write(Data("\(store.endpoint)\n".utf8))
Thread.detachNewThread {
  while let line = readLine() {
    if let bytes = Int(line) { store.setQuota(bytes: bytes) }
    let words = line.split(separator: " ")
    if words.first == "refuse" { store.refuseReads(of: words.count > 1 ? String(words[1]) : nil) }
  }
}
// Ends with the process that started it.
while getppid() != 1 { try await Task.sleep(for: .seconds(1)) }
withExtendedLifetime(store) {}
