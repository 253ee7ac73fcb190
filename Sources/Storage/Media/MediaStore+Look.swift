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
  /// Looks for an object. Costs one system call.
  package func look(at key: ObjectKey) -> FileLook {
    do {
      return .present(bytes: try FileSystem.length(of: path(of: key)))
    } catch .io(_, _, let number) {
      return [ENOENT, ENOTDIR].contains(number) ? .absent : .unknown
    } catch {
      return .unknown
    }
  }

  /// Whether a recording has a file with that name. True if the disk doesn't respond.
  package func hasFile(_ name: String, of id: RecordingID) -> Bool { look(at: ObjectKey(id, name)) != .absent }
}
