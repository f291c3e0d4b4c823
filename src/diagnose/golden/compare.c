// A value's truth against golden: whether it differs by more than rounding explains.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/golden/walk.h"
#include "formats/format.h"
#include "ops/quant/quant.h"

// A difference is a fault from so many times what rounding explains on.
static const double FACTOR = 8;

// Unit roundoff of what golden was stored in.
static double golden_roundoff(const assay_tensor_t* g) {
  return assay_type_is_float(g->type) ? assay_format_info(assay_type_format(g->type))->unit_roundoff
                                      : 0;
}

double assay_golden_allowed(double explained, const assay_tensor_t* golden, double size) {
  return FACTOR * (explained + golden_roundoff(golden) * size) + 1e-300;
}

bool assay_golden_is_fault(const assay_difference_t* d, const assay_difference_t* explained,
                           const assay_tensor_t* golden) {
  if (!d->comparable) return true;
  // Integers that rounding flips in the noisy run are no fault.
  if (d->mismatched > 2 * explained->mismatched) return true;
  return d->rms > assay_golden_allowed(explained->rms, golden, d->ref_rms) ||
         d->max > assay_golden_allowed(explained->max, golden, d->ref_max);
}

// Golden as the graph would hold it; NULL if it cannot stand in for truth.
static assay_status_t stand_in(const assay_tensor_t* truth, assay_tensor_t* golden,
                               assay_tensor_t** out) {
  *out = NULL;
  if (truth->kind != ASSAY_KIND_TENSOR || truth->store != golden->store) return NULL;
  return assay_tensor_retype(golden, truth->type, out);
}

static double unit_of(const assay_tensor_t* t) {
  return t->kind == ASSAY_KIND_TENSOR && assay_type_is_float(t->type)
             ? assay_format_info(assay_type_format(t->type))->unit_roundoff
             : 0;
}

// Whether two shapes differ in axes of one alone.
static bool are_same_but_ones(const assay_tensor_t* a, const assay_tensor_t* b) {
  int i = 0, k = 0;
  for (;; i++, k++) {
    while (i < a->rank && a->dims[i] == 1) i++;
    while (k < b->rank && b->dims[k] == 1) k++;
    if (i == a->rank || k == b->rank) return i == a->rank && k == b->rank;
    if (a->dims[i] != b->dims[k]) return false;
  }
}

// One number has no shape: exporters write it as a scalar, or as a vector of one. Nor have arrays
// that were saved without axes of one.
static assay_status_t as_shaped(const assay_tensor_t* truth, assay_golden_tensor_t* golden) {
  assay_tensor_t *g = golden->tensor, *view = NULL;
  if (truth->kind != ASSAY_KIND_TENSOR || g->kind != ASSAY_KIND_TENSOR || truth->rank == g->rank ||
      truth->size != g->size)
    return NULL;
  if (truth->size != 1 && !(golden->lost_axes && are_same_but_ones(truth, g))) return NULL;
  ASSAY_TRY(assay_tensor_view(g, truth->rank, truth->dims, &view));
  assay_tensor_release(g);
  golden->tensor = view;
  return NULL;
}

// Golden with truth's element where golden lies past the type's end and truth near it: what became
// of -3.4e38 in float16, also with a score added to it. *out NULL: there is no such element.
static assay_status_t as_clipped(const assay_tensor_t* truth, const assay_tensor_t* golden,
                                 assay_tensor_t** out) {
  *out = NULL;
  if (!assay_tensor_alike(truth, golden) || truth->store != ASSAY_STORE_F64 ||
      !assay_type_is_float(truth->type) || assay_type_bits(truth->type) > 16)
    return NULL;
  static const double NEAR = 0.9;  // scores that are added to a mask are small beside it
  const double max = assay_format_info(assay_type_format(truth->type))->max;
  for (int64_t i = 0; i < truth->size; i++) {
    const double x = assay_f64(truth)[i], g = assay_f64(golden)[i];
    if (!(fabs(g) > max) || !(fabs(x) > NEAR * max) || (x > 0) != (g > 0)) continue;
    if (!*out) ASSAY_TRY(assay_tensor_copy(golden, out));
    assay_f64(*out)[i] = x;
  }
  return NULL;
}

// Whether a Constant node has what golden becomes in its type: 1e-12 is 0 in float16.
static bool is_rounded_constant(const assay_node_t* n, const assay_tensor_t* truth,
                                const assay_tensor_t* golden) {
  if (*n->domain || strcmp(n->op_type, "Constant") != 0 || !assay_tensor_alike(truth, golden) ||
      truth->store != ASSAY_STORE_F64 || !assay_type_is_float(truth->type))
    return false;
  const assay_format_t format = assay_type_format(truth->type);
  const assay_format_info_t* info = assay_format_info(format);
  for (int64_t i = 0; i < truth->size; i++) {
    const double x = assay_f64(truth)[i], g = assay_f64(golden)[i];
    const double y = assay_format_round(format, g, ASSAY_OVERFLOW_SATURATE);
    if (!(fabs(x - y) <= 2 * info->unit_roundoff * fabs(y) + info->min_subnormal)) return false;
  }
  return true;
}

// Whether a Constant node has what golden was before it was printed. Then the network goes on with
// it: its numbers may be sizes, which golden's last digit must not change.
static bool keep_constant(assay_golden_walk_t* w, const assay_node_t* n, const assay_value_t* v,
                          assay_tensor_t* truth, const assay_tensor_t* golden) {
  assay_printed_t* p = &w->printed[v->id];
  if (*n->domain || strcmp(n->op_type, "Constant") != 0 || !assay_is_printed(p) ||
      !assay_tensor_alike(truth, golden) || truth->store != ASSAY_STORE_F64)
    return false;
  for (int64_t i = 0; i < truth->size; i++) {
    const double x = assay_f64(truth)[i], g = assay_f64(golden)[i];
    const double by = 0.5 * assay_printed_unit(p, g) + unit_of(truth) * fabs(x);
    if (!(fabs(x - g) <= by) && !assay_printed_is_past(p, x, g)) return false;
  }
  *p = (assay_printed_t){0, 0, ASSAY_FORMAT_NONE};
  assay_evaluator_set(w->noisy, v, truth);
  return true;
}

// Whether all that reads a value are quantizers that let nothing below 0 through.
static bool is_cut_at_zero(const assay_golden_walk_t* w, const assay_value_t* v) {
  const assay_graph_t* g = w->model->graph;
  bool any = false;
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t k = 0; k < g->nodes[i]->n_inputs; k++) {
      if (g->nodes[i]->inputs[k] != v) continue;
      if (k || strcmp(g->nodes[i]->op_type, "QuantizeLinear") != 0) return false;
      if (!assay_quant_cuts_at_zero(g->nodes[i])) return false;
      any = true;
    }
  return any && !v->is_output;
}

static assay_status_t cut_at_zero(assay_tensor_t** t) {
  assay_tensor_t* cut = NULL;
  if (!*t || (*t)->kind != ASSAY_KIND_TENSOR || (*t)->store != ASSAY_STORE_F64) return NULL;
  ASSAY_TRY(assay_tensor_copy(*t, &cut));
  for (int64_t i = 0; i < cut->size; i++)
    if (assay_f64(cut)[i] < 0) assay_f64(cut)[i] = 0;
  assay_tensor_release(*t);
  *t = cut;
  return NULL;
}

// Exporters drop a Relu in front of a quantizer that begins at 0, and what was before it keeps the
// name of what came out of it: such a value counts from 0 on where golden has nothing below.
static bool counts_from_zero(const assay_golden_walk_t* w, const assay_value_t* v,
                             const assay_tensor_t* golden) {
  if (golden->kind != ASSAY_KIND_TENSOR || golden->store != ASSAY_STORE_F64 ||
      !is_cut_at_zero(w, v))
    return false;
  for (int64_t i = 0; i < golden->size; i++)
    if (!(assay_f64(golden)[i] >= 0)) return false;
  return true;
}

// Where golden is not finite the noisy run explains that, and no difference of numbers.
static assay_status_t leave_unfinite_out(const assay_tensor_t* golden, const assay_tensor_t* truth,
                                         assay_tensor_t** noisy) {
  assay_tensor_t* left = NULL;
  if (!*noisy || !golden || !assay_tensor_alike(truth, *noisy) || truth->size != golden->size ||
      truth->store != ASSAY_STORE_F64 || assay_type_store(golden->type) != ASSAY_STORE_F64 ||
      golden->store == ASSAY_STORE_LATE)
    return NULL;
  for (int64_t i = 0; i < golden->size; i++) {
    if (isfinite(assay_tensor_element(golden, i)) || !isfinite(assay_f64(*noisy)[i])) continue;
    if (!left) ASSAY_TRY(assay_tensor_copy(*noisy, &left));
    assay_f64(left)[i] = assay_f64(truth)[i];
  }
  if (!left) return NULL;
  assay_tensor_release(*noisy);
  *noisy = left;
  return NULL;
}

assay_status_t assay_golden_explain(assay_golden_walk_t* w, const assay_value_t* v,
                                    const assay_tensor_t* truth, bool unfinite,
                                    assay_difference_t* out) {
  assay_tensor_t** noisy = &w->noisy_out[v->id];
  if (w->met[v->id].from_zero) ASSAY_TRY(cut_at_zero(noisy));
  if (unfinite) ASSAY_TRY(leave_unfinite_out(w->golden_of[v->id]->tensor, truth, noisy));
  *out = assay_difference(*noisy, truth);
  return NULL;
}

// Golden of a value, canonical, as it is held against this truth.
static assay_status_t read_golden(assay_golden_walk_t* w, const assay_value_t* v,
                                  const assay_tensor_t* truth, assay_tensor_t** out) {
  assay_golden_tensor_t* g = w->golden_of[v->id];
  assay_tensor_t *wide = NULL, *clipped = NULL;
  ASSAY_TRY(as_shaped(truth, g));
  ASSAY_TRY(assay_tensor_widen(g->tensor, &wide));
  assay_status_t st = as_clipped(truth, wide, &clipped);
  if (st || !clipped) {
    *out = wide;
    return st ? (assay_tensor_release(wide), st) : NULL;
  }
  assay_tensor_release(wide);
  assay_tensor_release(g->tensor);
  g->tensor = clipped;
  *out = assay_tensor_retain(clipped);
  return NULL;
}

// How far truth is from golden, and how far rounding explains.
static assay_status_t measure(assay_golden_walk_t* w, const assay_value_t* v,
                              const assay_tensor_t* truth, const assay_tensor_t* golden,
                              assay_difference_t* d) {
  assay_difference_t explained = {0};
  *d = assay_difference(truth, golden);
  if (w->noisy_out[v->id])
    ASSAY_TRY(assay_golden_explain(w, v, truth, d->mismatched > 0, &explained));
  // Where the noisy run says nothing, one rounding of the value itself and its usual growth.
  if (!w->noisy_out[v->id] || explained.mismatched > d->mismatched) {
    explained.rms = fmax(explained.rms, 2 * unit_of(truth) * d->ref_rms);
    explained.max = fmax(explained.max, 2 * unit_of(truth) * d->ref_max);
  }
  w->explained[v->id] = explained;
  w->out->values_compared++;
  return NULL;
}

// Whether truth of a value is asked for after the walk: where it is a fault, at outputs, and after
// Casts (stray_casts.h). Of all others nothing stays.
static bool is_kept(const assay_node_t* n, const assay_value_t* v, bool is_fault) {
  return is_fault || v->is_output || (!*n->domain && strcmp(n->op_type, "Cast") == 0);
}

// Golden takes the value's place, if it can, in both runs.
static assay_status_t go_on_from(assay_golden_walk_t* w, const assay_value_t* v,
                                 assay_tensor_t* golden, assay_tensor_t** out) {
  assay_tensor_t* by = NULL;
  ASSAY_TRY(stand_in(*out, golden, &by));
  if (!by) return NULL;
  const bool unlike = !assay_tensor_same_shape(*out, by);
  if (unlike && (w->bars_all || w->met[v->id].barred)) {
    w->met[v->id].barred = true;
    return assay_tensor_release(by), NULL;
  }
  w->met[v->id].unlike = unlike;
  assay_tensor_release(*out);
  *out = by;
  w->met[v->id].stands_in = true;
  assay_evaluator_set(w->noisy, v, by);
  return NULL;
}

static assay_status_t compare(assay_golden_walk_t* w, const assay_node_t* n, const assay_value_t* v,
                              assay_tensor_t* golden, assay_tensor_t** out) {
  assay_difference_t d;
  w->met[v->id].from_zero = counts_from_zero(w, v, golden);
  if (w->met[v->id].from_zero) ASSAY_TRY(cut_at_zero(out));
  if (is_rounded_constant(n, *out, golden)) return w->out->values_compared++, NULL;
  if (keep_constant(w, n, v, *out, golden)) return w->out->values_compared++, NULL;
  ASSAY_TRY(measure(w, v, *out, golden, &d));
  assay_golden_arithmetic_probe_t* probe = w->options->probe;
  if (probe)
    ASSAY_TRY(assay_golden_arithmetic_probe_add(probe, v, *out, golden, w->noisy_out[v->id]));
  const bool is_fault =
      !probe && !w->met[v->id].follows && assay_golden_is_fault(&d, &w->explained[v->id], golden);
  if (is_fault) {
    assay_export_t* e = w->out;
    ASSAY_TRY(assay_grow(&e->faults, &e->capacity, e->n + 1, sizeof *e->faults));
    e->faults[e->n++] = (assay_fault_t){.value = v,
                                        .node = n,
                                        .difference = d,
                                        .explained = w->explained[v->id].rms,
                                        .shape = !d.comparable};
  }
  w->met[v->id].compared = true;
  if (is_kept(n, v, is_fault)) w->missed[v->id] = assay_tensor_retain(*out);
  return go_on_from(w, v, golden, out);
}

assay_status_t assay_golden_compare(assay_golden_walk_t* w, const assay_node_t* n,
                                    const assay_value_t* v, assay_tensor_t** out) {
  assay_tensor_t* golden = NULL;
  ASSAY_TRY(read_golden(w, v, *out, &golden));
  assay_status_t st = compare(w, n, v, golden, out);
  assay_tensor_release(golden);
  assay_tensor_forget_whole(w->golden_of[v->id]->tensor);
  if (!w->missed[v->id]) assay_golden_drop_noisy(w, v);
  return st;
}

void assay_golden_drop_noisy(assay_golden_walk_t* w, const assay_value_t* v) {
  assay_tensor_release(w->noisy_out[v->id]);
  w->noisy_out[v->id] = NULL;
}

assay_status_t assay_golden_hold(assay_golden_walk_t* w, const assay_value_t* v,
                                 assay_tensor_t** out) {
  assay_golden_tensor_t* g = w->golden_of[v->id];
  assay_tensor_t* wide = NULL;
  ASSAY_TRY(assay_tensor_widen(g->tensor, &wide));
  assay_tensor_release(g->tensor);
  *out = g->tensor = wide;
  return NULL;
}

assay_status_t assay_golden_again(assay_golden_walk_t* w, const assay_value_t* v,
                                  assay_tensor_t** out) {
  assay_tensor_t *wide = NULL, *by = NULL;
  if (w->met[v->id].from_zero) ASSAY_TRY(cut_at_zero(out));
  if (!w->met[v->id].stands_in) return NULL;
  ASSAY_TRY(assay_tensor_widen(w->golden_of[v->id]->tensor, &wide));
  assay_tensor_forget_whole(w->golden_of[v->id]->tensor);
  assay_status_t st = stand_in(*out, wide, &by);
  if (!st && by) {
    assay_tensor_release(*out);
    *out = by;
  }
  assay_tensor_release(wide);
  return st;
}
