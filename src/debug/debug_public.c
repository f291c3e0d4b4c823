// The public face of experiments: include/assay/debug.h, but for reports and files
// (report/debug_public.c).
#include "debug/debug_public.h"

#include <string.h>

#include "account/golden/golden.h"
#include "base/alloc.h"
#include "base/cancel/cancel.h"
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
bool assay_debug_is_fused(const assay_debug_t* d) { return d->check->options.plan.fused; }
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

// Fills a caller's struct, of which struct_size (its first member) says how much there is room for.
static void hand_over(const void* full, size_t full_size, void* out) {
  size_t size;
  memcpy(&size, out, sizeof size);
  memcpy(out, full, size < full_size ? size : full_size);
}

assay_status_t assay_debug_copy_text(const char* text, char** out) {
  if (!text) return NULL;
  const size_t n = strlen(text) + 1;
  ASSAY_TRY(assay_new_array(n, 1, out));
  memcpy(*out, text, n);
  return NULL;
}

static assay_status_t want_place(const char* what, size_t i, size_t n) {
  return i < n
             ? NULL
             : ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "there is no %s %zu; there are %zu", what, i, n);
}

// ---- precision ----------------------------------------------------------------------------------

static assay_status_t check_precision_options(const assay_precision_search_options_t* o) {
  const bool prefixes = o->mode != ASSAY_PRECISION_ACCOUNT;
  if ((unsigned)o->mode > ASSAY_PRECISION_LINEAR)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "mode %d does not exist; use one of assay_precision_mode_t", (int)o->mode);
  if ((o->rebuild || o->from_end) && !prefixes)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "rebuild and from_end are for BISECT and LINEAR");
  if ((unsigned)o->fix > ASSAY_FIX_BEST)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "fix %d does not exist; use one of assay_fix_choice_t", (int)o->fix);
  if (o->fix && prefixes)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "a choice of the fix is for mode ACCOUNT");
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
                                   .as_asked = o->as_asked,
                                   .fix = o->fix};
  assay_status_t st = assay_check_input_shapes(model, &shapes, &dims, &how.n_shapes);
  how.shapes = shapes;
  if (!st) st = assay_precision_find(model, setting, &how, inputs, outputs_of(golden), &s->found);
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
    if (!st) st = assay_cancel_check();
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

// ---- batch --------------------------------------------------------------------------------------

assay_status_t assay_debug_check_command(const char* command, const char* model) {
  if (!command) return NULL;
  if (!strstr(command, "{inputs}") || !strstr(command, "{outputs}"))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "the command needs {inputs} and {outputs}: the files that it is to read and "
                       "to write");
  return model ? NULL
               : ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                             "give the path of the model that the command is to run");
}

static assay_status_t find_batch(assay_batch_search_t* s, const assay_check_setting_t* setting,
                                 const assay_batch_search_options_t* o,
                                 const assay_samples_t* inputs) {
  ASSAY_TRY(assay_debug_copy_text(o->command, &s->command));
  const assay_external_engine_command_t exec = {.command = s->command,
                                                .model = o->model,
                                                .precision = s->debug->check->job->engine_precision,
                                                .seconds = o->seconds > 0 ? o->seconds : 600};
  const assay_batch_options_t how = {.exec = o->command ? &exec : NULL, .axis = o->axis};
  return assay_batch_debug(s->debug->check->model, setting, &how, inputs, &s->found);
}

assay_status_t assay_debug_batch(assay_debug_t* d, const assay_batch_search_options_t* options,
                                 const assay_samples_t* inputs, assay_batch_search_t** out) {
  assay_batch_search_options_t o = ASSAY_BATCH_SEARCH_OPTIONS_INIT;
  assay_batch_search_t* s = NULL;
  const double start = assay_clock_seconds();
  if (options)
    memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  ASSAY_TRY(assay_debug_check_command(o.command, o.model));
  ASSAY_TRY(assay_samples_fit(inputs, d->check->model, false));
  ASSAY_TRY(ASSAY_NEW(&s));
  s->debug = assay_debug_retain(d);
  assay_status_t st = find_batch(s, &d->check->options, &o, inputs);
  if (!st) st = assay_cancel_check();
  s->seconds = assay_clock_seconds() - start;
  if (st) return assay_batch_search_destroy(s), st;
  *out = s;
  return NULL;
}

void assay_batch_search_destroy(assay_batch_search_t* s) {
  if (!s) return;
  assay_batch_blame_deinit(&s->found);
  assay_debug_release(s->debug);
  assay_free(s->command);
  assay_free(s);
}

assay_batch_verdict_t assay_batch_search_verdict(const assay_batch_search_t* s) {
  return s->found.verdict;
}

size_t assay_batch_search_runs(const assay_batch_search_t* s) { return s->found.n_relations; }
size_t assay_batch_search_node_count(const assay_batch_search_t* s) { return s->found.n_found; }

assay_status_t assay_batch_search_node(const assay_batch_search_t* s, size_t i,
                                       assay_batch_node_t* out) {
  ASSAY_TRY(want_place("node", i, s->found.n_found));
  const assay_batch_found_t* f = &s->found.found[i];
  const assay_batch_node_t full = {.struct_size = out->struct_size,
                                   .name = f->node,
                                   .op = f->op,
                                   .why = f->why,
                                   .guilty = f == s->found.guilty,
                                   .in_truth = f->model,
                                   .rounding = f->bits,
                                   .declared = f->note,
                                   .moved = f->moved};
  hand_over(&full, sizeof full, out);
  return NULL;
}

// ---- passes -------------------------------------------------------------------------------------

assay_status_t assay_debug_passes(assay_debug_t* d, const assay_samples_t* inputs,
                                  assay_golden_t* golden, assay_pass_search_t** out) {
  assay_pass_search_t* s = NULL;
  assay_check_setting_t setting;
  const double start = assay_clock_seconds();
  if (!d->check->options.plan.fused)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "passes are of a fused plan; set fusion to ASSAY_FUSION_ON");
  ASSAY_TRY(begin(d, inputs, golden, &setting));
  assay_status_t st = ASSAY_NEW(&s);
  if (!st) {
    s->debug = assay_debug_retain(d);
    st = assay_pass_debug(d->check->model, &setting, inputs, outputs_of(golden), &s->found);
    if (!st) st = assay_cancel_check();
    s->seconds = assay_clock_seconds() - start;
  }
  assay_precision_deinit(&setting.precision);
  if (st) return assay_pass_search_destroy(s), st;
  *out = s;
  return NULL;
}

void assay_pass_search_destroy(assay_pass_search_t* s) {
  if (!s) return;
  assay_pass_blame_deinit(&s->found);
  assay_debug_release(s->debug);
  assay_free(s);
}

size_t assay_pass_search_count(const assay_pass_search_t* s) { return s->found.n; }

size_t assay_pass_search_guilty(const assay_pass_search_t* s) {
  return s->found.guilty ? (size_t)(s->found.guilty - s->found.at) : s->found.n;
}

assay_status_t assay_pass_search_step(const assay_pass_search_t* s, size_t i,
                                      assay_pass_step_t* out) {
  ASSAY_TRY(want_place("step", i, s->found.n));
  const assay_pass_account_t* a = &s->found.at[i];
  const assay_pass_step_t full = {.struct_size = out->struct_size,
                                  .pass = a->pass ? a->pass->name : NULL,
                                  .effect = a->effect,
                                  .changes = a->n_entries,
                                  .layers = a->n_layers,
                                  .truth_moved = a->truth_moved,
                                  .faithful = a->faithful};
  hand_over(&full, sizeof full, out);
  return NULL;
}

size_t assay_pass_search_node_count(const assay_pass_search_t* s) { return s->found.n_nodes; }

const char* assay_pass_search_node(const assay_pass_search_t* s, size_t i) {
  return i < s->found.n_nodes ? s->found.nodes[i]->label : NULL;
}

// ---- tactics ------------------------------------------------------------------------------------

assay_status_t assay_debug_tactics(assay_debug_t* d, const assay_tactic_search_options_t* options,
                                   const assay_samples_t* inputs, assay_tactic_search_t** out) {
  assay_tactic_search_options_t o = ASSAY_TACTIC_SEARCH_OPTIONS_INIT;
  assay_tactic_search_t* s = NULL;
  const double start = assay_clock_seconds();
  if (options)
    memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  ASSAY_TRY(assay_samples_fit(inputs, d->check->model, false));
  ASSAY_TRY(ASSAY_NEW(&s));
  s->debug = assay_debug_retain(d);
  assay_status_t st = assay_debug_copy_text(o.layer, &s->layer);
  const assay_tactic_options_t how = {.layer = s->layer, .timed = !o.untimed};
  if (!st) st = assay_tactic_debug(d->check->model, &d->check->options, &how, inputs, &s->found);
  if (!st) st = assay_cancel_check();
  s->seconds = assay_clock_seconds() - start;
  if (st) return assay_tactic_search_destroy(s), st;
  *out = s;
  return NULL;
}

void assay_tactic_search_destroy(assay_tactic_search_t* s) {
  if (!s) return;
  assay_tactic_blame_deinit(&s->found);
  assay_debug_release(s->debug);
  assay_free(s->layer);
  assay_free(s);
}

size_t assay_tactic_search_fault_count(const assay_tactic_search_t* s) { return s->found.n_faults; }

size_t assay_tactic_search_count(const assay_tactic_search_t* s) {
  size_t n = 0;
  for (size_t l = 0; l < s->found.n_layers; l++) n += s->found.layers[l].n;
  return n;
}

assay_status_t assay_tactic_search_trial(const assay_tactic_search_t* s, size_t i,
                                         assay_tactic_trial_t* out) {
  const assay_tactic_layer_t* layer = s->found.layers;
  ASSAY_TRY(want_place("trial", i, assay_tactic_search_count(s)));
  while (i >= layer->n) i -= layer++->n;
  const assay_tactic_account_t* a = &layer->at[i];
  const assay_tactic_trial_t full = {.struct_size = out->struct_size,
                                     .layer = layer->layer->name,
                                     .tactic = a->name,
                                     .source = a->source,
                                     .fault = a->fault,
                                     .chosen = a->chosen,
                                     .same_bits = a->same_bits,
                                     .seconds = 1e-6 * a->microseconds,
                                     .rms = assay_error_sum_rms(&a->own),
                                     .max = a->own.max_abs};
  hand_over(&full, sizeof full, out);
  return NULL;
}
