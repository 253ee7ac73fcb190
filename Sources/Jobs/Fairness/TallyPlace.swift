/// A client's place in a tally: of a job in the queue, which is held first by the request that reserved it and then by
/// the job, of an event stream, or of a part of audio. It's given back on deinit.
package final class TallyPlace: Sendable {
  private let client: Client
  private let tally: ClientTally

  /// Throws if the tally refuses the client.
  package init(of client: Client, in tally: ClientTally) throws(ClientTally.Refusal) {
    try tally.take(client)
    (self.client, self.tally) = (client, tally)
  }

  /// Takes a place regardless of the limits, for a job that already exists.
  init(adding client: Client, to tally: ClientTally) {
    tally.add(client)
    (self.client, self.tally) = (client, tally)
  }

  deinit { tally.give(back: client) }
}
