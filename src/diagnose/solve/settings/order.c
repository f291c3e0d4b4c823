// A weight's numbers in another order, where too few rows are known to solve for them: tiles that
// were stored one after the other, groups or heads that were dealt out, pairs turned round.
//
// The weight is a matrix, whose rows and whose columns are each counted by two digits. The numbers
// are those of the right weight with the four digits in another order, or with one of them counted
// backwards. Sources: ggml's and Marlin's tiles, cuBLAS' COL32, PixelShuffle's and grouped layers'
// orders, halves of words that change places between machines.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "diagnose/solve/settings.h"
#include "diagnose/solve/solve.h"

enum { DIGITS = 4, MANY = 1 << 16 };

// Outermost first: rows by two digits, columns by two.
typedef struct order {
  int64_t size[DIGITS];
  int place[DIGITS];  // where a digit stands in what is there
  int turned;         // the digit that is counted backwards; -1: none
} order_t;

static void put_in_order(const assay_tensor_t* was, const order_t* o, bool back,
                         assay_tensor_t* out) {
  int64_t step[DIGITS], at[DIGITS] = {0}, size[DIGITS];
  for (int d = 0; d < DIGITS; d++) size[o->place[d]] = o->size[d];
  for (int d = 0; d < DIGITS; d++) {
    step[d] = 1;
    for (int k = o->place[d] + 1; k < DIGITS; k++) step[d] *= size[k];
  }
  for (int64_t i = 0; i < was->size; i++) {
    int64_t from = 0;
    for (int d = 0; d < DIGITS; d++)
      from += (d == o->turned ? o->size[d] - 1 - at[d] : at[d]) * step[d];
    if (back)
      assay_f64(out)[from] = assay_f64(was)[i];
    else
      assay_f64(out)[i] = assay_f64(was)[from];
    for (int d = DIGITS; d-- > 0;) {
      if (++at[d] < o->size[d]) break;
      at[d] = 0;
    }
  }
}

static assay_status_t offer(assay_missing_search_t* s, const order_t* o, assay_tensor_t* now) {
  const size_t input = 1;
  assay_repair_t r = {.node = s->node, .cause = "order of a weight", .n_edits = 1};
  bool same = true;
  for (int64_t i = 0; same && i < now->size; i++)
    same = assay_f64(now)[i] == assay_f64(s->in[input])[i];
  if (same) return NULL;
  r.edits[0] = (assay_repair_edit_t){
      .kind = ASSAY_EDIT_CONSTANT, .input = input, .tensor = assay_tensor_retain(now)};
  snprintf(r.text, sizeof r.text,
           "'%.100s': its numbers are counted as [%lld,%lld,%lld,%lld] in the order %d,%d,%d,%d%s",
           s->node->inputs[input]->name, (long long)o->size[0], (long long)o->size[1],
           (long long)o->size[2], (long long)o->size[3], o->place[0], o->place[1], o->place[2],
           o->place[3], o->turned >= 0 ? ", one of them backwards" : "");
  assay_status_t st = assay_missing_offer(s, &r);
  assay_repair_deinit(&r);
  return st;
}

// The numbers as they were to lie so, and as they lie so now.
static assay_status_t try_order(assay_missing_search_t* s, const order_t* o) {
  assay_status_t st = NULL;
  for (int back = 0; !st && back < 2 && !assay_missing_is_over(s); back++) {
    assay_tensor_t* now = NULL;
    st = assay_tensor_copy(s->in[1], &now);
    if (!st) put_in_order(s->in[1], o, back != 0, now);
    if (!st) st = offer(s, o, now);
    assay_tensor_release(now);
  }
  return st;
}

static assay_status_t places(assay_missing_search_t* s, order_t* o, int d, double until) {
  if (assay_missing_is_over(s) || assay_clock_seconds() >= until) return NULL;
  if (d == DIGITS) {
    for (o->turned = -1; o->turned < DIGITS; o->turned++)
      if (o->turned < 0 || o->size[o->turned] > 1) ASSAY_TRY(try_order(s, o));
    return NULL;
  }
  for (int p = 0; p < DIGITS; p++) {
    bool used = false;
    for (int k = 0; k < d; k++) used |= o->place[k] == p;
    // Digits of one value may stand anywhere: once is enough.
    if (used || (o->size[d] == 1 && p != d)) continue;
    o->place[d] = p;
    ASSAY_TRY(places(s, o, d + 1, until));
  }
  return NULL;
}

static bool is_product(const assay_node_t* n) {
  static const char* const OPS[] = {"MatMul", "Gemm", "Conv", "ConvTranspose"};
  for (size_t i = 0; i < sizeof OPS / sizeof *OPS; i++)
    if (!*n->domain && strcmp(n->op_type, OPS[i]) == 0) return true;
  return false;
}

assay_status_t assay_settings_order(assay_missing_search_t* s) {
  static const double PART = 0.3;  // of the time that is left
  const assay_tensor_t* w = s->n_in > 1 ? s->in[1] : NULL;
  const double now = assay_clock_seconds(), until = now + PART * (s->deadline - now);
  order_t o;
  if (!is_product(s->node) || !w || !s->node->inputs[1]->constant || w->store != ASSAY_STORE_F64 ||
      w->rank < 2 || w->size < 4 || w->size > MANY)
    return NULL;
  const int64_t rows = w->dims[0], columns = w->size / rows;
  for (int64_t a = 1; a <= rows; a++)
    for (int64_t b = 1; b <= columns && !assay_missing_is_over(s); b++) {
      if (rows % a != 0 || columns % b != 0) continue;
      o.size[0] = rows / a, o.size[1] = a;
      o.size[2] = columns / b, o.size[3] = b;
      ASSAY_TRY(places(s, &o, 0, until));
    }
  return NULL;
}
