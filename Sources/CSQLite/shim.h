#include <sqlite3.h>

// What Swift can't call: a function with variable arguments, and a macro that is a cast (SQLITE_TRANSIENT).

// Takes "x" in a statement for the name of a column, never for a text.
static inline void stillwave_refuse_quoted_text(sqlite3 *db) {
  sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DML, 0, (int *)0);
  sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DDL, 0, (int *)0);
}

// Bind copies. `bytes` may be NULL if `count` is 0, and is not the value NULL then.
static inline int stillwave_bind_text(sqlite3_stmt *statement, int index, const char *bytes, sqlite3_uint64 count) {
  return sqlite3_bind_text64(statement, index, bytes ? bytes : "", count, SQLITE_TRANSIENT, SQLITE_UTF8);
}
static inline int stillwave_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, sqlite3_uint64 count) {
  return sqlite3_bind_blob64(statement, index, bytes ? bytes : "", count, SQLITE_TRANSIENT);
}
