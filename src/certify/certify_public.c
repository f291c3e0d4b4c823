// The public face of certificates: include/assay/certify.h; reports are in report/certify.c.
#include "certify/certify_public.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cancel/cancel.h"
#include "base/clock.h"
#include "base/file.h"
#include "certify/certify.h"
#include "certify/run_options.h"
#include "exec/choice/accuracy_gate.h"
#include "runtime/engine.h"

// A file is at most 1 % of its model, but may have so many bytes.
enum { PART = 100, FLOOR_BYTES = 512 };

void assay_certificate_destroy(assay_certificate_t* c) {
  if (!c) return;
  assay_certificate_deinit(c);
  assay_free(c);
}

// ---- making -------------------------------------------------------------------------------------

static size_t allowed_bytes(const assay_certify_options_t* o, const assay_certificate_t* c) {
  if (o->max_bytes) return o->max_bytes;
  const uint64_t part = c->model_bytes / PART;
  return part > FLOOR_BYTES ? (size_t)part : FLOOR_BYTES;
}

static assay_status_t make(assay_model_t* model, const assay_certify_options_t* o,
                           const assay_check_setting_t* check, const assay_samples_t* rows,
                           assay_certificate_t* c) {
  const assay_certify_job_t job = {
      .model = model,
      .check = check,
      .inputs = rows,
      .given = o->samples != NULL,
      .precision = o->precision ? assay_format_name(o->precision) : NULL,
      .rules = o->layer_precision,
      .shapes = model->shapes,
      .fp32 = o->fp32 ? assay_fp32_name(o->fp32) : NULL,
      .thresholds = o->thresholds,
      .n_thresholds = o->n_thresholds};
  assay_decision_request_t* requests = NULL;
  size_t n;
  // Finds what is wrong with thresholds before anything is run.
  ASSAY_TRY(assay_decisions_ask(model, o->n_thresholds, o->thresholds, &requests, &n));
  assay_free(requests);
  ASSAY_TRY(assay_certify(&job, c));
  c->max = allowed_bytes(o, c);
  return assay_certificate_encode(c, c->max, &c->file);
}

static assay_status_t run_and_make(assay_model_t* model, const assay_certify_options_t* o,
                                   assay_certificate_t* c) {
  const assay_run_request_t request = {.target = o->target,
                                       .layer_precision = o->layer_precision,
                                       .fp32 = o->fp32,
                                       .inject = o->inject,
                                       .precision = o->precision,
                                       .fusion = o->fusion,
                                       .passes_off = o->passes_off,
                                       .n_passes_off = o->n_passes_off};
  assay_check_setting_t check = {
      .unquantized = o->unquantized, .seed = o->seed, .progress = o->progress, .user = o->user};
  assay_samples_t rows = {0};
  ASSAY_TRY(assay_run_options_open(model, &request, &check));
  assay_status_t st = assay_run_rows(model, o->samples, o->seed, &rows);
  if (!st) st = make(model, o, &check, rows.n ? &rows : o->samples, c);
  assay_samples_deinit(&rows);
  assay_precision_deinit(&check.precision);
  return st;
}

assay_status_t assay_certificate_make(assay_model_t* model, const assay_certify_options_t* options,
                                      assay_certificate_t** out) {
  assay_certify_options_t o = ASSAY_CERTIFY_OPTIONS_INIT;
  assay_certificate_t* c = NULL;
  const double start = assay_clock_seconds();
  if (options)  // an older caller's struct may be shorter
    memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  ASSAY_TRY(ASSAY_NEW(&c));
  assay_status_t st = run_and_make(model, &o, c);
  if (!st) st = assay_cancel_check();
  if (st) return assay_certificate_destroy(c), st;
  c->subject = assay_model_retain(model);
  c->seconds = assay_clock_seconds() - start;
  *out = c;
  return NULL;
}

// ---- files --------------------------------------------------------------------------------------

static assay_status_t set_path(assay_certificate_t* c, const char* path) {
  assay_str_t copy = {0};
  assay_str_append(&copy, path);
  assay_status_t st = assay_str_status(&copy);
  if (st) return assay_str_deinit(&copy), st;
  assay_str_deinit(&c->path);
  c->path = copy;
  return NULL;
}

assay_status_t assay_certificate_load(const char* path, assay_certificate_t** out) {
  assay_mapping_t* m = NULL;
  assay_certificate_t* c = NULL;
  ASSAY_TRY(assay_mapping_open(path, &m));
  assay_status_t st = ASSAY_NEW(&c);
  if (!st)
    st = assay_status_note(
        assay_certificate_decode(assay_mapping_data(m), assay_mapping_size(m), c), "'%s'", path);
  if (!st) assay_str_append_n(&c->file, (const char*)assay_mapping_data(m), assay_mapping_size(m));
  if (!st) st = assay_str_status(&c->file);
  if (!st) st = set_path(c, path);
  assay_mapping_release(m);
  if (st) return assay_certificate_destroy(c), st;
  *out = c;
  return NULL;
}

assay_status_t assay_certificate_save(assay_certificate_t* c, const char* path) {
  ASSAY_TRY(assay_file_write(path, assay_str_get(&c->file), c->file.len));
  return set_path(c, path);
}

// ---- what was certified -------------------------------------------------------------------------

const char* assay_certificate_precision(const assay_certificate_t* c) { return c->precision; }
const char* assay_certificate_layer_precision(const assay_certificate_t* c) { return c->rules; }
const char* assay_certificate_target(const assay_certificate_t* c) { return c->target; }
const char* assay_certificate_shapes(const assay_certificate_t* c) { return c->shapes; }
const char* assay_certificate_version(const assay_certificate_t* c) { return c->version; }
uint64_t assay_certificate_seed(const assay_certificate_t* c) { return c->seed; }
bool assay_certificate_needs_samples(const assay_certificate_t* c) { return c->given; }
size_t assay_certificate_bytes(const assay_certificate_t* c) { return c->file.len; }
size_t assay_certificate_value_count(const assay_certificate_t* c) { return c->n_values; }

size_t assay_certificate_kept_count(const assay_certificate_t* c) {
  return c->form.stride ? (c->n_values + c->form.stride - 1) / c->form.stride : 0;
}

// "1x?x3" at text, up to `end`.
static bool parse_dims(const char* text, const char* end, int64_t* dims, int* rank) {
  *rank = 0;
  for (const char* p = text; p < end;) {
    char* after = (char*)(uintptr_t)p;
    if (*rank == ASSAY_MAX_RANK) return false;
    errno = 0;
    dims[*rank] = *p == '?' ? -1 : strtoll(p, &after, 10);
    if (*p == '?') after++;
    if (after == p || errno || after > end || (after < end && *after != 'x')) return false;
    ++*rank;
    p = after < end ? after + 1 : after;
  }
  return true;
}

// One shape, "a=1x2", at text, up to `end`. The name lies in the arena.
static assay_status_t parse_shape(const char* text, const char* end, assay_arena_t* arena,
                                  assay_input_shape_t* out) {
  const char* equals = end;
  int64_t* dims = NULL;
  ASSAY_TRY(assay_arena_new(arena, ASSAY_MAX_RANK, sizeof *dims, &dims));
  while (equals > text && *equals != '=') equals--;
  if (equals == text || !parse_dims(equals + 1, end, dims, &out->rank))
    return ASSAY_ERROR(ASSAY_CORRUPT, "the certificate has a shape '%.*s'", (int)(end - text),
                       text);
  out->dims = dims;
  return assay_arena_strndup(arena, text, (size_t)(equals - text), &out->name);
}

static assay_status_t load_model(const assay_certificate_t* c, const char* path,
                                 assay_arena_t* arena, assay_model_t** out) {
  assay_model_options_t o = ASSAY_MODEL_OPTIONS_INIT;
  assay_input_shape_t* shapes = NULL;
  size_t n = 1;
  for (const char* p = c->shapes; *p; p++) n += *p == ';';
  ASSAY_TRY(assay_arena_new(arena, n, sizeof *shapes, &shapes));
  for (const char* p = c->shapes; *p;) {
    const char* end = p + strcspn(p, ";");
    ASSAY_TRY(parse_shape(p, end, arena, &shapes[o.n_shapes++]));
    p = *end ? end + 1 : end;
  }
  o.shapes = shapes;
  return assay_model_load_with(path, &o, out);
}

assay_status_t assay_certificate_load_model(const assay_certificate_t* c, const char* path,
                                            assay_model_t** out) {
  assay_arena_t* arena = NULL;
  ASSAY_TRY(assay_arena_create(&arena));
  assay_status_t st = load_model(c, path, arena, out);
  assay_arena_destroy(arena);
  return st;
}

// ---- verifying ----------------------------------------------------------------------------------

void assay_verification_destroy(assay_verification_t* v) {
  if (!v) return;
  assay_verified_deinit(&v->found);
  assay_str_deinit(&v->engine);
  assay_model_release(v->model);
  assay_free(v);
}

static const char* name_of(const assay_verify_options_t* o) {
  return o->engine_name ? o->engine_name : "the engine";
}

static assay_status_t check_options(const assay_certificate_t* c, const assay_model_t* model,
                                    const assay_verify_options_t* o) {
  if (strcmp(c->shapes, model->shapes) != 0)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "the model was loaded in shapes '%s' and certified in '%s': "
                       "assay_certificate_load_model() loads it in those",
                       model->shapes, c->shapes);
  if (c->given && !o->samples)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "the certificate was made of given inputs: give the same");
  if (o->engine && (o->target || o->fusion || o->n_passes_off || o->inject))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "%s is run as it was built: nothing about building goes with it",
                       name_of(o));
  return NULL;
}

// A plan keeps the precision that it was built in.
static assay_status_t check_engine(const assay_verify_options_t* o, assay_format_t certified) {
  if (!o->engine) return NULL;
  ASSAY_TRY(assay_status_note(assay_engine_check_whole(o->engine), "'%s'", name_of(o)));
  const assay_plan_recipe_t* r = assay_plan_recipe(assay_engine_plan(o->engine));
  if (!r || r->format == certified) return NULL;
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "'%s' was built in %s, the certificate is of %s",
                     name_of(o), assay_format_name(r->format), assay_format_name(certified));
}

// The options that the certificate was made by, where nothing else is said.
static assay_status_t make_request(const assay_certificate_t* c, const assay_verify_options_t* o,
                                   assay_run_request_t* out) {
  const bool said = o->target || o->engine || o->fusion || o->n_passes_off;
  assay_fp32_t fp32 = o->fp32;
  if (!o->other_fp32) fp32 = ASSAY_FP32_TIGHT;
  if (!o->other_fp32 && *c->fp32) ASSAY_TRY(assay_fp32_parse(c->fp32, &fp32));
  *out = (assay_run_request_t){
      .target = o->target   ? o->target
                : o->engine ? assay_engine_backend(o->engine)->name
                            : c->target,
      .layer_precision = *c->rules ? c->rules : NULL,
      .fp32 = fp32,
      .inject = o->inject,
      .precision = *c->precision ? assay_format_parse(c->precision) : ASSAY_FORMAT_NONE,
      .fusion = said       ? o->fusion
                : c->fused ? ASSAY_FUSION_ON
                           : ASSAY_FUSION_OFF,
      .passes_off = o->passes_off,
      .n_passes_off = o->n_passes_off};
  return NULL;
}

static assay_status_t verify(const assay_certificate_t* c, assay_model_t* model,
                             const assay_verify_options_t* o, assay_verification_t* v) {
  assay_run_request_t request;
  assay_check_setting_t check = {
      .unquantized = c->unquantized, .seed = c->seed, .progress = o->progress, .user = o->user};
  assay_samples_t rows = {0};
  ASSAY_TRY(check_options(c, model, o));
  ASSAY_TRY(make_request(c, o, &request));
  ASSAY_TRY(assay_run_options_open(model, &request, &check));
  assay_status_t st = check_engine(o, check.precision.format);
  if (!st) st = assay_run_rows(model, o->samples, c->seed, &rows);
  const assay_verify_job_t job = {.model = model,
                                  .check = &check,
                                  .inputs = rows.n ? &rows : o->samples,
                                  .plan = o->engine ? assay_engine_plan(o->engine) : NULL,
                                  .bits = o->bits};
  if (!st) st = assay_certificate_verify(c, &job, &v->found);
  if (!st) assay_str_append(&v->engine, o->engine ? name_of(o) : check.backend->name);
  assay_samples_deinit(&rows);
  assay_precision_deinit(&check.precision);
  return st ? st : assay_str_status(&v->engine);
}

assay_status_t assay_verification_run(const assay_certificate_t* c, assay_model_t* model,
                                      const assay_verify_options_t* options,
                                      assay_verification_t** out) {
  assay_verify_options_t o = ASSAY_VERIFY_OPTIONS_INIT;
  assay_verification_t* v = NULL;
  const double start = assay_clock_seconds();
  if (options)  // an older caller's struct may be shorter
    memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  ASSAY_TRY(ASSAY_NEW(&v));
  v->certificate = c;
  v->model = assay_model_retain(model);
  assay_status_t st = verify(c, model, &o, v);
  if (!st) st = assay_cancel_check();
  if (st) return assay_verification_destroy(v), st;
  v->seconds = assay_clock_seconds() - start;
  *out = v;
  return NULL;
}

// ---- what changed -------------------------------------------------------------------------------

bool assay_verification_holds(const assay_verification_t* v) { return v->found.holds; }
size_t assay_verification_layer_count(const assay_verification_t* v) { return v->found.n_layers; }
size_t assay_verification_value_count(const assay_verification_t* v) { return v->found.n_compared; }
size_t assay_verification_change_count(const assay_verification_t* v) { return v->found.n; }

static const assay_change_found_t* change_at(const assay_verification_t* v, size_t i) {
  return i < v->found.n ? &v->found.at[i] : NULL;
}

const char* assay_verification_change_kind(const assay_verification_t* v, size_t i) {
  return change_at(v, i) ? assay_change_name(change_at(v, i)->what) : NULL;
}

const char* assay_verification_change_node(const assay_verification_t* v, size_t i) {
  const assay_change_found_t* f = change_at(v, i);
  return !f ? NULL : f->node ? f->node->label : "";
}

const char* assay_verification_change_why(const assay_verification_t* v, size_t i) {
  return change_at(v, i) ? change_at(v, i)->why : NULL;
}

bool assay_verification_change_is_note(const assay_verification_t* v, size_t i) {
  return change_at(v, i) && change_at(v, i)->note;
}

bool assay_verification_change_is_cause(const assay_verification_t* v, size_t i) {
  return change_at(v, i) && change_at(v, i) == v->found.guilty;
}
