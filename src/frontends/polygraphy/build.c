// Engines by the flags of the line. These are put into trtexec's words, and its front end builds;
// what it says is told in this line's words again.
#include "frontends/polygraphy/build.h"

#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "frontends/polygraphy/data/feed.h"
#include "frontends/polygraphy/inspect/tactics.h"
#include "frontends/polygraphy/model.h"
#include "frontends/trtexec/job.h"
#include "frontends/trtexec/log.h"

void pg_built_deinit(pg_built_t* b) {
  assay_engine_release(b->engine);
  assay_free(b->tactics);
  *b = (pg_built_t){0};
}

// ---- what trtexec's front end says --------------------------------------------------------------

static void take_line(char level, const char* text) {
  assay_str_t renamed = {0};
  pg_rename_flags(text, &renamed);
  const char* line = assay_str_get(&renamed);
  if (level == 'W') pg_log(PG_WARNING, "%s", line);
  if (level == 'E') pg_log(PG_ERROR, "%s", line);
  if (level == 'I' && *line) pg_log(PG_VERBOSE, "%s", line);
  if (level == 'V') pg_log(PG_EXTRA, "%s", line);
  assay_str_deinit(&renamed);
}

static assay_status_t rename_status(assay_status_t st) {
  assay_str_t renamed = {0};
  if (!st || assay_status_code(st) == ASSAY_NO_MEMORY) return st;
  pg_rename_flags(assay_status_message(st), &renamed);
  assay_status_t out = assay_status_create(assay_status_code(st), assay_str_get(&renamed));
  assay_str_deinit(&renamed);
  assay_status_free(st);
  return out;
}

// ---- a build ------------------------------------------------------------------------------------

// A call of trtexec's front end, and what this one lends to it.
typedef struct call {
  trt_options_t options;
  trt_job_t job;
  assay_saved_t made;  // inputs, where the caller has none
  assay_samples_t samples;
} call_t;

static void call_deinit(call_t* c) {
  trt_job_deinit(&c->job);
  trt_options_deinit(&c->options);
  assay_samples_deinit(&c->samples);
  assay_saved_deinit(&c->made);
}

// What a class of calibrators is called in a cache, and which of ours does what it says. (Entropy
// and Entropy2 differ in TensorRT by whether ranges are taken before layers are fused: here they
// are of what quantized layers read, which fusion leaves as it is.)
typedef struct calibrator {
  const char* class, *algorithm, *own;
} calibrator_t;

static const calibrator_t calibrators[] = {
    {"IInt8EntropyCalibrator2", "EntropyCalibration2", "entropy"},
    {"IInt8EntropyCalibrator", "EntropyCalibration", "entropy"},
    {"IInt8MinMaxCalibrator", "MinMaxCalibration", "minmax"},
    {"IInt8LegacyCalibrator", "LegacyCalibration", "percentile"},
};

static const calibrator_t* calibrator_of(const pg_args_t* a) {
  const char* class = pg_text(a, PG_FLAG_calib_base_cls);
  for (size_t i = 0; i < sizeof calibrators / sizeof *calibrators; i++)
    if (strcasecmp(calibrators[i].class, class) == 0) return &calibrators[i];
  return &calibrators[0];
}

static assay_status_t choose_calibrator(const pg_args_t* a, trt_job_t* job) {
  const calibrator_t* c = calibrator_of(a);
  const bool given = pg_given(a, PG_FLAG_quantile);
  const double quantile = given ? pg_float(a, PG_FLAG_quantile) : 1;
  if (quantile <= 0)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "--quantile 0 leaves nothing in range: it is above 0, and 1 at most");
  job->calibrator = c->own;
  if (strcmp(c->own, "percentile") != 0) {
    if (given)
      pg_log(PG_WARNING, "--quantile has no effect: it is of IInt8LegacyCalibrator, not of %s",
             c->class);
    return NULL;
  }
  job->percentile = 100 * quantile;
  if (!given)
    pg_log(PG_WARNING,
           "%s without --quantile takes all magnitudes (Polygraphy's 0.5 would clip every other "
           "one); give --quantile 0.9999, or the like",
           c->class);
  return NULL;
}

// Ranges of int8 come from the inputs.
static assay_status_t take_samples(pg_job_t* j, const pg_build_t* b, call_t* c) {
  const assay_model_t* m = c->job.model;
  const assay_saved_t* inputs = b->inputs;
  if (trt_given(&c->options, TRT_FLAG_calib)) return NULL;
  if (!pg_given(j->args, PG_FLAG_int8) || assay_model_quantizes(m)) {
    if (pg_given(j->args, PG_FLAG_calibration_cache) && !b->aside)
      pg_log(PG_WARNING, "--calibration-cache is neither read nor written: %s",
             pg_given(j->args, PG_FLAG_int8) ? "the model has Q/DQ nodes, whose scales count"
                                             : "--int8 is not given");
    return NULL;
  }
  if (!inputs) {
    ASSAY_TRY(pg_feed_make(j, m->graph->inputs, m->graph->n_inputs, &c->made));
    inputs = &c->made;
  }
  ASSAY_TRY(
      assay_samples_from_runs(inputs, m->graph->inputs, m->graph->n_inputs, true, &c->samples));
  c->job.samples = &c->samples;
  ASSAY_TRY(choose_calibrator(j->args, &c->job));
  pg_log(PG_INFO, "Calibrating int8 with %zu inputs", c->samples.n);
  return NULL;
}

// Ranges that were found go into the file that was not there. Without any there is nothing that a
// later build could read.
static assay_status_t save_ranges(pg_job_t* j, const pg_build_t* b, const call_t* c) {
  const char* path = pg_text(j->args, PG_FLAG_calibration_cache);
  if (!path || b->aside || !c->job.quantized || !c->job.samples) return NULL;
  if (!c->job.n_scales)
    return pg_log(PG_WARNING, "--calibration-cache: there are no ranges: '%s' is not written",
                  path),
           NULL;
  pg_log(PG_INFO, "Saving calibration cache to %s", path);
  return assay_status_note(assay_calibration_cache_write(path, calibrator_of(j->args)->algorithm,
                                                         c->job.scales, c->job.n_scales),
                           "--calibration-cache");
}

// Where times go: a file that is only to be read gets none.
static void choose_cache(const pg_args_t* a, trt_job_t* job) {
  const char* save = pg_text(a, PG_FLAG_save_timing_cache);
  job->cache_out = save ? save : "";
}

static assay_status_t read_raw(pg_job_t* j, const pg_build_t* b, trt_job_t* job) {
  if (!b->model) return pg_load_unmarked(j, &job->edited);
  job->edited = assay_model_retain(b->model);
  return NULL;
}

static assay_status_t translate(pg_job_t* j, const pg_build_t* b, call_t* c) {
  trt_outcome_t outcome;
  pg_words_t words;
  ASSAY_TRY(assay_arena_create(&c->job.arena));
  c->job.options = &c->options;
  ASSAY_TRY(read_raw(j, b, &c->job));
  ASSAY_TRY(pg_prepare_model(j, c->job.edited, false, &c->job.model));
  ASSAY_TRY(pg_build_line(j, b, c->job.model, &words));
  ASSAY_TRY(trt_options_parse((int)words.n, (char**)(uintptr_t)words.items, &c->options, &outcome));
  if (outcome != TRT_OUTCOME_RUN)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "The build cannot do this yet: %s",
                       assay_str_get(&c->options.unknown));
  ASSAY_TRY(trt_options_check(&c->options));
  c->options.at[TRT_FLAG_skipInference].given = true;  // runs are this front end's
  choose_cache(j->args, &c->job);
  ASSAY_TRY(take_samples(j, b, c));
  if (!b->aside) ASSAY_TRY(pg_tactics_load(j, &c->job.forced));
  if (b->timings) c->job.lent = assay_str_get(b->timings);
  return trt_translate(&c->job);
}

static assay_status_t take_result(call_t* c, pg_built_t* out) {
  out->n_layers = c->job.n_facts;
  ASSAY_TRY(assay_new_array(out->n_layers, sizeof *out->tactics, &out->tactics));
  for (size_t i = 0; i < out->n_layers; i++) out->tactics[i] = c->job.facts[i].tactic;
  out->engine = assay_engine_retain(c->job.engine);
  return NULL;
}

// What was timed is lent to the next build.
static void take_timings(const pg_build_t* b, call_t* c) {
  if (!b->timings || !c->job.timings.len) return;
  assay_str_deinit(b->timings);
  *b->timings = c->job.timings;
  c->job.timings = (assay_str_t){0};
}

assay_status_t pg_build_engine(pg_job_t* j, const pg_build_t* b, pg_built_t* out) {
  call_t c = {0};
  *out = (pg_built_t){0};
  trt_log_to(take_line);
  trt_log_verbose(pg_log_shows(PG_EXTRA));
  const double start = trt_now_ms();
  pg_log(PG_VERBOSE, "Building engine");
  assay_status_t st = translate(j, b, &c);
  if (!st) st = save_ranges(j, b, &c);
  if (!st) st = trt_open_engine(&c.job);
  if (!st) st = take_result(&c, out);
  if (!st && !b->aside) st = pg_tactics_settle(j, out->engine, out->tactics, out->n_layers);
  if (!st) take_timings(b, &c);
  trt_log_to(NULL);
  call_deinit(&c);
  if (st) return pg_built_deinit(out), rename_status(st);
  pg_log(PG_INFO, "Finished engine building in %.3f seconds", 1e-3 * (trt_now_ms() - start));
  return NULL;
}

assay_status_t pg_build_print_native(pg_job_t* j, const pg_build_t* b, const char* plan) {
  call_t c = {0};
  trt_log_to(take_line);
  assay_status_t st = translate(j, b, &c);
  c.options.at[TRT_FLAG_saveEngine].text = plan;
  if (!st) st = trt_print_native(&c.job);
  trt_log_to(NULL);
  call_deinit(&c);
  return rename_status(st);
}

// ---- loading ------------------------------------------------------------------------------------

// Flags of a build beside a plan that is there: all but those of what is done with it.
static void warn_of_build_flags(pg_job_t* j) {
  for (int f = 0; !j->reported_plan && f < PG_N_FLAGS; f++)
    if (pg_given(j->args, (pg_flag_id_t)f) && pg_flags[f].group == PG_BUILDING &&
        pg_flags[f].level == PG_WORKS && f != PG_FLAG_save_engine &&
        f != PG_FLAG_optimization_profile && f != PG_FLAG_allocation_strategy)
      pg_log(PG_WARNING, "%.*s has no effect on a plan: it was settled when it was built",
             (int)strcspn(pg_flags[f].names, " "), pg_flags[f].names);
  j->reported_plan = true;
}

assay_status_t pg_load_engine(pg_job_t* j, const char* path, assay_engine_t** out) {
  const char *word = NULL, *profile = NULL;
  call_t c = {0};
  trt_outcome_t outcome;
  warn_of_build_flags(j);
  if (access(path, F_OK) != 0) pg_log(PG_WARNING, "Model path does not exist: %s", path);
  pg_log(PG_INFO, "Loading engine: %s", path);
  ASSAY_TRY(assay_arena_printf(j->arena, &word, "--loadEngine=%s", path));
  if (pg_given(j->args, PG_FLAG_optimization_profile))
    ASSAY_TRY(assay_arena_printf(j->arena, &profile, "--useProfile=%s",
                                 pg_text(j->args, PG_FLAG_optimization_profile)));
  char* words[] = {(char*)(uintptr_t)word, (char*)(uintptr_t)profile};
  c.job.options = &c.options;
  trt_log_to(take_line);
  assay_status_t st = assay_arena_create(&c.job.arena);
  if (!st) st = trt_options_parse(profile ? 2 : 1, words, &c.options, &outcome);
  if (!st) st = trt_options_check(&c.options);
  c.options.at[TRT_FLAG_skipInference].given = true;
  if (!st) st = trt_open_engine(&c.job);
  if (!st) *out = assay_engine_retain(c.job.engine);
  trt_log_to(NULL);
  call_deinit(&c);
  return rename_status(st);
}
