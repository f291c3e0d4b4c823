// Assignments that are run somewhere else, in parts of the samples
// (docs/adr/0027-parts-of-accounts.md).
#include "account/golden/golden.h"
#include "account/runs.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "base/packing.h"
#include "check/check_public.h"
#include "tune/tune_public.h"

static const char ASSIGNMENT[8] = "assaytu1", PART[8] = "assaytp1";  // without their NUL

// What is to be run: of which tuning, and the formats of the model's nodes.
typedef struct assignment {
  uint64_t identity;
  bool golden_quantized;
  uint64_t n;
  assay_format_t* given;  // by node id
} assignment_t;

struct assay_tune_parts {
  uint64_t assignment;  // the hash of its bytes
  size_t n_samples;
  assay_output_check_t* outputs;
  size_t n_outputs;
};

static void pack_head(assay_packing_t* p, assignment_t* a) {
  assay_pack_u64(p, &a->identity);
  assay_pack_bool(p, &a->golden_quantized);
  assay_pack_u64(p, &a->n);
}

static void pack_formats(assay_packing_t* p, assignment_t* a) {
  for (uint64_t i = 0; i < a->n; i++) {
    uint64_t format = a->given[i];
    assay_pack_count(p, &format, ASSAY_FORMAT_COUNT - 1);
    a->given[i] = (assay_format_t)format;
  }
}

// ---- the one who asks ---------------------------------------------------------------------------

static assay_status_t save_assignment(assignment_t* a, assay_str_t* out) {
  assay_packing_t p;
  assay_packing_begin(&p, out);
  pack_head(&p, a);
  pack_formats(&p, a);
  return assay_packing_end(&p, ASSIGNMENT);
}

assay_status_t assay_tune_run_elsewhere(void* user, const assay_format_t* given,
                                        bool golden_quantized, assay_output_check_t* outputs) {
  const assay_tune_t* t = user;
  const assay_model_t* m = t->check->model;
  assignment_t a = {.golden_quantized = golden_quantized, .n = (uint64_t)m->n_node_ids};
  assay_str_t bytes = {0};
  assay_tune_parts_t parts = {.outputs = outputs, .n_outputs = m->graph->n_outputs};
  ASSAY_TRY(assay_check_identify(t->check, &a.identity));
  ASSAY_TRY(assay_new_array((size_t)a.n, sizeof *a.given, &a.given));
  for (uint64_t i = 0; i < a.n; i++) a.given[i] = given[i];
  assay_status_t st = save_assignment(&a, &bytes);
  if (!st) {
    parts.assignment = assay_hash(bytes.text, bytes.len, 0);
    st = t->elsewhere(t->user, bytes.text, bytes.len, &parts);
  }
  if (!st && parts.n_samples != t->n_samples)
    st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "parts of %zu samples were added, of %zu",
                     parts.n_samples, t->n_samples);
  assay_free(a.given);
  assay_str_deinit(&bytes);
  return st;
}

assay_status_t assay_tune_add_part(assay_tune_parts_t* parts, const void* data, size_t size) {
  assay_packing_t p;
  uint64_t assignment = 0, n = 0;
  ASSAY_TRY(assay_packing_open(data, size, PART, "a tuning", &p));
  assay_pack_u64(&p, &assignment);
  assay_pack_count(&p, &n, SIZE_MAX / 2);
  if (!p.failed && assignment != parts->assignment)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "the part is of another assignment");
  if (!p.failed) ASSAY_TRY(assay_outputs_add_part(parts->outputs, parts->n_outputs, &p));
  ASSAY_TRY(assay_packing_status(&p));
  parts->n_samples += (size_t)n;
  return NULL;
}

// ---- those who run ------------------------------------------------------------------------------

static assay_status_t read_assignment(const assay_tune_t* t, const void* data, size_t size,
                                      assignment_t* a) {
  assay_packing_t p;
  uint64_t own;
  ASSAY_TRY(assay_packing_open(data, size, ASSIGNMENT, "a tuning", &p));
  pack_head(&p, a);
  ASSAY_TRY(assay_check_identify(t->check, &own));
  if (p.failed || a->identity != own || a->n != (uint64_t)t->check->model->n_node_ids)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "the assignment is of another model, of other options, or was made by "
                       "another version or on another kind of machine than this tuning's");
  ASSAY_TRY(assay_new_array((size_t)a->n, sizeof *a->given, &a->given));
  pack_formats(&p, a);
  return assay_packing_status(&p);
}

static assay_status_t save_part(uint64_t assignment, size_t n_samples,
                                const assay_output_check_t* outputs, size_t n_outputs,
                                assay_report_fn_t* write, void* user) {
  assay_str_t bytes = {0};
  assay_packing_t p;
  uint64_t n = n_samples;
  assay_packing_begin(&p, &bytes);
  assay_pack_u64(&p, &assignment);
  assay_pack_u64(&p, &n);
  assay_status_t st = assay_outputs_save_part(outputs, n_outputs, &p);
  if (!st) st = assay_packing_end(&p, PART);
  if (!st) st = write(user, bytes.text, bytes.len);
  assay_str_deinit(&bytes);
  return st;
}

static assay_status_t run_assignment(const assay_tune_t* t, const assignment_t* a,
                                     const assay_samples_t* inputs, const assay_samples_t* golden,
                                     assay_run_result_t* out) {
  const assay_check_setting_t* o = &t->check->options;
  const assay_runs_setting_t setting = {.backend = o->backend,
                                        .golden_quantized = a->golden_quantized,
                                        .plan = &o->plan,
                                        .require = o->require,
                                        .inputs = inputs,
                                        .golden = golden,
                                        .unquantized = o->unquantized,
                                        .part = true,
                                        .seed = o->seed};
  assay_precision_t precision = o->precision;
  assay_runs_t* runs = NULL;
  // As the tuning's own (tune/model.c).
  precision.format = t->setting.formats[0];
  precision.undeclared = true;
  precision.given = a->given;
  ASSAY_TRY(assay_runs_create(t->check->model, &setting, &runs));
  assay_status_t st = assay_runs_try(runs, &precision, out, NULL, NULL);
  assay_runs_destroy(runs);
  return st;
}

static assay_status_t want_part(const assay_tune_t* t, const assay_samples_t* inputs,
                                assay_golden_t* golden) {
  ASSAY_TRY(assay_samples_fit(inputs, t->check->model, false));
  if (!golden && assay_check_needs_golden(t->check))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "a requirement is about golden: give golden");
  if (assay_require_has_commands(t->check->options.require))
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "a requirement that is a command reads all outputs at once");
  if (!golden) return NULL;
  ASSAY_TRY(assay_golden_want_outputs(golden, t->check->model));
  if (assay_golden_count(golden) == inputs->n) return NULL;
  return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                     "golden has %zu samples and the inputs %zu: in parts each sample needs golden "
                     "of its own",
                     assay_golden_count(golden), inputs->n);
}

assay_status_t assay_tune_run_part(assay_tune_t* t, const void* assignment, size_t size,
                                   const assay_samples_t* inputs, assay_golden_t* golden,
                                   assay_report_fn_t* write, void* user) {
  const assay_graph_t* g = t->check->model->graph;
  assignment_t a = {0};
  assay_run_result_t result = {0};
  ASSAY_TRY(want_part(t, inputs, golden));
  assay_status_t st = read_assignment(t, assignment, size, &a);
  if (!st) st = assay_require_resolve(t->check->options.require, g);
  if (!st)
    st = run_assignment(t, &a, inputs, golden ? assay_golden_samples(golden) : NULL, &result);
  if (!st)
    st = save_part(assay_hash(assignment, size, 0), inputs->n, result.outputs, g->n_outputs, write,
                   user);
  assay_run_result_deinit(&result);
  assay_free(a.given);
  return st;
}
