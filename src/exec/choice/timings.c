// How long kernels took: what the choice between tactics is made of, and the timing cache.
#include "exec/choice/timings.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/shown.h"

#define FIRST_LINE "assay timing cache 1"

typedef struct line {
  const char* key;  // "TACTIC SIGNATURE"
  double microseconds;
  bool used;
} line_t;

struct assay_timings {
  pthread_mutex_t lock;
  assay_arena_t* arena;
  const char* machine;
  assay_map_t index;
  line_t* lines;
  size_t n, cap;
};

assay_status_t assay_timings_create(const char* machine, assay_timings_t** out) {
  assay_timings_t* t = NULL;
  ASSAY_TRY(ASSAY_NEW(&t));
  assay_status_t st = assay_arena_create(&t->arena);
  if (!st) st = assay_arena_strdup(t->arena, machine, &t->machine);
  if (!st && pthread_mutex_init(&t->lock, NULL) != 0) st = assay_status_no_memory();
  if (st) {
    assay_arena_destroy(t->arena);
    assay_free(t);
    return st;
  }
  *out = t;
  return NULL;
}

void assay_timings_destroy(assay_timings_t* t) {
  if (!t) return;
  assay_free(t->lines);
  assay_map_deinit(&t->index);
  assay_arena_destroy(t->arena);
  pthread_mutex_destroy(&t->lock);
  assay_free(t);
}

// A later line of the same key takes the place of the first.
static assay_status_t set(assay_timings_t* t, const char* key, size_t n, double microseconds,
                          bool used) {
  const char* kept = NULL;
  uint64_t at;
  ASSAY_TRY(assay_arena_strndup(t->arena, key, n, &kept));
  if (assay_map_get(&t->index, kept, &at)) {
    t->lines[at].microseconds = microseconds;
    t->lines[at].used |= used;
    return NULL;
  }
  ASSAY_TRY(assay_grow(&t->lines, &t->cap, t->n + 1, sizeof *t->lines));
  ASSAY_TRY(assay_map_put(&t->index, kept, t->n, NULL));
  t->lines[t->n++] = (line_t){kept, microseconds, used};
  return NULL;
}

// The line that begins at *at, without its end; false after the last one.
static bool next_line(const char* text, size_t n, size_t* at, const char** out, size_t* out_n) {
  if (*at >= n) return false;
  const char* end = memchr(text + *at, '\n', n - *at);
  *out = text + *at;
  *out_n = end ? (size_t)(end - *out) : n - *at;
  *at += *out_n + 1;
  return true;
}

static bool is_line(const char* line, size_t n, const char* text) {
  return n == strlen(text) && memcmp(line, text, n) == 0;
}

static assay_status_t parse_line(assay_timings_t* t, const char* line, size_t n, int number) {
  char digits[64];
  const char* space = memchr(line, ' ', n);
  const size_t len = space ? (size_t)(space - line) : 0;
  if (len && len < sizeof digits) {
    char* end;
    memcpy(digits, line, len);
    digits[len] = 0;
    const double us = strtod(digits, &end);
    if (!*end && isfinite(us) && us >= 0 && memchr(space + 1, ' ', n - len - 1))
      return set(t, space + 1, n - len - 1, us, false);
  }
  return ASSAY_ERROR(ASSAY_CORRUPT,
                     "line %d of the timing cache is no 'MICROSECONDS TACTIC LAYER'; remove the "
                     "line or the file",
                     number);
}

assay_status_t assay_timings_parse(assay_timings_t* t, const char* text, size_t n, bool* out_fits) {
  size_t at = 0, len = 0;
  const char* line = NULL;
  if (!next_line(text, n, &at, &line, &len) || !is_line(line, len, FIRST_LINE))
    return ASSAY_ERROR(ASSAY_CORRUPT, "this is not a timing cache: it does not begin with '%s'",
                       FIRST_LINE);
  assay_status_t st = NULL;
  const bool fits =
      next_line(text, n, &at, &line, &len) && (!out_fits || is_line(line, len, t->machine));
  if (out_fits) *out_fits = fits;
  for (int i = 3; !st && fits && next_line(text, n, &at, &line, &len); i++)
    if (len) st = parse_line(t, line, len, i);
  return st;
}

static int by_key(const void* a, const void* b) {
  return strcmp(((const line_t*)a)->key, ((const line_t*)b)->key);
}

assay_status_t assay_timings_print(const assay_timings_t* t, bool only_used, assay_str_t* out) {
  line_t* lines = NULL;
  ASSAY_TRY(assay_new_array(t->n, sizeof *lines, &lines));
  if (t->n) memcpy(lines, t->lines, t->n * sizeof *lines);
  if (t->n) qsort(lines, t->n, sizeof *lines, by_key);
  assay_str_printf_raw(out, FIRST_LINE "\n%s\n", t->machine);
  for (size_t i = 0; i < t->n; i++)
    if (lines[i].used || !only_used)
      assay_str_printf_raw(out, "%.9g %s\n", lines[i].microseconds, lines[i].key);
  assay_free(lines);
  return assay_str_status(out);
}

static bool is_way_of(const char* key, const char* tactic, const char* signature, size_t* out_n) {
  const size_t n = strlen(tactic);
  if (strncmp(key, tactic, n) != 0 || !key[n] || !strchr("/=!", key[n])) return false;
  *out_n = strcspn(key, " ");
  return key[*out_n] && strcmp(key + *out_n + 1, signature) == 0;
}

bool assay_timings_next(assay_timings_t* t, size_t* at, const char* tactic, const char* signature,
                        const char** out_name, size_t* out_n) {
  bool found = false;
  pthread_mutex_lock(&t->lock);
  for (; !found && *at < t->n; (*at)++) {
    *out_name = t->lines[*at].key;
    found = is_way_of(*out_name, tactic, signature, out_n);
  }
  pthread_mutex_unlock(&t->lock);
  return found;
}

bool assay_timings_find(assay_timings_t* t, const char* tactic, const char* signature,
                        double* out_microseconds) {
  assay_str_t key = {0};
  uint64_t at;
  assay_str_printf_raw(&key, "%s %s", tactic, signature);
  pthread_mutex_lock(&t->lock);
  const bool found = assay_map_get(&t->index, assay_str_get(&key), &at);
  if (found) {
    *out_microseconds = t->lines[at].microseconds;
    t->lines[at].used = true;
  }
  pthread_mutex_unlock(&t->lock);
  assay_str_deinit(&key);
  return found;
}

assay_status_t assay_timings_add(assay_timings_t* t, const char* tactic, const char* signature,
                                 double microseconds) {
  assay_str_t key = {0};
  assay_str_printf_raw(&key, "%s %s", tactic, signature);
  assay_status_t st = assay_str_status(&key);
  pthread_mutex_lock(&t->lock);
  if (!st) st = set(t, assay_str_get(&key), strlen(assay_str_get(&key)), microseconds, true);
  pthread_mutex_unlock(&t->lock);
  assay_str_deinit(&key);
  return st;
}
