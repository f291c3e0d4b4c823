// Constants whose numbers were read in one shape and mean another: reshaped where their axes should
// have been exchanged, or exchanged where they should have been reshaped.
#include <stdio.h>
#include <string.h>

#include "diagnose/causes/surroundings.h"
#include "diagnose/proposals.h"

enum { MANY = 1 << 21, AXES = 4 };

// The axes of a constant that are no 1, in another order.
typedef struct layout {
  int axes[AXES], n;
  int64_t order[AXES];
  bool back;  // the constant was brought into that order, and is to be brought back
} layout_t;

// y: the numbers of x counted along its axes in the other order, or the reverse of that.
static void count_anew(const assay_tensor_t* x, const layout_t* l, assay_tensor_t* y) {
  int64_t dims[AXES], steps[AXES], at[AXES] = {0}, step = 1;
  for (int k = l->n - 1; k >= 0; k--) {
    steps[k] = step;  // of axis k in x
    step *= x->dims[l->axes[k]];
  }
  for (int k = 0; k < l->n; k++) dims[k] = x->dims[l->axes[l->order[k]]];
  for (int64_t i = 0; i < x->size; i++) {
    int64_t place = 0;
    for (int k = 0; k < l->n; k++) place += at[k] * steps[l->order[k]];
    if (l->back)
      assay_f64(y)[i] = assay_f64(x)[place];
    else
      assay_f64(y)[place] = assay_f64(x)[i];
    for (int k = l->n - 1; k >= 0; k--) {
      if (++at[k] < dims[k]) break;
      at[k] = 0;
    }
  }
}

static assay_status_t offer(const assay_suspect_t* s, const char* cause, size_t input,
                            const assay_tensor_t* x, const layout_t* l, const assay_trial_t* t,
                            bool* stop) {
  assay_tensor_t* y = NULL;
  char text[220];
  int used = snprintf(text, sizeof text, "'%.90s' whose numbers %s counted as [",
                      s->node->inputs[input]->name, l->back ? "should be" : "are");
  for (int k = 0; k < l->n; k++)
    used += snprintf(text + used, sizeof text - (size_t)used, "%s%lld", k ? "," : "",
                     (long long)x->dims[l->axes[l->order[k]]]);
  snprintf(text + used, sizeof text - (size_t)used, "], with axes exchanged");
  ASSAY_TRY(assay_tensor_create(x->type, x->rank, x->dims, &y));
  count_anew(x, l, y);
  return assay_offer_constant(s, cause, input, y, text, t, stop);
}

static bool is_known(const assay_tensor_t* x, const layout_t* l) {
  // Of equal axes an exchange is an exchange: "transposed weight" has it.
  bool equal = true;
  for (int k = 0; k < l->n; k++)
    equal = equal && x->dims[l->axes[k]] == x->dims[l->axes[l->order[k]]];
  return equal && l->n == 2;
}

// Source: filters of single channels, 1bit-MONSTER/1bit-MONSTER issue 572; kernels whose axes are
// only renamed, onnx/tensorflow-onnx (HWIO, OIHW).
assay_status_t assay_propose_constant_layout(const assay_suspect_t* s, const char* cause,
                                             const assay_trial_t* t, bool* stop) {
  for (size_t i = 0; i < s->n_in && !*stop; i++) {
    assay_tensor_t* x = NULL;
    layout_t l = {.n = 0};
    ASSAY_TRY(assay_suspect_constant(s, i, &x));
    assay_status_t st = NULL;
    bool is_fit = x && x->kind == ASSAY_KIND_TENSOR && x->store == ASSAY_STORE_F64 && x->size > 3 &&
                  x->size <= MANY;
    for (int k = 0; is_fit && k < x->rank; k++) {
      if (x->dims[k] == 1) continue;
      is_fit = l.n < AXES;
      if (is_fit) l.axes[l.n++] = k;
    }
    for (int k = 0; k < l.n; k++) l.order[k] = k;
    while (is_fit && l.n > 1 && !st && !*stop && assay_next_permutation(l.order, l.n))
      for (int back = 0; back < 2 && !st && !*stop && !is_known(x, &l); back++) {
        l.back = back != 0;
        st = offer(s, cause, i, x, &l, t, stop);
      }
    assay_tensor_release(x);
    if (st) return st;
  }
  return NULL;
}
