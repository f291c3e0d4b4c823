// Making a certificate: one run of an engine beside truth.
#include "certify/certify.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "certify/observe.h"

// Sketches are no finer than this part of a value: float64 is the same everywhere to so many
// digits.
static const double FINEST = 0x1p-26;
// An error's size is estimated from a few numbers.
static const double ESTIMATE = 2;

// ---- what was run -------------------------------------------------------------------------------

void assay_certificate_model(const assay_model_t* m, uint64_t* out_hash, uint64_t* out_bytes) {
  *out_hash = *out_bytes = 0;
  for (size_t i = 0; i < m->n_mappings; i++) {
    const size_t n = assay_mapping_size(m->mappings[i]);
    *out_hash = assay_hash(assay_mapping_data(m->mappings[i]), n, *out_hash);
    *out_bytes += n;
  }
}

static assay_status_t add_tensor(assay_tensor_t* t, uint64_t* hash) {
  assay_tensor_t* wide = NULL;
  const uint64_t kind = t ? (uint64_t)t->kind : UINT64_MAX;
  *hash = assay_hash(&kind, sizeof kind, *hash);
  if (!t || t->kind != ASSAY_KIND_TENSOR) return NULL;
  ASSAY_TRY(assay_tensor_widen(t, &wide));
  *hash = assay_hash(wide->dims, (size_t)wide->rank * sizeof *wide->dims, *hash);
  for (int64_t i = 0; wide->store == ASSAY_STORE_STR && i < wide->size; i++)
    *hash = assay_hash(assay_strings(wide)[i].text, assay_strings(wide)[i].len, *hash);
  if (wide->store != ASSAY_STORE_STR)
    *hash = assay_hash(wide->data, (size_t)wide->size * assay_store_elem_bytes(wide->store), *hash);
  assay_tensor_release(wide);
  return NULL;
}

assay_status_t assay_certificate_inputs(const assay_samples_t* inputs, uint64_t* out_hash) {
  uint64_t hash = inputs->n;
  for (size_t k = 0; k < inputs->n; k++) {
    assay_tensor_t* const* at = assay_samples_get(inputs, k);
    for (size_t i = 0; i < inputs->n_values; i++) ASSAY_TRY(add_tensor(at[i], &hash));
  }
  *out_hash = hash;
  return NULL;
}

assay_status_t assay_certificate_machine(const assay_backend_t* backend, uint32_t* out_hash) {
  assay_str_t text = {0};
  assay_backend_describe(backend, &text);
  assay_status_t st = assay_str_status(&text);
  *out_hash = (uint32_t)assay_hash(assay_str_get(&text), text.len, 0);
  assay_str_deinit(&text);
  return st;
}

static assay_status_t copy_text(const char* text, char** out) {
  const size_t n = text ? strlen(text) : 0;
  ASSAY_TRY(assay_new_array(n + 1, 1, out));
  if (n) memcpy(*out, text, n);
  return NULL;
}

static assay_status_t describe(const assay_certify_job_t* job, assay_certificate_t* c) {
  const assay_check_setting_t* o = job->check;
  ASSAY_TRY(copy_text(ASSAY_VERSION, &c->version));
  ASSAY_TRY(copy_text(job->precision, &c->precision));
  ASSAY_TRY(copy_text(job->rules, &c->rules));
  ASSAY_TRY(copy_text(job->shapes, &c->shapes));
  ASSAY_TRY(copy_text(job->fp32, &c->fp32));
  ASSAY_TRY(copy_text(o->backend->name, &c->target));
  c->unquantized = o->unquantized;
  c->fused = o->plan.fused;
  c->given = job->given;
  c->seed = o->seed;
  assay_certificate_model(job->model, &c->model, &c->model_bytes);
  ASSAY_TRY(assay_certificate_machine(o->backend, &c->machine));
  return job->given ? assay_certificate_inputs(job->inputs, &c->inputs) : NULL;
}

// ---- values -------------------------------------------------------------------------------------

// The sketch of truth in steps of a size that the engine's error makes sensible. error: Euclidean
// norm.
static void write_sketch(const assay_sketch_t* truth, double error, assay_certified_value_t* v) {
  const double finest = FINEST * sqrt(truth->norm2);
  v->step = assay_size_code(fmax(ESTIMATE * error / ASSAY_CERTIFICATE_STEPS, finest));
  const double step = assay_size_decode(v->step);
  for (int j = 0; j < ASSAY_CERTIFICATE_SKETCHES && step > 0; j++) {
    const double q = rint(truth->sum[j] / step);
    v->sketch[j] = fabs(q) < 0x1p62 ? (int64_t)q : 0;
  }
}

// Values that the engine hides are taken to be as far off as the last one that it showed.
static void write_values(const assay_sources_t* s, const assay_observed_t* truth,
                         const assay_observed_t* engine, assay_certificate_t* c) {
  double relative = 0;
  for (size_t i = 0; i < s->n; i++) {
    const assay_observed_t *t = &truth[i], *e = &engine[i];
    assay_certified_value_t* v = &c->values[i];
    v->name = assay_source_name(s->at[i]);
    if (!t->seen) continue;
    const double norm = sqrt(t->sketch.norm2);
    double error = relative * norm;
    if (e->seen && e->sketch.size == t->sketch.size) {
      error = assay_sketch_distance(&e->sketch, &t->sketch);
      if (norm > 0) relative = error / norm;
    }
    write_sketch(&t->sketch, error, v);
    v->bits = e->seen ? e->bits : 0;
    v->bound = assay_size_code(e->bound);
    v->odd = (uint8_t)(e->odd | (t->sketch.unfinite ? ASSAY_ODD_TRUTH : 0));
  }
}

static assay_status_t certify_values(const assay_certify_job_t* job, const assay_sources_t* s,
                                     assay_certificate_t* c) {
  const assay_check_setting_t* o = job->check;
  assay_tensor_t* const* inputs = assay_samples_get(job->inputs, 0);
  assay_plan_t* plan = NULL;
  assay_observed_t *truth = NULL, *engine = NULL;
  assay_evaluator_t* evaluator = NULL;
  assay_account_t* account = NULL;
  c->names = s->names;
  c->n_values = s->n;
  ASSAY_TRY(assay_new_array(s->n, sizeof *c->values, &c->values));
  assay_status_t st = assay_plan_create(job->model, &o->precision, &o->plan, o->seed, &plan);
  if (!st)
    st = assay_observe_truth(job->model, s, inputs, o->unquantized, o->seed, &truth, &evaluator);
  if (!st)
    st = assay_observe_engine(plan, o->backend, s, inputs, o->unquantized, &engine, &account);
  if (!st) write_values(s, truth, engine, c);
  assay_account_destroy(account);
  assay_evaluator_destroy(evaluator);
  assay_plan_destroy(plan);
  assay_free(truth);
  assay_free(engine);
  return st;
}

static assay_status_t certify_decisions(const assay_certify_job_t* job, assay_certificate_t* c) {
  const assay_check_setting_t* o = job->check;
  const assay_decisions_job_t decide = {.model = job->model,
                                        .precision = &o->precision,
                                        .plan = &o->plan,
                                        .backend = o->backend,
                                        .inputs = job->inputs,
                                        .unquantized = o->unquantized,
                                        .seed = o->seed,
                                        .progress = o->progress,
                                        .user = o->user};
  assay_decision_request_t* requests = NULL;
  size_t n;
  ASSAY_TRY(assay_decisions_ask(job->model, job->n_thresholds, job->thresholds, &requests, &n));
  assay_status_t st = assay_decisions_make(&decide, requests, n, &c->decisions, &c->n_decisions);
  assay_free(requests);
  return st;
}

assay_status_t assay_certify(const assay_certify_job_t* job, assay_certificate_t* out) {
  assay_certificate_t c = {0};
  assay_sources_t s = {0};
  if (!job->inputs->n) return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "the inputs hold no sample");
  ASSAY_TRY(assay_sources_of(job->model, &s));
  assay_status_t st = describe(job, &c);
  if (!st) st = certify_values(job, &s, &c);
  if (!st) st = certify_decisions(job, &c);
  assay_sources_deinit(&s);
  if (st) return assay_certificate_deinit(&c), st;
  *out = c;
  return NULL;
}
