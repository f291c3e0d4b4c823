// The public face of tuning: include/assay/tune.h, but for what it writes (report/tune_public.c).
#include "tune/tune_public.h"

#include <assay/engine.h>
#include <string.h>

#include "account/golden/golden.h"
#include "base/alloc.h"
#include "base/cancel/cancel.h"
#include "base/clock.h"
#include "formats/format.h"

const char* assay_tune_device_name(size_t i) {
  const assay_device_roofline_t* d = assay_device_roofline(i);
  return d ? d->name : NULL;
}

assay_status_t assay_tune_want_run(const assay_tune_t* t) {
  return t->found.model ? NULL
                        : ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                                      "the tuning has not run; call assay_tune_run() first");
}

// ---- options ------------------------------------------------------------------------------------

static assay_status_t copy_text(const char* text, char** out) {
  if (!text) return NULL;
  const size_t n = strlen(text) + 1;
  ASSAY_TRY(assay_new_array(n, 1, out));
  memcpy(*out, text, n);
  return NULL;
}

static assay_status_t set_formats(const assay_tune_options_t* o, assay_tune_setting_t* s) {
  static const assay_format_t fp16 = ASSAY_FORMAT_FP16;
  const assay_format_t* formats = o->n_formats ? o->formats : &fp16;
  const size_t n = o->n_formats ? o->n_formats : 1;
  if (n >= ASSAY_TUNE_FORMATS)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "give one to %d formats below fp32",
                       ASSAY_TUNE_FORMATS - 1);
  for (size_t i = 0; i < n; i++) {
    const assay_format_t f = formats[i];
    if (f <= ASSAY_FORMAT_NONE || f >= ASSAY_FORMAT_COUNT || !assay_format_info(f)->is_float ||
        f == ASSAY_FORMAT_FP32 || f == ASSAY_FORMAT_FP64)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "formats are those below fp32: fp16, bf16, tf32, fp8e4m3 ...");
    for (size_t k = 0; k < i; k++)
      if (formats[k] == f)
        return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "formats name %s twice", assay_format_name(f));
    s->formats[s->n_formats++] = f;
  }
  s->formats[s->n_formats++] = ASSAY_FORMAT_FP32;
  return NULL;
}

static assay_status_t set_device(const assay_tune_options_t* o, assay_tune_setting_t* s) {
  const bool here = assay_target_is_here(o->target);
  const char* device = o->device ? o->device : here ? "here" : assay_device_roofline(0)->name;
  if (strcmp(device, "here") != 0) {
    s->device = assay_device_roofline_find(device);
    if (!s->device)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "device '%s' is not known; assay_tune_device_name() has them", device);
    if (o->timing_cache)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "a timing cache is for times that are measured: device \"here\"");
  } else if (!here) {
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "device \"here\" measures this machine's CPU: it goes with target \"cpu\"");
  }
  return NULL;
}

static assay_status_t set_all(assay_model_t* model, const assay_tune_options_t* o,
                              assay_tune_t* t) {
  assay_check_options_t check = ASSAY_CHECK_OPTIONS_INIT;
  assay_tune_setting_t* s = &t->setting;
  ASSAY_TRY(set_formats(o, s));
  ASSAY_TRY(set_device(o, s));
  ASSAY_TRY(copy_text(o->timing_cache, &t->timing_cache));
  ASSAY_TRY(copy_text(o->layer_precision, &t->rules));
  s->goal = o->fewest_layers ? ASSAY_TUNE_LAYERS : ASSAY_TUNE_TIME;
  s->seconds = o->seconds;
  s->timing_cache = t->timing_cache;
  s->max_runs = o->max_runs;
  s->front = o->front;
  if (o->elsewhere) {
    s->elsewhere = assay_tune_run_elsewhere;
    s->user = t;
    t->elsewhere = o->elsewhere;
    t->user = o->user;
  }
  check.precision = s->formats[0];
  check.layer_precision = o->layer_precision;
  check.target = o->target;
  check.fusion = o->fusion;
  check.passes_off = o->passes_off;
  check.n_passes_off = o->n_passes_off;
  check.fp32 = o->fp32;
  check.requirements = o->requirements;
  check.n_requirements = o->n_requirements;
  check.unquantized = o->unquantized;
  check.seed = o->seed;
  check.inject = o->inject;
  check.progress = o->progress;
  check.user = o->user;
  return assay_check_create(model, &check, &t->check);
}

assay_status_t assay_tune_create(assay_model_t* model, const assay_tune_options_t* options,
                                 assay_tune_t** out) {
  assay_tune_options_t o = ASSAY_TUNE_OPTIONS_INIT;
  assay_tune_t* t = NULL;
  if (options)  // an older caller's struct may be shorter
    memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  ASSAY_TRY(ASSAY_NEW(&t));
  assay_status_t st = set_all(model, &o, t);
  if (st) return assay_tune_destroy(t), st;
  *out = t;
  return NULL;
}

void assay_tune_destroy(assay_tune_t* t) {
  if (!t) return;
  assay_tuned_deinit(&t->found);
  assay_check_destroy(t->check);
  assay_free(t->timing_cache);
  assay_free(t->rules);
  assay_free(t);
}

bool assay_tune_needs_golden(const assay_tune_t* t) { return assay_check_needs_golden(t->check); }

// ---- running ------------------------------------------------------------------------------------

assay_status_t assay_tune_run(assay_tune_t* t, const assay_samples_t* inputs,
                              assay_golden_t* golden) {
  assay_check_t* c = t->check;
  assay_check_setting_t s = c->options;
  const double start = assay_clock_seconds();
  if (t->ran) return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "the tuning has run; make another one");
  ASSAY_TRY(assay_samples_fit(inputs, c->model, false));
  if (!golden && assay_tune_needs_golden(t))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "a requirement is about golden: give golden");
  if (golden) ASSAY_TRY(assay_golden_want_outputs(golden, c->model));
  s.precision = (assay_precision_t){0};
  ASSAY_TRY(assay_precision_copy(&c->options.precision, &s.precision));
  if (t->elsewhere && assay_require_has_commands(c->options.require))
    return assay_precision_deinit(&s.precision),
           ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "a requirement that is a command reads all outputs at once; run the tuning "
                       "on one machine");
  t->ran = true;
  t->n_samples = inputs->n;
  assay_status_t st = assay_tune(c->model, &s, &t->setting, inputs,
                                 golden ? assay_golden_samples(golden) : NULL, &t->found);
  if (!st) st = assay_cancel_check();
  assay_precision_deinit(&s.precision);  // empty, if it went over
  t->seconds = assay_clock_seconds() - start;
  return st;
}

// ---- what was found -----------------------------------------------------------------------------

bool assay_tune_met(const assay_tune_t* t) { return t->found.met; }

assay_format_t assay_tune_format(const assay_tune_t* t, size_t i) {
  return i < t->setting.n_formats ? t->setting.formats[i] : ASSAY_FORMAT_NONE;
}

size_t assay_tune_assignment_count(const assay_tune_t* t) { return t->found.n_trials; }

assay_status_t assay_tune_assignment(const assay_tune_t* t, size_t i,
                                     assay_tune_assignment_t* out) {
  const assay_tuned_t* f = &t->found;
  const size_t size = out->struct_size;
  if (i >= f->n_trials)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "there is no assignment %zu; there are %zu", i,
                       f->n_trials);
  const assay_tune_assignment_t full = {.struct_size = size,
                                        .met = f->trials[i].met,
                                        .chosen = f->met && i == f->chosen,
                                        .seconds = f->trials[i].seconds};
  memcpy(out, &full, size < sizeof full ? size : sizeof full);
  return NULL;
}

size_t assay_tune_assignment_layers(const assay_tune_t* t, size_t i, size_t f) {
  return i < t->found.n_trials && f < t->setting.n_formats ? t->found.trials[i].count[f] : 0;
}

size_t assay_tune_node_count(const assay_tune_t* t, size_t f) {
  return t->found.met && t->found.fixes && f < t->setting.n_formats ? t->found.fixes[f].n_nodes : 0;
}

const char* assay_tune_node(const assay_tune_t* t, size_t f, size_t i) {
  return i < assay_tune_node_count(t, f) ? t->found.fixes[f].nodes[i]->label : NULL;
}
