import HTTP
import Jobs
import Terms

/// Admits requests with long bodies that stay in memory until they are stored: files of labels, which may have 16 MiB,
/// and noise profiles. Only a few are read at a time, and clients take turns.
final class BodyIntake: Sendable {
  private let places: FairPlaces

  /// Bodies up to this length are read at once, like every other request's JSON.
  private static let freeLength = Int64(JSONMembers.byteLimit)

  init(
    _ clock: Clock, places: Int = 8, placesPerClient: Int = 4, waiting: Int = 64, waitingPerClient: Int = 16
  ) {
    self.places = FairPlaces(
      .init(
        places: places, placesPerClient: placesPerClient, waiting: waiting, waitingPerClient: waitingPerClient),
      clock)
  }

  /// Runs `body`, which reads the request's content and stores it, when it is the client's turn.
  ///
  /// Throws `.limitReached` or `.workerUnavailable` if too many requests wait; `limit` names the limit in the refusal's
  /// code, `limit_…`.
  func run<R>(
    _ request: HTTPRequest, for client: Client, limit: String, _ body: () async throws -> R
  ) async throws -> R {
    if let length = request.body.declaredLength, length <= Self.freeLength { return try await body() }
    do throws(FairPlaces.Refusal) { try await places.take(for: client) } catch {
      throw error.problem(of: limit)
    }
    defer { places.give(back: client) }
    return try await body()
  }
}
