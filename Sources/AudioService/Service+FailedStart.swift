import HTTP
import Storage

extension Service {
  /// Describes an error thrown by `init` or `start`, and what the operator can do about it.
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
    default: logText(error)
    }
  }
}
