import Dispatch
import Storage

// Used only if several processes share the catalog. Renews the leases of running attempts, stops attempts whose leases
// can't be renewed, and ends the leases of processes that are gone.

extension JobRunner {
  /// Keeps leases from now on, until the service stops. Does nothing under the data folder's lock.
  func keepLeases() {
    guard let terms = catalog.holder.terms else { return }
    clock.after(terms.renewalSeconds, on: queue) { [weak self] in
      guard let self, !state.value.isStopping else { return }
      for token in state.value.leases?.tokens ?? [] { renew(token) }
      reread()
      keepLeases()
    }
  }

  /// Notes a lease, and stops its attempt in time if it isn't prolonged.
  func granted(_ token: AttemptToken, askedAt time: Double) {
    dispatchPrecondition(condition: .onQueue(queue))
    guard let limit = state.value.leases?.granted(token, askedAt: time) else { return }
    stop(token, at: limit)
  }

  private func prolonged(_ token: AttemptToken, askedAt time: Double) {
    guard let limit = state.value.leases?.prolonged(token, askedAt: time) else { return }
    stop(token, at: limit)
  }

  private func stop(_ token: AttemptToken, at limit: Double) {
    clock.after(limit - now, on: queue) { [weak self] in
      guard let self, state.value.leases?.isEnding(token, at: now) == true else { return }
      lost(token)
    }
  }

  private func renew(_ token: AttemptToken) {
    let askedAt = now
    start { [self] in
      // nil if the catalog can't be reached, so that the lease stays what it is.
      let isRenewed = try? catalog.renew(token)
      clock.async(on: queue) { [self] in
        if isRenewed == true { return prolonged(token, askedAt: askedAt) }
        if isRenewed == false || state.value.leases?.isEnding(token, at: now) == true { lost(token) }
      }
    }
  }

  private func lost(_ token: AttemptToken) {
    guard state.value.attempts[token.job]?.claimed.token == token else { return }
    take(.leaseLost(token.job))
  }
}
