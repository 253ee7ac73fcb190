import HTTP
import Jobs
import Storage

extension Context {
  /// Returns the route, changed to write what it does to the audit log, if there is one: every change, and every read
  /// of audio.
  func auditing(_ route: ServiceRoute) -> ServiceRoute {
    guard let audit = access.audit, route.rule != .everyone, route.pattern.hasPrefix("/v1/") else { return route }
    let isAudio = ["/audio", "/video", "/preview"].contains { route.pattern.hasSuffix($0) }
    guard isAudio || !route.method.isSafe else { return route }
    return route.wrapping { handler in
      { [self] request, parameters, caller in
        .later { [self] in
          // A change that can't be recorded must not be made.
          guard await audit.canWrite() else { throw ServiceError.auditFails }
          let response = try await handler(request, parameters, caller).response
          guard response.status.code < 400 else { return response }
          let line = line(of: route, request, parameters, caller, response)
          guard await audit.write(line.bytes, isDurable: !request.method.isSafe) else {
            log.failure("the audit log could not be written", ["file": audit.path])
            throw ServiceError.auditFails
          }
          return response
        }
      }
    }
  }

  private func line(
    of route: ServiceRoute, _ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller,
    _ response: HTTPResponse
  ) -> AuditLine {
    let hasID = route.pattern.contains("{id}")
    // That of a redirect has a signature, which lets anyone read.
    let made = response.status == .temporaryRedirect ? nil : response.fields["Location"]
    func given(_ text: String) -> String? { text.isEmpty ? nil : text }
    return AuditLine(
      time: Timestamp.now.rfc3339, action: "\(request.method.rawValue) \(route.pattern)",
      id: hasID ? parameters["id"] : nil, location: made, tenant: given(caller.tenant.name),
      key: given(caller.grant.keyID), token: caller.grant.tokenID,
      peer: Client.address(of: request, trusting: configuration.trustedProxies), requestId: request.id,
      status: response.status.code)
  }
}
