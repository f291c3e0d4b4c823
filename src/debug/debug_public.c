// The public face of experiments: include/assay/debug.h, but for reports and files
// (report/debug_public.c).
#include "debug/debug_public.h"

#include <string.h>

#include "account/golden/golden.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "check/check_public.h"
#include "passes/float_types.h"

// ---- how the model is run -----------------------------------------------------------------------

static assay_check_options_t check_options(const assay_debug_options_t* o) {
  assay_check_options_t c = ASSAY_CHECK_OPTIONS_INIT;
  c.precision = o->precision;
  c.accumulator = o->accumulator;
  c.layer_precision = o->layer_precision;
  c.target = o->target;
  c.fusion = o->fusion;
  c.passes_off = o->passes_off;
  c.n_passes_off = o->n_passes_off;
  c.fp32 = o->fp32;
  c.requirements = o->requirements;
  c.n_requirements = o->n_requirements;
  c.unquantized = o->unquantized;
  c.seed = o->seed;
  c.inject = o->inject;
  c.progress = o->progress;
  c.user = o->user;
  return c;
}

assay_status_t assay_debug_create(assay_model_t* model, const assay_debug_options_t* options,
                                  assay_debug_t** out) {
  assay_debug_options_t o = ASSAY_DEBUG_OPTIONS_INIT;
  assay_debug_t* d = NULL;
  if (options)  // an older caller's struct may be shorter
    memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  const assay_check_options_t check = check_options(&o);
  const bool narrow = assay_float_types_has_narrow(model);
  ASSAY_TRY(ASSAY_NEW(&d));
  atomic_init(&d->refs, 1);
  assay_status_t st = assay_check_create(model, &check, &d->check);
  if (st) return assay_debug_release(d), st;
  d->has_precision = o.precision || o.layer_precision || narrow;
  if (!o.precision && !narrow) d->check->options.precision_name = "fp32, as declared";
  *out = d;
  return NULL;
}

assay_debug_t* assay_debug_retain(assay_debug_t* d) {
  atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
  return d;
}

void assay_debug_release(assay_debug_t* d) {
  if (!d || atomic_fetch_sub_explicit(&d->refs, 1, memory_order_acq_rel) != 1) return;
  assay_check_destroy(d->check);
  assay_free(d);
}

bool assay_debug_needs_golden(const assay_debug_t* d) { return assay_check_needs_golden(d->check); }
bool assay_debug_has_precision(const assay_debug_t* d) { return d->has_precision; }

// ---- what all experiments begin with ------------------------------------------------------------

// A setting with a precision of its own, which the experiment may take over.
static assay_status_t begin(const assay_debug_t* d, const assay_samples_t* inputs,
                            assay_golden_t* golden, assay_check_setting_t* out) {
  assay_check_setting_t s = d->check->options;
  ASSAY_TRY(assay_samples_fit(inputs, d->check->model, false));
  if (!golden && assay_debug_needs_golden(d))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "a requirement is about golden: give golden");
  if (golden) ASSAY_TRY(assay_golden_want_outputs(golden, d->check->model));
  s.precision = (assay_precision_t){0};
  ASSAY_TRY(assay_precision_copy(&d->check->options.precision, &s.precision));
  *out = s;
  return NULL;
}

static const assay_samples_t* outputs_of(const assay_golden_t* golden) {
  return golden ? assay_golden_samples(golden) : NULL;
}

// ---- precision ----------------------------------------------------------------------------------

static assay_status_t check_precision_options(const assay_precision_search_options_t* o) {
  const bool prefixes = o->mode != ASSAY_PRECISION_ACCOUNT;
  if ((unsigned)o->mode > ASSAY_PRECISION_LINEAR)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "mode %d does not exist; use one of assay_precision_mode_t", (int)o->mode);
  if ((o->rebuild || o->from_end) && !prefixes)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "rebuild and from_end are for BISECT and LINEAR");
  if (o->as_asked && prefixes)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "as_asked is for mode ACCOUNT");
  return NULL;
}

// A model that is built anew is given the sizes that this one has.
static assay_status_t find_precision(assay_precision_search_t* s, assay_check_setting_t* setting,
                                     const assay_precision_search_options_t* o,
                                     const assay_samples_t* inputs, assay_golden_t* golden) {
  assay_model_t* model = s->debug->check->model;
  assay_input_shape_t* shapes = NULL;
  int64_t* dims = NULL;
  assay_precision_options_t how = {.mode = o->mode,
                                   .from_end = o->from_end,
                                   .rebuild = o->rebuild,
                                   .as_asked = o->as_asked};
  assay_status_t st = assay_check_input_shapes(model, &shapes, &dims, &how.n_shapes);
  how.shapes = shapes;
  if (!st)
    st = assay_precision_find(model, setting, &how, inputs, outputs_of(golden), &s->found);
  assay_free(shapes);
  assay_free(dims);
  return st;
}

assay_status_t assay_debug_precision(assay_debug_t* d,
                                     const assay_precision_search_options_t* options,
                                     const assay_samples_t* inputs, assay_golden_t* golden,
                                     assay_precision_search_t** out) {
  assay_precision_search_options_t o = ASSAY_PRECISION_SEARCH_OPTIONS_INIT;
  assay_precision_search_t* s = NULL;
  assay_check_setting_t setting;
  const double start = assay_clock_seconds();
  if (options)
    memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  ASSAY_TRY(check_precision_options(&o));
  ASSAY_TRY(begin(d, inputs, golden, &setting));
  assay_status_t st = ASSAY_NEW(&s);
  if (!st) {
    s->debug = assay_debug_retain(d);
    s->mode = o.mode;
    st = find_precision(s, &setting, &o, inputs, golden);
    s->seconds = assay_clock_seconds() - start;
  }
  assay_precision_deinit(&setting.precision);  // empty, if it went over
  if (st) return assay_precision_search_destroy(s), st;
  *out = s;
  return NULL;
}

void assay_precision_search_destroy(assay_precision_search_t* s) {
  if (!s) return;
  assay_precision_found_deinit(&s->found);
  assay_debug_release(s->debug);
  assay_free(s);
}

bool assay_precision_search_enough(const assay_precision_search_t* s) {
  return s->found.fewest.faithful;
}

bool assay_precision_search_found(const assay_precision_search_t* s) {
  return s->found.fewest.has_fix && s->found.fewest.fix.verified;
}

size_t assay_precision_search_node_count(const assay_precision_search_t* s) {
  return s->found.fewest.has_fix ? s->found.fewest.fix.n_nodes : 0;
}

const char* assay_precision_search_node(const assay_precision_search_t* s, size_t i) {
  return i < assay_precision_search_node_count(s) ? s->found.fewest.fix.nodes[i]->label : NULL;
}

assay_format_t assay_precision_search_format(const assay_precision_search_t* s) {
  return s->found.fewest.has_fix ? s->found.fewest.fix.format : ASSAY_FORMAT_NONE;
}

size_t assay_precision_search_runs(const assay_precision_search_t* s) {
  return s->found.fewest.runs;
}
