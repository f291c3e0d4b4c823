// Values: "[name:]value", patterns of names, lists in brackets, numbers, shapes.
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "frontends/polygraphy/flags.h"
#include "tensor/tensor.h"

bool pg_fits(const char* pattern, const char* name) { return assay_glob_match(pattern, name); }

assay_status_t pg_pair_split(assay_arena_t* arena, const char* word, pg_pair_t* out) {
  const char* colon = strrchr(word, ':');
  if (!colon) return *out = (pg_pair_t){"", word}, NULL;
  out->value = colon + 1;
  return assay_arena_strndup(arena, word, (size_t)(colon - word), &out->name);
}

assay_status_t pg_pair_find(assay_arena_t* arena, const pg_words_t* words, const char* name,
                            const char** out_value) {
  int rank = 0;  // of what was found: 1 without name, 2 by pattern, 3 by name
  *out_value = NULL;
  for (size_t i = 0; i < words->n; i++) {
    pg_pair_t pair;
    ASSAY_TRY(pg_pair_split(arena, words->items[i], &pair));
    const int fit = strcmp(pair.name, name) == 0 ? 3
                    : !*pair.name                ? 1
                    : pg_fits(pair.name, name)   ? 2
                                                 : 0;
    if (!fit || fit < rank) continue;
    rank = fit;
    *out_value = pair.value;
  }
  return NULL;
}

// ---- numbers ------------------------------------------------------------------------------------

assay_status_t pg_number(const char* flag, const char* text, double* out) {
  char* end;
  *out = strtod(text, &end);
  if (!*text || *end || isspace((unsigned char)*text) || isnan(*out))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s: '%s' is not a number", flag, text);
  return NULL;
}

assay_status_t pg_whole(const char* flag, const char* text, int64_t* out) {
  char* end;
  errno = 0;
  *out = strtoll(text, &end, 10);
  if (!*text || *end || errno || isspace((unsigned char)*text))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s: '%s' is not a whole number", flag, text);
  return NULL;
}

// ---- lists --------------------------------------------------------------------------------------

// An element without the spaces and quotes around it.
static assay_status_t add_element(assay_arena_t* arena, const char* at, size_t n,
                                  const char** out) {
  while (n && isspace((unsigned char)*at)) at++, n--;
  while (n && isspace((unsigned char)at[n - 1])) n--;
  if (n > 1 && (*at == '\'' || *at == '"') && at[n - 1] == *at) at++, n -= 2;
  return assay_arena_strndup(arena, at, n, out);
}

assay_status_t pg_list_split(assay_arena_t* arena, const char* flag, const char* value,
                             pg_words_t* out) {
  const size_t n = strlen(value);
  const bool open = n && (*value == '[' || *value == '(');
  const bool closed = n > 1 && (value[n - 1] == ']' || value[n - 1] == ')');
  *out = (pg_words_t){0};
  if (open != closed)
    return ASSAY_ERROR(
        ASSAY_INVALID_ARGUMENT,
        "%s: '%s' is a list of which the brackets do not match: a list has no spaces "
        "in it, or quotes around it, such as 'x:[1,3]'",
        flag, value);
  if (!open) {
    ASSAY_TRY(assay_arena_new(arena, 1, sizeof *out->items, &out->items));
    out->items[out->n++] = value;
    return NULL;
  }
  size_t count = 1;
  for (size_t i = 1; i + 1 < n; i++) count += value[i] == ',';
  ASSAY_TRY(assay_arena_new(arena, count, sizeof *out->items, &out->items));
  for (const char *at = value + 1, *end = value + n - 1; at < end;) {
    const char* comma = memchr(at, ',', (size_t)(end - at));
    const size_t len = (size_t)((comma ? comma : end) - at);
    ASSAY_TRY(add_element(arena, at, len, &out->items[out->n]));
    if (*out->items[out->n] || comma) out->n++;  // "[1,]" is a list of one
    at += len + 1;
  }
  return NULL;
}

// ---- shapes -------------------------------------------------------------------------------------

// "1x3x224x224" as a list, as older versions had it, and trtexec does.
static assay_status_t split_by_x(assay_arena_t* arena, const char* value, pg_words_t* out) {
  size_t count = 1;
  for (const char* c = value; *c; c++) count += *c == 'x';
  ASSAY_TRY(assay_arena_new(arena, count, sizeof *out->items, &out->items));
  for (const char* at = value;;) {
    const size_t n = strcspn(at, "x");
    ASSAY_TRY(assay_arena_strndup(arena, at, n, &out->items[out->n++]));
    if (!at[n]) return NULL;
    at += n + 1;
  }
}

static bool is_word(const char* text) { return isalpha((unsigned char)*text) || *text == '_'; }

assay_status_t pg_shape(assay_arena_t* arena, const char* flag, const char* value, int* out_rank,
                        int64_t* out_dims, const char** out_names) {
  pg_words_t words = {0};
  const bool by_x = *value != '[' && *value != '(' && isdigit((unsigned char)*value);
  ASSAY_TRY(by_x ? split_by_x(arena, value, &words) : pg_list_split(arena, flag, value, &words));
  if (words.n > ASSAY_MAX_RANK)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s: '%s' has %zu sizes; shapes have %d at most",
                       flag, value, words.n, ASSAY_MAX_RANK);
  for (size_t i = 0; i < words.n; i++) {
    const char* word = words.items[i];
    if (out_names) out_names[i] = NULL;
    out_dims[i] = -1;
    if (out_names && is_word(word)) {
      out_names[i] = word;
      continue;
    }
    char* end;
    errno = 0;
    out_dims[i] = strtoll(word, &end, 10);
    if (!*word || *end || errno || out_dims[i] < -1)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "%s: '%s' is not a shape, such as [1,3,224,224]: '%s' is not a size", flag,
                         value, word);
  }
  *out_rank = (int)words.n;
  return NULL;
}
