/// Room for one job in the queue, or for another thing that a tally counts. The room of a job is held first by the
/// request that reserved it, then by the job. It's released on deinit.
package final class JobRoom: Sendable {
  private let client: Client
  private let tally: ClientTally

  /// Throws if the tally refuses the client.
  package init(of client: Client, in tally: ClientTally) throws(ClientTally.Refusal) {
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
