// The public face of audits: include/assay/audit.h; what is said of them is in
// report/audit/audit_public.c.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cancel/cancel.h"
#include "io/npz.h"
#include "onnx/sizes.h"
#include "ranges/audit.h"

void assay_audit_destroy(assay_audit_t* a) {
  if (!a) return;
  assay_audit_deinit(a);
  assay_free(a);
}

// ---- running ------------------------------------------------------------------------------------

// The model in the shapes that are asked for of it or of what it was read from; it may be the same
// one, retained.
static assay_status_t reshape(assay_model_t* model, const assay_model_t* asked_of,
                              const assay_open_sizes_t* sizes, assay_str_t* ones, bool* batch_used,
                              assay_model_t** out) {
  assay_settled_t settled = {0};
  ASSAY_TRY(assay_sizes_settle(asked_of, sizes, &settled));
  assay_status_t st = NULL;
  if (settled.n)
    st = assay_onnx_reshape(model, settled.n, settled.shapes, out);
  else
    *out = assay_model_retain(model);
  *batch_used |= sizes->batch && !settled.batch_is_nowhere;
  if (!st && ones) assay_str_append(ones, assay_str_get(&settled.ones));
  assay_settled_deinit(&settled);
  return st;
}

// Sizes of the first sample's tensors; *out has room for all inputs.
static size_t shapes_of_sample(const assay_graph_t* g, const assay_samples_t* s,
                               assay_input_shape_t* out) {
  size_t n = 0;
  for (size_t i = 0; s && s->n && i < g->n_inputs; i++) {
    const assay_tensor_t* t = assay_samples_get(s, 0)[i];
    if (t && t->kind == ASSAY_KIND_TENSOR)
      out[n++] = (assay_input_shape_t){g->inputs[i]->name, t->rank, t->dims};
  }
  return n;
}

// The model without open sizes: as the options say of those that its file leaves open, also where
// it was loaded with some given; then as the samples have them, then 1.
static assay_status_t close_sizes(assay_model_t* model, const assay_audit_options_t* o,
                                  assay_str_t* ones, bool* batch_used, assay_model_t** out) {
  const assay_open_sizes_t given = {.n_shapes = o->n_shapes,
                                    .shapes = o->shapes,
                                    .n_dims = o->n_dims,
                                    .dims = o->dims,
                                    .batch = o->batch};
  assay_input_shape_t* sampled = NULL;
  assay_model_t* shaped = NULL;
  ASSAY_TRY(assay_new_array(model->graph->n_inputs, sizeof *sampled, &sampled));
  const size_t n = shapes_of_sample(model->graph, o->samples, sampled);
  const assay_model_t* read = model->source ? model->source : model;
  assay_status_t st = reshape(model, read, &given, NULL, batch_used, &shaped);
  if (!st)
    st = reshape(shaped, shaped,
                 &(assay_open_sizes_t){.n_shapes = n, .shapes = sampled, .close = true}, ones,
                 batch_used, out);
  assay_model_release(shaped);
  assay_free(sampled);
  return st ? st : assay_str_status(ones);
}

static assay_status_t check_options(const assay_model_t* model, const assay_audit_options_t* o) {
  if (o->samples) ASSAY_TRY(assay_samples_fit(o->samples, model, false));
  if (!(o->seconds >= 0))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "the search cannot take %g seconds", o->seconds);
  if (o->batch < 0)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "a batch of %lld: give 1 or more, or 0 for none",
                       (long long)o->batch);
  for (size_t i = 0; i < o->n_dims; i++)
    if (!o->dims[i].name || o->dims[i].size < 1)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "dimension %zu has no name, or a size below 1", i);
  return assay_input_shapes_check(o->n_shapes, o->shapes, model);
}

static assay_status_t run(assay_model_t* model, const assay_audit_options_t* o, assay_audit_t* a) {
  assay_precision_t precision = {0};
  assay_str_t ones = {0};
  assay_model_t* closed = NULL;
  bool batch_used = false;
  ASSAY_TRY(check_options(model, o));
  ASSAY_TRY(
      assay_precision_open(model, o->precision, o->accumulator, o->layer_precision, &precision));
  const assay_audit_job_t job = {.precision = &precision,
                                 .boxes = o->boxes,
                                 .n_boxes = o->n_boxes,
                                 .samples = o->samples && o->samples->n ? o->samples : NULL,
                                 .no_radius = o->no_radius,
                                 .no_witness = o->no_witness,
                                 .seconds = o->seconds,
                                 .seed = o->seed,
                                 .progress = o->progress,
                                 .user = o->user};
  assay_status_t st = close_sizes(model, o, &ones, &batch_used, &closed);
  if (!st) st = assay_audit_find(model, closed, &job, a);
  assay_precision_deinit(&precision);
  if (st) return assay_str_deinit(&ones), assay_model_release(closed), st;
  a->open = assay_model_retain(model);
  a->model = closed;
  a->precision = o->precision;
  a->ones = ones;
  a->batch_used = batch_used;
  return NULL;
}

assay_status_t assay_audit_run(assay_model_t* model, const assay_audit_options_t* options,
                               assay_audit_t** out) {
  assay_audit_options_t o = ASSAY_AUDIT_OPTIONS_INIT;
  assay_audit_t* a = NULL;
  if (options)  // an older caller's struct may be shorter
    memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  ASSAY_TRY(ASSAY_NEW(&a));
  assay_status_t st = run(model, &o, a);
  if (!st) st = assay_cancel_check();
  if (st) return assay_audit_destroy(a), st;
  *out = a;
  return NULL;
}

// ---- the box ------------------------------------------------------------------------------------

// The place of input i of those without an initializer; box.n: there is none.
static size_t place_of(const assay_audit_t* a, size_t i) {
  size_t k = 0;
  while (k < a->box.n && (!a->box.inputs[k].value || i-- > 0)) k++;
  return k;
}

size_t assay_audit_input_count(const assay_audit_t* a) {
  size_t n = 0;
  for (size_t k = 0; k < a->box.n; k++) n += a->box.inputs[k].value != NULL;
  return n;
}

const char* assay_audit_input_name(const assay_audit_t* a, size_t i) {
  const size_t k = place_of(a, i);
  return k < a->box.n ? a->box.inputs[k].value->name : NULL;
}

assay_status_t assay_audit_input_range(const assay_audit_t* a, size_t i, double* out_low,
                                       double* out_high) {
  const size_t k = place_of(a, i);
  if (k == a->box.n)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "there is no input %zu; the model has %zu", i,
                       assay_audit_input_count(a));
  *out_low = a->box.inputs[k].lo;
  *out_high = a->box.inputs[k].hi;
  return NULL;
}

assay_status_t assay_audit_value_range(const assay_audit_t* a, const char* name, double* out_low,
                                       double* out_high) {
  const assay_model_t* m = assay_plan_layers(a->plan)->model;
  const assay_value_t* v = assay_graph_find(m->graph, name);
  if (!v || !v->producer || (size_t)v->id >= a->ranges.n_values || !a->ranges.values[v->id].known)
    return ASSAY_ERROR(ASSAY_NOT_FOUND, "no node makes a value '%s' whose range is known", name);
  *out_low = a->ranges.values[v->id].lo;
  *out_high = a->ranges.values[v->id].hi;
  return NULL;
}

bool assay_audit_batch_used(const assay_audit_t* a) { return a->batch_used; }

double assay_audit_safe_scale(const assay_audit_t* a) {
  return a->has_radius ? a->radius.scale : (double)NAN;
}

const char* assay_audit_open_sizes(const assay_audit_t* a) { return assay_str_get(&a->ones); }

// ---- the witness --------------------------------------------------------------------------------

bool assay_audit_has_witness(const assay_audit_t* a) { return a->witness.found; }

assay_tensor_t* assay_audit_witness(const assay_audit_t* a, size_t i) {
  const size_t k = place_of(a, i);
  return a->witness.found && k < a->witness.n ? a->witness.inputs[k] : NULL;
}

assay_status_t assay_audit_save_witness(assay_audit_t* a, const char* path) {
  assay_set_t set = {0};
  const assay_witness_t* w = &a->witness;
  assay_status_t st = NULL;
  if (!w->found)
    return ASSAY_ERROR(ASSAY_NOT_FOUND,
                       "no input that breaks the model was found: there is no "
                       "witness to save");
  for (size_t i = 0; !st && i < w->n; i++)
    if (w->inputs[i])
      st = assay_set_add(&set, a->model->graph->inputs[i]->name, assay_tensor_retain(w->inputs[i]));
  if (!st) st = assay_npz_write(path, &set, false);
  assay_set_deinit(&set);
  if (st) return st;
  assay_str_deinit(&a->saved);
  assay_str_append(&a->saved, path);
  return assay_str_status(&a->saved);
}
