import Jobs
import Storage

/// Keeps the account of how long tenants' jobs have run today, after the catalog, which has it from each job's end on.
final class JobSecondsCounter: Sendable {
  private let accounts: TenantAccounts
  private let catalog: Catalog
  private let work: WorkQueue
  private let log: ServiceLog

  init(_ accounts: TenantAccounts, _ catalog: Catalog, _ work: WorkQueue, _ log: ServiceLog) {
    (self.accounts, self.catalog, self.work, self.log) = (accounts, catalog, work, log)
  }

  /// Reads the catalog's figures soon.
  func count() {
    work.start { [self] in
      do { accounts.note(jobSeconds: try catalog.jobSeconds(through: accounts.today)) } catch {
        log.failure("the seconds of jobs could not be counted", ["error": logText(error)])
      }
    }
  }
}
