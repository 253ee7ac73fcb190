// libpq is loaded with the first connection, so that a service whose catalog is SQLite doesn't need it installed and
// doesn't start more slowly: libpq brings libssl, Kerberos, and LDAP.
//
// The functions have names of their own, since a symbol named like libpq's would take the place of it for libpq itself.

#include "CPostgres.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

// The function here, the one of libpq, its result, parameters, and arguments.
#define FUNCTIONS(F)                                                                                                  \
  F(pq_library_version, PQlibVersion, int, (void), ())                                                                \
  F(pq_parse, PQconninfoParse, pq_option *, (const char *text, char **error), (text, error))                          \
  F(pq_free_options, PQconninfoFree, void, (pq_option * options), (options))                                          \
  F(pq_free, PQfreemem, void, (void *memory), (memory))                                                               \
  F(pq_connect, PQconnectdbParams, pq_connection *,                                                                   \
    (const char *const *keywords, const char *const *values, int expands), (keywords, values, expands))               \
  F(pq_finish, PQfinish, void, (pq_connection * connection), (connection))                                            \
  F(pq_status, PQstatus, int, (const pq_connection *connection), (connection))                                        \
  F(pq_transaction_status, PQtransactionStatus, int, (const pq_connection *connection), (connection))                 \
  F(pq_error_message, PQerrorMessage, char *, (const pq_connection *connection), (connection))                        \
  F(pq_server_version, PQserverVersion, int, (const pq_connection *connection), (connection))                         \
  F(pq_socket, PQsocket, int, (const pq_connection *connection), (connection))                                        \
  F(pq_backend, PQbackendPID, int, (const pq_connection *connection), (connection))                                   \
  F(pq_set_nonblocking, PQsetnonblocking, int, (pq_connection * connection, int on), (connection, on))                \
  F(pq_set_processor, PQsetNoticeProcessor, notice_processor,                                                         \
    (pq_connection * connection, notice_processor processor, void *context), (connection, processor, context))        \
  F(pq_send_script, PQsendQuery, int, (pq_connection * connection, const char *text), (connection, text))             \
  F(pq_send_prepare, PQsendPrepare, int,                                                                              \
    (pq_connection * connection, const char *name, const char *text, int count, const unsigned *types),               \
    (connection, name, text, count, types))                                                                           \
  F(pq_send_prepared, PQsendQueryPrepared, int,                                                                       \
    (pq_connection * connection, const char *name, int count, const char *const *values, const int *lengths,          \
     const int *formats, int format),                                                                                 \
    (connection, name, count, values, lengths, formats, format))                                                      \
  F(pq_flush, PQflush, int, (pq_connection * connection), (connection))                                               \
  F(pq_consume, PQconsumeInput, int, (pq_connection * connection), (connection))                                      \
  F(pq_is_busy, PQisBusy, int, (pq_connection * connection), (connection))                                            \
  F(pq_next_result, PQgetResult, pq_result *, (pq_connection * connection), (connection))                             \
  F(pq_notifies, PQnotifies, pq_notification *, (pq_connection * connection), (connection))                           \
  F(pq_result_status, PQresultStatus, int, (const pq_result *result), (result))                                       \
  F(pq_result_field, PQresultErrorField, char *, (const pq_result *result, int field), (result, field))               \
  F(pq_clear, PQclear, void, (pq_result * result), (result))                                                          \
  F(pq_row_count, PQntuples, int, (const pq_result *result), (result))                                                \
  F(pq_column_count, PQnfields, int, (const pq_result *result), (result))                                             \
  F(pq_column_name, PQfname, char *, (const pq_result *result, int column), (result, column))                         \
  F(pq_column_type, PQftype, unsigned, (const pq_result *result, int column), (result, column))                       \
  F(pq_value, PQgetvalue, char *, (const pq_result *result, int row, int column), (result, row, column))              \
  F(pq_length, PQgetlength, int, (const pq_result *result, int row, int column), (result, row, column))               \
  F(pq_is_null, PQgetisnull, int, (const pq_result *result, int row, int column), (result, row, column))              \
  F(pq_changed_rows, PQcmdTuples, char *, (pq_result * result), (result))                                             \
  F(pq_command, PQcmdStatus, char *, (pq_result * result), (result))

typedef void (*notice_processor)(void *context, const char *message);

#define DECLARE(name, real, result, parameters, arguments) static result(*real_##name) parameters;
FUNCTIONS(DECLARE)

#define DEFINE(name, real, result, parameters, arguments) \
  result name parameters { return real_##name arguments; }
static notice_processor pq_set_processor(pq_connection *connection, notice_processor processor, void *context);
FUNCTIONS(DEFINE)

static char failure[512];

static void load(void) {
  void *library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *reason = dlerror();
    snprintf(failure, sizeof failure, "%s", reason ? reason : "dlopen failed");
    return;
  }
#define FIND(name, real, result, parameters, arguments)                                \
  *(void **)&real_##name = dlsym(library, #real);                                      \
  if (!real_##name) snprintf(failure, sizeof failure, "libpq.so.5 has no %s", #real);
  FUNCTIONS(FIND)
}

const char *pq_load(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, load);
  return failure[0] ? failure : NULL;
}

static void ignore(void *context, const char *message) { (void)context, (void)message; }

void pq_silence(pq_connection *connection) { pq_set_processor(connection, ignore, NULL); }
