// Strings: StringConcat, StringNormalizer, StringSplit, RegexFullMatch. Text is UTF-8; bytes that
// are not are carried along.
#include <string.h>

#include "base/alloc.h"
#include "ops/families.h"
#include "ops/text/text_case.h"
#include "ops/text/text_regex.h"

// ---- StringConcat -------------------------------------------------------------------------------

static assay_status_t concat_two(assay_tensor_t* y, int64_t i, assay_string_t a, assay_string_t b) {
  if (a.len > SIZE_MAX / 2 || b.len > SIZE_MAX / 2 - 1) return assay_status_no_memory();
  char* text = assay_malloc(a.len + b.len + 1);
  if (!text) return assay_status_no_memory();
  if (a.len) memcpy(text, a.text, a.len);
  if (b.len) memcpy(text + a.len, b.text, b.len);
  text[a.len + b.len] = 0;
  assay_strings(y)[i] = (assay_string_t){text, a.len + b.len};
  return NULL;
}

// ai.onnx StringConcat-20.
static assay_status_t concat_eval(assay_eval_t* c) {
  int rank = 0;
  int64_t dims[ASSAY_MAX_RANK], at[ASSAY_MAX_RANK] = {0}, steps[2][ASSAY_MAX_RANK];
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_eval_broadcast(c, 2, c->in, &rank, dims));
  ASSAY_TRY(assay_eval_output(c, 0, ASSAY_TYPE_STRING, rank, dims, &y));
  for (int k = 0; k < 2; k++) assay_broadcast_strides(c->in[k], rank, dims, steps[k]);
  int64_t a = 0, b = 0;
  for (int64_t i = 0; i < y->size; i++) {
    ASSAY_TRY(concat_two(y, i, assay_strings(c->in[0])[a], assay_strings(c->in[1])[b]));
    for (int d = rank - 1; d >= 0; d--) {
      a += steps[0][d];
      b += steps[1][d];
      if (++at[d] < dims[d]) break;
      a -= steps[0][d] * dims[d];
      b -= steps[1][d] * dims[d];
      at[d] = 0;
    }
  }
  return NULL;
}

// ---- StringNormalizer ---------------------------------------------------------------------------

typedef enum change { CHANGE_NONE, CHANGE_LOWER, CHANGE_UPPER } change_t;

static assay_status_t read_change(const assay_node_t* n, change_t* out) {
  const char* names[] = {"NONE", "LOWER", "UPPER"};
  for (int i = 0; i < 3; i++) {
    if (!assay_attr_is(n, "case_change_action", names[i])) continue;
    *out = (change_t)i;
    return NULL;
  }
  return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT,
                          "case_change_action is '%s'; NONE, LOWER or UPPER is expected",
                          assay_attr_str(n, "case_change_action", "NONE"));
}

static assay_status_t normalizer_shape(const assay_node_t* n, int rank, const char* shape) {
  if (rank == 1 || rank == 2) return NULL;
  return ASSAY_NODE_ERROR(n, ASSAY_INVALID_ARGUMENT,
                          "input has shape %s; [C] or [1, C] is expected", shape);
}

// Without stop words the shape stays, but that a row of none becomes one of an empty string.
static assay_status_t normalizer_infer(assay_infer_t* c) {
  assay_shape_t s = assay_infer_shape(c, 0);
  change_t change;
  size_t n = 0;
  ASSAY_TRY(read_change(c->node, &change));
  if (s.known) {
    ASSAY_TRY(normalizer_shape(c->node, s.rank, ASSAY_VALTYPE_TEXT(assay_infer_type(c, 0))));
    const assay_dim_t** last = &s.dims[s.rank - 1];
    const assay_dim_t* one = assay_dim_const(c->dims, 1);
    if (s.rank == 2 && assay_dim_differ(s.dims[0], one))
      return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT, "input is %s; [C] or [1, C] is expected",
                              ASSAY_VALTYPE_TEXT(assay_infer_type(c, 0)));
    if (s.rank == 2) s.dims[0] = one;
    *last =
        assay_attr_strings(c->node, "stopwords", &n) ? NULL : assay_dim_max(c->dims, *last, one);
  }
  return assay_infer_set(c, 0, ASSAY_TYPE_STRING, &s);
}

static void append_changed(assay_str_t* out, assay_string_t s, change_t change) {
  if (change == CHANGE_NONE) {
    assay_str_append_n(out, s.text ? s.text : "", s.len);
    return;
  }
  for (size_t at = 0; at < s.len;) {
    uint32_t code = assay_utf8_read(s.text, s.len, &at);
    if (code < ASSAY_BAD_BYTE)
      code = change == CHANGE_LOWER ? assay_char_lower(code) : assay_char_upper(code);
    assay_utf8_append(out, code);
  }
}

// Equal but for case: by the lower case of the upper case, so that the two small sigmas are one.
static bool same_folded(assay_string_t a, assay_string_t b) {
  size_t i = 0, k = 0;
  while (i < a.len && k < b.len) {
    uint32_t x = assay_utf8_read(a.text, a.len, &i), y = assay_utf8_read(b.text, b.len, &k);
    if (x != y && (x >= ASSAY_BAD_BYTE || y >= ASSAY_BAD_BYTE ||
                   assay_char_lower(assay_char_upper(x)) != assay_char_lower(assay_char_upper(y))))
      return false;
  }
  return i == a.len && k == b.len;
}

static bool is_stopword(assay_string_t s, const assay_string_t* stops, size_t n, bool exact) {
  for (size_t i = 0; i < n; i++) {
    if (exact ? s.len == stops[i].len && (!s.len || memcmp(s.text, stops[i].text, s.len) == 0)
              : same_folded(s, stops[i]))
      return true;
  }
  return false;
}

// ai.onnx StringNormalizer-10. The locale is not asked: letters have the same case everywhere here.
static assay_status_t normalizer_eval(assay_eval_t* c) {
  const assay_tensor_t* x = c->in[0];
  change_t change;
  size_t n_stops = 0;
  const assay_string_t* stops = assay_attr_strings(c->node, "stopwords", &n_stops);
  bool exact = assay_attr_i64(c->node, "is_case_sensitive", 0) != 0;
  ASSAY_TRY(read_change(c->node, &change));
  ASSAY_TRY(normalizer_shape(c->node, x->rank, ASSAY_DIMS_TEXT(x)));
  if (x->rank == 2 && x->dims[0] != 1) return normalizer_shape(c->node, 0, ASSAY_DIMS_TEXT(x));
  int64_t *kept = NULL, n = 0;
  ASSAY_TRY(assay_new_array((size_t)x->size, sizeof *kept, &kept));
  for (int64_t i = 0; i < x->size; i++)
    if (!is_stopword(assay_strings(x)[i], stops, n_stops, exact)) kept[n++] = i;
  int64_t dims[2] = {1, 1};
  dims[x->rank - 1] = n ? n : 1;
  assay_tensor_t* y = NULL;
  assay_status_t st = assay_eval_output(c, 0, ASSAY_TYPE_STRING, x->rank, dims, &y);
  for (int64_t i = 0; !st && i < n; i++) {
    assay_str_t s = {0};
    append_changed(&s, assay_strings(x)[kept[i]], change);
    st = assay_str_status(&s);
    if (!st) st = assay_tensor_set_string(y, i, assay_str_get(&s), s.len);
    assay_str_deinit(&s);
  }
  assay_free(kept);
  return st;
}

// ---- StringSplit --------------------------------------------------------------------------------

// A text being split, piece by piece.
typedef struct splitter {
  assay_string_t s;
  assay_string_t delimiter;  // empty: white space
  int64_t left;              // splits that may still be made; negative: any number
  size_t at;
  bool done;
} splitter_t;

static size_t skip_spaces(assay_string_t s, size_t at) {
  while (at < s.len) {
    size_t next = at;
    if (!assay_char_is_space(assay_utf8_read(s.text, s.len, &next))) break;
    at = next;
  }
  return at;
}

static size_t trimmed_end(assay_string_t s) {
  size_t end = 0;
  for (size_t at = 0; at < s.len;)
    if (!assay_char_is_space(assay_utf8_read(s.text, s.len, &at))) end = at;
  return end;
}

static bool next_word(splitter_t* p, assay_string_t* out) {
  size_t start = skip_spaces(p->s, p->at), end = start;
  if (start == p->s.len) return false;
  if (p->left == 0) {  // the rest, without white space at its end
    end = trimmed_end(p->s);
    p->at = p->s.len;
  } else {
    for (size_t next = end; end < p->s.len; end = next)
      if (assay_char_is_space(assay_utf8_read(p->s.text, p->s.len, &next))) break;
    p->at = end;
    p->left--;
  }
  *out = (assay_string_t){p->s.text + start, end - start};
  return true;
}

static bool next_piece(splitter_t* p, assay_string_t* out) {
  if (!p->delimiter.len) return next_word(p, out);
  if (p->done) return false;
  const char* rest = p->s.len ? p->s.text + p->at : "";
  size_t n = p->s.len - p->at;
  const char* found = p->left == 0 ? NULL : memmem(rest, n, p->delimiter.text, p->delimiter.len);
  *out = (assay_string_t){rest, found ? (size_t)(found - rest) : n};
  p->done = !found;
  p->at += out->len + p->delimiter.len;
  p->left--;
  return true;
}

static splitter_t splitter(const assay_eval_t* c, assay_string_t s) {
  const assay_attr_t* a = assay_node_attr(c->node, "delimiter");
  splitter_t p = {.s = s, .left = assay_attr_i64(c->node, "maxsplit", -1)};
  if (p.left < 0) p.left = -1;
  if (a && a->type == ASSAY_ATTR_STRING) p.delimiter = a->u.s;
  return p;
}

static assay_status_t split_infer(assay_infer_t* c) {
  assay_shape_t s = assay_infer_shape(c, 0), y = s;
  if (y.known && y.rank == ASSAY_MAX_RANK) y.known = false;
  if (y.known) y.dims[y.rank++] = NULL;
  ASSAY_TRY(assay_infer_set(c, 0, ASSAY_TYPE_STRING, &y));
  return assay_infer_set(c, 1, ASSAY_TYPE_INT64, &s);
}

// ai.onnx StringSplit-20.
static assay_status_t split_eval(assay_eval_t* c) {
  const assay_tensor_t* x = c->in[0];
  assay_tensor_t *y = NULL, *counts = NULL;
  int64_t dims[ASSAY_MAX_RANK], max = 0;
  assay_string_t piece;
  if (x->rank == ASSAY_MAX_RANK)
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED, "the result would have rank %d",
                            x->rank + 1);
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_INT64, x->rank, x->dims, &counts));
  for (int64_t i = 0; i < x->size; i++) {
    splitter_t p = splitter(c, assay_strings(x)[i]);
    int64_t n = 0;
    while (next_piece(&p, &piece)) n++;
    assay_i64(counts)[i] = n;
    if (n > max) max = n;
  }
  if (assay_eval_wants(c, 1)) assay_eval_set(c, 1, counts);
  assay_tensor_release(counts);
  if (!assay_eval_wants(c, 0)) return NULL;
  if (x->rank) memcpy(dims, x->dims, (size_t)x->rank * sizeof *dims);
  dims[x->rank] = max;
  ASSAY_TRY(assay_eval_output(c, 0, ASSAY_TYPE_STRING, x->rank + 1, dims, &y));
  for (int64_t i = 0; i < x->size; i++) {
    splitter_t p = splitter(c, assay_strings(x)[i]);
    for (int64_t k = 0; next_piece(&p, &piece); k++)
      ASSAY_TRY(assay_tensor_set_string(y, i * max + k, piece.text, piece.len));
  }
  return NULL;
}

// ---- RegexFullMatch -----------------------------------------------------------------------------

static assay_status_t compile(const assay_node_t* n, assay_regex_t** out) {
  const assay_attr_t* a = assay_node_attr(n, "pattern");
  assay_string_t s = a && a->type == ASSAY_ATTR_STRING ? a->u.s : (assay_string_t){"", 0};
  return assay_status_note(assay_regex_create(s.text, s.len, out), "node '%s' (%s)", n->label,
                           n->op_type);
}

static assay_status_t match_infer(assay_infer_t* c) {
  assay_shape_t s = assay_infer_shape(c, 0);
  assay_regex_t* r = NULL;
  ASSAY_TRY(compile(c->node, &r));
  assay_regex_destroy(r);
  return assay_infer_set(c, 0, ASSAY_TYPE_BOOL, &s);
}

// ai.onnx RegexFullMatch-20.
static assay_status_t match_eval(assay_eval_t* c) {
  const assay_tensor_t* x = c->in[0];
  assay_tensor_t* y = NULL;
  assay_regex_t* r = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, ASSAY_TYPE_BOOL, x->rank, x->dims, &y));
  ASSAY_TRY(compile(c->node, &r));
  assay_status_t st = NULL;
  for (int64_t i = 0; !st && i < x->size; i++) {
    bool matches = false;
    assay_string_t s = assay_strings(x)[i];
    st = assay_regex_full_match(r, s.text, s.len, &matches);
    assay_i64(y)[i] = matches;
  }
  assay_regex_destroy(r);
  return assay_status_note(st, "node '%s' (%s)", c->node->label, c->node->op_type);
}

const assay_op_t assay_ops_text[] = {{.domain = "",
                                      .name = "StringConcat",
                                      .since = 20,
                                      .flags = ASSAY_OP_MOVES,
                                      .infer = assay_infer_broadcasts,
                                      .eval = concat_eval},
                                     {.domain = "",
                                      .name = "StringNormalizer",
                                      .since = 10,
                                      .flags = ASSAY_OP_MOVES,
                                      .infer = normalizer_infer,
                                      .eval = normalizer_eval},
                                     {.domain = "",
                                      .name = "StringSplit",
                                      .since = 20,
                                      .flags = ASSAY_OP_MOVES,
                                      .infer = split_infer,
                                      .eval = split_eval},
                                     {.domain = "",
                                      .name = "RegexFullMatch",
                                      .since = 20,
                                      .flags = ASSAY_OP_MOVES,
                                      .infer = match_infer,
                                      .eval = match_eval},
                                     {0}};
