import HTTP
import Storage

// A recording can be deleted while a request about it is served: its worker then finds no file, its conversion is
// cancelled, its waveform can't be opened. The service has not failed, and trying again would not help: there is no
// such recording any more.

extension Context {
  /// The route, with failures of a request about a recording that has been deleted meanwhile answered as 404.
  func answeringDeleted(_ route: Route) -> Route {
    guard route.pattern.hasPrefix("/v1/recordings/{id}") else { return route }
    return route.wrapping { handler in
      { [self] request, parameters in
        let answer = try handler(request, parameters)
        guard case .later(let work) = answer else { return answer }
        return .later {
          do { return try await work() } catch {
            throw await self.cause(of: error, about: RecordingID(parameters["id"]))
          }
        }
      }
    }
  }

  /// `.noSuchRecording` if the error may come of the recording's deletion and the recording is gone, else the error. A
  /// catalog that fails to answer has every recording.
  func cause(of error: any Error, about id: RecordingID?) async -> any Error {
    guard let id, Self.mayComeOfDeletion(error) else { return error }
    let catalog = catalog
    do {
      let isKept = try await work.run { () throws(StorageError) in try catalog.recording(id) != nil }
      return isKept ? error : ServiceError.noSuchRecording(id.text)
    } catch _ {
      return error
    }
  }

  /// Not what the request alone is to blame for, which is said first.
  private static func mayComeOfDeletion(_ error: any Error) -> Bool {
    if case ServiceError.rejectedByWorker = error { return true }
    let status = problem(for: error).status
    return status.code >= 500 || status == .conflict || status == .gone
  }
}
