// Growing strings and a map from strings to numbers.
#include "base/str.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/shown.h"

// ---- growing strings --------------------------------------------------------------------------

void assay_str_deinit(assay_str_t* s) {
  assay_free(s->text);
  *s = (assay_str_t){0};
}

static bool reserve(assay_str_t* s, size_t more) {
  if (s->failed || more > SIZE_MAX - s->len - 1) return false;
  assay_status_t st = assay_grow(&s->text, &s->capacity, s->len + more + 1, 1);
  if (st) {
    assay_status_free(st);
    s->failed = true;
  }
  return !s->failed;
}

void assay_str_append_n(assay_str_t* s, const char* text, size_t n) {
  if (!reserve(s, n)) return;
  if (n) memcpy(s->text + s->len, text, n);
  s->len += n;
  s->text[s->len] = 0;
}

void assay_str_append(assay_str_t* s, const char* text) {
  assay_str_append_n(s, text, strlen(text));
}

void assay_str_vprintf_raw(assay_str_t* s, const char* format, va_list args) {
  va_list again;
  va_copy(again, args);
  int n = vsnprintf(NULL, 0, format, again);
  va_end(again);
  if (n < 0 || !reserve(s, (size_t)n)) return;
  vsnprintf(s->text + s->len, (size_t)n + 1, format, args);
  s->len += (size_t)n;
}

void assay_str_printf_raw(assay_str_t* s, const char* format, ...) {
  va_list args;
  va_start(args, format);
  assay_str_vprintf_raw(s, format, args);
  va_end(args);
}

const char* assay_str_get(const assay_str_t* s) { return s->text ? s->text : ""; }

assay_status_t assay_str_status(const assay_str_t* s) {
  return s->failed ? assay_status_no_memory() : NULL;
}

assay_status_t assay_str_take(assay_str_t* s, char** out) {
  if (!s->text) assay_str_append(s, "");
  assay_status_t st = assay_str_status(s);
  if (st) return assay_str_deinit(s), st;
  *out = s->text;
  *s = (assay_str_t){0};
  return NULL;
}

// ---- wildcards --------------------------------------------------------------------------------

// Matches one character against the set that starts after '['; *end is set after its ']'.
// A set that is not closed is a literal '['.
static bool match_set(const char* p, char c, const char** end) {
  const char* q = p;
  bool negated = *q == '!' || *q == '^';
  if (negated) q++;
  bool found = false;
  for (bool first = true; *q && (*q != ']' || first); first = false) {
    if (*q == '\\' && q[1]) q++;
    char low = *q, high = low;
    if (q[1] == '-' && q[2] && q[2] != ']') {
      q += 2;
      if (*q == '\\' && q[1]) q++;
      high = *q;
    }
    if (low <= c && c <= high) found = true;
    q++;
  }
  if (*q != ']') {
    *end = p;
    return c == '[';
  }
  *end = q + 1;
  return found != negated;
}

bool assay_glob_match(const char* pattern, const char* text) {
  // Backtracks to the last '*' only: linear in practice, never exponential.
  const char *star = NULL, *mark = NULL;
  for (;;) {
    const char* next = pattern + 1;
    bool ok;
    if (*pattern == '*') {
      star = ++pattern;
      mark = text;
      continue;
    }
    if (!*text) return !*pattern;
    if (*pattern == '?') {
      ok = true;
    } else if (*pattern == '[') {
      ok = match_set(pattern + 1, *text, &next);
    } else if (*pattern == '\\' && pattern[1]) {
      ok = pattern[1] == *text;
      next = pattern + 2;
    } else {
      ok = *pattern && *pattern == *text;
    }
    if (ok) {
      pattern = next;
      text++;
    } else if (star) {
      pattern = star;
      text = ++mark;
    } else {
      return false;
    }
  }
}

// ---- the map: open addressing, linear probing, never more than two thirds full -----------------

struct assay_map_entry {
  const char* key;  // NULL: free
  uint64_t hash, value;
};

void assay_map_deinit(assay_map_t* m) {
  assay_free(m->entries);
  *m = (assay_map_t){0};
}

static uint64_t hash_of(const char* key) { return XXH3_64bits(key, strlen(key)); }

// The entry of a key, or the free one where it would go.
static struct assay_map_entry* find(const assay_map_t* m, const char* key, uint64_t hash) {
  size_t i = (size_t)hash & (m->capacity - 1);
  while (m->entries[i].key && (m->entries[i].hash != hash || strcmp(m->entries[i].key, key) != 0))
    i = (i + 1) & (m->capacity - 1);
  return &m->entries[i];
}

assay_status_t assay_map_put(assay_map_t* m, const char* key, uint64_t value, bool* out_old) {
  if (3 * (m->len + 1) > 2 * m->capacity) {
    assay_map_t bigger = {.capacity = m->capacity ? 2 * m->capacity : 16, .len = m->len};
    ASSAY_TRY(assay_new_array(bigger.capacity, sizeof *bigger.entries, &bigger.entries));
    for (size_t i = 0; i < m->capacity; i++) {
      const struct assay_map_entry* e = &m->entries[i];
      if (e->key) *find(&bigger, e->key, e->hash) = *e;
    }
    assay_free(m->entries);
    *m = bigger;
  }
  uint64_t hash = hash_of(key);
  struct assay_map_entry* e = find(m, key, hash);
  if (out_old) *out_old = e->key != NULL;
  if (!e->key) m->len++;
  *e = (struct assay_map_entry){e->key ? e->key : key, hash, value};
  return NULL;
}

bool assay_map_get(const assay_map_t* m, const char* key, uint64_t* out) {
  if (!m->len) return false;
  const struct assay_map_entry* e = find(m, key, hash_of(key));
  if (!e->key) return false;
  if (out) *out = e->value;
  return true;
}

void assay_map_remove(assay_map_t* m, const char* key) {
  if (!m->len) return;
  struct assay_map_entry* e = find(m, key, hash_of(key));
  if (!e->key) return;
  e->key = NULL;
  m->len--;
  // Entries after the gap move up, so that a search never ends before what it looks for.
  size_t mask = m->capacity - 1, gap = (size_t)(e - m->entries);
  for (size_t i = (gap + 1) & mask; m->entries[i].key; i = (i + 1) & mask) {
    size_t home = (size_t)m->entries[i].hash & mask;
    if (((i - home) & mask) >= ((i - gap) & mask)) {
      m->entries[gap] = m->entries[i];
      m->entries[i].key = NULL;
      gap = i;
    }
  }
}

bool assay_ends_with(const char* text, const char* end) {
  const size_t n = strlen(text), k = strlen(end);
  return n >= k && strcmp(text + n - k, end) == 0;
}
