// Lines as Polygraphy prints them: "[I] text" on stdout, four spaces for each level of nesting
// after the mark; further lines of a text are indented to its begin.
#include "frontends/polygraphy/log.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/shown.h"
#include "base/str.h"

static struct {
  int min;  // severities below are not shown
  const pg_log_path_t* paths;
  size_t n_paths;
  bool stamp, lines, colours;
  int depth;
  FILE* copy;
} state = {.min = PG_INFO};

typedef struct level {
  pg_severity_t severity;
  const char *name, *mark, *colour;
} level_t;
static const level_t levels[] = {
    {PG_ULTRA, "ULTRA_VERBOSE", "U", "\033[90m"},
    {PG_SUPER, "SUPER_VERBOSE", "S", "\033[35m"},
    {PG_EXTRA, "EXTRA_VERBOSE", "X", "\033[95m"},
    {PG_VERBOSE, "VERBOSE", "V", "\033[94m"},
    {PG_INFO, "INFO", "I", NULL},
    {PG_START, "START", "I", "\033[36m"},
    {PG_FINISH, "FINISH", "I", "\033[32m"},
    {PG_WARNING, "WARNING", "W", "\033[33m"},
    {PG_ERROR, "ERROR", "E", "\033[31m"},
    {PG_CRITICAL, "CRITICAL", "!", "\033[91m"},
};
enum { N_LEVELS = sizeof levels / sizeof *levels };

bool pg_severity_parse(const char* name, int* out) {
  for (int i = 0; i < N_LEVELS; i++)
    if (strcmp(levels[i].name, name) == 0) return *out = levels[i].severity, true;
  return false;
}

static const level_t* level_of(pg_severity_t s) {
  for (int i = 0; i < N_LEVELS; i++)
    if (levels[i].severity == s) return &levels[i];
  return &levels[4];
}

// ---- how ----------------------------------------------------------------------------------------

void pg_log_set(int min, const pg_log_path_t* paths, size_t n_paths) {
  state.min = min;
  state.paths = paths;
  state.n_paths = n_paths;
}

void pg_log_format(bool stamp, bool lines, bool colours) {
  state.stamp = stamp;
  state.lines = lines;
  state.colours = colours && isatty(STDOUT_FILENO);
}

assay_status_t pg_log_copy(const char* path) {
  state.copy = fopen(path, "w");
  return state.copy ? NULL
                    : ASSAY_ERROR(ASSAY_NOT_FOUND, "--log-file: '%s' cannot be written", path);
}

bool pg_log_close(void) {
  const bool bad = state.copy && (ferror(state.copy) | fclose(state.copy));
  state.copy = NULL;
  return !bad;
}

void pg_log_indent(int by) { state.depth += by; }

// The part of a file's name that users know: "frontends/polygraphy/run.c".
static const char* known_path(const char* file) {
  const char* at = strstr(file, "src/");
  return at ? at + 4 : file;
}

static bool shows(const char* file, pg_severity_t s) {
  size_t longest = 0;
  int min = state.min;
  for (size_t i = 0; i < state.n_paths; i++) {
    const size_t n = strlen(state.paths[i].path);
    if (n < longest || strncmp(known_path(file), state.paths[i].path, n) != 0) continue;
    longest = n;
    min = state.paths[i].min;
  }
  return (int)s >= min;
}

bool pg_log_shows_at(const char* file, pg_severity_t s) { return shows(file, s); }

// ---- lines --------------------------------------------------------------------------------------

static void put_head(assay_str_t* out, const char* mark, const char* file, int line) {
  const time_t seconds = time(NULL);
  struct tm parts;
  char stamp[32] = "";
  assay_str_printf_raw(out, "[%s] ", mark);
  if (state.stamp && localtime_r(&seconds, &parts))
    strftime(stamp, sizeof stamp, "(%H:%M:%S) ", &parts);
  assay_str_append(out, stamp);
  if (state.lines) assay_str_printf_raw(out, "[%s:%d] ", known_path(file), line);
}

// The text after the head, further lines below its begin.
static void put_text(assay_str_t* out, const char* text, size_t head) {
  for (const char* at = text;;) {
    const size_t n = strcspn(at, "\n");
    assay_str_printf_raw(out, "%*s", 4 * state.depth, "");
    assay_str_append_n(out, at, n);
    assay_str_append(out, "\n");
    if (!at[n]) return;
    at += n + 1;
    assay_str_printf_raw(out, "%*s", (int)head, "");
  }
}

static void write_out(FILE* out, const char* text, const char* colour) {
  if (colour) fputs(colour, out);
  fputs(text, out);
  if (colour) fputs("\033[0m", out);
  fflush(out);
}

void pg_log_at(const char* file, int line, pg_severity_t s, const char* format, ...) {
  const level_t* level = level_of(s);
  assay_str_t out = {0};
  assay_str_t text = {0};
  va_list args;
  if (!shows(file, s)) return;
  va_start(args, format);
  assay_str_vprintf(&text, format, args);
  va_end(args);
  put_head(&out, level->mark, file, line);
  put_text(&out, assay_str_get(&text), out.len);
  if (text.failed || out.failed) {
    fputs("[!] out of memory\n", stdout);
  } else {
    write_out(stdout, assay_str_get(&out), state.colours ? level->colour : NULL);
    if (state.copy) write_out(state.copy, assay_str_get(&out), NULL);
  }
  assay_str_deinit(&text);
  assay_str_deinit(&out);
}
