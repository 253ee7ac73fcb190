import Foundation
import Testing

@testable import Storage

@Suite struct TemporaryDirectoryTests {
  let folder: TemporaryFolder
  var destination: String { folder("whole") }

  init() throws { folder = try TemporaryFolder() }

  private func fill(commits: Bool = true) throws {
    var made = try TemporaryDirectory(for: destination + "/", lastFile: "last")
    try FileSystem.makeFolder(made.path + "/inner")
    for name in ["inner/file", "last"] { try write("mine", to: made.path + "/" + name) }
    if commits { try made.commit() }
  }

  @Test("a committed folder is complete; an uncommitted one is gone", arguments: [true, false])
  func committed(isThere: Bool) throws {
    if isThere { try FileSystem.makeFolder(destination) }
    try fill(commits: false)
    #expect(try folder.contents() == (isThere ? ["whole"] : []))
    try fill()
    #expect(try folder.contents() == ["whole", "whole/inner", "whole/inner/file", "whole/last"])
  }

  @Test("an existing empty folder is filled in place, as the root of a disk must be")
  func inPlace() throws {
    try FileSystem.makeFolders(destination + "/lost+found")
    let before = FileSystem.identity(of: destination)
    try fill()
    #expect(FileSystem.identity(of: destination) == before)
    #expect(try folder.contents() == ["whole", "whole/inner", "whole/inner/file", "whole/last", "whole/lost+found"])
  }

  @Test("a folder that isn't empty, or a file, is refused and left alone")
  func refused() throws {
    try FileSystem.makeFolder(destination)
    try write("mine", to: destination + "/notes")
    #expect(throws: StorageError.io(operation: "mkdir", path: destination, errno: EEXIST)) { try fill() }
    #expect(throws: StorageError.io(operation: "mkdir", path: destination + "/notes", errno: EEXIST)) {
      _ = try TemporaryDirectory(for: destination + "/notes", lastFile: "last")
    }
    #expect(try folder.contents() == ["whole", "whole/notes"])
  }

  @Test("leftovers of a killed run are removed by the next one with the same destination", arguments: [true, false])
  func leftovers(isInside: Bool) throws {
    if isInside { try FileSystem.makeFolder(destination) }
    let prefix = isInside ? "whole/.partial-" : "whole.partial-"
    let left = prefix + UUIDv7().text
    try FileSystem.makeFolders(folder(left) + "/inner")
    try write("half", to: folder(left) + "/inner/file")
    let others = [
      "whole.partial-", "whole.partial-x", "whole.partial-\(UUIDv7().text)x", "hole.partial-\(UUIDv7().text)",
    ]
    for other in others { try FileSystem.makeFolder(folder(other)) }
    try fill()
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == (others + ["whole"]).sorted())
  }

  @Test("a folder that another run is filling stays")
  func inUse() throws {
    let other = try TemporaryDirectory(for: destination, lastFile: "last")
    try write("half", to: other.path + "/file")
    try fill()
    #expect(try read(other.path + "/file") == "half")
  }
}
