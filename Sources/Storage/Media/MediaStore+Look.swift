import Glibc

/// The result of looking for one file.
package enum FileLook: Sendable, Equatable {
  /// There is none of that name.
  case absent
  /// It has that length.
  case present(bytes: Int64)
  /// The disk fails to answer.
  case unknown
}

extension MediaStore {
  /// Looks for a recording's file of that name: one system call.
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
