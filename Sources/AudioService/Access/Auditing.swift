import HTTP
import Jobs
import Storage
import Synchronization

extension Context {
  /// Returns the route, changed to write what it does to the audit log, if there is one: every change, and every read
  /// of audio. A HEAD of an upload makes the recording that a crash has kept from being made.
  func auditing(_ route: ServiceRoute) -> ServiceRoute {
    guard let audit = access.audit, route.rule != .everyone, route.pattern.hasPrefix("/v1/") else { return route }
    let isAudio = ["/audio", "/video", "/preview"].contains { route.pattern.hasSuffix($0) }
    let isUpload = route.pattern.hasPrefix("/v1/uploads/")
    guard isAudio || isUpload || !route.method.isSafe else { return route }
    return route.wrapping { handler in
      { [self] request, parameters, caller in
        .later { [self] in
          // A change that can't be recorded must not be made.
          guard await audit.canWrite() else { throw ServiceError.auditFails }
          guard isUpload || !request.method.isSafe else {
            let response = try await handler(request, parameters, caller).response
            if response.status.code < 400 {
              try await write(line(of: route, request, parameters, caller, response), isDurable: false, audit)
            }
            return response
          }
          return try await auditingChange(of: route, request, parameters, caller, audit) {
            try await handler(request, parameters, caller).response
          }
        }
      }
    }
  }

  private func write(_ line: AuditLine, isDurable: Bool, _ audit: AuditLog) async throws {
    guard await audit.write(Array((line.text + "\n").utf8), isDurable: isDurable) else {
      log.failure("the audit log could not be written", ["file": audit.path])
      throw ServiceError.auditFails
    }
  }

  /// Carries out a change. Its line is in the catalog from the first transaction on and in the log before this returns,
  /// even if only a part of the change was made.
  private func auditingChange(
    of route: ServiceRoute, _ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller, _ audit: AuditLog,
    _ change: () async throws -> HTTPResponse
  ) async throws -> HTTPResponse {
    let entry = AuditEntry.newID()
    var begun = line(of: route, request, parameters, caller, nil)
    begun.entry = entry
    let isUpload = route.pattern.hasPrefix("/v1/uploads")
    let made = Mutex<String?>(nil)
    let trail = AuditTrail { [begun] changes in
      var line = begun
      if isUpload || request.method == .post, isUpload || begun.id == nil {
        line.location = changes.recordings.first.map { "/v1/recordings/\($0.id)" }
      } else if request.method == .post {
        line.location = changes.jobs.first.map { "/v1/jobs/\($0.id)" }
      }
      line.location = made.withLock { made in
        made = line.location ?? made
        return made
      }
      return request.method.isSafe && line.location == nil ? [] : [AuditEntry(id: entry, line: line.text)]
    }
    let result: Result<HTTPResponse, any Error>
    do { result = .success(try await AuditTrail.$current.withValue(trail, operation: change)) } catch {
      result = .failure(error)
    }
    trail.close()
    let response = try? result.get()
    let isRefused = response.map { $0.status.code >= 400 } ?? true
    let recording = isUpload && trail.isCommitted ? made.withLock(\.self) : nil
    if request.method.isSafe ? recording != nil : !isRefused || trail.isCommitted {
      var line = line(of: route, request, parameters, caller, response)
      line.entry = entry
      line.location = recording ?? line.location
      try await write(line, isDurable: true, audit)
      if trail.isCommitted { auditOutbox?.forget(entry) }
    }
    return try result.get()
  }

  private func line(
    of route: ServiceRoute, _ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller,
    _ response: HTTPResponse?
  ) -> AuditLine {
    let hasID = route.pattern.contains("{id}")
    // That of a redirect has a signature, which lets anyone read.
    let made = response?.status == .temporaryRedirect ? nil : response?.fields["Location"]
    func given(_ text: String) -> String? { text.isEmpty ? nil : text }
    return AuditLine(
      time: configuration.clock.time.rfc3339, action: "\(request.method.rawValue) \(route.pattern)",
      id: hasID ? parameters["id"] : nil, location: made, tenant: given(caller.tenant.name),
      key: given(caller.grant.keyID), token: caller.grant.tokenID,
      peer: Client.address(of: request, trusting: configuration.trustedProxies), requestId: request.id,
      status: response?.status.code)
  }
}
