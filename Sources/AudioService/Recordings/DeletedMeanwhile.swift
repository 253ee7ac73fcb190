import HTTP
import Storage

// A recording can be deleted while a request about it is being served. Then the worker finds no file, the conversion is
// canceled, or the waveform can't be opened. The service hasn't failed, and a retry wouldn't help: the recording no
// longer exists.

extension Context {
  /// Returns the route, changed to answer 404 if a request fails because its recording was deleted meanwhile.
  func answeringDeleted(_ route: ServiceRoute) -> ServiceRoute {
    guard route.pattern.hasPrefix("/v1/recordings/{id}") else { return route }
    return route.wrapping { handler in
      { [self] request, parameters, caller in
        let answer = try handler(request, parameters, caller)
        guard case .later(let work) = answer else { return answer }
        return .later {
          do { return try await work() } catch {
            throw await self.cause(of: error, about: RecordingID(parameters["id"]), caller)
          }
        }
      }
    }
  }

  /// Returns `.noSuchRecording` if the deletion may explain the error and the recording is gone, else the error. If the
  /// catalog can't be read, the recording counts as existing.
  func cause(of error: any Error, about id: RecordingID?, _ caller: Caller) async -> any Error {
    guard let id, Self.mayComeOfDeletion(error) else { return error }
    let catalog = caller.catalog
    do {
      let isKept = try await work.run { () throws(StorageError) in try catalog.recording(id) != nil }
      return isKept ? error : ServiceError.noSuchRecording(id.text)
    } catch _ {
      return error
    }
  }

  /// False for errors that are the request's own fault, which are reported as they are, and for a change that may have
  /// been made, because that may have been the deletion.
  private static func mayComeOfDeletion(_ error: any Error) -> Bool {
    if StorageError.isUncertain(error) { return false }
    if case ServiceError.rejectedByWorker = error { return true }
    let status = problem(for: error).status
    return status.code >= 500 || status == .conflict || status == .gone
  }
}
