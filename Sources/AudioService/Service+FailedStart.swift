import Glibc
import HTTP
import Storage

extension Service {
  /// What a person needs to know to start the service better: the words for what `init` and `start` throw.
  public static func words(forFailedStart error: any Error) -> String {
    switch error {
    case HTTPServerError.cannotListen(let host, let port, let number):
      "Can't listen on \(host):\(port): \(reason(number)). Choose another address with --listen."
    case StorageError.inUse(let path): "Another service uses \(path). Choose another folder with --data."
    case StorageError.io(let operation, let path, let number): "\(path): \(operation) failed: \(reason(number))."
    default: "\(error)"
    }
  }

  private static func reason(_ number: Int32) -> String { unsafe String(cString: strerror(number)) }
}
