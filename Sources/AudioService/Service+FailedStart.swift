import HTTP
import Storage

extension Service {
  /// What a person needs to know to start the service better: the words for what `init` and `start` throw.
  public static func words(forFailedStart error: any Error) -> String {
    switch error {
    case HTTPServerError.cannotListen(let host, let port, let number):
      "Can't listen on \(host):\(port): \(systemWords(number)). Choose another address with --listen."
    case StorageError.inUse(let path): "Another service uses \(path). Choose another folder with --data."
    default: logText(error)
    }
  }
}
