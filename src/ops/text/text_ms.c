// com.microsoft's text operators: Tokenizer, MurmurHash3, WordConvEmbedding.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/functions.h"
#include "ops/bound_number.h"
#include "ops/families.h"
#include "ops/text/text_case.h"
#include "ops/text/text_regex.h"

// ---- Tokenizer ----------------------------------------------------------------------------------
//
// Source: ContribOperators.md of ONNX Runtime. Separators are applied one after the other, each to
// the pieces that those before it left; a single empty separator asks for characters.

typedef struct tokenizer {
  assay_regex_t** regexes;  // separators, or the one of tokenexp
  size_t n_regexes;
  bool by_separators, by_characters, mark;
  int64_t min_chars;
  const char* pad;
} tokenizer_t;

typedef struct tokens {
  assay_string_t* items;  // point into the text
  size_t n, capacity;
} tokens_t;

static assay_status_t add_token(const tokenizer_t* t, tokens_t* to, const char* text, size_t len) {
  int64_t chars = 0;
  for (size_t at = 0; at < len && chars < t->min_chars; chars++) assay_utf8_read(text, len, &at);
  if (!len || chars < t->min_chars) return NULL;
  ASSAY_TRY(assay_grow(&to->items, &to->capacity, to->n + 1, sizeof *to->items));
  to->items[to->n++] = (assay_string_t){text, len};
  return NULL;
}

// Splits at all matches of separator k, and each piece by those after it.
static assay_status_t split_by(const tokenizer_t* t, size_t k, const char* text, size_t len,
                               tokens_t* to) {
  if (k == t->n_regexes) return add_token(t, to, text, len);
  size_t from = 0, piece = 0;
  while (from < len) {
    bool found = false;
    size_t start = 0, end = 0;
    ASSAY_TRY(assay_regex_search(t->regexes[k], text, len, from, &found, &start, &end));
    if (!found) break;
    if (end == start) {  // an empty match separates nothing
      from = end;
      if (from < len) assay_utf8_read(text, len, &from);
      continue;
    }
    ASSAY_TRY(split_by(t, k + 1, text + piece, start - piece, to));
    piece = from = end;
  }
  return split_by(t, k + 1, text + piece, len - piece, to);
}

static assay_status_t find_tokens(const tokenizer_t* t, const char* text, size_t len,
                                  tokens_t* to) {
  for (size_t from = 0; from < len;) {
    bool found = false;
    size_t start = 0, end = 0;
    ASSAY_TRY(assay_regex_search(t->regexes[0], text, len, from, &found, &start, &end));
    if (!found) break;
    ASSAY_TRY(add_token(t, to, text + start, end - start));
    from = end;
    if (end == start && from < len) assay_utf8_read(text, len, &from);
  }
  return NULL;
}

static assay_status_t tokenize(const tokenizer_t* t, assay_string_t s, tokens_t* to) {
  if (t->by_characters) {
    for (size_t at = 0, start = 0; at < s.len; start = at) {
      assay_utf8_read(s.text, s.len, &at);
      ASSAY_TRY(add_token(t, to, s.text + start, at - start));
    }
    return NULL;
  }
  if (!s.len) return NULL;
  return t->by_separators ? split_by(t, 0, s.text, s.len, to) : find_tokens(t, s.text, s.len, to);
}

static void tokenizer_deinit(tokenizer_t* t) {
  for (size_t i = 0; t->regexes && i < t->n_regexes; i++) assay_regex_destroy(t->regexes[i]);
  assay_free(t->regexes);
}

static assay_status_t tokenizer_init(const assay_node_t* n, tokenizer_t* t) {
  size_t n_separators = 0;
  const assay_string_t* separators = assay_attr_strings(n, "separators", &n_separators);
  const assay_attr_t* exp = assay_node_attr(n, "tokenexp");
  *t = (tokenizer_t){.mark = assay_attr_i64(n, "mark", 0) != 0,
                     .min_chars = assay_attr_i64(n, "mincharnum", 1),
                     .pad = assay_attr_str(n, "pad_value", "")};
  if ((exp != NULL) == (n_separators > 0))
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "one of 'separators' and 'tokenexp' must be given");
  if (t->min_chars < 1)
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "mincharnum is %lld; 1 or more is expected",
                            (long long)t->min_chars);
  t->by_separators = !exp;
  t->by_characters = !exp && n_separators == 1 && !separators[0].len;
  if (t->by_characters) {
    if (t->min_chars == 1) return NULL;
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "mincharnum is %lld; characters need 1",
                            (long long)t->min_chars);
  }
  if (n_separators > 64)
    return ASSAY_NODE_ERROR(n, ASSAY_UNSUPPORTED, "%zu separators; 64 are the most", n_separators);
  t->n_regexes = exp ? 1 : n_separators;
  ASSAY_TRY(assay_new_array(t->n_regexes, sizeof *t->regexes, &t->regexes));
  for (size_t i = 0; i < t->n_regexes; i++) {
    assay_string_t s = exp ? exp->u.s : separators[i];
    if (!s.len)
      return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "an empty separator must be the only one");
    ASSAY_TRY(assay_status_note(assay_regex_create(s.text, s.len, &t->regexes[i]), "node '%s' (%s)",
                                n->label, n->op_type));
  }
  return NULL;
}

static assay_status_t tokenizer_infer(assay_infer_t* c) {
  assay_shape_t s = assay_infer_shape(c, 0);
  tokenizer_t t;
  ASSAY_TRY(assay_infer_want_rank(c, 0, 1, 2));
  assay_status_t st = tokenizer_init(c->node, &t);
  tokenizer_deinit(&t);
  if (st) return st;
  if (s.known) s.dims[s.rank++] = NULL;
  return assay_infer_set(c, 0, ASSAY_TYPE_STRING, &s);
}

// Fills the rows of the output. ends[i]: how many tokens rows 0 to i have together.
static assay_status_t lay_out(assay_eval_t* c, const tokenizer_t* t, const assay_tensor_t* x,
                              const tokens_t* tokens, const size_t* ends) {
  int64_t dims[3] = {x->dims[0], x->dims[1], 0}, max = 0;
  assay_tensor_t* y = NULL;
  for (int64_t i = 0; i < x->size; i++) {
    int64_t n = (int64_t)(ends[i] - (i ? ends[i - 1] : 0));
    if (n > max) max = n;
  }
  int64_t marks = t->mark && max ? 1 : 0, width = max + 2 * marks;
  dims[x->rank] = width;
  ASSAY_TRY(assay_eval_output(c, 0, ASSAY_TYPE_STRING, x->rank + 1, dims, &y));
  for (int64_t i = 0; i < x->size && width; i++) {
    int64_t at = i * width, row_end = at + width;
    if (marks) ASSAY_TRY(assay_tensor_set_string(y, at++, "\x02", 1));
    for (size_t k = i ? ends[i - 1] : 0; k < ends[i]; k++)
      ASSAY_TRY(assay_tensor_set_string(y, at++, tokens->items[k].text, tokens->items[k].len));
    if (marks) ASSAY_TRY(assay_tensor_set_string(y, at++, "\x03", 1));
    while (at < row_end) ASSAY_TRY(assay_tensor_set_string(y, at++, t->pad, strlen(t->pad)));
  }
  return NULL;
}

static assay_status_t tokenizer_eval(assay_eval_t* c) {
  const assay_tensor_t* x = c->in[0];
  tokenizer_t t = {0};
  tokens_t tokens = {0};
  size_t* ends = NULL;
  if (x->rank < 1 || x->rank > 2)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input has shape %s; [C] or [N, C] is expected", ASSAY_DIMS_TEXT(x));
  assay_status_t st = tokenizer_init(c->node, &t);
  if (!st) st = assay_new_array((size_t)x->size, sizeof *ends, &ends);
  for (int64_t i = 0; !st && i < x->size; i++) {
    st = tokenize(&t, assay_strings(x)[i], &tokens);
    ends[i] = tokens.n;
  }
  if (!st) st = lay_out(c, &t, x, &tokens, ends);
  assay_free(tokens.items);
  assay_free(ends);
  tokenizer_deinit(&t);
  return st;
}

// ---- MurmurHash3 --------------------------------------------------------------------------------

static uint32_t rotl(uint32_t x, int r) { return x << r | x >> (32 - r); }

// Source: Appleby, MurmurHash3_x86_32 (public domain).
static uint32_t murmur3(const unsigned char* data, size_t len, uint32_t seed) {
  const uint32_t c1 = UINT32_C(0xcc9e2d51), c2 = UINT32_C(0x1b873593);
  uint32_t h = seed;
  for (size_t at = 0; at < len; at += 4) {
    uint32_t k = 0;
    size_t n = len - at < 4 ? len - at : 4;
    for (size_t i = 0; i < n; i++) k |= (uint32_t)data[at + i] << (8 * i);
    h ^= rotl(k * c1, 15) * c2;
    if (n == 4) h = rotl(h, 13) * 5 + UINT32_C(0xe6546b64);
  }
  h ^= (uint32_t)len;
  h = (h ^ h >> 16) * UINT32_C(0x85ebca6b);
  h = (h ^ h >> 13) * UINT32_C(0xc2b2ae35);
  return h ^ h >> 16;
}

static assay_type_t murmur_type(const assay_node_t* n) {
  return assay_attr_i64(n, "positive", 1) ? ASSAY_TYPE_UINT32 : ASSAY_TYPE_INT32;
}

static assay_status_t murmur_infer(assay_infer_t* c) {
  assay_shape_t s = assay_infer_shape(c, 0);
  return assay_infer_set(c, 0, murmur_type(c->node), &s);
}

// Numbers are hashed by the bytes of their declared type, whatever truth carries them in.
static assay_status_t murmur_eval(assay_eval_t* c) {
  const assay_tensor_t* x = c->in[0];
  assay_type_t type = murmur_type(c->node);
  uint32_t seed = (uint32_t)assay_attr_i64(c->node, "seed", 0);
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, type, x->rank, x->dims, &y));
  size_t bytes = (size_t)assay_type_bits(x->type) / 8;
  for (int64_t i = 0; i < x->size; i++) {
    uint32_t h;
    if (x->store == ASSAY_STORE_STR) {
      assay_string_t s = assay_strings(x)[i];
      h = murmur3((const unsigned char*)s.text, s.len, seed);
    } else {
      unsigned char packed[16] = {0};
      const void* elem = x->store == ASSAY_STORE_F64 ? (const void*)&assay_f64(x)[i]
                                                     : (const void*)&assay_i64(x)[i];
      assay_pack(x->type, elem, 1, packed, ASSAY_OVERFLOW_IEEE);
      h = murmur3(packed, bytes, seed);
    }
    assay_i64(y)[i] = assay_type_wrap(type, (int64_t)h);
  }
  return NULL;
}

// ---- WordConvEmbedding --------------------------------------------------------------------------
//
// Of each word (a row of character ids, up to the first that is not positive): look up the
// characters, convolve over the character axis, take the largest of each filter, add the bias,
// tanh. Source: ONNX Runtime, ContribOperators.md and core of WordConvEmbedding.

static assay_status_t word_conv_infer(assay_infer_t* c) {
  assay_shape_t seq = assay_infer_shape(c, 0), w = assay_infer_shape(c, 1);
  assay_shape_t y = {.known = true, .rank = 2};
  ASSAY_TRY(assay_infer_want_rank(c, 0, 2, 2));
  ASSAY_TRY(assay_infer_want_rank(c, 1, 4, 4));
  ASSAY_TRY(assay_infer_want_rank(c, 2, 1, 1));
  ASSAY_TRY(assay_infer_want_rank(c, 3, 2, 2));
  if (seq.known) y.dims[0] = seq.dims[0];
  if (w.known) y.dims[1] = w.dims[0];
  return assay_infer_set(c, 0, ASSAY_TYPE_FLOAT, &y);
}

static assay_status_t check_word_conv(const assay_eval_t* c) {
  const assay_tensor_t *seq = c->in[0], *w = c->in[1], *b = c->in[2], *e = c->in[3];
  bool ok = seq->rank == 2 && w->rank == 4 && w->dims[1] == 1 && w->dims[2] >= 1 && b->rank == 1 &&
            b->dims[0] == w->dims[0] && e->rank == 2 && e->dims[1] == w->dims[3] &&
            seq->dims[1] >= w->dims[2] && e->dims[0] >= 1;
  if (!ok)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "inputs are %s, %s, %s, %s; [words, characters], [filters, 1, width, "
                            "size], [filters], [ids, size] are expected, with at least as many "
                            "characters as the width",
                            ASSAY_DIMS_TEXT(seq), ASSAY_DIMS_TEXT(w), ASSAY_DIMS_TEXT(b),
                            ASSAY_DIMS_TEXT(e));
  for (int64_t i = 0; i < seq->size; i++)
    if (assay_i64(seq)[i] >= e->dims[0])
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "character %lld is not in the embedding of %lld",
                              (long long)assay_i64(seq)[i], (long long)e->dims[0]);
  return NULL;
}

static assay_status_t word_conv_eval(assay_eval_t* c) {
  ASSAY_TRY(check_word_conv(c));
  const assay_tensor_t *seq = c->in[0], *w = c->in[1], *e = c->in[3];
  int64_t words = seq->dims[0], chars = seq->dims[1], filters = w->dims[0];
  int64_t width = w->dims[2], size = e->dims[1];
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, ASSAY_TYPE_FLOAT, 2, (int64_t[]){words, filters}, &y));
#pragma omp parallel for schedule(static) if (words * filters > 1000)
  for (int64_t word = 0; word < words; word++) {
    const int64_t* ids = assay_i64(seq) + word * chars;
    int64_t n = 0;
    while (n < chars && ids[n] > 0) n++;
    int64_t windows = (n > width ? n : width) - width + 1;
    for (int64_t f = 0; f < filters; f++) {
      double best = -INFINITY;
      for (int64_t at = 0; at < windows; at++) {
        // Summed in the order of the window's characters, then of the embedding.
        double sum = 0;
        for (int64_t k = 0; k < width; k++) {
          int64_t id = ids[at + k] > 0 ? ids[at + k] : 0;
          const double* row = assay_f64(e) + id * size;
          const double* weights = assay_f64(w) + (f * width + k) * size;
          for (int64_t s = 0; s < size; s++)
            sum = assay_acc(c, sum + assay_acc(c, row[s] * weights[s]));
        }
        if (sum > best || isnan(sum)) best = sum;
      }
      // A word without characters has no embedding: zeros.
      assay_f64(y)[word * filters + f] =
          n ? assay_tanh(assay_acc(c, best + assay_f64(c->in[2])[f])) : 0;
    }
  }
  return NULL;
}

// The largest of several sums is off by no more than the worst of them that could be the largest.
static assay_status_t word_conv_bound(assay_bound_t* c) {
  ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));
  const assay_tensor_t *seq = c->in[0], *w = c->in[1], *e = c->in[3];
  const int64_t words = seq->dims[0], chars = seq->dims[1], filters = w->dims[0];
  const int64_t width = w->dims[2], size = e->dims[1];
  const assay_arithmetic_t a = assay_arithmetic_of(c);
  double *g, *p;
  ASSAY_TRY(assay_bound_output(c, 0, &g, &p));
#pragma omp parallel for schedule(static) if (words * filters > 1000)
  for (int64_t k = 0; k < words * filters; k++) {
    const int64_t *ids = assay_i64(seq) + k / filters * chars, f = k % filters;
    int64_t n = 0;
    while (n < chars && ids[n] > 0) n++;
    const int64_t windows = (n > width ? n : width) - width + 1;
    assay_number_t best = {.v = -(double)INFINITY};
    for (int64_t at = 0; at < windows; at++) {
      assay_number_sum_t sum = {0};
      for (int64_t i = 0; i < width * size; i++) {
        const int64_t id = ids[at + i / size] > 0 ? ids[at + i / size] : 0;
        assay_number_sum_add_product(&sum, assay_number_exact(assay_f64(e)[id * size + i % size]),
                                     assay_number_exact(assay_f64(w)[f * width * size + i]));
      }
      const assay_number_t y = assay_number_sum_end(&a, &sum);
      best.v = fmax(best.v, y.v);
      best.g = fmax(best.g, y.g);
      best.s2 = fmax(best.s2, y.s2);
    }
    const assay_number_t bias = assay_number_exact(assay_f64(c->in[2])[f]);
    const assay_number_t y =
        assay_number_function(&a, assay_tanh, (double)INFINITY, assay_number_add(&a, best, bias));
    assay_number_limits(&a, n ? y : assay_number_exact(0), &g[k], &p[k]);
  }
  return NULL;
}

static void word_conv_cost(const assay_eval_t* c, assay_cost_t* out) {
  const assay_tensor_t *seq = c->in[0], *w = c->in[1];
  out->flops = 2.0 * (double)seq->size * (double)w->size;
}

const assay_op_t assay_ops_text_ms[] = {
    {.domain = "com.microsoft",
     .name = "Tokenizer",
     .since = 1,
     .flags = ASSAY_OP_MOVES,
     .schema =
         "X:string -> Y:string | mark:i!, mincharnum:i!, pad_value:s!, separators:ss, tokenexp:s",
     .infer = tokenizer_infer,
     .eval = tokenizer_eval},
    {.domain = "com.microsoft",
     .name = "MurmurHash3",
     .since = 1,
     .discrete = 1,
     .schema = "X:T1 -> Y:T2 | positive:i=1, seed:i=0 | T1=uint32 int32 uint64 int64 float double "
               "string; T2=uint32 int32",
     .infer = murmur_infer,
     .eval = murmur_eval},
    {.domain = "com.microsoft",
     .name = "WordConvEmbedding",
     .since = 1,
     .schema = "Sequence:T, W:T1, B:T1, C:T1 -> Y:T1 | embedding_size:i, conv_window_size:i, "
               "char_embedding_size:i | T=int32; T1=float",
     .infer = word_conv_infer,
     .eval = word_conv_eval,
     .bound = word_conv_bound,
     .cost = word_conv_cost},
    {0}};
