// The one place that separates tenants. Whoever serves a client has only the catalog of the client's tenant, and in it
// another tenant's rows don't exist: they are in no list, an ID of theirs finds nothing, and a change of them changes
// nothing. `Catalog` itself has every tenant's rows; it is for the service's own work, which no client directs.
//
// The tenant is a condition of each statement that looks for a row or changes one, so that another tenant's row isn't
// read at all: an ID of theirs costs the same statements, and as many rows, as one that was never given. A row's tenant
// is set when it is inserted and never changes.

/// A tenant's part of a catalog. A value of two words, made for each request.
package struct TenantCatalog: Sendable {
  /// The tenant.
  package let tenant: Tenant
  let whole: Catalog

  /// The present time by the clock that everyone who shares the catalog goes by; see `Catalog.time`.
  package var time: Timestamp { whole.time }

  /// Whether that may be wrong; see `Catalog.clockDoubt`.
  package var doubtsClock: Bool { whole.clockDoubt != nil }

  /// Throws if the catalog can't accept writes because it is damaged, removed, or replaced. Costs two system calls.
  package func checkFile() throws(StorageError) { try whole.checkFile() }
}

extension Catalog {
  /// Returns the part that belongs to a tenant.
  package func of(_ tenant: Tenant) -> TenantCatalog { TenantCatalog(tenant: tenant, whole: self) }
}

// MARK: Recordings

extension TenantCatalog {
  /// Returns the recording, or nil.
  package func recording(_ id: RecordingID) throws(StorageError) -> Recording? {
    try whole.recording(id, of: tenant)
  }

  /// Returns at most `limit` recordings older than `before`, newest first; see `Catalog.recordings`.
  package func recordings(
    limit: Int, after place: RecordingPlace? = nil, nameContaining query: String? = nil,
    in order: RecordingOrder = RecordingOrder()
  ) throws(StorageError) -> [Recording] {
    try whole.recordings(of: tenant, limit: limit, after: place, nameContaining: query, in: order)
  }

  /// Returns the IDs of the recordings that `recordings` would return, without decoding their rows.
  package func recordingIDs(
    limit: Int, after place: RecordingPlace?, nameContaining query: String?, in order: RecordingOrder
  ) throws(StorageError) -> [RecordingID] {
    try whole.recordingIDs(of: tenant, limit: limit, after: place, nameContaining: query, in: order)
  }

  /// Inserts a recording of this tenant, its jobs, their webhooks, and the stored answer in one transaction. Throws
  /// `.noSuchRecording` if a job's source is neither this recording nor another one of the tenant.
  package func insert(
    _ recording: Recording, jobs: [Job] = [], webhooks: [Webhook] = [], answer: StoredResponse? = nil,
    spending token: UploadToken? = nil, within limits: StoredLimits? = nil, next batch: Batch? = nil
  ) throws(StorageError) {
    var recording = recording
    recording.tenant = tenant
    try whole.insert(
      recording, jobs: jobs, webhooks: webhooks, answer: answer, spending: token, within: limits, next: batch)
  }

  /// Inserts a recording whose waveform has already been built; see `Catalog.insert`.
  package func insert(
    _ recording: Recording, finished job: Job, by token: AttemptToken, with result: String,
    adding tracks: [(track: LabelTrack, chunks: [LabelChunk])] = [], trackLimit: Int = 64,
    answer: StoredResponse? = nil, spending uploadToken: UploadToken? = nil, within limits: StoredLimits? = nil
  ) throws(StorageError) -> Job {
    var recording = recording
    recording.tenant = tenant
    return try whole.insert(
      recording, finished: job, by: token, with: result, adding: tracks, trackLimit: trackLimit, answer: answer,
      spending: uploadToken, within: limits)
  }

  /// Applies `change` to a recording and returns the result, or nil if there is none; see `Catalog.update`.
  @discardableResult
  package func update(
    _ id: RecordingID, if isExpected: @Sendable (Recording) -> Bool = { _ in true },
    _ change: @Sendable (inout Recording) -> Void
  ) throws(StorageError) -> Recording? {
    try whole.update(id, of: tenant, if: isExpected, describing: .later, change)
  }

  /// Changes a recording if `isExpected` returns true for it, and inserts `job`, which reads the recording, in the same
  /// transaction. Does nothing and returns nil if there is no such recording or it isn't as expected. Throws
  /// `.limitReached` if the tenant would have more bytes than `limits` with those that the job is expected to add.
  package func update(
    _ id: RecordingID, if isExpected: @Sendable (Recording) -> Bool, inserting job: Job?,
    within limits: StoredLimits? = nil, _ change: @Sendable (inout Recording) -> Void
  ) throws(StorageError) -> Recording? {
    try whole.update(id, of: tenant, if: isExpected, inserting: job, within: limits, describing: .later, change)
  }

  /// Deletes a recording's row; returns nil if there is none; see `Catalog.deleteRecording`.
  package func deleteRecording(
    _ id: RecordingID, if isExpected: @Sendable (Recording) -> Bool = { _ in true }
  ) throws(StorageError) -> [Job]? {
    try whole.deleteRecording(id, of: tenant, if: isExpected)
  }

  /// Whether there is no such recording, and won't be one again if a synchronous standby takes over; see
  /// `Catalog.isGone`.
  package func isGone(_ id: RecordingID) throws(StorageError) -> Bool { try whole.isGone(id, of: tenant) }
}

// MARK: Jobs

extension TenantCatalog {
  /// Returns the job, or nil.
  package func job(_ id: JobID) throws(StorageError) -> Job? {
    try whole.job(id, of: tenant)
  }

  /// Returns at most `limit` jobs older than `before`, newest first; see `Catalog.jobs`.
  package func jobs(
    state: JobState? = nil, recording: RecordingID? = nil, limit: Int, before: JobID? = nil
  ) throws(StorageError) -> [Job] {
    try whole.jobs(of: tenant, state: state, recording: recording, limit: limit, before: before)
  }

  /// Cancels a job, and deletes the recording it was producing; see `Catalog.cancel`.
  package func cancel(
    _ id: JobID, if isExpected: @Sendable (Job) -> Bool = { _ in true }, progress: Double? = nil
  ) throws(StorageError) -> [Job]? {
    try whole.cancel(id, of: tenant, if: isExpected, progress: progress, describing: .later)
  }

  /// Returns the newest job of a kind, in this state, with `recording` as its source; see `Catalog.latestJob`.
  package func latestJob(
    kind: JobKind, state: JobState, of recording: RecordingID
  ) throws(StorageError) -> Job? {
    try whole.latestJob(kind: kind, state: state, of: recording, of: tenant)
  }

  /// Returns the unfinished job for the same work, or inserts `job`; see `Catalog.sharedJob`.
  package func sharedJob(
    orElse job: Job, within limits: StoredLimits? = nil
  ) throws(StorageError) -> (job: Job, isNew: Bool) {
    try whole.sharedJob(orElse: job, of: tenant, within: limits)
  }
}

// MARK: Conversions

extension TenantCatalog {
  /// Returns the conversion of a recording to `format`, or nil.
  package func conversion(of id: RecordingID, to format: String) throws(StorageError) -> Conversion? {
    try whole.conversion(of: id, to: format, of: tenant)
  }

  /// Records that a conversion was requested.
  package func touch(_ conversion: Conversion) throws(StorageError) {
    try whole.touch(conversion, of: tenant)
  }

  /// Deletes a conversion whose file is missing.
  package func forget(_ conversion: Conversion) throws(StorageError) {
    try whole.forget(conversion, of: tenant)
  }
}

// MARK: Noise profiles

extension TenantCatalog {
  /// Returns profiles of this tenant, newest first; see `Catalog.noiseProfiles`.
  package func noiseProfiles(
    limit: Int, before: KeptProfileID? = nil, byteLimit: Int = .max
  ) throws(StorageError) -> [KeptProfile] {
    try whole.noiseProfiles(of: tenant, limit: limit, before: before, byteLimit: byteLimit)
  }

  /// Returns a profile, or nil; see `Catalog.noiseProfile`.
  package func noiseProfile(_ id: KeptProfileID, evenDeleted: Bool = false) throws(StorageError) -> KeptProfile? {
    try whole.noiseProfile(id, evenDeleted: evenDeleted, of: tenant)
  }

  /// Inserts a profile of this tenant; see `Catalog.insert`.
  package func insert(
    _ profile: KeptProfile, limit: Int, within limits: StoredLimits? = nil
  ) throws(StorageError) {
    var profile = profile
    profile.tenant = tenant
    try whole.insert(profile, limit: limit, within: limits)
  }

  /// Renames a profile and returns it, or nil if there is none; see `Catalog.renameNoiseProfile`.
  package func renameNoiseProfile(
    _ id: KeptProfileID, to name: String, if isExpected: @Sendable (KeptProfile) -> Bool
  ) throws(StorageError) -> KeptProfile? {
    try whole.renameNoiseProfile(id, of: tenant, to: name, if: isExpected)
  }

  /// Deletes a profile; returns false if there is none; see `Catalog.deleteNoiseProfile`.
  package func deleteNoiseProfile(
    _ id: KeptProfileID, if isExpected: @Sendable (KeptProfile) -> Bool
  ) throws(StorageError) -> Bool {
    try whole.deleteNoiseProfile(id, of: tenant, if: isExpected)
  }
}

// MARK: Labels

extension TenantCatalog {
  /// Returns the tracks of a recording, oldest first.
  package func labelTracks(of id: RecordingID) throws(StorageError) -> [LabelTrack] {
    try whole.labelTracks(of: id, of: tenant)
  }

  /// Returns the recording whose tracks a recording of this tenant has; see `Catalog.labelOwner`.
  package func labelOwner(of recording: Recording) throws(StorageError) -> RecordingID? {
    try whole.labelOwner(of: recording, of: tenant)
  }

  /// Returns a track, or nil.
  package func labelTrack(_ id: LabelTrackID) throws(StorageError) -> LabelTrack? {
    try whole.labelTrack(id, of: tenant)
  }

  /// Returns a track and those of its chunks that overlap a window, or nil; see `Catalog.labels`.
  package func labels(
    of id: LabelTrackID, from start: Int64 = 0, to end: Int64 = .max, containing text: String? = nil,
    if areNeeded: (LabelTrack) -> Bool = { _ in true }
  ) throws(StorageError) -> (track: LabelTrack, chunks: [FoundLabels])? {
    try whole.labels(of: id, from: start, to: end, containing: text, of: tenant, if: areNeeded)
  }

  /// Returns the chunk of a track after the one with the number `last`, or nil; see `Catalog.labels`.
  package func labels(
    after last: Int, of id: LabelTrackID
  ) throws(StorageError) -> (found: FoundLabels, lines: [Substring])? {
    try whole.labels(after: last, of: id, of: tenant)
  }

  /// Inserts a track with its labels; see `Catalog.insert`. Throws `.noSuchRecording` unless its recording is the
  /// tenant's.
  package func insert(
    _ track: LabelTrack, _ chunks: [LabelChunk], limit: Int, within limits: StoredLimits? = nil
  ) throws(StorageError) {
    try whole.insert(track, chunks, of: tenant, limit: limit, within: limits)
  }

  /// Changes a track and, with `chunks`, its labels; see `Catalog.update`.
  package func update(
    _ id: LabelTrackID, if isExpected: @Sendable (LabelTrack) -> Bool, _ chunks: ChangedChunks = .none,
    within limits: StoredLimits? = nil, _ change: @Sendable (inout LabelTrack) -> Void
  ) throws(StorageError) -> LabelTrack? {
    try whole.update(id, of: tenant, if: isExpected, chunks, within: limits, change)
  }

  /// Deletes a track; returns false if there is none; see `Catalog.deleteLabelTrack`.
  package func deleteLabelTrack(_ id: LabelTrackID, if isExpected: @Sendable (LabelTrack) -> Bool) throws(StorageError)
    -> Bool
  {
    try whole.deleteLabelTrack(id, of: tenant, if: isExpected)
  }
}

// MARK: Uploads and answers

extension TenantCatalog {
  /// Returns the upload, or nil.
  package func upload(_ id: UploadID) throws(StorageError) -> Upload? {
    try whole.upload(id, of: tenant)
  }

  /// Inserts an upload of this tenant; see `Catalog.insert`.
  package func insert(
    _ upload: Upload, limits: UploadLimits, spending token: UploadToken? = nil
  ) throws(StorageError) {
    var upload = upload
    upload.tenant = tenant
    try whole.insert(upload, limits: limits, spending: token)
  }

  /// Records an upload's offset and expiry; see `Catalog.advance`. Throws `.noSuchUpload` if there is none.
  package func advance(
    _ id: UploadID, to offset: Int64, expiresAt: Timestamp, by writer: Int = 0, adding objects: [UploadObject] = []
  ) throws(StorageError) {
    try whole.advance(id, of: tenant, to: offset, expiresAt: expiresAt, by: writer, adding: objects)
  }

  /// Records the length of an upload; see `Catalog.announce`.
  package func announce(_ length: Int64, of id: UploadID) throws(StorageError) {
    try whole.announce(length, of: id, of: tenant)
  }

  /// Makes the caller the writer of an upload; see `Catalog.takeOver`.
  package func takeOver(_ id: UploadID, at offset: Int64) throws(StorageError) -> Upload {
    try whole.takeOver(id, of: tenant, at: offset)
  }

  /// Returns the segments of an upload; see `Catalog.segments`.
  package func segments(of id: UploadID) throws(StorageError) -> [UploadSegment] {
    guard try upload(id) != nil else { throw .noSuchUpload(id) }
    return try whole.segments(of: id)
  }

  /// Inserts the recording that an upload became; see `Catalog.insert`. Throws `.noSuchUpload` if there is no such
  /// upload.
  package func insert(
    _ recording: Recording, jobs: [Job], finishing id: UploadID, expiresAt: Timestamp,
    within limits: StoredLimits? = nil
  ) throws(StorageError) {
    try whole.insert(recording, jobs: jobs, finishing: id, of: tenant, expiresAt: expiresAt, within: limits)
  }

  /// Deletes an upload and stores `answer`, if given, in its place; see `Catalog.deleteUpload`.
  @discardableResult
  package func deleteUpload(
    _ id: UploadID, keeping answer: StoredResponse? = nil, ifExpiredBefore instant: Timestamp? = nil,
    unfinishedBy writer: Int? = nil, ifEmpty: Bool = false
  ) throws(StorageError) -> Bool {
    try whole.deleteUpload(
      id, of: tenant, keeping: answer, ifExpiredBefore: instant, unfinishedBy: writer, ifEmpty: ifEmpty)
  }

  /// Returns the answer stored under a key, or nil.
  package func answer(scope: String, key: String) throws(StorageError) -> StoredResponse? {
    try whole.answer(of: tenant, scope: scope, key: key)
  }

  /// Deletes the answer stored under a key, if there is one.
  package func removeAnswer(scope: String, key: String) throws(StorageError) {
    try whole.removeAnswer(of: tenant, scope: scope, key: key)
  }
}
