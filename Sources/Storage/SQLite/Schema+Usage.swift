// Triggers count what tenants have, so that no statement can change it uncounted.

extension Schema {
  /// The triggers; see `CatalogTables`.
  static let usage = """
    CREATE TRIGGER recording_counted AFTER INSERT ON recordings BEGIN
      INSERT INTO usage (tenant, recordings, bytes) VALUES (new.tenant, 1, \(TenantUsage.fileBytes(of: "new")))
        ON CONFLICT (tenant) DO UPDATE SET recordings = recordings + 1, bytes = bytes + excluded.bytes;
    END;
    CREATE TRIGGER recording_uncounted AFTER DELETE ON recordings BEGIN
      UPDATE usage SET recordings = recordings - 1, bytes = bytes - \(TenantUsage.fileBytes(of: "old"))
        WHERE tenant = old.tenant;
    END;
    CREATE TRIGGER recording_recounted AFTER UPDATE OF bytes, working_bytes, waveform_bytes, map_bytes ON recordings
    WHEN \(TenantUsage.fileBytes(of: "new")) <> \(TenantUsage.fileBytes(of: "old")) BEGIN
      UPDATE usage SET bytes = bytes + \(TenantUsage.fileBytes(of: "new")) - \(TenantUsage.fileBytes(of: "old"))
        WHERE tenant = new.tenant;
    END;

    CREATE TRIGGER conversion_counted AFTER INSERT ON conversions BEGIN
      UPDATE usage SET bytes = bytes + new.bytes WHERE tenant = new.tenant;
    END;
    CREATE TRIGGER conversion_uncounted AFTER DELETE ON conversions BEGIN
      UPDATE usage SET bytes = bytes - old.bytes WHERE tenant = old.tenant;
    END;

    CREATE TRIGGER job_timed AFTER UPDATE OF state ON jobs
    WHEN old.state = 'running' AND new.state <> 'running' AND new.interruptions = old.interruptions
      AND old.started_at IS NOT NULL BEGIN
      INSERT INTO job_seconds (tenant, day, milliseconds) VALUES (
        new.tenant, strftime('%s', 'now') / 86400,
        max(0, coalesce(new.finished_at, strftime('%s', 'now') * 1000) - old.started_at)
      ) ON CONFLICT (tenant, day) DO UPDATE SET milliseconds = milliseconds + excluded.milliseconds;
    END;

    CREATE TRIGGER batch_counted AFTER UPDATE OF state ON jobs
    WHEN new.batch IS NOT NULL AND old.state IN ('queued', 'running') AND new.state NOT IN ('queued', 'running') BEGIN
      UPDATE batches SET \(Batch.counting("new.state", at: "new.finished_at")) WHERE id = new.batch;
    END;

    CREATE TRIGGER labels_counted AFTER INSERT ON label_tracks BEGIN
      INSERT INTO usage (tenant, recordings, bytes) VALUES (new.tenant, 0, new.bytes)
        ON CONFLICT (tenant) DO UPDATE SET bytes = bytes + excluded.bytes;
    END;
    CREATE TRIGGER labels_uncounted AFTER DELETE ON label_tracks BEGIN
      UPDATE usage SET bytes = bytes - old.bytes WHERE tenant = old.tenant;
    END;
    CREATE TRIGGER labels_recounted AFTER UPDATE OF bytes ON label_tracks WHEN new.bytes <> old.bytes BEGIN
      UPDATE usage SET bytes = bytes + new.bytes - old.bytes WHERE tenant = new.tenant;
    END;

    CREATE TRIGGER noise_profile_counted AFTER INSERT ON noise_profiles BEGIN
      INSERT INTO usage (tenant, recordings, bytes) VALUES (new.tenant, 0, length(new.spectrum))
        ON CONFLICT (tenant) DO UPDATE SET bytes = bytes + excluded.bytes;
    END;
    CREATE TRIGGER noise_profile_uncounted AFTER UPDATE OF is_deleted ON noise_profiles
    WHEN new.is_deleted AND NOT old.is_deleted BEGIN
      UPDATE usage SET bytes = bytes - length(old.spectrum) WHERE tenant = old.tenant;
    END;
    """
}
