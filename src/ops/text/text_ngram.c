// TfIdfVectorizer: counts of n-grams.
//
// Tokens (numbers or strings) get dense ids in the order of their values, so that an n-gram is a
// short list of ids; n-grams of a length are sorted, so that each window is found by bisection.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "ops/bound_number.h"
#include "ops/families.h"

typedef struct token {
  assay_string_t s;
  int64_t i;
} token_t;

typedef struct gram {
  const int* ids;
  int n;
  int64_t index;  // in the pool
} gram_t;

typedef struct vectorizer {
  token_t* tokens;  // the pool's, sorted, each once
  int64_t n_tokens;
  int* ids;       // of the pool, token by token
  gram_t* grams;  // sorted by length, then ids, then index
  int64_t n_grams;
  const int64_t* outputs;  // by n-gram
  const float* weights;    // NULL: all 1
  int64_t width;           // of the output
  int64_t min, max, skips;
  bool count, weigh;  // TF counts, IDF weighs, TFIDF both
} vectorizer_t;

static int compare_tokens(const void* a, const void* b) {
  const token_t *x = a, *y = b;
  if (x->i != y->i) return x->i < y->i ? -1 : 1;
  size_t n = x->s.len < y->s.len ? x->s.len : y->s.len;
  int order = n ? memcmp(x->s.text, y->s.text, n) : 0;
  if (order) return order;
  return x->s.len < y->s.len ? -1 : x->s.len > y->s.len;
}

static int compare_ids(const gram_t* x, const gram_t* y) {
  if (x->n != y->n) return x->n < y->n ? -1 : 1;
  for (int k = 0; k < x->n; k++)
    if (x->ids[k] != y->ids[k]) return x->ids[k] < y->ids[k] ? -1 : 1;
  return 0;
}

static int compare_grams(const void* a, const void* b) {
  const gram_t *x = a, *y = b;
  int order = compare_ids(x, y);
  return order ? order : x->index < y->index ? -1 : x->index > y->index;
}

static int token_id(const vectorizer_t* v, const token_t* t) {
  const token_t* found =
      v->n_tokens ? bsearch(t, v->tokens, (size_t)v->n_tokens, sizeof *t, compare_tokens) : NULL;
  return found ? (int)(found - v->tokens) : -1;
}

// ---- attributes ---------------------------------------------------------------------------------

static assay_status_t read_indexes(const assay_node_t* n, vectorizer_t* v) {
  size_t count = 0, weights = 0;
  v->outputs = assay_attr_ints(n, "ngram_indexes", &count);
  v->weights = assay_attr_floats(n, "weights", &weights);
  v->n_grams = (int64_t)count;
  v->width = 0;
  for (size_t i = 0; i < count; i++) {
    if (v->outputs[i] < 0 || v->outputs[i] == INT64_MAX)
      return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "ngram_indexes[%zu] is %lld", i,
                              (long long)v->outputs[i]);
    if (v->outputs[i] >= v->width) v->width = v->outputs[i] + 1;
  }
  if (!count) return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "ngram_indexes is empty");
  if (weights && weights != count)
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "weights has %zu entries, ngram_indexes has %zu",
                            weights, count);
  return NULL;
}

static assay_status_t read_mode(const assay_node_t* n, vectorizer_t* v) {
  v->count = assay_attr_is(n, "mode", "TF") || assay_attr_is(n, "mode", "TFIDF");
  v->weigh = assay_attr_is(n, "mode", "IDF") || assay_attr_is(n, "mode", "TFIDF");
  if (!v->count && !v->weigh)
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "mode is '%s'; TF, IDF or TFIDF is expected",
                            assay_attr_str(n, "mode", ""));
  v->min = assay_attr_i64(n, "min_gram_length", 1);
  v->max = assay_attr_i64(n, "max_gram_length", 1);
  v->skips = assay_attr_i64(n, "max_skip_count", 0);
  if (v->min < 1 || v->max < v->min || v->skips < 0)
    return ASSAY_NODE_ERROR(
        n, ASSAY_CORRUPT,
        "min_gram_length %lld, max_gram_length %lld and max_skip_count %lld make "
        "no sense",
        (long long)v->min, (long long)v->max, (long long)v->skips);
  return NULL;
}

// Reads the pool, whose tokens are strings or integers, and cuts it into n-grams.
static assay_status_t read_pool(const assay_node_t* n, bool strings, vectorizer_t* v) {
  size_t size = 0, n_strings = 0, n_ints = 0, n_counts = 0;
  const assay_string_t* s = assay_attr_strings(n, "pool_strings", &n_strings);
  const int64_t* ints = assay_attr_ints(n, "pool_int64s", &n_ints);
  const int64_t* counts = assay_attr_ints(n, "ngram_counts", &n_counts);
  if ((s != NULL) == (ints != NULL))
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "one of pool_strings and pool_int64s must be given");
  if (strings != (s != NULL))
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "the input holds %s, the pool %s",
                            strings ? "strings" : "integers", s ? "strings" : "integers");
  size = s ? n_strings : n_ints;
  if (size > INT32_MAX || v->max > (int64_t)n_counts)
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT,
                            "ngram_counts has %zu entries; max_gram_length %lld needs as many",
                            n_counts, (long long)v->max);
  token_t* all = NULL;
  ASSAY_TRY(assay_new_array(size, sizeof *v->tokens, &v->tokens));
  ASSAY_TRY(assay_new_array(size, sizeof *v->ids, &v->ids));
  ASSAY_TRY(assay_new_array((size_t)v->n_grams, sizeof *v->grams, &v->grams));
  ASSAY_TRY(assay_new_array(size, sizeof *all, &all));
  for (size_t i = 0; i < size; i++) all[i] = s ? (token_t){.s = s[i]} : (token_t){.i = ints[i]};
  if (size) memcpy(v->tokens, all, size * sizeof *all);
  qsort(v->tokens, size, sizeof *all, compare_tokens);
  for (size_t i = 0; i < size; i++)
    if (!i || compare_tokens(&v->tokens[i], &v->tokens[v->n_tokens - 1]))
      v->tokens[v->n_tokens++] = v->tokens[i];
  for (size_t i = 0; i < size; i++) v->ids[i] = token_id(v, &all[i]);
  assay_free(all);
  int64_t found = 0;
  for (size_t k = 0; k < n_counts; k++) {
    int64_t first = counts[k], end = k + 1 < n_counts ? counts[k + 1] : (int64_t)size;
    int64_t length = (int64_t)k + 1;
    if (first < 0 || end < first || end > (int64_t)size || (end - first) % length)
      return ASSAY_NODE_ERROR(
          n, ASSAY_CORRUPT,
          "ngram_counts[%zu] is %lld and the next %lld; of a pool of %zu tokens "
          "they must cut out %lld-grams",
          k, (long long)first, (long long)end, size, (long long)length);
    for (int64_t at = first; at < end; at += length) {
      if (found == v->n_grams)
        return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT,
                                "the pool holds more n-grams than ngram_indexes, which has %lld",
                                (long long)v->n_grams);
      v->grams[found] = (gram_t){.ids = v->ids + at, .n = (int)length, .index = found};
      found++;
    }
  }
  if (found != v->n_grams)
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT,
                            "the pool holds %lld n-grams, ngram_indexes %lld entries",
                            (long long)found, (long long)v->n_grams);
  qsort(v->grams, (size_t)found, sizeof *v->grams, compare_grams);
  return NULL;
}

static void vectorizer_deinit(vectorizer_t* v) {
  assay_free(v->tokens);
  assay_free(v->ids);
  assay_free(v->grams);
}

// ---- inference and evaluation ------------------------------------------------------------------

static assay_status_t tfidf_infer(assay_infer_t* c) {
  vectorizer_t v = {0};
  assay_shape_t s = assay_infer_shape(c, 0);
  ASSAY_TRY(read_indexes(c->node, &v));
  ASSAY_TRY(read_mode(c->node, &v));
  ASSAY_TRY(assay_infer_want_rank(c, 0, 1, 2));
  if (s.known) s.dims[s.rank - 1] = assay_dim_const(c->dims, v.width);
  return assay_infer_set(c, 0, ASSAY_TYPE_FLOAT, &s);
}

// The n-gram's place in the pool; -1: it is not there.
static int64_t find_gram(const vectorizer_t* v, const gram_t* g) {
  int64_t low = 0, high = v->n_grams;
  while (low < high) {
    int64_t mid = low + (high - low) / 2;
    if (compare_ids(&v->grams[mid], g) < 0)
      low = mid + 1;
    else
      high = mid;
  }
  return low < v->n_grams && compare_ids(&v->grams[low], g) == 0 ? v->grams[low].index : -1;
}

// Counts the n-grams of one row of ids. A step of s + 1 skips s tokens; a single token skips none.
static void count_row(const vectorizer_t* v, const int* row, int64_t n, int* window, double* y) {
  for (int64_t length = v->min; length <= v->max && length <= n; length++) {
    int64_t maximum = length > 1 ? (n - 1) / (length - 1) : 1;  // the widest step that fits
    for (int64_t step = 1; step <= maximum && step - 1 <= (length > 1 ? v->skips : 0); step++) {
      for (int64_t first = 0; first + (length - 1) * step < n; first++) {
        bool known = true;
        for (int64_t k = 0; known && k < length; k++)
          known = (window[k] = row[first + k * step]) >= 0;
        gram_t g = {.ids = window, .n = (int)length};
        int64_t found = known ? find_gram(v, &g) : -1;
        if (found < 0) continue;
        double weight = v->weigh && v->weights ? (double)v->weights[found] : 1;
        double* out = &y[v->outputs[found]];
        *out = v->count ? *out + weight : weight;
      }
    }
  }
}

static assay_status_t tfidf_rows(const assay_tensor_t* x, const vectorizer_t* v,
                                 assay_tensor_t* y) {
  int64_t n = x->dims[x->rank - 1], rows = x->rank == 2 ? x->dims[0] : 1;
  int *row = NULL, *window = NULL;
  ASSAY_TRY(assay_new_array((size_t)n, sizeof *row, &row));
  assay_status_t st = assay_new_array((size_t)v->max, sizeof *window, &window);
  for (int64_t r = 0; !st && r < rows; r++) {
    for (int64_t i = 0; i < n; i++) {
      token_t t = x->store == ASSAY_STORE_STR ? (token_t){.s = assay_strings(x)[r * n + i]}
                                              : (token_t){.i = assay_i64(x)[r * n + i]};
      row[i] = token_id(v, &t);
    }
    count_row(v, row, n, window, assay_f64(y) + r * v->width);
  }
  assay_free(row);
  assay_free(window);
  return st;
}

// ai.onnx TfIdfVectorizer-9.
static assay_status_t tfidf_eval(assay_eval_t* c) {
  const assay_tensor_t* x = c->in[0];
  vectorizer_t v = {0};
  assay_tensor_t* y = NULL;
  if (x->rank < 1 || x->rank > 2)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input has shape %s; [C] or [N, C] is expected", ASSAY_DIMS_TEXT(x));
  ASSAY_TRY(read_indexes(c->node, &v));
  ASSAY_TRY(read_mode(c->node, &v));
  int64_t dims[2] = {x->dims[0], x->dims[1]};
  dims[x->rank - 1] = v.width;
  ASSAY_TRY(assay_eval_output(c, 0, ASSAY_TYPE_FLOAT, x->rank, dims, &y));
  memset(y->data, 0, (size_t)y->size * sizeof(double));
  assay_status_t st = read_pool(c->node, x->store == ASSAY_STORE_STR, &v);
  if (!st) st = tfidf_rows(x, &v, y);
  vectorizer_deinit(&v);
  return st;
}

// A count times a weight: one rounding.
static assay_status_t tfidf_bound(assay_bound_t* c) { return assay_bound_roundings(c, 1); }

const assay_op_t assay_ops_text_ngram[] = {{.domain = "",
                                            .name = "TfIdfVectorizer",
                                            .since = 9,
                                            .infer = tfidf_infer,
                                            .eval = tfidf_eval,
                                            .bound = tfidf_bound},
                                           {0}};
