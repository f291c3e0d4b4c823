// Whether a model fails: by a check's verdict, or by the user's command.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/process.h"
#include "base/shell.h"
#include "base/shown.h"
#include "edit/reduce/reduce_internal.h"
#include "onnx/onnx.h"

// ---- files for programs that are not ours -------------------------------------------------------

enum { MODEL, INPUTS, GOLDEN, OUTPUTS, FILES };
static const struct {
  const char *place, *file;
} files[FILES] = {{"{model}", "model.onnx"},
                  {"{inputs}", "inputs.npz"},
                  {"{golden}", "golden.npz"},
                  {"{outputs}", "outputs.npz"}};

typedef struct job {
  const assay_reduce_options_t* o;
  assay_model_t *prepared, *written;
  const char* path;  // of the model as a file; NULL: not yet one
  const assay_samples_t* samples;
  const assay_set_t* known;  // golden
  assay_golden_t golden;
  assay_str_t folder, paths[FILES];
} job_t;

static void job_deinit(job_t* j) {
  assay_golden_deinit(&j->golden);
  for (int k = 0; k < FILES; k++) assay_str_deinit(&j->paths[k]);
  if (j->folder.len) assay_folder_remove_temporary(assay_str_get(&j->folder));
  assay_str_deinit(&j->folder);
}

static assay_status_t path_of(job_t* j, int file, const char** out) {
  if (!j->folder.len) ASSAY_TRY(assay_folder_make_temporary(&j->folder));
  if (!j->paths[file].len)
    assay_str_printf_raw(&j->paths[file], "%s/%s", assay_str_get(&j->folder), files[file].file);
  ASSAY_TRY(assay_str_status(&j->paths[file]));
  *out = assay_str_get(&j->paths[file]);
  return NULL;
}

static assay_status_t write_model(job_t* j) {
  const char* path = NULL;
  if (j->path) return NULL;
  ASSAY_TRY(path_of(j, MODEL, &path));
  ASSAY_TRY(assay_onnx_write(j->written, path, NULL));
  j->path = path;
  return NULL;
}

static assay_status_t start_engine(job_t* j, assay_external_engine_t** out) {
  static const assay_name_map_t no_names = {0};
  if (!j->o->exec) return NULL;
  ASSAY_TRY(write_model(j));
  assay_external_engine_command_t how = *j->o->exec;
  how.model = j->path;
  return assay_external_engine_run(j->prepared, &how, j->samples, &no_names, out);
}

// ---- by a check ---------------------------------------------------------------------------------

static bool matches(const assay_model_t* m, const char* pattern) {
  for (size_t k = 0; k < m->n_graphs; k++)
    for (size_t i = 0; i < m->graphs[k]->n_nodes; i++) {
      const assay_node_t* n = m->graphs[k]->nodes[i];
      if (assay_glob_match(pattern, n->label)) return true;
      for (size_t o = 0; o < n->n_outputs; o++)
        if (n->outputs[o] && assay_glob_match(pattern, n->outputs[o]->name)) return true;
    }
  return false;
}

// Rules that match nothing are errors, and those of the whole model need not match in a part.
static assay_status_t rules_for(const assay_precision_t* p, const assay_model_t* m,
                                assay_precision_t* out) {
  size_t kept = 0;
  ASSAY_TRY(assay_precision_copy(p, out));
  for (size_t i = 0; i < out->n_rules; i++)
    if (matches(m, out->rules[i].pattern)) out->rules[kept++] = out->rules[i];
  out->n_rules = kept;
  return NULL;
}

// Golden's values that the model has, too.
static assay_status_t match_golden(job_t* j, const assay_golden_t** out) {
  *out = NULL;
  if (!j->known) return NULL;
  ASSAY_TRY(assay_golden_match(j->known, j->prepared, NULL, &j->golden));
  for (size_t i = 0; i < j->golden.n; i++)
    if (j->golden.at[i].value) *out = &j->golden;
  return NULL;
}

static assay_status_t options_for(const job_t* j, assay_external_engine_t* engine,
                                  assay_check_setting_t* out) {
  *out = *j->o->check;
  out->no_fix = true;
  out->shares = false;
  out->golden = NULL;
  out->whole_batch = NULL;
  out->pictures = NULL;
  out->progress = NULL;
  out->precision = (assay_precision_t){0};
  if (engine) {
    out->backend = &assay_backend_recorded;
    out->plan = (assay_plan_options_t){.recorded = assay_external_engine_recorded(engine)};
  }
  // Outputs of a part have other names, and other shapes.
  assay_status_t st = out->require ? assay_require_resolve(out->require, j->prepared->graph) : NULL;
  if (st && assay_status_code(st) != ASSAY_NOT_FOUND &&
      assay_status_code(st) != ASSAY_INVALID_ARGUMENT)
    return st;
  if (st) out->require = NULL;
  assay_status_free(st);
  return rules_for(&j->o->check->precision, j->prepared, &out->precision);
}

static double badness_of(const assay_check_t* c) {
  double worst = 0;
  for (size_t i = 0; i < c->n_outputs; i++) {
    const assay_error_sum_t* e = &c->outputs[i].error;
    const double by = e->mismatched     ? 1e30 * (double)e->mismatched
                      : e->sum_ref2 > 0 ? sqrt(e->sum_err2 / e->sum_ref2)
                                        : sqrt(e->sum_err2);
    worst = fmax(worst, by + (double)c->outputs[i].differing);
  }
  return worst;
}

static void describe_fault(const assay_fault_t* f, assay_reduce_failure_t* out) {
  const assay_node_t* n = f->node ? f->node : f->value->producer;
  snprintf(out->node, sizeof out->node, "%s", n ? n->label : f->value->name);
  snprintf(out->op, sizeof out->op, "%s", n ? n->op_type : "");
  if (f->shape)
    snprintf(out->why, sizeof out->why, "export: the shape of '%.100s' is not golden's",
             f->value->name);
  else
    snprintf(out->why, sizeof out->why,
             "export: truth of '%.100s' misses golden by RMS %.3g, of which rounding explains %.3g",
             f->value->name, f->difference.rms, f->explained);
}

static void describe(const assay_check_t* c, assay_reduce_failure_t* out) {
  // What cannot be judged (a part whose truth is NaN) shows no failure.
  *out = (assay_reduce_failure_t){.fails = !c->faithful && (!c->undecided || c->export.n),
                                  .blame = c->blame,
                                  .badness = badness_of(c)};
  if (c->export.n) describe_fault(&c->export.faults[0], out);
  if (c->export.n || !c->culprits.n) return;
  const assay_culprit_t* u = &c->culprits.at[0];
  out->verdict = u->verdict;
  snprintf(out->node, sizeof out->node, "%s", u->account->node->label);
  snprintf(out->op, sizeof out->op, "%s", u->account->node->op_type);
  snprintf(out->why, sizeof out->why, "%s", u->why);
}

static assay_status_t check(job_t* j, const assay_reduce_observer_t* observer,
                            assay_reduce_failure_t* out) {
  assay_check_setting_t options = {0};
  assay_external_engine_t* engine = NULL;
  assay_check_t* c = NULL;
  assay_status_t st = start_engine(j, &engine);
  if (!st) st = options_for(j, engine, &options);
  if (!st) st = match_golden(j, &options.golden);
  if (!st) st = assay_check_model(j->prepared, &options, j->samples, NULL, &c);
  if (!st) describe(c, out);
  if (!st && observer) st = observer->see(observer->user, c);
  assay_check_destroy(c);
  assay_precision_deinit(&options.precision);
  assay_external_engine_destroy(engine);
  return st;
}

// ---- by the user's command ----------------------------------------------------------------------

static assay_status_t run_ours(const job_t* j, const assay_plan_t* plan, assay_tensor_t* const* in,
                               assay_tensor_t** out) {
  const assay_backend_t* b = j->o->check->backend;
  const assay_layers_t* layers = assay_plan_layers(plan);
  const assay_graph_t* g = layers->model->graph;
  void* state = NULL;
  assay_status_t st = assay_backend_open(b, layers, NULL, NULL, &state);
  if (!st) st = assay_backend_set_inputs(b, state, g, in);
  for (size_t l = 0; !st && l < layers->n_layers; l++) st = b->step(state, l);
  for (size_t i = 0; !st && i < g->n_outputs; i++) {
    assay_tensor_t* t = NULL;
    st = assay_backend_output(b, state, g->outputs[i], &t);
    if (!st) out[i] = assay_tensor_retain(t);
  }
  if (state) b->close(state);
  return st;
}

static assay_status_t outputs_of_ours(const job_t* j, assay_samples_t* out) {
  assay_check_setting_t options = {0};
  assay_plan_t* plan = NULL;
  assay_status_t st = options_for(j, NULL, &options);
  if (!st)
    st = assay_plan_create(j->prepared, &options.precision, &options.plan, options.seed, &plan);
  for (size_t k = 0; !st && k < out->n; k++)
    st = run_ours(j, plan, assay_samples_get(j->samples, k), out->at + k * out->n_values);
  assay_plan_destroy(plan);
  assay_precision_deinit(&options.precision);
  return st;
}

static assay_status_t outputs_of_other(job_t* j, assay_samples_t* out) {
  const assay_graph_t* g = j->prepared->graph;
  assay_external_engine_t* engine = NULL;
  assay_tensor_t** got = NULL;
  const size_t n = (size_t)j->prepared->n_values;
  ASSAY_TRY(assay_new_array(n, sizeof *got, &got));
  assay_status_t st = start_engine(j, &engine);
  for (size_t k = 0; !st && k < out->n; k++) {
    const assay_recorded_t* d = assay_external_engine_recorded(engine);
    memset(got, 0, n * sizeof *got);
    st = d->fetch(d->user, k, got);
    for (size_t i = 0; !st && i < g->n_outputs; i++)
      if (got[g->outputs[i]->id])
        out->at[k * out->n_values + i] = assay_tensor_retain(got[g->outputs[i]->id]);
    for (size_t i = 0; i < n; i++) assay_tensor_release(got[i]);
  }
  assay_external_engine_destroy(engine);
  assay_free(got);
  return st;
}

static assay_status_t write_outputs(job_t* j, const char* path) {
  const assay_graph_t* g = j->prepared->graph;
  assay_samples_t s = {.n = j->samples->n, .n_values = g->n_outputs};
  size_t written;
  ASSAY_TRY(assay_new_array(s.n * s.n_values, sizeof *s.at, &s.at));
  assay_status_t st = j->o->exec ? outputs_of_other(j, &s) : outputs_of_ours(j, &s);
  if (!st) st = assay_reduce_write_values(path, g->outputs, &s, &written);
  assay_samples_deinit(&s);
  return st;
}

static assay_status_t write_golden(job_t* j, const char* path) {
  assay_samples_t s = {0};
  size_t written;
  assay_status_t st = assay_reduce_golden(j->prepared, j->samples, j->o->check, &s);
  if (!st) st = assay_reduce_write_values(path, j->prepared->graph->outputs, &s, &written);
  assay_samples_deinit(&s);
  return st;
}

static assay_status_t write_file(job_t* j, int file, const char** out) {
  size_t written;
  if (file == MODEL) ASSAY_TRY(write_model(j));
  if (file == MODEL) return *out = j->path, NULL;
  ASSAY_TRY(path_of(j, file, out));
  if (file == OUTPUTS) return write_outputs(j, *out);
  if (file == GOLDEN) return write_golden(j, *out);
  return assay_reduce_write_values(*out, j->prepared->graph->inputs, j->samples, &written);
}

static assay_status_t command_line(job_t* j, assay_str_t* out) {
  const char* paths[FILES] = {0};
  for (const char* c = j->o->judge; *c;) {
    int k = 0;
    while (k < FILES && strncmp(c, files[k].place, strlen(files[k].place)) != 0) k++;
    if (k == FILES) {
      assay_str_append_n(out, c++, 1);
      continue;
    }
    if (!paths[k]) ASSAY_TRY(write_file(j, k, &paths[k]));
    assay_shell_quote(out, paths[k]);
    c += strlen(files[k].place);
  }
  return assay_str_status(out);
}

// Any code but 0 fails, as with Polygraphy; those of a shell that finds no program are errors.
static assay_status_t ask(job_t* j, assay_reduce_failure_t* out) {
  assay_str_t line = {0}, said = {0};
  int code = 0;
  assay_status_t st = command_line(j, &line);
  if (!st)
    st = assay_process_ask(assay_str_get(&line),
                           j->o->judge_seconds > 0 ? j->o->judge_seconds : 600, 255, &code, &said);
  if (!st && (code == 126 || code == 127))
    st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--check '%s' cannot be run: %s", j->o->judge,
                     assay_str_get(&said));
  out->fails = code != 0;
  if (code)
    snprintf(out->why, sizeof out->why, "exit code %d%s%.200s", code, said.len ? ": " : "",
             assay_str_get(&said));
  out->why[strcspn(out->why, "\n")] = 0;
  assay_str_deinit(&line);
  assay_str_deinit(&said);
  return st;
}

assay_status_t assay_reduce_judge(const assay_reduce_options_t* o, assay_model_t* prepared,
                                  assay_model_t* written, const char* path,
                                  const assay_samples_t* samples, const assay_set_t* golden,
                                  const assay_reduce_observer_t* observer,
                                  assay_reduce_failure_t* out) {
  job_t j = {.o = o,
             .prepared = prepared,
             .written = written,
             .path = path,
             .samples = samples,
             .known = golden};
  assay_reduce_failure_t f = {0};
  assay_status_t st = !o->judge || observer ? check(&j, observer, &f) : NULL;
  if (!st && o->judge) st = ask(&j, &f);
  job_deinit(&j);
  if (!st) *out = f;
  return st;
}

// Of another engine whole ranges of layers are blamed, of which not much can be told.
bool assay_reduce_is_same(const assay_reduce_options_t* o, const assay_reduce_failure_t* whole,
                          const assay_reduce_failure_t* part) {
  const bool certain = !o->exec && whole->verdict >= ASSAY_VERDICT_OVERFLOW;
  if (!part->fails || o->judge) return part->fails;
  if ((whole->blame == ASSAY_BLAME_EXPORT) != (part->blame == ASSAY_BLAME_EXPORT)) return false;
  return !certain || part->verdict == whole->verdict;
}
