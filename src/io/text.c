// Numbers as text: separated by spaces, commas or line breaks; '#' begins a comment.
#include "io/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "formats/format.h"

// ---- words --------------------------------------------------------------------------------------

typedef struct scanner {
  const uint8_t *p, *end;
} scanner_t;

static bool is_gap(uint8_t c) { return c && strchr(" \t\r\n,", c); }

// The next word: [*out, p). False: there is none.
static bool next_word(scanner_t* s, const uint8_t** out) {
  while (s->p < s->end && (is_gap(*s->p) || *s->p == '#')) {
    const bool comment = *s->p == '#';
    for (s->p++; comment && s->p < s->end && *s->p != '\n';) s->p++;
  }
  *out = s->p;
  while (s->p < s->end && !is_gap(*s->p) && *s->p != '#') s->p++;
  return s->p > *out;
}

bool assay_text_is(const uint8_t* data, size_t size) {
  scanner_t s = {data, data + size};
  bool any = false;
  for (const uint8_t* word; next_word(&s, &word); any = true)
    for (const uint8_t* c = word; c < s.p; c++)  // of numbers, nan, inf, infinity
      if (!*c || !strchr("0123456789+-.abcdefABCDEFxXpPnNiItTyY", *c)) return false;
  return any;
}

int64_t assay_text_count(const uint8_t* data, size_t size) {
  scanner_t s = {data, data + size};
  int64_t n = 0;
  for (const uint8_t* word; next_word(&s, &word);) n++;
  return n;
}

// ---- reading ------------------------------------------------------------------------------------

// A number of an integer type; one that is written as a float has to be whole.
static bool take_integer(const char* word, assay_type_t type, int64_t* out) {
  char* end;
  errno = 0;
  const bool large = type == ASSAY_TYPE_UINT64 && *word != '-';
  if (large)
    *out = (int64_t)strtoull(word, &end, 10);
  else
    *out = strtoll(word, &end, 10);
  if (*end) {
    const double x = strtod(word, &end);
    if (*end || !(fabs(x) < 0x1p63) || x != floor(x)) return false;
    *out = (int64_t)x;
    errno = 0;
  }
  if (errno) return false;
  return type == ASSAY_TYPE_UINT64 ? large || *out >= 0 : assay_type_wrap(type, *out) == *out;
}

static bool take_float(const char* word, assay_type_t type, double* out) {
  char* end;
  const double x = strtod(word, &end);
  *out = assay_format_round(assay_type_format(type), x, ASSAY_OVERFLOW_IEEE);
  return !*end;
}

static assay_status_t read_word(const uint8_t* word, size_t n, assay_tensor_t* t, int64_t i) {
  char text[128];
  bool ok = n < sizeof text;
  if (ok) {
    memcpy(text, word, n);
    text[n] = 0;
    ok = t->store == ASSAY_STORE_F64 ? take_float(text, t->type, &assay_f64(t)[i])
                                     : take_integer(text, t->type, &assay_i64(t)[i]);
  }
  if (ok) return NULL;
  return ASSAY_ERROR(ASSAY_CORRUPT, "text: number %" PRId64 ", '%.*s', is not of type %s", i + 1,
                     (int)(n < 40 ? n : 40), (const char*)word, assay_type_name(t->type));
}

assay_status_t assay_text_parse(const uint8_t* data, size_t size, assay_type_t type, int rank,
                                const int64_t* dims, assay_tensor_t** out) {
  const assay_store_t store = assay_type_store(type);
  const int64_t have = assay_text_count(data, size);
  int64_t n = 0;
  if (store != ASSAY_STORE_F64 && store != ASSAY_STORE_I64)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "text holds real numbers, no %s", assay_type_name(type));
  if (!assay_dims_size(rank, dims, &n) || n != have)
    return ASSAY_ERROR(ASSAY_CORRUPT,
                       "text: it holds %" PRId64 " numbers, and shape %s takes %" PRId64, have,
                       assay_dims_text(rank, dims, (char[512]){0}, 512), n);
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_tensor_create(type, rank, dims, &t));
  scanner_t s = {data, data + size};
  assay_status_t st = NULL;
  const uint8_t* word;
  for (int64_t i = 0; !st && i < n && next_word(&s, &word); i++)
    st = read_word(word, (size_t)(s.p - word), t, i);
  if (st) return assay_tensor_release(t), st;
  *out = t;
  return NULL;
}

// ---- writing ------------------------------------------------------------------------------------

static void put_number(const assay_tensor_t* t, int64_t i, assay_str_t* out) {
  if (t->store == ASSAY_STORE_F64)
    assay_str_printf(out, "%.*g", t->type == ASSAY_TYPE_DOUBLE ? 17 : 9, assay_f64(t)[i]);
  else if (t->type == ASSAY_TYPE_UINT64)
    assay_str_printf(out, "%" PRIu64, (uint64_t)assay_i64(t)[i]);
  else
    assay_str_printf(out, "%" PRId64, assay_i64(t)[i]);
}

static assay_status_t write_rows(assay_writer_t* w, const assay_tensor_t* t) {
  const int64_t row = t->rank && t->size ? t->dims[t->rank - 1] : 1;
  assay_str_t line = {0};
  assay_status_t st = NULL;
  for (int64_t i = 0; !st && i < t->size; i += row) {
    line.len = 0;
    for (int64_t k = 0; k < row; k++) {
      if (k) assay_str_append(&line, " ");
      put_number(t, i + k, &line);
    }
    assay_str_append(&line, "\n");
    st = assay_str_status(&line);
    if (!st) st = assay_writer_write(w, line.text, line.len);
  }
  assay_str_deinit(&line);
  return st;
}

assay_status_t assay_text_write(const char* path, assay_tensor_t* t) {
  assay_tensor_t* wide = NULL;
  assay_writer_t* w = NULL;
  const assay_store_t store = assay_type_store(t->type);
  if (t->kind != ASSAY_KIND_TENSOR || (store != ASSAY_STORE_F64 && store != ASSAY_STORE_I64))
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "text holds tensors of real numbers only");
  ASSAY_TRY(assay_tensor_widen(t, &wide));
  assay_status_t st = assay_writer_open(path, &w);
  if (!st) st = write_rows(w, wide);
  assay_tensor_release(wide);
  if (st) return assay_writer_abandon(w), st;
  return assay_writer_commit(w);
}
