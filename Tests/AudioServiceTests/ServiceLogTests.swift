import Glibc
import HTTP
import Jobs
import PresentRows
import Storage
import Testing

@testable import AudioService

@Suite struct ServiceLogTests {
  private func logged(_ error: any Error) throws -> [String] {
    let lines = LoggedLines()
    let log = ServiceLog(lines.logger)
    log.answered(try HTTPRequest(method: .get, target: "/"), with: problem(for: error), for: error)
    return lines.all
  }

  @Test("an intended answer isn't a failure")
  func meant() throws {
    #expect(try logged(RequestError.converting(JobID())) == [])
    #expect(try logged(JobsError.queueFull(limit: 1)) == [])
  }

  @Test(
    "a failure is logged with an explanation",
    arguments: [
      (StorageError.io(operation: "rename", path: "/a/b", errno: EROFS), "/a/b: rename failed: Read-only file system"),
      (ServiceError.storage(.database(code: 778, message: "disk I/O error")), "SQLite error 778: disk I/O error"),
      (ServiceError.workerUnavailable(reason: "no spectrum came"), "no spectrum came"),
      (StorageError.diskFull, "the disk is full"),
    ] as [(any Error, String)])
  func words(error: any Error, text: String) throws {
    #expect(try logged(error) == ["error a request failed: \(text)"])
  }
}
