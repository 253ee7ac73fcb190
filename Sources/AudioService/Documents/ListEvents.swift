// The server-sent events of the list (see JobEvents for the format):
//
//   event: recording       a recording was added or changed; data: the Recording
//   event: deleted         data: {"id":"…"}
//   event: job             a job was added, its state changed, or its progress grew by 0.01; data: the Job
//   event: resync          changes may have been missed: read the list again; data: {}
//
// Each event's ID is the place after it. A client that reconnects with it as Last-Event-ID gets what has changed since,
// each thing once in its current state. If the place is from an earlier run of the service, or more than 4,096 of the
// tenant's changes ago, it gets `resync` first, and so does a client that reads too slowly to keep up.

import HTTP
import Jobs
import Storage

/// `GET /v1/events`: streams what changes in the list of recordings. Listeners hold no thread and no queue of events.
struct ListEvents: Sendable {
  let context: Context

  @Sendable func stream(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    try QueryParameters.checkNone(request)
    let room = try context.eventStream(of: caller)
    let last = request.fields["Last-Event-ID"]
    let listener = Listener(context, caller, since: last.map { ChangeFeed.Place($0) ?? .init(run: 0, number: 0) }, room)
    return HTTPResponse(.ok, fields: JobEvents.fields, body: .stream(length: nil) { try await listener.next() })
  }
}

extension Context {
  /// Returns room for another stream of a client's list or batches. Throws if there are too many.
  func eventStream(of caller: Caller) throws -> TallyPlace {
    do throws(ClientTally.Refusal) { return try TallyPlace(of: caller.client, in: changes.streams) } catch {
      throw switch error {
      case .clientIsFull(let limit): ServiceError.limitReached("event_streams", limit: limit, retryAfter: 5)
      case .full(let limit): ServiceError.workerUnavailable(reason: "\(limit) event streams are open already")
      }
    }
  }
}

/// One client's stream. An actor only to protect its variables: its single caller requests one piece at a time.
private actor Listener {
  private struct Deleted: Encodable { let id: String }

  private let context: Context
  private let caller: Caller
  private let room: TallyPlace
  private var place: ChangeFeed.Place
  private var hasBegun = false

  /// Changes looked at for one piece, so that a piece has at most some 100 KB.
  private static let most = 32
  private static let heartbeat = Array(": \n\n".utf8)

  /// `since` is the place of the last event that the client has seen; nil if it has seen none.
  init(_ context: Context, _ caller: Caller, since: ChangeFeed.Place?, _ room: TallyPlace) {
    (self.context, self.caller, self.room) = (context, caller, room)
    place = since ?? context.changes.now(of: caller.tenant)
  }

  /// Returns the next events, or a comment if there were none for some time. nil if the service is stopping or the
  /// client or its key is gone.
  func next() async throws -> [UInt8]? {
    let feed = context.changes
    // An ID without data is remembered by the client, which can thus reconnect before the first event.
    let opening = hasBegun ? [] : Array("retry: 2000\nid: \(place)\n\n".utf8)
    hasBegun = true
    let clock = context.clock
    let deadline = clock.instant(after: context.configuration.heartbeatSeconds)
    while !Task.isCancelled, !feed.waitsHaveEnded, caller.isStillAdmitted {
      guard let changes = feed.changes(of: caller.tenant, since: place, most: Self.most) else {
        place = feed.now(of: caller.tenant)
        return opening + event("resync", Array("{}".utf8), place)
      }
      let events = try await events(changes.subjects, upTo: changes.place)
      place = changes.place
      if !events.isEmpty || !opening.isEmpty { return opening + events }
      let left = -clock.seconds(since: deadline)
      if left <= 0 { return Self.heartbeat }
      await feed.wait(of: caller.tenant, since: place, seconds: left)
    }
    return nil
  }

  private func events(_ subjects: [ChangeFeed.Subject], upTo end: ChangeFeed.Place) async throws -> [UInt8] {
    var all: [UInt8] = []
    for subject in subjects {
      // After a crash in the middle of a piece, the client gets all of it again: its place is that before the piece.
      let at = subject == subjects.last ? end : place
      switch subject {
      case .recording(let id):
        guard let document = try await context.documents.recording(id, of: caller.tenant) else { continue }
        all += event("recording", document.bytes, at)
      case .job(let id):
        guard let job = try await context.documents.snapshot(id, of: caller.tenant) else { continue }
        all += event("job", job.document.bytes, at)
      case .batch: continue
      case .deleted(let id): all += event("deleted", try JSONDocument.encoded(Deleted(id: id.text)), at)
      }
    }
    return all
  }

  private func event(_ name: String, _ data: [UInt8], _ place: ChangeFeed.Place) -> [UInt8] {
    Array("event: \(name)\nid: \(place)\ndata: ".utf8) + data + Array("\n\n".utf8)
  }
}
