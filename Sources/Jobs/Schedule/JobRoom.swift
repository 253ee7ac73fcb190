/// Room in the queue for one job, given back when nobody holds it any more: the request that reserved it, then the job.
package final class JobRoom: Sendable {
  private let client: Client
  private let tally: ClientTally

  init(of client: Client, in tally: ClientTally) throws(ClientTally.Refusal) {
    try tally.take(client)
    (self.client, self.tally) = (client, tally)
  }

  /// Whatever the limits: the job is there already.
  init(adding client: Client, to tally: ClientTally) {
    tally.add(client)
    (self.client, self.tally) = (client, tally)
  }

  deinit { tally.give(back: client) }
}
