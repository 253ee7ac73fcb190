import PresentRows
import Terms
import Testing

@testable import Storage

/// A data folder with rows in every table that moves and in those that don't; for tests of moves.
struct MovedFixture {
  let data: DataFolder
  let upload = UploadID()
  let runningJob = JobID()
  let uploadBytes = "bytes that were acknowledged"

  var folder: TemporaryFolder { data.folder }
  var recordings: [Recording] { data.recordings }

  init(_ count: Int = 3) throws {
    data = try DataFolder(count)
    let (store, first) = (data.store, data.recordings[0])
    let files = ["working-1.wav", "waveform-1.pyramid", "audio.wav.map", "converted-1.mp3"]
    for name in files { try write("the file \(name)", to: store.folder(of: first.id) + "/" + name) }
    try write(uploadBytes + " and others", to: store.path(ofPart: upload))
    var digest = SHA256()
    digest.update(Array("the file converted-1.mp3".utf8).span)
    let (id, other) = (first.id.text, JobID().text)
    try data.execute(
      """
      UPDATE recordings SET tenant = 'acme', working_key = 'recordings/\(id)/working-1.wav',
        working_bytes = 22, media = '{}', duration = 1.5,
        waveform_key = 'recordings/\(id)/waveform-1.pyramid',
        waveform_state = 'ready' WHERE id = '\(id)';
      INSERT INTO jobs (id, tenant, kind, recording, state, progress, created_at, started_at, attempts, nonce, node,
        parameters) VALUES ('\(runningJob)', 'acme', 'denoise', '\(id)', 'running', 0.5, 1, 2, 1, '0123456789abcdef',
        'old', '{}');
      INSERT INTO jobs (id, kind, recording, state, progress, created_at, started_at, finished_at, attempts, parameters,
        result) VALUES ('\(other)', 'waveform', '\(id)', 'succeeded', 1, 1, 2, 3, 1, '{}', '{"a":1}');
      INSERT INTO attempts (job, attempt, nonce, node, folder, begun_at) VALUES ('\(runningJob)', 1,
        '0123456789abcdef', 'old', '\(id)', 2);
      INSERT INTO garbage VALUES ('recordings/\(id)/old.wav', 1);
      INSERT INTO removals VALUES ('\(RecordingID())');
      INSERT INTO held_keys VALUES ('', 'POST', 'k', 'old', 1);
      INSERT INTO uploads (id, tenant, client, length, offset, metadata, expires_at) VALUES ('\(upload)', 'acme', 'c',
        999, \(uploadBytes.utf8.count), 'filename YQ==', 9000000000000);
      INSERT INTO uploads (id, length, offset, expires_at, recording) VALUES ('\(UploadID())', 7, 7, 9000000000000,
        '\(id)');
      INSERT INTO spent_tokens VALUES ('token', 9000000000000);
      INSERT INTO answers VALUES ('acme', 'POST /v1/recordings', 'key', 'f', 201, '/v1/recordings/1', '{"ü":1}', 1);
      INSERT INTO webhooks (job, url, attempts, not_before, node, lease_until) VALUES ('\(runningJob)',
        'https://example.com/', 2, 5, 'old', 6);
      INSERT INTO conversions VALUES ('\(id)', 'acme', 'mp3', 'recordings/\(id)/converted-1.mp3', 24,
        '\(digest.hexDigest())', 7);
      INSERT INTO job_seconds VALUES ('acme', 20000, 1234);
      """)
    let catalog = try Catalog(path: store.catalogPath)
    var track = LabelTrack(of: first.id, name: "words", kind: .transcript, language: "de", source: .upload)
    (track.start, track.end, track.count) = (0, 9_000_000, 2)
    let chunks = (0..<2).map {
      LabelChunk(start: Int64($0), end: 9_000_000, texts: ["Größe \($0)"], labels: [0, 255, UInt8($0)])
    }
    try catalog.insert(track, chunks, limit: 9)
    for name in ["hiss", "gone"] {
      try catalog.insert(
        KeptProfile(
          name: name, recording: first.id, noise: "[]", sampleRate: 44_100, channels: 1, spectrum: [1, 0, 2]),
        limit: 9)
    }
    for recording in try catalog.recordings(limit: 9) { try store.descriptions.describe(recording) }
    try catalog.close()
    try data.execute("UPDATE noise_profiles SET is_deleted = 1 WHERE name = 'gone'")
  }
}
