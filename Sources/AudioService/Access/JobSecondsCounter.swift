import Jobs
import Storage
import Synchronization

/// Keeps the account of how long tenants' jobs have run today, after the catalog, which has it from each job's end on.
/// Work on demand (previews, spectra, parts, pictures) counts like that of jobs; the catalog gets its seconds when a
/// tenant's are more than one, or with the next count.
final class JobSecondsCounter: Sendable {
  private enum State { case idle, counting, countingAgain }

  private let accounts: TenantAccounts
  private let catalog: Catalog
  private let work: WorkQueue
  private let log: ServiceLog
  private let state = Mutex(State.idle)

  init(_ accounts: TenantAccounts, _ catalog: Catalog, _ work: WorkQueue, _ log: ServiceLog) {
    (self.accounts, self.catalog, self.work, self.log) = (accounts, catalog, work, log)
  }

  /// Throws `.clientDaySpent` if the client's tenant has used up its seconds of today.
  func check(_ client: Client) throws(JobsError) {
    guard let (limit, left) = accounts.clientLimits.spentDay(client) else { return }
    throw .clientDaySpent(limitSeconds: limit, retryAfter: left)
  }

  /// Counts time as that of work on demand.
  func add(_ seconds: Double, of client: Client) {
    guard let tenant = client.tenant else { return }
    if accounts.spend(seconds, of: tenant) >= 1 { count() }
  }

  /// Reads the catalog's figures soon. One count at a time, so that none adds what another is adding.
  func count() {
    let isFirst = state.withLock { state in
      defer { state = state == .idle ? .counting : .countingAgain }
      return state == .idle
    }
    if isFirst { start() }
  }

  private func start() {
    work.start { [self] in
      do {
        let spent = accounts.spent
        if !spent.isEmpty { try catalog.add(jobSeconds: spent) }
        accounts.note(jobSeconds: try catalog.jobSeconds(through: accounts.today), including: spent)
      } catch { log.failure("the seconds of jobs could not be counted", ["error": logText(error)]) }
      let isWanted = state.withLock { state in
        defer { state = state == .countingAgain ? .counting : .idle }
        return state == .countingAgain
      }
      if isWanted { start() }
    }
  }
}
