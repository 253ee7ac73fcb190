import Synchronization

/// FFTW's planner, of which a process has one. It isn't thread-safe, and neither is the destruction of a plan.
package enum FFTWPlanner {
  /// Held while a plan is made or destroyed.
  package static let lock = Mutex(())
}
