// The tables of a catalog, for both engines: written for SQLite, and translated for PostgreSQL by the names of types.
// So a column is declared once. What only one engine has, its own schema adds: indexes of names, triggers, room in
// pages.
//
// IDs are text, so that sqlite3's shell shows them like the API, and sort by time, so that "newest first" is the
// primary key in reverse. Times are milliseconds since 1970. Small lists and values used only by clients are JSON.
//
// Every row with an ID or a key of its own names its tenant, the empty one without keys (see TenantCatalog); so does a
// conversion, because conversions are counted by tenant. Others (a webhook, a chunk of labels) are found only through
// such a row.
//
// A job's `recording` and a recording's `derived_*` aren't foreign keys, because they may outlive the row they refer
// to. A noise profile's `recording` isn't either: it becomes null when the recording is deleted. A deleted profile
// keeps its row as long as an unfinished job uses it.

/// The tables that a catalog has on every engine.
package enum CatalogTables {
  /// Returns the statements that create the tables and their indexes.
  package static func sql(_ dialect: SQLDialect) -> String {
    let tables = recordingsAndJobs + uploadsAndAnswers + labelsAndProfiles + usage
    switch dialect {
    case .sqlite: return tables.replacing("\n);", with: "\n) STRICT;")
    case .postgres:
      // Text is sorted by its bytes, as in SQLite.
      let types = [
        ("TEXT", #"text COLLATE "C""#), ("INTEGER", "bigint"), ("REAL", "double precision"), ("BLOB", "bytea"),
      ]
      return types.reduce(tables) { sql, type in sql.replacing(" \(type.0)", with: " \(type.1)") }
    }
  }

  /// `name_folded` is `NameSearch.fold(name)`. `heartbeat` has a single row, updated to verify that the catalog is
  /// writable; its `clock` is a `ClockMemory`.
  ///
  /// `nonce`, `node` and `lease_until` describe a job's latest attempt (see Job+Lease.swift). Each postponement, of a
  /// job whose store of media failed, is also an interruption. `attempts` has one row per attempt, inserted before the
  /// attempt writes any file: `folder` is the recording whose folder gets its files, and `due` is when those may be
  /// removed, null if there are none or they are a result. `garbage` names other objects that no row names any more,
  /// such as `recordings/<id>/<name>`, and series of labels. `removals` contains the IDs of recordings and
  /// uploads whose rows were deleted but whose files may still exist. The next start removes those, and no others.
  ///
  /// `batch_recordings` has the IDs of a batch's recordings in one text, of which the first `begun` have had their job.
  /// A trigger counts the jobs that end, whatever ends them. A webhook's `job` may also be a batch.
  private static let recordingsAndJobs = """
    CREATE TABLE recordings (
      id TEXT NOT NULL PRIMARY KEY,
      tenant TEXT NOT NULL DEFAULT '',
      name TEXT NOT NULL,
      name_folded TEXT NOT NULL,
      created_at INTEGER NOT NULL,
      bytes INTEGER,
      sha256 TEXT,
      container TEXT NOT NULL,
      codec TEXT NOT NULL,
      sample_rate INTEGER NOT NULL,
      channels INTEGER NOT NULL,
      frames INTEGER,
      estimated_frames INTEGER,
      duration REAL,
      waveform_state TEXT NOT NULL,
      waveform_job TEXT,
      waveform_key TEXT,
      waveform_bytes INTEGER,
      map_bytes INTEGER,
      audio_key TEXT,
      media TEXT,
      working_key TEXT,
      working_bytes INTEGER,
      working_sha256 TEXT,
      warnings TEXT NOT NULL,
      noise_regions TEXT,
      tags TEXT,
      derived_recording TEXT,
      derived_job TEXT,
      derived_operation TEXT,
      compared_at INTEGER,
      version INTEGER NOT NULL
    );
    CREATE INDEX recordings_by_tenant ON recordings (tenant, id);
    CREATE INDEX recordings_in_order_of_name ON recordings (tenant, substr(name_folded, 1, 255), id);
    CREATE INDEX recordings_in_order_of_duration ON recordings (tenant, coalesce(duration, -1), id);

    CREATE TABLE conversions (
      recording TEXT NOT NULL,
      tenant TEXT NOT NULL,
      format TEXT NOT NULL,
      key TEXT NOT NULL,
      bytes INTEGER NOT NULL,
      sha256 TEXT NOT NULL,
      used_at INTEGER NOT NULL,
      PRIMARY KEY (recording, format)
    );
    CREATE INDEX conversions_by_tenant ON conversions (tenant);

    CREATE TABLE jobs (
      id TEXT NOT NULL PRIMARY KEY,
      tenant TEXT NOT NULL DEFAULT '',
      client TEXT NOT NULL DEFAULT '',
      kind TEXT NOT NULL,
      recording TEXT NOT NULL,
      batch TEXT,
      output TEXT,
      state TEXT NOT NULL,
      progress REAL NOT NULL,
      created_at INTEGER NOT NULL,
      started_at INTEGER,
      finished_at INTEGER,
      attempts INTEGER NOT NULL,
      interruptions INTEGER NOT NULL DEFAULT 0,
      postponements INTEGER NOT NULL DEFAULT 0,
      not_before INTEGER,
      nonce TEXT,
      node TEXT,
      lease_until INTEGER,
      expected_bytes INTEGER NOT NULL DEFAULT 0,
      parameters TEXT NOT NULL,
      result TEXT,
      error TEXT
    );
    CREATE INDEX jobs_by_recording ON jobs (recording, id);
    CREATE INDEX jobs_by_state ON jobs (state, id);
    CREATE INDEX jobs_by_tenant ON jobs (tenant, id);
    CREATE INDEX jobs_by_batch ON jobs (batch, id) WHERE batch IS NOT NULL;

    CREATE TABLE batches (
      id TEXT NOT NULL PRIMARY KEY,
      tenant TEXT NOT NULL,
      client TEXT NOT NULL,
      kind TEXT NOT NULL,
      parameters TEXT NOT NULL,
      total INTEGER NOT NULL,
      begun INTEGER NOT NULL DEFAULT 0,
      succeeded INTEGER NOT NULL DEFAULT 0,
      failed INTEGER NOT NULL DEFAULT 0,
      cancelled INTEGER NOT NULL DEFAULT 0,
      is_cancelled INTEGER NOT NULL DEFAULT 0,
      created_at INTEGER NOT NULL,
      finished_at INTEGER
    );
    CREATE INDEX batches_by_tenant ON batches (tenant, id);
    CREATE INDEX unfinished_batches ON batches (id) WHERE finished_at IS NULL;

    CREATE TABLE batch_recordings (
      batch TEXT NOT NULL PRIMARY KEY REFERENCES batches (id) ON DELETE CASCADE,
      recordings TEXT NOT NULL
    );

    CREATE TABLE webhooks (
      job TEXT NOT NULL PRIMARY KEY,
      url TEXT NOT NULL,
      attempts INTEGER NOT NULL,
      not_before INTEGER NOT NULL,
      traceparent TEXT,
      node TEXT,
      lease_until INTEGER
    );

    CREATE TABLE attempts (
      job TEXT NOT NULL,
      attempt INTEGER NOT NULL,
      nonce TEXT NOT NULL,
      node TEXT NOT NULL,
      folder TEXT NOT NULL,
      begun_at INTEGER NOT NULL,
      ended_at INTEGER,
      ending TEXT,
      due INTEGER,
      PRIMARY KEY (job, attempt)
    );
    CREATE INDEX attempts_to_clear ON attempts (due) WHERE due IS NOT NULL;

    CREATE TABLE garbage (
      object TEXT NOT NULL PRIMARY KEY,
      due INTEGER NOT NULL
    );
    CREATE INDEX garbage_by_due ON garbage (due);

    CREATE TABLE removals (
      id TEXT NOT NULL PRIMARY KEY
    );

    CREATE TABLE audit_lines (
      id TEXT NOT NULL PRIMARY KEY,
      line TEXT NOT NULL,
      due INTEGER NOT NULL
    );

    CREATE TABLE heartbeat (
      id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
      beats INTEGER NOT NULL,
      clock TEXT
    );

    """

  /// The first `offset` bytes of an upload are durable. Its `token` is the ID of the token that it was begun with, and
  /// its `writer` counts the processes that have taken it over. In a folder, the bytes from `start` on are in the
  /// segment's own file; without a row of `upload_segments`, all bytes are in the part. In a bucket, `upload_objects`
  /// says which object has them. A spent token is for no second upload.
  ///
  /// An answer is identified by the request (`scope`) and the client's `key`. `held_keys` is used only if several
  /// processes share the catalog.
  private static let uploadsAndAnswers = """
    CREATE TABLE uploads (
      id TEXT NOT NULL PRIMARY KEY,
      tenant TEXT NOT NULL DEFAULT '',
      client TEXT NOT NULL DEFAULT '',
      token TEXT,
      writer INTEGER NOT NULL DEFAULT 0,
      length INTEGER,
      "offset" INTEGER NOT NULL,
      metadata TEXT,
      concatenation TEXT,
      expires_at INTEGER NOT NULL,
      recording TEXT
    );
    CREATE INDEX uploads_by_expiry ON uploads (expires_at);
    CREATE INDEX unfinished_uploads ON uploads (id) WHERE recording IS NULL;
    CREATE INDEX uploads_by_recording ON uploads (recording) WHERE recording IS NOT NULL;

    CREATE TABLE upload_segments (
      upload TEXT NOT NULL REFERENCES uploads ON DELETE CASCADE,
      start INTEGER NOT NULL,
      writer INTEGER NOT NULL,
      PRIMARY KEY (upload, start)
    );

    CREATE TABLE upload_objects (
      upload TEXT NOT NULL REFERENCES uploads ON DELETE CASCADE,
      start INTEGER NOT NULL,
      bytes INTEGER NOT NULL,
      name TEXT NOT NULL,
      PRIMARY KEY (upload, start)
    );

    CREATE TABLE spent_tokens (
      id TEXT NOT NULL PRIMARY KEY,
      expires_at INTEGER NOT NULL
    );

    CREATE TABLE answers (
      tenant TEXT NOT NULL,
      scope TEXT NOT NULL,
      key TEXT NOT NULL,
      fingerprint TEXT NOT NULL,
      status INTEGER NOT NULL,
      location TEXT NOT NULL,
      body TEXT NOT NULL,
      created_at INTEGER NOT NULL,
      PRIMARY KEY (tenant, scope, key)
    );
    CREATE INDEX answers_by_age ON answers (created_at);
    CREATE INDEX answers_by_location ON answers (location);

    CREATE TABLE held_keys (
      tenant TEXT NOT NULL,
      scope TEXT NOT NULL,
      key TEXT NOT NULL,
      holder TEXT NOT NULL,
      lease_until INTEGER NOT NULL,
      PRIMARY KEY (tenant, scope, key)
    );

    """

  /// Times of labels are in microseconds; `until` is the greatest end. The chunks' index has all that a window needs to
  /// choose chunks. A track's `bytes` count its chunks, which have its `series`. They may be written before the track
  /// names that, and deleted later than the track, so they don't refer to it.
  private static let labelsAndProfiles = """
    CREATE TABLE label_tracks (
      id TEXT NOT NULL PRIMARY KEY,
      tenant TEXT NOT NULL DEFAULT '',
      recording TEXT NOT NULL,
      name TEXT NOT NULL,
      kind TEXT NOT NULL,
      language TEXT,
      source TEXT NOT NULL,
      count INTEGER NOT NULL,
      words INTEGER NOT NULL,
      start INTEGER,
      until INTEGER,
      version INTEGER NOT NULL,
      created_at INTEGER NOT NULL,
      changed_at INTEGER NOT NULL,
      next_label INTEGER NOT NULL DEFAULT 1,
      series TEXT NOT NULL,
      bytes INTEGER NOT NULL DEFAULT 0
    );
    CREATE INDEX label_tracks_by_recording ON label_tracks (recording, id);

    CREATE TABLE label_chunks (
      series TEXT NOT NULL,
      number INTEGER NOT NULL,
      start INTEGER NOT NULL,
      until INTEGER NOT NULL,
      folded TEXT NOT NULL,
      labels BLOB NOT NULL
    );
    CREATE UNIQUE INDEX label_chunks_by_time ON label_chunks (series, number, start, until);

    CREATE TABLE noise_profiles (
      id TEXT NOT NULL PRIMARY KEY,
      tenant TEXT NOT NULL,
      name TEXT NOT NULL,
      recording TEXT,
      noise TEXT,
      sample_rate INTEGER,
      channels INTEGER NOT NULL,
      spectrum BLOB NOT NULL,
      version INTEGER NOT NULL,
      created_at INTEGER NOT NULL,
      changed_at INTEGER NOT NULL,
      is_deleted INTEGER NOT NULL DEFAULT 0
    );
    CREATE INDEX noise_profiles_by_recording ON noise_profiles (recording) WHERE recording IS NOT NULL;

    """

  /// `bytes` are those of recordings' files and conversions, and of what the catalog itself has of labels and noise
  /// profiles. A deleted profile that a job still uses doesn't count. `job_seconds` counts work on demand, and the
  /// attempts that ended on a day, in days since 1970, except those that the service's own stop interrupted.
  private static let usage = """
    CREATE TABLE usage (
      tenant TEXT NOT NULL PRIMARY KEY,
      recordings INTEGER NOT NULL,
      bytes INTEGER NOT NULL
    );

    CREATE TABLE job_seconds (
      tenant TEXT NOT NULL,
      day INTEGER NOT NULL,
      milliseconds INTEGER NOT NULL,
      PRIMARY KEY (tenant, day)
    );

    """
}
