// The networks, and the plans, timing caches and certificates made of them, that fuzz targets forge
// and use.
#include "subjects.h"

#include <assay/assay.h>

#include "backends/random_graph_steps.h"
#include "base/file.h"
#include "certify/certify.h"
#include "certify/verify.h"
#include "report/certify.h"
#include "runtime/executor.h"

enum { SEED = 20, CERTIFICATE_BYTES = 4000 };

static void must(assay_status_t st) {
  if (!st) return;
  fprintf(stderr, "%s\n", assay_status_message(st));
  abort();
}

// Whether a build refused it; nothing is wrong with that.
static bool refused(assay_status_t st) {
  assay_status_free(st);
  return st != NULL;
}

assay_model_t* subject_model(uint64_t number) {
  static random_graph_t g;
  // Larger ones have constants apart from the message, in 16 bits where they are fp16 or bf16.
  random_graph_make(&g, SEED, number, number % 4 > 1 ? 3 : 1, false);
  return random_graph_model(&g, -1, -1);
}

void subject_write(const char* path, const void* data, size_t n) {
  FILE* f = fopen(path, "wb");
  if (!f || (n && fwrite(data, 1, n, f) != n) || fclose(f)) abort();
}

static forged_t read_file(const char* path) {
  forged_t out = {0};
  assay_mapping_t* m = NULL;
  must(assay_mapping_open(path, &m));
  out.n = assay_mapping_size(m);
  out.at = malloc(out.n + 1);
  if (!out.at) abort();
  memcpy(out.at, assay_mapping_data(m), out.n);
  assay_mapping_release(m);
  return out;
}

// ---- plans --------------------------------------------------------------------------------------

enum { MAX_INPUTS = 8 };

typedef struct ranges {
  assay_engine_shape_t shapes[2 * MAX_INPUTS];
  int64_t dims[2 * MAX_INPUTS][3][ASSAY_MAX_RANK];
  size_t n;
} ranges_t;

// Open sizes from 1 to 3, or to 4 in a second profile.
static void make_ranges(const assay_model_t* m, int n_profiles, ranges_t* out) {
  out->n = 0;
  for (int k = 0; k < n_profiles; k++)
    for (size_t i = 0; i < m->graph->n_inputs && i < MAX_INPUTS; i++) {
      const assay_value_t* v = m->graph->inputs[i];
      const assay_valtype_t* t = v->declared;
      if (v->constant || !t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape) continue;
      int64_t(*d)[ASSAY_MAX_RANK] = out->dims[out->n];
      for (int a = 0; a < t->rank; a++) {
        int64_t fixed;
        const bool open = !assay_dim_value(t->dims[a], &fixed);
        d[0][a] = open ? 1 : fixed;
        d[1][a] = open ? 2 : fixed;
        d[2][a] = open ? 3 + k : fixed;
      }
      out->shapes[out->n++] = (assay_engine_shape_t){
          .input = v->name, .rank = t->rank, .dims = d[1], .min = d[0], .max = d[2]};
    }
}

forged_t subject_plan_of(const assay_model_t* m, uint64_t number, const char* folder) {
  static const assay_format_t formats[] = {ASSAY_FORMAT_FP32, ASSAY_FORMAT_FP32, ASSAY_FORMAT_BF16,
                                           ASSAY_FORMAT_FP16};
  static ranges_t ranges;
  assay_engine_options_t o = ASSAY_ENGINE_OPTIONS_INIT;
  assay_engine_t* e = NULL;
  char path[256];
  forged_t out = {0};
  o.precision = formats[number % 4];
  o.target = number % 7 == 3 ? "emu" : "cpu";
  o.fusion = number % 6 == 5 ? ASSAY_FUSION_OFF : ASSAY_FUSION_TARGET;
  o.strip_weights = number % 8 == 6;
  o.batch = number % 3 == 0 ? 2 : 0;
  o.batch_variant = number % 9 == 4;
  o.measure = number % 10 == 9;
  if (number % 3 == 1) {
    make_ranges(m, 1 + number % 2, &ranges);
    o.shapes = ranges.shapes;
    o.n_shapes = ranges.n;
  }
  if (refused(assay_engine_build((assay_model_t*)(uintptr_t)m, &o, &e))) return out;
  snprintf(path, sizeof path, "%s/made.plan", folder);
  must(assay_engine_save(e, path));
  assay_engine_release(e);
  return read_file(path);
}

forged_t subject_plan(uint64_t number, const char* folder) {
  assay_model_t* m = subject_model(number);
  const forged_t out = subject_plan_of(m, number, folder);
  assay_model_release(m);
  return out;
}

// The made-up inputs that an engine is tried out with are what a user's first run may be.
static assay_status_t run_engine(assay_engine_t* e) {
  const assay_model_t* m = assay_plan_layers(assay_engine_plan(e))->model;
  const assay_graph_t* g = m->graph;
  assay_executor_t* x = NULL;
  assay_samples_t s = {0};
  ASSAY_TRY(assay_engine_check_whole(e));
  ASSAY_TRY(assay_engine_try(e, true));
  assay_status_t st = assay_samples_generate(m, 5, &s);
  if (!st) st = assay_executor_run_engine(e, NULL, &x);
  for (size_t i = 0; !st && i < g->n_inputs; i++)
    if (assay_samples_get(&s, 0)[i])
      st = assay_executor_set(x, g->inputs[i], assay_samples_get(&s, 0)[i]);
  if (!st) st = assay_executor_run(x);
  assay_executor_destroy(x);
  assay_samples_deinit(&s);
  return st;
}

static assay_status_t write_again(const assay_engine_t* e, const char* path) {
  char again[512];
  snprintf(again, sizeof again, "%s.again", path);
  assay_status_t st = assay_engine_save(e, again);
  remove(again);
  return st;
}

static assay_status_t refit(uint64_t number, const assay_engine_t* e) {
  assay_model_t* source = NULL;
  assay_engine_t* other = NULL;
  if (assay_engine_missing_weights(e, NULL))
    source = subject_model(number);
  else
    ASSAY_TRY(assay_engine_source(e, &source));
  assay_status_t st = assay_engine_refit(e, source, &other);
  assay_engine_release(other);
  assay_model_release(source);
  return st;
}

// What comes after an error is tried all the same: each is a command of its own.
assay_status_t use_plan(uint64_t number, const char* path) {
  assay_engine_t* e = NULL;
  ASSAY_TRY(assay_engine_load(path, &e));
  assay_status_t st = run_engine(e);
  assay_status_t again = write_again(e, path), other = refit(number, e);
  assay_engine_release(e);
  if (!st || assay_status_code(again) == ASSAY_INTERNAL) {
    assay_status_free(st);
    st = again;
    again = NULL;
  }
  assay_status_free(again);
  if (!st || assay_status_code(other) == ASSAY_INTERNAL) {
    assay_status_free(st);
    st = other;
    other = NULL;
  }
  assay_status_free(other);
  return st;
}

// ---- timing caches ------------------------------------------------------------------------------

forged_t subject_cache(uint64_t number, const char* folder) {
  assay_model_t* m = subject_model(number);
  assay_engine_options_t o = ASSAY_ENGINE_OPTIONS_INIT;
  assay_engine_t* e = NULL;
  char path[256];
  snprintf(path, sizeof path, "%s/made.times", folder);
  remove(path);
  o.batch = 2;
  o.timing_cache = path;
  o.measure = true;
  o.batch_variant = true;
  const bool none = refused(assay_engine_build(m, &o, &e));
  assay_engine_release(e);
  assay_model_release(m);
  return none ? (forged_t){0} : read_file(path);
}

// As --timing-cache does it, but for measuring what the cache does not know, which takes its time.
assay_status_t use_cache(uint64_t number, const char* path) {
  assay_model_t* m = subject_model(number);
  assay_precision_t precision = {.format = ASSAY_FORMAT_FP32};
  const assay_plan_options_t options = {.fused = true};
  assay_mapping_t* text = NULL;
  assay_plan_t* plan = NULL;
  assay_engine_t* e = NULL;
  assay_status_t st = assay_plan_create(m, &precision, &options, 1, &plan);
  if (!st) st = assay_timing_cache_read(path, &text);
  const assay_backend_options_t given = {
      .timings = text ? (const char*)assay_mapping_data(text) : NULL,
      .timings_bytes = text ? assay_mapping_size(text) : 0,
      .batch_variant = true};
  if (!st)
    st = assay_engine_create(plan, assay_backend_find("cpu"), &given, &e);
  else
    assay_plan_destroy(plan);
  if (!st) st = run_engine(e);
  if (!st) st = assay_engine_settle(e, &given, NULL, NULL, NULL);
  assay_engine_release(e);
  assay_mapping_release(text);
  assay_model_release(m);
  return st;
}

// ---- certificates -------------------------------------------------------------------------------

typedef struct work {
  assay_model_t* model;
  assay_samples_t samples;
  assay_check_setting_t check;
} work_t;

static assay_status_t open_work(uint64_t number, work_t* w) {
  *w = (work_t){.model = subject_model(number)};
  w->check = (assay_check_setting_t){
      .precision = {.format = number % 2 ? ASSAY_FORMAT_BF16 : ASSAY_FORMAT_FP32},
      .backend = assay_backend_find(number % 3 ? "emu" : "cpu"),
      .plan = {.fused = number % 3 == 0}};
  return assay_samples_generate(w->model, 3, &w->samples);
}

static void close_work(work_t* w) {
  assay_samples_deinit(&w->samples);
  assay_model_release(w->model);
}

forged_t subject_certificate(uint64_t number) {
  work_t w;
  assay_certificate_t c = {0};
  assay_str_t bytes = {0};
  forged_t out = {0};
  assay_status_t st = open_work(number, &w);
  const assay_certify_job_t job = {.model = w.model,
                                   .check = &w.check,
                                   .inputs = &w.samples,
                                   .precision = number % 2 ? "bf16" : "fp32"};
  if (!st) st = assay_certify(&job, &c);
  if (!st) st = assay_certificate_encode(&c, number % 4 ? CERTIFICATE_BYTES : 300, &bytes);
  if (!refused(st)) {
    out = (forged_t){malloc(bytes.len + 1), bytes.len};
    if (!out.at) abort();
    memcpy(out.at, bytes.text, bytes.len);
  }
  assay_str_deinit(&bytes);
  assay_certificate_deinit(&c);
  close_work(&w);
  return out;
}

static assay_status_t print_verified(const assay_certificate_t* c, const assay_verified_t* v,
                                     const work_t* w) {
  const assay_certify_names_t names = {
      .model = "m", .certificate = "c", .target = "emu", .graph = w->model};
  assay_str_t text = {0};
  json_t* json = NULL;
  assay_status_t st = assay_report_verify_text(c, v, &names, &text);
  if (!st) st = assay_report_verify_json(c, v, &names, &json);
  json_decref(json);
  if (!st) st = assay_report_certify_text(c, &names, &text);
  assay_str_deinit(&text);
  return st;
}

// What the certificate says of precision is taken over, as the program does.
static assay_status_t take_over(const assay_certificate_t* c, work_t* w) {
  const assay_format_t format = assay_format_parse(c->precision);
  if (*c->precision && !assay_format_info(format)->is_float)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "unknown precision '%s'", c->precision);
  if (*c->precision) w->check.precision.format = format;
  if (*c->rules) return assay_precision_parse(&w->check.precision, c->rules);
  return NULL;
}

assay_status_t use_certificate(uint64_t number, const void* data, size_t n) {
  assay_certificate_t c = {0};
  assay_verified_t v = {0};
  work_t w;
  ASSAY_TRY(assay_certificate_decode(data, n, &c));
  assay_status_t st = open_work(number, &w);
  if (!st) st = take_over(&c, &w);
  const assay_verify_job_t job = {.model = w.model, .check = &w.check, .inputs = &w.samples};
  if (!st) st = assay_certificate_verify(&c, &job, &v);
  if (!st) st = print_verified(&c, &v, &w);
  assay_verified_deinit(&v);
  assay_precision_deinit(&w.check.precision);
  assay_certificate_deinit(&c);
  close_work(&w);
  return st;
}
