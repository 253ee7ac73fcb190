import Storage

extension Service {
  /// Explains why a move can't begin or didn't end.
  static func words(for fault: MovePlaces.Fault) -> String {
    switch fault {
    case .noFolder(let path): "There is no data folder \(path)."
    case .dataFolderAsMedia(let path):
      "\(path) is the data folder of one machine. --media names a folder of its own, which is empty or doesn't exist."
    case .otherMove(let path): "Another “stillwave move” uses \(path). Wait until it has ended."
    case .nodesAtWork(let count):
      "\(count) sessions of nodes use the catalog. Stop all nodes, and run the same command again."
    case .interrupted(let cause):
      """
      \(words(forFailedMove: cause)) What was copied stays: run the same command again, and it goes on. The place to \
      move from is as it was.
      """
    }
  }

  private static func words(forFailedMove error: any Error) -> String {
    switch error {
    case StorageError.cancelled: return "Canceled."
    case StorageError.diskFull: return "The disk is full."
    case StorageError.storeFull: return "The bucket or its quota is full."
    case StorageError.outcomeUnknown: return "The connection to the catalog's server was lost while it wrote the rows."
    case StorageError.busy: return "Another program locks the tables of the catalog."
    default:
      let words = words(forFailedStart: error)
      return words.hasSuffix(".") ? words : words + "."
    }
  }
}
