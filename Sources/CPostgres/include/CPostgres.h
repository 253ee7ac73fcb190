#pragma once

// The part of libpq in use, declared here so that building needs none of PostgreSQL's headers. Types, constants, and
// parameters are those of libpq.so.5, whose ABI PostgreSQL keeps (14 or newer is needed).
// Source: https://www.postgresql.org/docs/current/libpq.html and libpq-fe.h.

#include <stdbool.h>

typedef struct pg_conn pq_connection;
typedef struct pg_result pq_result;

typedef struct {
  char *keyword;
  char *environment;
  char *compiled;
  char *value;
  char *label;
  char *display;
  int size;
} pq_option;

typedef struct {
  char *channel;
  int backend;
  char *payload;
  void *next;
} pq_notification;

#define PQ_CONNECTION_OK 0
#define PQ_CONNECTION_BAD 1

#define PQ_EMPTY_QUERY 0
#define PQ_COMMAND_OK 1
#define PQ_TUPLES_OK 2
#define PQ_COPY_OUT 3
#define PQ_COPY_IN 4
#define PQ_BAD_RESPONSE 5
#define PQ_NONFATAL_ERROR 6
#define PQ_FATAL_ERROR 7

#define PQ_IDLE 0
#define PQ_ACTIVE 1
#define PQ_IN_TRANSACTION 2
#define PQ_IN_ERROR 3
#define PQ_UNKNOWN 4

#define PQ_SQLSTATE 67  // 'C'
#define PQ_MESSAGE 77  // 'M'
#define PQ_CONSTRAINT 110  // 'n'
#define PQ_SOURCE_FUNCTION 82  // 'R'

/// Loads libpq if that hasn't happened. Returns NULL, or why it can't be used; the text stays valid.
///
/// The other functions may be called only after this has returned NULL.
const char *pq_load(void);

int pq_library_version(void);
pq_option *pq_parse(const char *text, char **error);
void pq_free_options(pq_option *options);
void pq_free(void *memory);

pq_connection *pq_connect(const char *const *keywords, const char *const *values, int expands);
void pq_finish(pq_connection *connection);
int pq_status(const pq_connection *connection);
int pq_transaction_status(const pq_connection *connection);
char *pq_error_message(const pq_connection *connection);
int pq_server_version(const pq_connection *connection);
int pq_socket(const pq_connection *connection);
int pq_backend(const pq_connection *connection);
int pq_set_nonblocking(pq_connection *connection, int on);
/// Drops notices and warnings, which libpq prints to stderr by default.
void pq_silence(pq_connection *connection);

int pq_send_script(pq_connection *connection, const char *text);
int pq_send_prepare(pq_connection *connection, const char *name, const char *text, int count, const unsigned *types);
int pq_send_prepared(pq_connection *connection, const char *name, int count, const char *const *values,
                     const int *lengths, const int *formats, int format);
int pq_flush(pq_connection *connection);
int pq_consume(pq_connection *connection);
int pq_is_busy(pq_connection *connection);
pq_result *pq_next_result(pq_connection *connection);
pq_notification *pq_notifies(pq_connection *connection);

int pq_result_status(const pq_result *result);
char *pq_result_field(const pq_result *result, int field);
void pq_clear(pq_result *result);
int pq_row_count(const pq_result *result);
int pq_column_count(const pq_result *result);
char *pq_column_name(const pq_result *result, int column);
unsigned pq_column_type(const pq_result *result, int column);
char *pq_value(const pq_result *result, int row, int column);
int pq_length(const pq_result *result, int row, int column);
int pq_is_null(const pq_result *result, int row, int column);
char *pq_changed_rows(pq_result *result);
char *pq_command(pq_result *result);
