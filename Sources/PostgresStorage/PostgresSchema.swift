// The catalog's tables on PostgreSQL: those of CatalogTables, which also says what they mean, and what only PostgreSQL
// has. The conventions are those of SQLEngine.swift. A migration that has been released is never changed: a new
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

  /// What only this engine has. `job_seconds` is changed at the end of a transaction, so that all change `usage` before
  /// it. Otherwise some that end a job and change a recording would wait for each other.
  private static let tables =
    "CREATE EXTENSION IF NOT EXISTS pg_trgm;\n" + CatalogTables.sql(.postgres) + """
      CREATE INDEX recordings_by_name ON recordings USING gin (name_folded gin_trgm_ops);
      CREATE INDEX held_keys_by_holder ON held_keys (holder);
      CREATE TABLE media_folder (
        one boolean PRIMARY KEY DEFAULT true CHECK (one),
        id text COLLATE "C" NOT NULL
      );
      ALTER TABLE recordings SET (fillfactor = 70);
      ALTER TABLE jobs SET (
        fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0
      );
      ALTER TABLE batches SET (fillfactor = 70);
      ALTER TABLE usage SET (fillfactor = 70);
      ALTER TABLE job_seconds SET (fillfactor = 70);

      """

  /// Triggers count what tenants have, as in SQLite.
  private static let usage = """
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

    CREATE FUNCTION count_batch() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      UPDATE batches SET \(Batch.counting("new.state", at: "new.finished_at")) WHERE id = new.batch;
      RETURN NULL;
    END $$;
    CREATE TRIGGER batch_counted AFTER UPDATE OF state ON jobs
      FOR EACH ROW WHEN (
        new.batch IS NOT NULL AND old.state IN ('queued', 'running') AND new.state NOT IN ('queued', 'running'))
      EXECUTE FUNCTION count_batch();

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
