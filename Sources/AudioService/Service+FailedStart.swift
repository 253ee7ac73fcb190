import HTTP
import Storage

extension Service {
  /// Explains an error of `init` or `start` to the person who starts the service.
  package static func words(forFailedStart error: any Error) -> String {
    switch error {
    case HTTPServerError.cannotListen(let host, let port, let number):
      "Can't listen on \(host):\(port): \(systemWords(number)). Choose another address with --listen."
    case StorageError.inUse(let path): "Another service uses \(path). Choose another folder with --data."
    case StorageError.lostCatalog(let path):
      """
      There are recordings, but the catalog \(path) is missing or empty. Nothing was changed. Put the catalog back, or \
      run “stillwave check --data DIR --repair” to rebuild it from the recordings' folders.
      """
    case StorageError.damagedCatalog(let path, let detail):
      """
      The catalog \(path) is damaged: \(detail). Nothing was changed. Restore a backup, or run “stillwave check --data \
      DIR --repair” to rebuild it from the recordings' folders.
      """
    case let error as UnusableFile: error.description
    default: logText(error)
    }
  }
}
