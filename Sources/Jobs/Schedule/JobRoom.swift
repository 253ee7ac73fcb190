/// Room in the queue for one job. It's held first by the request that reserved it, then by the job, and released on
/// deinit.
package final class JobRoom: Sendable {
  private let client: Client
  private let tally: ClientTally

  init(of client: Client, in tally: ClientTally) throws(ClientTally.Refusal) {
    try tally.take(client)
    (self.client, self.tally) = (client, tally)
  }

  /// Takes room regardless of the limits, for a job that already exists.
  init(adding client: Client, to tally: ClientTally) {
    tally.add(client)
    (self.client, self.tally) = (client, tally)
  }

  deinit { tally.give(back: client) }
}
