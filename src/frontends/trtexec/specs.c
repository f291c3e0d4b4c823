// The small languages of trtexec's values: lists of NAME:VALUE, shapes, sizes, types, patterns.
#include "frontends/trtexec/specs.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "frontends/trtexec/layouts.h"

// ---- lists --------------------------------------------------------------------------------------

// The end of an element: a ',' outside quotes, or the end of the text.
static const char* element_end(const char* s) {
  bool quoted = false;
  for (; *s && (quoted || *s != ','); s++) quoted ^= *s == '\'';
  return s;
}

static size_t count_elements(const char* text) {
  size_t n = 1;
  for (const char* s = element_end(text); *s; s = element_end(s + 1)) n++;
  return n;
}

static size_t count_quotes(const char* s, size_t n) {
  size_t quotes = 0;
  for (size_t i = 0; i < n; i++) quotes += s[i] == '\'';
  return quotes;
}

// Takes the quotes off a name of n bytes at s.
static assay_status_t take_name(assay_arena_t* arena, const char* flag, const char* s, size_t n,
                                const char** out) {
  const bool quoted = n && s[0] == '\'';
  const size_t quotes = count_quotes(s, n);
  if (quotes && (quotes != 2 || !quoted || s[n - 1] != '\''))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "%s: '%.*s': a name in quotes has one before it and one after it", flag,
                       (int)n, s);
  if (n == (quoted ? 2u : 0u))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s: an element has no name", flag);
  return assay_arena_strndup(arena, quoted ? s + 1 : s, quoted ? n - 2 : n, out);
}

static assay_status_t take_item(assay_arena_t* arena, const char* flag, const char* s, size_t n,
                                trt_item_t* out) {
  const char* colon = NULL;
  const size_t quotes = count_quotes(s, n);
  if (quotes && (quotes != 2 || s[0] != '\'')) {
    // neither name nor value is told apart from the other
  } else if (quotes) {
    const char* close = memchr(s + 1, '\'', n - 1);
    if (close && close + 1 < s + n && close[1] == ':') colon = close + 1;
  } else {
    for (size_t i = 0; i < n; i++)
      if (s[i] == ':') colon = s + i;
  }
  if (!colon)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s: '%.*s' is not NAME:VALUE%s", flag, (int)n, s,
                       quotes ? ", with two quotes around the name" : "");
  ASSAY_TRY(take_name(arena, flag, s, (size_t)(colon - s), &out->name));
  return assay_arena_strndup(arena, colon + 1, (size_t)(s + n - colon - 1), &out->value);
}

assay_status_t trt_items_parse(assay_arena_t* arena, const char* flag, const char* text,
                               trt_item_t** out, size_t* out_n) {
  trt_item_t* items = NULL;
  size_t n = 0;
  ASSAY_TRY(assay_arena_new(arena, count_elements(text), sizeof *items, &items));
  for (const char *s = text, *end;; s = end + 1) {
    end = element_end(s);
    ASSAY_TRY(take_item(arena, flag, s, (size_t)(end - s), &items[n++]));
    if (!*end) break;
  }
  *out = items;
  *out_n = n;
  return NULL;
}

assay_status_t trt_words_parse(assay_arena_t* arena, const char* flag, const char* text,
                               const char*** out, size_t* out_n) {
  const char** words = NULL;
  size_t n = 0;
  ASSAY_TRY(assay_arena_new(arena, count_elements(text), sizeof *words, &words));
  for (const char *s = text, *end;; s = end + 1) {
    end = element_end(s);
    ASSAY_TRY(take_name(arena, flag, s, (size_t)(end - s), &words[n++]));
    if (!*end) break;
  }
  *out = words;
  *out_n = n;
  return NULL;
}

// ---- names --------------------------------------------------------------------------------------

bool trt_has_wildcard(const char* name) { return strchr(name, '*') != NULL; }

bool trt_name_matches(const char* name, const char* text) {
  const char* star = strchr(name, '*');
  if (!star) return strcmp(name, text) == 0;
  const size_t head = (size_t)(star - name), tail = strlen(star + 1), n = strlen(text);
  return n >= head + tail && strncmp(name, text, head) == 0 &&
         strcmp(star + 1, text + n - tail) == 0;
}

assay_status_t trt_name_check(const char* flag, const char* name) {
  const char* star = strchr(name, '*');
  if (!star || !strchr(star + 1, '*')) return NULL;
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s: the name '%s' has more than one '*'", flag, name);
}

// ---- numbers ------------------------------------------------------------------------------------

bool trt_is_decimal(const char* text) {
  return *text && !isspace((unsigned char)*text) && !strpbrk(text, "xX");
}

assay_status_t trt_dims_parse(const char* flag, const trt_item_t* item, int* out_rank,
                              int64_t* out_dims) {
  int rank = 0;
  *out_rank = 0;
  if (!*item->value || strcmp(item->value, "scalar") == 0) return NULL;
  for (const char* at = item->value;;) {
    char* end;
    errno = 0;
    const long long d = isdigit((unsigned char)*at) ? strtoll(at, &end, 10) : 0;
    if (d < 1 || errno || rank == ASSAY_MAX_RANK || (*end && *end != 'x'))
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "%s: '%s' of '%s' is not a shape, such as 1x3x224x224 with sizes of 1 or "
                         "more, or scalar",
                         flag, item->value, item->name);
    out_dims[rank++] = d;
    if (!*end) break;
    at = end + 1;
  }
  *out_rank = rank;
  return NULL;
}

assay_status_t trt_size_parse(const char* flag, const char* text, double unit, uint64_t* out) {
  static const char units[] = "BKMG";
  char* end;
  errno = 0;
  const double x = strtod(text, &end);
  if (end == text || errno || !isfinite(x) || x < 0 || !trt_is_decimal(text))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s: '%s' is not a size of 0 or more", flag, text);
  if (*end) {
    const char* at = strchr(units, toupper((unsigned char)*end));
    if (!at || end[1])
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "%s: '%s' has no unit of a size: B, K, M or G (powers of 1024)", flag,
                         text);
    unit = ldexp(1, 10 * (int)(at - units));
  }
  if (x * unit >= 0x1p63)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s: '%s' is too much", flag, text);
  *out = (uint64_t)(x * unit);
  return NULL;
}

assay_status_t trt_percentiles_parse(assay_arena_t* arena, const char* flag, const char* text,
                                     double** out, size_t* out_n) {
  const char** words = NULL;
  ASSAY_TRY(trt_words_parse(arena, flag, text, &words, out_n));
  ASSAY_TRY(assay_arena_new(arena, *out_n, sizeof **out, out));
  for (size_t i = 0; i < *out_n; i++) {
    char* end;
    (*out)[i] = strtod(words[i], &end);
    if (*end || !trt_is_decimal(words[i]) || !((*out)[i] >= 0 && (*out)[i] <= 100))
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s: '%s' is not a percentile, 0 to 100", flag,
                         words[i]);
  }
  return NULL;
}

// ---- types --------------------------------------------------------------------------------------

// As raw files and I/O formats call types.
static const struct {
  const char* word;
  assay_type_t type;
} type_words[] = {{"fp32", ASSAY_TYPE_FLOAT},       {"fp16", ASSAY_TYPE_FLOAT16},
                  {"bf16", ASSAY_TYPE_BFLOAT16},    {"int8", ASSAY_TYPE_INT8},
                  {"uint8", ASSAY_TYPE_UINT8},      {"int32", ASSAY_TYPE_INT32},
                  {"int64", ASSAY_TYPE_INT64},      {"bool", ASSAY_TYPE_BOOL},
                  {"fp8", ASSAY_TYPE_FLOAT8E4M3FN}, {"int4", ASSAY_TYPE_INT4}};
enum { N_TYPE_WORDS = sizeof type_words / sizeof *type_words };

const char* trt_type_word(assay_type_t type) {
  for (int i = 0; i < N_TYPE_WORDS; i++)
    if (type_words[i].type == type) return type_words[i].word;
  return assay_type_name(type);
}

static assay_type_t type_of_word(const char* word, size_t n) {
  for (int i = 0; i < N_TYPE_WORDS; i++)
    if (strlen(type_words[i].word) == n && strncmp(type_words[i].word, word, n) == 0)
      return type_words[i].type;
  return ASSAY_TYPE_UNDEFINED;
}

assay_format_t trt_layer_type(const char* word) {
  static const struct {
    const char* word;
    assay_format_t format;
  } rows[] = {{"fp32", ASSAY_FORMAT_FP32},   {"fp16", ASSAY_FORMAT_FP16},
              {"bf16", ASSAY_FORMAT_BF16},   {"int8", ASSAY_FORMAT_INT8},
              {"int32", ASSAY_FORMAT_INT32}, {"int64", ASSAY_FORMAT_INT64},
              {"bool", ASSAY_FORMAT_BOOL},   {"uint8", ASSAY_FORMAT_UINT8},
              {"fp8", ASSAY_FORMAT_FP8E4M3}, {"int4", ASSAY_FORMAT_INT4}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (strcmp(rows[i].word, word) == 0) return rows[i].format;
  return ASSAY_FORMAT_NONE;
}

assay_status_t trt_io_formats_parse(assay_arena_t* arena, const char* flag, const char* text,
                                    trt_io_format_t** out, size_t* out_n) {
  const char** words = NULL;
  ASSAY_TRY(trt_words_parse(arena, flag, text, &words, out_n));
  ASSAY_TRY(assay_arena_new(arena, *out_n, sizeof **out, out));
  for (size_t i = 0; i < *out_n; i++) {
    trt_io_format_t* f = &(*out)[i];
    const char* colon = strchr(words[i], ':');
    f->layouts = colon ? colon + 1 : words[i];
    if (colon) {
      f->type = type_of_word(words[i], (size_t)(colon - words[i]));
      if (!f->type)
        return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                           "%s: '%.*s' is not a type: fp32, fp16, bf16, int8, uint8, int32, int64, "
                           "bool, fp8 or int4",
                           flag, (int)(colon - words[i]), words[i]);
    }
    ASSAY_TRY(trt_layouts_check(flag, f->layouts));
  }
  return NULL;
}

// ---- files --------------------------------------------------------------------------------------

void trt_file_name(const char* name, assay_str_t* out) {
  enum { MAX = 150, HALF = 73 };
  const size_t n = strlen(name);
  for (size_t i = 0; i < n; i++) {
    if (n > MAX && i == HALF) {
      assay_str_append(out, "...");
      i = n - HALF;
    }
    const char put = isalnum((unsigned char)name[i]) || strchr("._-,", name[i]) ? name[i] : '_';
    assay_str_append_n(out, &put, 1);
  }
}
