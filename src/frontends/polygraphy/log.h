// Lines as Polygraphy prints them: "[I] text" on stdout, four spaces for each level of nesting
// after the mark; further lines of a text are indented to its begin.
#ifndef ASSAY_FRONTENDS_POLYGRAPHY_LOG_H_
#define ASSAY_FRONTENDS_POLYGRAPHY_LOG_H_

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

typedef enum pg_severity {
  PG_ULTRA = -20,   // [U]
  PG_SUPER = -10,   // [S]
  PG_EXTRA = 0,     // [X]
  PG_VERBOSE = 10,  // [V]
  PG_INFO = 20,     // [I]
  PG_START = 22,    // [I]
  PG_FINISH = 28,   // [I]
  PG_WARNING = 30,  // [W]
  PG_ERROR = 40,    // [E]
  PG_CRITICAL = 50  // [!]
} pg_severity_t;
enum { PG_SILENT = 100 };

#define pg_log(s, ...) pg_log_at(__FILE__, __LINE__, (s), __VA_ARGS__)
#define pg_log_shows(s) pg_log_shows_at(__FILE__, (s))
void pg_log_at(const char* file, int line, pg_severity_t s, const char* format, ...)
    ASSAY_PRINTF(4, 5);
bool pg_log_shows_at(const char* file, pg_severity_t s);
void pg_log_indent(int by);  // +1, -1

// What is shown: severities from `min` on; of source files whose path begins so (after src/)
// from another one, which is the caller's and stays.
typedef struct pg_log_path {
  const char* path;
  int min;
} pg_log_path_t;
void pg_log_set(int min, const pg_log_path_t* paths, size_t n_paths);
// Fields before the text; colours only where stdout is a terminal.
void pg_log_format(bool stamp, bool lines, bool colours);
// A copy of the log into a file, until it is closed; false: it could not be written.
assay_status_t pg_log_copy(const char* path) ASSAY_MUST_USE;
bool pg_log_close(void);
bool pg_severity_parse(const char* name, int* out);  // "VERBOSE"

#endif  // ASSAY_FRONTENDS_POLYGRAPHY_LOG_H_
