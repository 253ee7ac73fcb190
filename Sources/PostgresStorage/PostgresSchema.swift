// The catalog's tables on PostgreSQL. They have the names and columns of Storage's Schema.swift, which also says what
// they mean; the conventions are those of SQLEngine.swift. A migration that has been released is never changed: a new
// one is added below it, with the next number. It must be additive (see PostgresMigrator).
//
// Text is sorted by its bytes (COLLATE "C"), as in SQLite, so that lists are in the same order. The trigrams of names
// are an index of pg_trgm, which finds letters by the database's LC_CTYPE: with "C", searches for text that isn't ASCII
// read all names. SQLite's `recordings.number` belongs to its own index of trigrams, and isn't needed here.
//
// Jobs are updated several times. Free space in their pages keeps updates away from the indexes (HOT), and there is no
// index on `lease_until`, so that renewing a lease updates no index. Pages of recordings keep room, too, so that a
// claim, which changes the state of a waveform, doesn't write to the index of trigrams: it saves 210 bytes of the log.
//
// `media_folder` has the ID of the folder with the media, which is also in the folder; see `MediaStore.sharedID`.
//
// Several indexes aren't those of the design that preceded this schema. An update writes to every index of the table if
// it changes a column that one of them names, in its key or in its WHERE. So a claim would write as much with partial
// indexes of the states:
//
//   the design                           here                       because
//   ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────
//   jobs_queued (due, id),               jobs_by_state (state, id)  no node asks for the next job: each has the whole
//   jobs_running (id), jobs_by_state                                queue, orders it by clients and tenants, and claims
//   (state, id), all partial                                        by ID. One index finds unfinished jobs, and lists
//                                                                   by state
//   one_conversion (recording,           none                       the recording's row is locked to look for the same
//   parameters), unique and partial                                 work, of any kind (`sharedJob`)
//   attempts_lost (begun_at)             attempts_to_clear (due)    only attempts that may have left files, when these
//   WHERE NOT won                        WHERE due IS NOT NULL      may go, so a successful one is never in it
//   webhooks_due (not_before)            none                       there are few: rows are deleted when a webhook is
//   WHERE due                                                       delivered or given up
//   recordings_by_age (created_at),      conversions_by_tenant      IDs begin with the time. Each new conversion adds
//   conversions_by_use (used_at)         (tenant)                   up its tenant's, to compare with the limit
//   none                                 jobs_by_tenant,            tenants list their own
//                                        recordings_by_tenant
//   none                                 unfinished_uploads,        limits count the first; deletions find what an
//                                        uploads_by_recording       upload became by the second

import Storage

/// The schema of a catalog in PostgreSQL.
package enum PostgresSchema {
  /// Brings a database up to date.
  package static let migrator = PostgresMigrator(migrations)

  /// The name of the first migration. A database with another was made before the first release.
  static let firstMigration = "first release"

  /// All migrations, oldest first.
  static let migrations = [PostgresMigration(1, firstMigration, script: tables + usage)]

  private static let tables = """
    CREATE EXTENSION IF NOT EXISTS pg_trgm;

    CREATE TABLE recordings (
      id text COLLATE "C" PRIMARY KEY,
      tenant text COLLATE "C" NOT NULL DEFAULT '',
      name text COLLATE "C" NOT NULL,
      name_folded text COLLATE "C" NOT NULL,
      created_at bigint NOT NULL,
      bytes bigint,
      sha256 text COLLATE "C",
      container text COLLATE "C" NOT NULL,
      codec text COLLATE "C" NOT NULL,
      sample_rate bigint NOT NULL,
      channels bigint NOT NULL,
      frames bigint,
      estimated_frames bigint,
      duration double precision,
      waveform_state text COLLATE "C" NOT NULL,
      waveform_job text COLLATE "C",
      waveform_key text COLLATE "C",
      waveform_bytes bigint,
      map_bytes bigint,
      audio_key text COLLATE "C",
      media text COLLATE "C",
      working_key text COLLATE "C",
      working_bytes bigint,
      working_sha256 text COLLATE "C",
      warnings text COLLATE "C" NOT NULL,
      noise_regions text COLLATE "C",
      derived_recording text COLLATE "C",
      derived_job text COLLATE "C",
      derived_operation text COLLATE "C",
      compared_at bigint,
      version bigint NOT NULL
    ) WITH (fillfactor = 70);
    CREATE INDEX recordings_by_tenant ON recordings (tenant, id);
    CREATE INDEX recordings_in_order_of_name ON recordings (tenant, substr(name_folded, 1, 255), id);
    CREATE INDEX recordings_in_order_of_duration ON recordings (tenant, coalesce(duration, -1), id);
    CREATE INDEX recordings_by_name ON recordings USING gin (name_folded gin_trgm_ops);

    CREATE TABLE jobs (
      id text COLLATE "C" PRIMARY KEY,
      tenant text COLLATE "C" NOT NULL DEFAULT '',
      client text COLLATE "C" NOT NULL DEFAULT '',
      kind text COLLATE "C" NOT NULL,
      recording text COLLATE "C" NOT NULL,
      batch text COLLATE "C",
      output text COLLATE "C",
      state text COLLATE "C" NOT NULL,
      progress double precision NOT NULL,
      created_at bigint NOT NULL,
      started_at bigint,
      finished_at bigint,
      attempts bigint NOT NULL,
      interruptions bigint NOT NULL DEFAULT 0,
      postponements bigint NOT NULL DEFAULT 0,
      not_before bigint,
      nonce text COLLATE "C",
      node text COLLATE "C",
      lease_until bigint,
      expected_bytes bigint NOT NULL DEFAULT 0,
      parameters text COLLATE "C" NOT NULL,
      result text COLLATE "C",
      error text COLLATE "C"
    ) WITH (
      fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
      autovacuum_vacuum_cost_delay = 0
    );
    CREATE INDEX jobs_by_recording ON jobs (recording, id);
    CREATE INDEX jobs_by_state ON jobs (state, id);
    CREATE INDEX jobs_by_tenant ON jobs (tenant, id);
    CREATE INDEX jobs_by_batch ON jobs (batch, id) WHERE batch IS NOT NULL;

    CREATE TABLE batches (
      id text COLLATE "C" PRIMARY KEY,
      tenant text COLLATE "C" NOT NULL,
      client text COLLATE "C" NOT NULL,
      kind text COLLATE "C" NOT NULL,
      parameters text COLLATE "C" NOT NULL,
      total bigint NOT NULL,
      begun bigint NOT NULL DEFAULT 0,
      succeeded bigint NOT NULL DEFAULT 0,
      failed bigint NOT NULL DEFAULT 0,
      cancelled bigint NOT NULL DEFAULT 0,
      is_cancelled bigint NOT NULL DEFAULT 0,
      created_at bigint NOT NULL,
      finished_at bigint
    ) WITH (fillfactor = 70);
    CREATE INDEX batches_by_tenant ON batches (tenant, id);
    CREATE INDEX unfinished_batches ON batches (id) WHERE finished_at IS NULL;

    CREATE TABLE batch_recordings (
      batch text COLLATE "C" PRIMARY KEY REFERENCES batches (id) ON DELETE CASCADE,
      recordings text COLLATE "C" NOT NULL
    );

    CREATE FUNCTION count_batch() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      UPDATE batches SET \(Batch.counting("new.state", at: "new.finished_at")) WHERE id = new.batch;
      RETURN NULL;
    END $$;
    CREATE TRIGGER batch_counted AFTER UPDATE OF state ON jobs
      FOR EACH ROW WHEN (
        new.batch IS NOT NULL AND old.state IN ('queued', 'running') AND new.state NOT IN ('queued', 'running'))
      EXECUTE FUNCTION count_batch();

    CREATE TABLE attempts (
      job text COLLATE "C" NOT NULL,
      attempt bigint NOT NULL,
      nonce text COLLATE "C" NOT NULL,
      node text COLLATE "C" NOT NULL,
      folder text COLLATE "C" NOT NULL,
      begun_at bigint NOT NULL,
      ended_at bigint,
      ending text COLLATE "C",
      due bigint,
      PRIMARY KEY (job, attempt)
    );
    CREATE INDEX attempts_to_clear ON attempts (due) WHERE due IS NOT NULL;

    CREATE TABLE garbage (
      object text COLLATE "C" PRIMARY KEY,
      due bigint NOT NULL
    );
    CREATE INDEX garbage_by_due ON garbage (due);

    CREATE TABLE removals (id text COLLATE "C" PRIMARY KEY);

    CREATE TABLE audit_lines (
      id text COLLATE "C" PRIMARY KEY,
      line text COLLATE "C" NOT NULL,
      due bigint NOT NULL
    );

    CREATE TABLE heartbeat (
      id bigint PRIMARY KEY CHECK (id = 1),
      beats bigint NOT NULL,
      clock text COLLATE "C"
    );

    CREATE TABLE media_folder (
      one boolean PRIMARY KEY DEFAULT true CHECK (one),
      id text COLLATE "C" NOT NULL
    );

    CREATE TABLE uploads (
      id text COLLATE "C" PRIMARY KEY,
      tenant text COLLATE "C" NOT NULL DEFAULT '',
      client text COLLATE "C" NOT NULL DEFAULT '',
      token text COLLATE "C",
      writer bigint NOT NULL DEFAULT 0,
      length bigint NOT NULL,
      "offset" bigint NOT NULL,
      metadata text COLLATE "C",
      expires_at bigint NOT NULL,
      recording text COLLATE "C"
    );
    CREATE INDEX uploads_by_expiry ON uploads (expires_at);
    CREATE INDEX unfinished_uploads ON uploads (id) WHERE recording IS NULL;
    CREATE INDEX uploads_by_recording ON uploads (recording) WHERE recording IS NOT NULL;

    CREATE TABLE upload_segments (
      upload text COLLATE "C" NOT NULL REFERENCES uploads ON DELETE CASCADE,
      start bigint NOT NULL,
      writer bigint NOT NULL,
      PRIMARY KEY (upload, start)
    );

    CREATE TABLE upload_objects (
      upload text COLLATE "C" NOT NULL REFERENCES uploads ON DELETE CASCADE,
      start bigint NOT NULL,
      bytes bigint NOT NULL,
      name text COLLATE "C" NOT NULL,
      PRIMARY KEY (upload, start)
    );

    CREATE TABLE spent_tokens (
      id text COLLATE "C" PRIMARY KEY,
      expires_at bigint NOT NULL
    );

    CREATE TABLE answers (
      tenant text COLLATE "C" NOT NULL,
      scope text COLLATE "C" NOT NULL,
      key text COLLATE "C" NOT NULL,
      fingerprint text COLLATE "C" NOT NULL,
      status bigint NOT NULL,
      location text COLLATE "C" NOT NULL,
      body text COLLATE "C" NOT NULL,
      created_at bigint NOT NULL,
      PRIMARY KEY (tenant, scope, key)
    );
    CREATE INDEX answers_by_age ON answers (created_at);
    CREATE INDEX answers_by_location ON answers (location);

    CREATE TABLE held_keys (
      tenant text COLLATE "C" NOT NULL,
      scope text COLLATE "C" NOT NULL,
      key text COLLATE "C" NOT NULL,
      holder text COLLATE "C" NOT NULL,
      lease_until bigint NOT NULL,
      PRIMARY KEY (tenant, scope, key)
    );
    CREATE INDEX held_keys_by_holder ON held_keys (holder);

    CREATE TABLE webhooks (
      job text COLLATE "C" PRIMARY KEY,
      url text COLLATE "C" NOT NULL,
      attempts bigint NOT NULL,
      not_before bigint NOT NULL,
      traceparent text COLLATE "C",
      node text COLLATE "C",
      lease_until bigint
    );

    CREATE TABLE conversions (
      recording text COLLATE "C" NOT NULL,
      tenant text COLLATE "C" NOT NULL,
      format text COLLATE "C" NOT NULL,
      key text COLLATE "C" NOT NULL,
      bytes bigint NOT NULL,
      sha256 text COLLATE "C" NOT NULL,
      used_at bigint NOT NULL,
      PRIMARY KEY (recording, format)
    );
    CREATE INDEX conversions_by_tenant ON conversions (tenant);

    CREATE TABLE label_tracks (
      id text COLLATE "C" PRIMARY KEY,
      tenant text COLLATE "C" NOT NULL DEFAULT '',
      recording text COLLATE "C" NOT NULL,
      name text COLLATE "C" NOT NULL,
      kind text COLLATE "C" NOT NULL,
      language text COLLATE "C",
      source text COLLATE "C" NOT NULL,
      count bigint NOT NULL,
      words bigint NOT NULL,
      start bigint,
      until bigint,
      version bigint NOT NULL,
      created_at bigint NOT NULL,
      changed_at bigint NOT NULL,
      next_label bigint NOT NULL DEFAULT 1,
      bytes bigint NOT NULL DEFAULT 0
    );
    CREATE INDEX label_tracks_by_recording ON label_tracks (recording, id);

    CREATE TABLE label_chunks (
      track text COLLATE "C" NOT NULL REFERENCES label_tracks (id) ON DELETE CASCADE,
      number bigint NOT NULL,
      start bigint NOT NULL,
      until bigint NOT NULL,
      folded text COLLATE "C" NOT NULL,
      labels bytea NOT NULL
    );
    CREATE UNIQUE INDEX label_chunks_by_time ON label_chunks (track, number, start, until);

    CREATE TABLE noise_profiles (
      id text COLLATE "C" PRIMARY KEY,
      tenant text COLLATE "C" NOT NULL,
      name text COLLATE "C" NOT NULL,
      recording text COLLATE "C",
      noise text COLLATE "C",
      sample_rate bigint,
      channels bigint NOT NULL,
      spectrum bytea NOT NULL,
      version bigint NOT NULL,
      created_at bigint NOT NULL,
      changed_at bigint NOT NULL,
      is_deleted bigint NOT NULL DEFAULT 0
    );
    CREATE INDEX noise_profiles_by_recording ON noise_profiles (recording) WHERE recording IS NOT NULL;

    """

  /// Triggers count what tenants have, as in SQLite. `job_seconds` is changed at the end, so that all transactions
  /// change `usage` before it. Otherwise some that end a job and change a recording would wait for each other.
  private static let usage = """
    CREATE TABLE usage (
      tenant text COLLATE "C" PRIMARY KEY,
      recordings bigint NOT NULL,
      bytes bigint NOT NULL
    ) WITH (fillfactor = 70);

    CREATE TABLE job_seconds (
      tenant text COLLATE "C" NOT NULL,
      day bigint NOT NULL,
      milliseconds bigint NOT NULL,
      PRIMARY KEY (tenant, day)
    ) WITH (fillfactor = 70);

    CREATE FUNCTION add_usage(of_tenant text, more_recordings bigint, more_bytes bigint) RETURNS void
    LANGUAGE sql AS $$
      INSERT INTO usage (tenant, recordings, bytes) VALUES (of_tenant, more_recordings, more_bytes)
      ON CONFLICT (tenant) DO UPDATE
        SET recordings = usage.recordings + excluded.recordings, bytes = usage.bytes + excluded.bytes
    $$;

    CREATE FUNCTION count_recording() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF TG_OP = 'INSERT' THEN
        PERFORM add_usage(new.tenant, 1, \(TenantUsage.fileBytes(of: "new")));
      ELSIF TG_OP = 'DELETE' THEN
        PERFORM add_usage(old.tenant, -1, -\(TenantUsage.fileBytes(of: "old")));
      ELSE
        PERFORM add_usage(
          new.tenant, 0, \(TenantUsage.fileBytes(of: "new")) - \(TenantUsage.fileBytes(of: "old")));
      END IF;
      RETURN NULL;
    END $$;
    CREATE TRIGGER recording_counted AFTER INSERT OR DELETE ON recordings
      FOR EACH ROW EXECUTE FUNCTION count_recording();
    CREATE TRIGGER recording_recounted AFTER UPDATE OF bytes, working_bytes, waveform_bytes, map_bytes ON recordings
      FOR EACH ROW WHEN (\(TenantUsage.fileBytes(of: "new")) <> \(TenantUsage.fileBytes(of: "old")))
      EXECUTE FUNCTION count_recording();

    CREATE FUNCTION count_conversion() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF TG_OP = 'INSERT' THEN
        PERFORM add_usage(new.tenant, 0, new.bytes);
      ELSE
        PERFORM add_usage(old.tenant, 0, -old.bytes);
      END IF;
      RETURN NULL;
    END $$;
    CREATE TRIGGER conversion_counted AFTER INSERT OR DELETE ON conversions
      FOR EACH ROW EXECUTE FUNCTION count_conversion();

    CREATE FUNCTION count_labels() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF TG_OP = 'INSERT' THEN
        PERFORM add_usage(new.tenant, 0, new.bytes);
      ELSIF TG_OP = 'DELETE' THEN
        PERFORM add_usage(old.tenant, 0, -old.bytes);
      ELSE
        PERFORM add_usage(new.tenant, 0, new.bytes - old.bytes);
      END IF;
      RETURN NULL;
    END $$;
    CREATE TRIGGER labels_counted AFTER INSERT OR DELETE ON label_tracks
      FOR EACH ROW EXECUTE FUNCTION count_labels();
    CREATE TRIGGER labels_recounted AFTER UPDATE OF bytes ON label_tracks
      FOR EACH ROW WHEN (new.bytes <> old.bytes) EXECUTE FUNCTION count_labels();

    CREATE FUNCTION count_noise_profile() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF TG_OP = 'INSERT' THEN
        PERFORM add_usage(new.tenant, 0, length(new.spectrum));
      ELSE
        PERFORM add_usage(old.tenant, 0, -length(old.spectrum));
      END IF;
      RETURN NULL;
    END $$;
    CREATE TRIGGER noise_profile_counted AFTER INSERT ON noise_profiles
      FOR EACH ROW EXECUTE FUNCTION count_noise_profile();
    CREATE TRIGGER noise_profile_uncounted AFTER UPDATE OF is_deleted ON noise_profiles
      FOR EACH ROW WHEN (new.is_deleted <> 0 AND old.is_deleted = 0) EXECUTE FUNCTION count_noise_profile();

    CREATE FUNCTION time_job() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
      seconds bigint := floor(extract(epoch FROM now()));
    BEGIN
      INSERT INTO job_seconds (tenant, day, milliseconds) VALUES (
        new.tenant, seconds / 86400, greatest(0, coalesce(new.finished_at, seconds * 1000) - old.started_at))
      ON CONFLICT (tenant, day) DO UPDATE SET milliseconds = job_seconds.milliseconds + excluded.milliseconds;
      RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER job_timed AFTER UPDATE OF state ON jobs DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW WHEN (
        old.state = 'running' AND new.state <> 'running' AND new.interruptions = old.interruptions
        AND old.started_at IS NOT NULL)
      EXECUTE FUNCTION time_job();
    """
}
