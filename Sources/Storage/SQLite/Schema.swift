// The catalog's tables. A migration that has been released is never changed: a new one is added below it, with the
// next number. Every migration runs in a transaction of its own and is recorded in `grdb_migrations`.
//
// IDs are text, so that sqlite3's shell shows them like the API, and sort by time, so that "newest first" is the
// primary key in reverse. Times are milliseconds since 1970. Small lists and values used only by clients are JSON.
//
// Schema+Names has the index of names, and Schema+Usage counts what tenants have.
//
// `removals` contains the IDs of recordings and uploads whose rows were deleted but whose files may still exist. The
// next start removes those files, and no others.
//
// Every row with an ID or a key of its own names its tenant, the empty one without keys (see TenantCatalog). What has
// neither (a conversion, a webhook, a chunk of labels) is found only through such a row.
//
// A job's `recording` and a recording's `derived_*` aren't foreign keys, because they may outlive the row they refer
// to. A noise profile's `recording` isn't either: it becomes null with the recording's deletion. A deleted profile
// keeps its row as long as an unfinished job uses it.

import GRDB

enum Schema {
  /// All migrations, oldest first.
  static var migrator: DatabaseMigrator {
    var migrator = DatabaseMigrator()
    migrator.registerMigration("1 recordings and jobs") { try $0.execute(sql: recordingsAndJobs) }
    migrator.registerMigration("2 interruptions of jobs") { db in
      try db.execute(sql: "ALTER TABLE jobs ADD COLUMN interruptions INTEGER NOT NULL DEFAULT 0")
    }
    migrator.registerMigration("3 noise regions of recordings") { db in
      try db.execute(sql: "ALTER TABLE recordings ADD COLUMN noise_regions TEXT")
    }
    migrator.registerMigration("4 resumable uploads and kept answers") { try $0.execute(sql: uploadsAndAnswers) }
    migrator.registerMigration("5 webhooks of jobs") { db in
      try db.execute(
        sql: """
          CREATE TABLE webhooks (
            job TEXT NOT NULL PRIMARY KEY,
            url TEXT NOT NULL,
            attempts INTEGER NOT NULL,
            not_before INTEGER NOT NULL
          ) STRICT
          """)
    }
    migrator.registerMigration("6 working copies of recordings") { db in
      try db.execute(
        sql: """
          ALTER TABLE recordings ADD COLUMN media TEXT;
          ALTER TABLE recordings ADD COLUMN working_file TEXT;
          """)
    }
    migrator.registerMigration("7 conversions of recordings") { db in
      try db.execute(
        sql: """
          CREATE TABLE conversions (
            recording TEXT NOT NULL,
            format TEXT NOT NULL,
            file TEXT NOT NULL,
            bytes INTEGER NOT NULL,
            sha256 TEXT NOT NULL,
            used_at INTEGER NOT NULL,
            PRIMARY KEY (recording, format)
          ) STRICT
          """)
    }
    migrator.registerMigration("8 removed recordings and uploads") { db in
      try db.execute(sql: "CREATE TABLE removals (id TEXT NOT NULL PRIMARY KEY) STRICT")
    }
    migrator.registerMigration("9 clients of jobs and uploads") { db in
      try db.execute(
        sql: """
          ALTER TABLE jobs ADD COLUMN client TEXT NOT NULL DEFAULT '';
          ALTER TABLE uploads ADD COLUMN client TEXT NOT NULL DEFAULT '';
          """)
    }
    migrator.registerMigration("10 lengths of working copies") { db in
      try db.execute(sql: "ALTER TABLE recordings ADD COLUMN working_bytes INTEGER")
    }
    migrator.registerMigration("11 trigrams of names") { db in
      db.add(function: NameSearch.foldedName)
      db.add(function: NameSearch.number)
      try db.execute(sql: trigramsOfNames)
    }
    migrator.registerMigration("12 labels of recordings") { try $0.execute(sql: labels) }
    migrator.registerMigration("13 tenants") { try $0.execute(sql: tenants) }
    migrator.registerMigration("14 usage of tenants") { try $0.execute(sql: usage) }
    migrator.registerMigration("15 traces of webhooks") { db in
      try db.execute(sql: "ALTER TABLE webhooks ADD COLUMN traceparent TEXT")
    }
    migrator.registerMigration("16 noise profiles") { db in
      try db.execute(
        sql: """
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
          ) STRICT
          """)
    }
    migrator.registerMigration("17 sources of uploads and noise profiles") { db in
      // For what a deleted recording leaves behind.
      try db.execute(
        sql: """
          CREATE INDEX uploads_by_recording ON uploads (recording) WHERE recording IS NOT NULL;
          CREATE INDEX noise_profiles_by_recording ON noise_profiles (recording) WHERE recording IS NOT NULL;
          UPDATE uploads SET metadata = NULL
            WHERE recording IS NOT NULL AND recording NOT IN (SELECT id FROM recordings);
          UPDATE noise_profiles SET recording = NULL, noise = NULL
            WHERE recording IS NOT NULL AND recording NOT IN (SELECT id FROM recordings);
          """)
    }
    migrator.registerMigration("18 usage of labels and noise profiles") { try $0.execute(sql: usageOfLabels) }
    migrator.registerMigration("19 leases of jobs") { try $0.execute(sql: leases) }
    // The writer of an upload counts the processes that have taken it over; the bytes from `start` on are in the
    // segment's own file. Without a row, all bytes are in the part.
    migrator.registerMigration("20 writers of uploads") { db in
      try db.execute(
        sql: """
          ALTER TABLE uploads ADD COLUMN writer INTEGER NOT NULL DEFAULT 0;
          CREATE TABLE upload_segments (
            upload TEXT NOT NULL REFERENCES uploads ON DELETE CASCADE,
            start INTEGER NOT NULL,
            writer INTEGER NOT NULL,
            PRIMARY KEY (upload, start)
          ) STRICT
          """)
    }
    migrator.registerMigration("21 leases of keys and webhooks") { db in
      // Used only if several processes share the catalog.
      try db.execute(
        sql: """
          CREATE TABLE held_keys (
            tenant TEXT NOT NULL,
            scope TEXT NOT NULL,
            key TEXT NOT NULL,
            holder TEXT NOT NULL,
            lease_until INTEGER NOT NULL,
            PRIMARY KEY (tenant, scope, key)
          ) STRICT;
          ALTER TABLE webhooks ADD COLUMN node TEXT;
          ALTER TABLE webhooks ADD COLUMN lease_until INTEGER;
          """)
    }
    migrator.registerMigration("22 keys of files") { db in
      // From here on, the columns with names are only written.
      for (column, file) in keyColumns.sorted(by: { $0.key < $1.key }) {
        try db.execute(
          sql: """
            ALTER TABLE recordings ADD COLUMN \(column) TEXT;
            UPDATE recordings SET \(column) = \(key(of: file)) WHERE \(file) IS NOT NULL;
            """)
      }
      try db.execute(
        sql: """
          ALTER TABLE conversions ADD COLUMN key TEXT;
          UPDATE conversions SET key = \(key(of: "file", "recording"));
          """)
    }
    migrator.registerMigration("23 objects of uploads") { db in
      // Used only if the media are in a bucket: which object has the bytes from `start` on.
      try db.execute(
        sql: """
          CREATE TABLE upload_objects (
            upload TEXT NOT NULL REFERENCES uploads ON DELETE CASCADE,
            start INTEGER NOT NULL,
            bytes INTEGER NOT NULL,
            name TEXT NOT NULL,
            PRIMARY KEY (upload, start)
          ) STRICT
          """)
    }
    migrator.registerMigration("24 postponements of jobs") { db in
      // Used only if the media are in a store that may fail. Each postponement is also an interruption.
      try db.execute(
        sql: """
          ALTER TABLE jobs ADD COLUMN postponements INTEGER NOT NULL DEFAULT 0;
          ALTER TABLE jobs ADD COLUMN not_before INTEGER;
          """)
    }
    migrator.registerMigration("25 trigrams to the end of names") { try $0.execute(sql: trigramsToTheEnd) }
    return migrator
  }

  /// The columns of `recordings` with keys, and those with the names of files that they come from.
  static let keyColumns = ["audio_key": "audio_file", "waveform_key": "waveform_file", "working_key": "working_file"]

  /// Returns the key of a file that an earlier version wrote, in SQL.
  static func key(of file: String, _ id: String = "id") -> String { "'recordings/' || \(id) || '/' || \(file)" }

  /// `name_folded` is `NameSearch.fold(name)`. `heartbeat` has a single row, updated to verify that the catalog is
  /// writable.
  private static let recordingsAndJobs = """
    CREATE TABLE recordings (
      id TEXT NOT NULL PRIMARY KEY,
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
      waveform_file TEXT,
      audio_file TEXT,
      warnings TEXT NOT NULL,
      derived_recording TEXT,
      derived_job TEXT,
      derived_operation TEXT
    ) STRICT;

    CREATE TABLE jobs (
      id TEXT NOT NULL PRIMARY KEY,
      kind TEXT NOT NULL,
      recording TEXT NOT NULL,
      output TEXT,
      state TEXT NOT NULL,
      progress REAL NOT NULL,
      created_at INTEGER NOT NULL,
      started_at INTEGER,
      finished_at INTEGER,
      attempts INTEGER NOT NULL,
      parameters TEXT NOT NULL,
      result TEXT,
      error TEXT
    ) STRICT;

    CREATE INDEX jobs_by_recording ON jobs (recording, id);
    CREATE INDEX jobs_by_state ON jobs (state, id);

    CREATE TABLE heartbeat (
      id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
      beats INTEGER NOT NULL
    ) STRICT;
    """

  /// Times are in microseconds; `until` is the greatest end. The index has all that a window needs to choose chunks.
  private static let labels = """
    CREATE TABLE label_tracks (
      id TEXT NOT NULL PRIMARY KEY,
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
      changed_at INTEGER NOT NULL
    ) STRICT;

    CREATE INDEX label_tracks_by_recording ON label_tracks (recording, id);

    CREATE TABLE label_chunks (
      track TEXT NOT NULL REFERENCES label_tracks (id) ON DELETE CASCADE,
      number INTEGER NOT NULL,
      start INTEGER NOT NULL,
      until INTEGER NOT NULL,
      folded TEXT NOT NULL,
      labels BLOB NOT NULL
    ) STRICT;

    CREATE UNIQUE INDEX label_chunks_by_time ON label_chunks (track, number, start, until);
    """

  /// An upload's `token` is the ID of the token that it was begun with; a spent token is for no second one. The indexes
  /// are for lists, which are sorted by ID. Answers get another primary key, because two tenants may use the
  /// same key.
  private static let tenants = """
    ALTER TABLE recordings ADD COLUMN tenant TEXT NOT NULL DEFAULT '';
    ALTER TABLE jobs ADD COLUMN tenant TEXT NOT NULL DEFAULT '';
    ALTER TABLE uploads ADD COLUMN tenant TEXT NOT NULL DEFAULT '';
    ALTER TABLE label_tracks ADD COLUMN tenant TEXT NOT NULL DEFAULT '';
    ALTER TABLE uploads ADD COLUMN token TEXT;

    CREATE TABLE spent_tokens (
      id TEXT NOT NULL PRIMARY KEY,
      expires_at INTEGER NOT NULL
    ) STRICT;

    CREATE INDEX recordings_by_tenant ON recordings (tenant, id);
    CREATE INDEX jobs_by_tenant ON jobs (tenant, id);

    CREATE TABLE answers_of_tenants (
      tenant TEXT NOT NULL,
      scope TEXT NOT NULL,
      key TEXT NOT NULL,
      fingerprint TEXT NOT NULL,
      status INTEGER NOT NULL,
      location TEXT NOT NULL,
      body TEXT NOT NULL,
      created_at INTEGER NOT NULL,
      PRIMARY KEY (tenant, scope, key)
    ) STRICT;

    INSERT INTO answers_of_tenants
      SELECT '', scope, key, fingerprint, status, location, body, created_at FROM answers;
    DROP TABLE answers;
    ALTER TABLE answers_of_tenants RENAME TO answers;
    CREATE INDEX answers_by_age ON answers (created_at);
    CREATE INDEX answers_by_location ON answers (location);
    """

  /// `nonce`, `node` and `lease_until` describe a job's latest attempt (see Job+Lease.swift). `attempts` has one row
  /// per attempt, inserted before the attempt writes any file: `folder` is the recording whose folder gets its files,
  /// and `due` is when those may be removed, null if there are none or they are a result. `garbage` names other objects
  /// that no row names any more, such as `recordings/<id>/<name>`.
  private static let leases = """
    ALTER TABLE jobs ADD COLUMN nonce TEXT;
    ALTER TABLE jobs ADD COLUMN node TEXT;
    ALTER TABLE jobs ADD COLUMN lease_until INTEGER;

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
    ) STRICT;
    CREATE INDEX attempts_to_clear ON attempts (due) WHERE due IS NOT NULL;

    CREATE TABLE garbage (
      object TEXT NOT NULL PRIMARY KEY,
      due INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX garbage_by_due ON garbage (due);
    """

  /// The first `offset` bytes of an upload are durable. An answer is identified by the request (`scope`) and the
  /// client's `key`.
  private static let uploadsAndAnswers = """
    CREATE TABLE uploads (
      id TEXT NOT NULL PRIMARY KEY,
      length INTEGER NOT NULL,
      offset INTEGER NOT NULL,
      metadata TEXT,
      expires_at INTEGER NOT NULL,
      recording TEXT
    ) STRICT;

    CREATE INDEX uploads_by_expiry ON uploads (expires_at);
    CREATE INDEX unfinished_uploads ON uploads (id) WHERE recording IS NULL;

    CREATE TABLE answers (
      scope TEXT NOT NULL,
      key TEXT NOT NULL,
      fingerprint TEXT NOT NULL,
      status INTEGER NOT NULL,
      location TEXT NOT NULL,
      body TEXT NOT NULL,
      created_at INTEGER NOT NULL,
      PRIMARY KEY (scope, key)
    ) STRICT;

    CREATE INDEX answers_by_age ON answers (created_at);
    """
}
