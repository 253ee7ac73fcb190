// `recording_names` is an index of the names' trigrams (https://sqlite.org/fts5.html#the_trigram_tokenizer), which
// triggers keep up to date. Its row IDs are `recordings.number`, which sorts like `id`; SQLite's own row IDs would not
// do, because VACUUM may change them.
//
// Two spaces follow each name in the index, so that every character of the name begins a trigram. A text of one or two
// characters is then found by the trigrams that begin with it, in `recording_names_trigrams`, which has a row for each
// trigram of each name (https://sqlite.org/fts5.html#the_fts5vocab_virtual_table_module).

extension Schema {
  /// The view is the index's content, for FTS5's commands that read all names; in another order than that of the row
  /// IDs, they take sixteen times as long. Numbers stay unique if two services, whose catalogs were merged later,
  /// created recordings in the same moment.
  static let names = """
    ALTER TABLE recordings ADD COLUMN number INTEGER;
    CREATE UNIQUE INDEX recordings_by_number ON recordings (number);

    CREATE VIEW recording_names_indexed AS
      SELECT number, name_folded || '  ' AS name FROM recordings WHERE number IS NOT NULL ORDER BY number;
    CREATE VIRTUAL TABLE recording_names USING fts5 (
      name, content = 'recording_names_indexed', content_rowid = 'number', tokenize = 'trigram case_sensitive 1',
      detail = 'none', columnsize = 0
    );
    CREATE VIRTUAL TABLE recording_names_trigrams USING fts5vocab ('recording_names', 'instance');

    CREATE TRIGGER recording_numbered AFTER INSERT ON recordings BEGIN
      UPDATE recordings SET number = (
        SELECT coalesce(max(number) + 1, recording_number(new.id)) FROM recordings
        WHERE number BETWEEN recording_number(new.id) AND recording_number(new.id) | 7
      ) WHERE id = new.id;
      INSERT INTO recording_names (rowid, name)
        SELECT number, name_folded || '  ' FROM recordings WHERE id = new.id AND number IS NOT NULL;
    END;

    CREATE TRIGGER recording_renamed AFTER UPDATE OF name_folded ON recordings
    WHEN new.name_folded <> old.name_folded AND old.number IS NOT NULL BEGIN
      INSERT INTO recording_names (recording_names, rowid, name)
        VALUES ('delete', old.number, old.name_folded || '  ');
      INSERT INTO recording_names (rowid, name) VALUES (old.number, new.name_folded || '  ');
    END;

    CREATE TRIGGER recording_forgotten AFTER DELETE ON recordings WHEN old.number IS NOT NULL BEGIN
      INSERT INTO recording_names (recording_names, rowid, name)
        VALUES ('delete', old.number, old.name_folded || '  ');
    END;

    """
}
