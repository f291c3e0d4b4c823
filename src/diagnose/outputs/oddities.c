// Constants that look as if they had come to harm.
//
// Each look compares a constant with the others of the model: what all of them have is how the
// model is. Sources: weights that were printed with few digits, kaldi-asr/kaldi issue 3468; files
// that end before the tensor does, osaurus-ai/vmlx-swift issue 217; statistics and scales that were
// not loaded and are as a layer begins, onnx/tensorflow-onnx issue 1610.
#include "diagnose/outputs/oddities.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

enum { FEW = 16 };  // elements of a constant that digits and ends say something of

typedef struct looked {
  const assay_node_t* node;
  size_t input;
  int64_t size;
  bool few_digits;    // whole tenths, hundredths or thousandths
  double zeros;       // the share that ends it and is 0
  bool as_begun;      // a parameter of a normalization as it is before training
  bool can_be_begun;  // it is such a parameter
} looked_t;

typedef struct looks {
  looked_t* at;
  size_t n, capacity;
} looks_t;

// ---- one constant -------------------------------------------------------------------------------

static bool is_whole(const assay_tensor_t* x, double times) {
  static const double ROUNDING = 2e-6;
  for (int64_t i = 0; i < x->size; i++) {
    const double v = assay_f64(x)[i] * times;
    if (!isfinite(v) || fabs(v - floor(v + 0.5)) > ROUNDING * fmax(1, fabs(v))) return false;
  }
  return true;
}

static int64_t distinct(const assay_tensor_t* x, int64_t most) {
  double seen[8];
  int64_t n = 0;
  for (int64_t i = 0; i < x->size && n < most; i++) {
    int64_t k = 0;
    while (k < n && seen[k] != assay_f64(x)[i]) k++;
    if (k == n) seen[n++] = assay_f64(x)[i];
  }
  return n;
}

// Not whole numbers: they may be meant so.
static bool has_few_digits(const assay_tensor_t* x) {
  enum { DISTINCT = 5 };
  if (x->size < FEW || distinct(x, DISTINCT) < DISTINCT || is_whole(x, 1)) return false;
  return is_whole(x, 10) || is_whole(x, 100) || is_whole(x, 1000);
}

static double zeros_at_end(const assay_tensor_t* x) {
  static const double SOME = 0.02;
  int64_t n = 0, before = 0;
  while (n < x->size && assay_f64(x)[x->size - 1 - n] == 0) n++;
  for (int64_t i = 0; i < x->size - n; i++) before += assay_f64(x)[i] == 0;
  // Where zeros are everywhere they are how the constant is.
  if (x->size < FEW || n == x->size || (double)before > SOME * (double)(x->size - n)) return 0;
  return (double)n / (double)x->size;
}

static bool is_all(const assay_tensor_t* x, double value) {
  for (int64_t i = 0; i < x->size; i++)
    if (assay_f64(x)[i] != value) return false;
  return x->size > 1;
}

// What input i of a normalization is before training; NAN: nothing.
static double begun_at(const assay_node_t* n, size_t i) {
  static const struct {
    const char* op;
    double values[5];
  } rows[] = {{"BatchNormalization", {(double)NAN, 1, 0, 0, 1}},
              {"LayerNormalization", {(double)NAN, 1, 0, (double)NAN, (double)NAN}},
              {"InstanceNormalization", {(double)NAN, 1, 0, (double)NAN, (double)NAN}},
              {"GroupNormalization", {(double)NAN, 1, 0, (double)NAN, (double)NAN}}};
  for (size_t k = 0; !*n->domain && i < 5 && k < sizeof rows / sizeof *rows; k++)
    if (strcmp(n->op_type, rows[k].op) == 0) return rows[k].values[i];
  return (double)NAN;
}

static assay_status_t look(looks_t* all, const assay_search_t* s, const assay_node_t* n,
                           size_t input) {
  const assay_value_t* v = n->inputs[input];
  const bool constant =
      v && (v->constant || (v->producer && strcmp(v->producer->op_type, "Constant") == 0));
  assay_tensor_t *t = constant ? assay_evaluator_get(s->evaluator, v) : NULL, *x = NULL;
  if (!t || t->kind != ASSAY_KIND_TENSOR || !assay_type_is_float(t->type) || t->size < 2)
    return NULL;
  ASSAY_TRY(assay_tensor_widen(t, &x));
  const double begun = begun_at(n, input);
  const looked_t found = {.node = n,
                          .input = input,
                          .size = x->size,
                          .few_digits = has_few_digits(x),
                          .zeros = zeros_at_end(x),
                          .can_be_begun = begun == begun,
                          .as_begun = begun == begun && is_all(x, begun)};
  assay_tensor_release(x);
  ASSAY_TRY(assay_grow(&all->at, &all->capacity, all->n + 1, sizeof *all->at));
  all->at[all->n++] = found;
  return NULL;
}

// ---- beside the others --------------------------------------------------------------------------

// Of the others that could be so, how many are; NAN: there are none.
static double share_of(const looks_t* all, const looked_t* one, char what) {
  size_t are = 0, could = 0;
  for (size_t i = 0; i < all->n; i++) {
    const looked_t* x = &all->at[i];
    if (x == one) continue;
    if (what == 'd' && x->size >= FEW) could++, are += x->few_digits;
    if (what == 'z' && x->size >= FEW) could++, are += x->zeros > 0;
    if (what == 'b' && x->can_be_begun && x->input == one->input && x->node != one->node &&
        strcmp(x->node->op_type, one->node->op_type) == 0)
      could++, are += x->as_begun;
  }
  return could ? (double)are / (double)could : (double)NAN;
}

static assay_oddity_t judge(const looks_t* all, const looked_t* x) {
  static const double SELDOM = 0.25, END = 0.02;
  static const double DIGITS = 0.9, CUT = 0.9, BEGUN = 0.7;
  assay_oddity_t out = {.node = x->node};
  if (x->few_digits && share_of(all, x, 'd') <= SELDOM)
    out.what = "one of its constants has few digits, as no other", out.score = DIGITS;
  // Tables have rows of zeros that nothing reads, to round their length.
  if (x->zeros > END && strcmp(x->node->op_type, "Gather") != 0 &&
      share_of(all, x, 'z') <= SELDOM && CUT > out.score)
    out.what = "one of its constants ends in zeros, as no other", out.score = CUT;
  if (x->as_begun && share_of(all, x, 'b') <= SELDOM && BEGUN > out.score)
    out.what = "one of its constants is as before training, as no other", out.score = BEGUN;
  return out;
}

static void keep(assay_oddity_t next, assay_oddity_t* out, size_t* n) {
  size_t at = 0;
  while (at < *n && out[at].node != next.node) at++;
  if (at == *n) {
    if (*n == ASSAY_ODDITIES && out[*n - 1].score >= next.score) return;
    at = *n < ASSAY_ODDITIES ? (*n)++ : *n - 1;
  } else if (out[at].score >= next.score) {
    return;
  }
  for (; at > 0 && out[at - 1].score < next.score; at--) out[at] = out[at - 1];
  out[at] = next;
}

assay_status_t assay_search_oddities(const assay_search_t* s, assay_oddity_t* out, size_t* out_n) {
  looks_t all = {.n = 0};
  assay_status_t st = NULL;
  *out_n = 0;
  for (size_t i = 0; i < s->n_nodes; i++)
    for (size_t k = 0; !st && k < s->nodes[i]->n_inputs; k++) st = look(&all, s, s->nodes[i], k);
  for (size_t i = 0; !st && i < all.n; i++) {
    const assay_oddity_t o = judge(&all, &all.at[i]);
    if (o.score > 0) keep(o, out, out_n);
  }
  assay_free(all.at);
  return st;
}
