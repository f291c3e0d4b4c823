// Accuracy gates tested on the user's inputs: whether a tactic that serves fp32 by its error model
// (exec/choice/accuracy_gate.h) keeps its condition on what really came in.
#include "account/gated.h"

#include <math.h>

#include "base/alloc.h"

static double square_distance(const assay_tensor_t* a, const assay_tensor_t* b) {
  double sum = 0;
  if (!a || !b || a->kind != ASSAY_KIND_TENSOR || b->kind != ASSAY_KIND_TENSOR ||
      a->store != ASSAY_STORE_F64 || b->store != ASSAY_STORE_F64 || a->size != b->size)
    return 0;
  for (int64_t i = 0; i < a->size; i++) {
    const double e = assay_f64(a)[i] - assay_f64(b)[i];
    if (isfinite(e)) sum += e * e;
  }
  return sum;
}

static double square_of(const assay_tensor_t* t) {
  double sum = 0;
  for (int64_t i = 0; t && i < t->size; i++)
    if (isfinite(assay_f64(t)[i])) sum += assay_f64(t)[i] * assay_f64(t)[i];
  return sum;
}

// What plain sums may do, and what they do.
static assay_status_t add_plain(assay_locals_t* locals, const assay_layer_t* layer,
                                const assay_node_t* node, size_t n_in, assay_tensor_t* const* in,
                                const assay_rounding_t* rounding, const assay_local_t* local,
                                assay_tensor_t** margin, assay_gated_t* out) {
  assay_rounding_t direct = *rounding;
  assay_local_t limits = {0};
  direct.algorithm = ASSAY_ALGORITHM_DIRECT;
  assay_status_t st = assay_locals_rerun(locals, layer, node, n_in, in, 0, local->n_out, margin);
  if (!st) st = assay_locals_run(locals, layer, node, n_in, in, &direct, NULL, &limits);
  for (size_t i = 0; !st && i < local->n_out; i++) {
    out->plain2 += square_distance(margin[i], local->truth[i]);
    if (limits.bounded) out->bound2 += square_of(limits.limits[i].guaranteed);
  }
  assay_local_deinit(&limits);
  return st;
}

assay_status_t assay_gated_measure(assay_locals_t* locals, const assay_layer_t* layer,
                                   const assay_node_t* node, size_t n_in, assay_tensor_t* const* in,
                                   const assay_rounding_t* rounding, const assay_local_t* local,
                                   assay_tensor_t* const* engine, assay_gated_t* out) {
  assay_tensor_t** plain = NULL;
  ASSAY_TRY(assay_new_array(local->n_out, sizeof *plain, &plain));
  assay_status_t st = add_plain(locals, layer, node, n_in, in, rounding, local, plain, out);
  for (size_t i = 0; i < local->n_out; i++) {
    if (!st) out->own2 += square_distance(engine[i], local->truth[i]);
    assay_tensor_release(plain[i]);
  }
  assay_free(plain);
  return st;
}

// What holds for tight holds for bound, too: where results are rounded to 16 bits, errors are
// mostly that rounding, which is not normal and whose bound is less than six of its standard
// deviations.
bool assay_gated_holds(const assay_gated_t* l) {
  return l->own2 <= 4 * l->plain2 ||
         (l->gate.asks == ASSAY_FP32_BOUND && 36 * l->own2 <= l->bound2);
}
