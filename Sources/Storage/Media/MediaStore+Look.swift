import Glibc

/// The result of looking for one file.
package enum FileLook: Sendable, Equatable {
  /// There is no file with that name.
  case absent
  /// The file exists and has this length.
  case present(bytes: Int64)
  /// The disk doesn't respond.
  case unknown
}

extension MediaStore {
  /// Looks for a recording's file with that name. Costs one system call.
  package func look(at name: String, of id: RecordingID) -> FileLook {
    do {
      return .present(bytes: try FileSystem.length(of: folder(of: id) + "/" + name))
    } catch .io(_, _, let number) {
      return [ENOENT, ENOTDIR].contains(number) ? .absent : .unknown
    } catch {
      return .unknown
    }
  }
}
