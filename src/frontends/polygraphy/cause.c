// Why a comparison failed, in one line, and the command that tells more.
#include "frontends/polygraphy/cause.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/shell.h"
#include "formats/format.h"

// ---- the next command ---------------------------------------------------------------------------

// The files that hold the run's inputs, as far as there are any.
static void put_inputs(pg_job_t* j, assay_str_t* out) {
  const pg_words_t* files = pg_words(j->args, PG_FLAG_load_inputs);
  const char* saved = pg_text(j->args, PG_FLAG_save_inputs);
  for (size_t i = 0; i < files->n; i++) {
    assay_str_append(out, " --inputs ");
    assay_shell_word(out, files->items[i]);
  }
  if (files->n) return;
  assay_str_append(out, " --inputs ");
  assay_shell_word(out, saved ? saved : PG_INPUTS_FILE);
}

// The format that float32 values are in: of a plan as it was built.
static assay_format_t format_of(const pg_args_t* a, const pg_runner_t* r) {
  const assay_plan_recipe_t* recipe =
      r && r->engine ? assay_plan_recipe(assay_engine_plan(r->engine)) : NULL;
  if (recipe) return recipe->format;
  return pg_given(a, PG_FLAG_fp16)   ? ASSAY_FORMAT_FP16
         : pg_given(a, PG_FLAG_bf16) ? ASSAY_FORMAT_BF16
                                     : ASSAY_FORMAT_FP32;
}

bool pg_saves_inputs(const pg_job_t* j) {
  return pg_words(j->args, PG_FLAG_load_inputs)->n || pg_text(j->args, PG_FLAG_save_inputs);
}

assay_status_t pg_put_check(pg_job_t* j, const pg_runner_t* r, assay_str_t* out) {
  const pg_args_t* a = j->args;
  const char* path = a->positional.n ? a->positional.items[0] : "";
  const size_t n = strlen(path);
  const bool onnx = n > 5 && strcmp(path + n - 5, ".onnx") == 0;
  const assay_format_t format = format_of(a, r);
  assay_str_append(out, "assay check ");
  assay_shell_word(out, onnx ? path : "MODEL.onnx");
  if (format != ASSAY_FORMAT_FP32)
    assay_str_printf(out, " --precision %s", assay_format_name(format));
  put_inputs(j, out);
  return assay_str_status(out);
}

// ---- looking at layers --------------------------------------------------------------------------

static bool is_float(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && assay_type_is_float(t->type);
}

// How many elements are not finite, and the largest of those that are.
static int64_t broken(const assay_tensor_t* t, double* out_largest) {
  int64_t n = 0;
  *out_largest = 0;
  for (int64_t i = 0; i < t->size; i++) {
    const double x = fabs(assay_f64(t)[i]);
    if (!isfinite(x))
      n++;
    else if (x > *out_largest)
      *out_largest = x;
  }
  return n;
}

// The norm of the difference, relative to that of b.
static double distance(const assay_tensor_t* a, const assay_tensor_t* b) {
  double d2 = 0, b2 = 0;
  for (int64_t i = 0; i < b->size; i++) {
    const double x = assay_f64(a)[i] - assay_f64(b)[i], y = assay_f64(b)[i];
    d2 += x * x;
    b2 += y * y;
  }
  return b2 > 0 ? sqrt(d2 / b2) : sqrt(d2);
}

// A walk over the layers of an engine beside the evaluator's values of the same graph.
typedef struct walk {
  const assay_executor_t* truth;
  assay_str_t* text;
  bool found;  // a layer gave what is not finite
  double worst;
  assay_str_t steepest;  // the layer after which the error grew the most
  double before;
} walk_t;

static void put_layer(assay_str_t* out, const assay_layer_t* l, const assay_node_t* n) {
  assay_str_printf(out, "layer '%s' (%s", n->label, n->op_type);
  if (l->format) assay_str_printf(out, ", %s", assay_format_name(l->format));
  assay_str_append(out, ")");
}

static void see_broken(walk_t* k, const assay_layer_t* l, const assay_node_t* n,
                       const assay_tensor_t* want, int64_t count, double largest) {
  double wanted, top = 0;
  const int64_t also = want ? broken(want, &wanted) : 0;
  if (want) top = wanted;
  k->found = true;
  put_layer(k->text, l, n);
  assay_str_printf(k->text, " is the first to give what is not finite (%lld values",
                   (long long)count);
  if (largest > 0) assay_str_printf(k->text, ", besides up to %.5g", largest);
  assay_str_append(k->text, ")");
  if (also)
    assay_str_append(k->text, ", and so does the reference: it is the model, not the precision");
  else if (want && l->format == ASSAY_FORMAT_FP16 && top > 65504)
    assay_str_printf(k->text, ": the reference has values up to %.5g there, and fp16 ends at 65504",
                     top);
  else if (want)
    assay_str_printf(k->text, ": the reference is finite there, up to %.5g", top);
}

static void see_value(walk_t* k, const assay_layer_t* l, const assay_node_t* n,
                      const assay_tensor_t* have, const assay_tensor_t* want) {
  double largest;
  const int64_t count = broken(have, &largest);
  if (count) {
    see_broken(k, l, n, want, count, largest);
    return;
  }
  if (!want || want->size != have->size) return;
  const double d = distance(have, want);
  if (!(d > k->worst)) return;
  // The first one that is this bad.
  if (d > 4 * k->worst) {
    assay_str_deinit(&k->steepest);
    k->steepest = (assay_str_t){0};
    put_layer(&k->steepest, l, n);
    k->before = k->worst;
  }
  k->worst = d;
}

static assay_status_t see_layer(void* user, const assay_layer_t* l, const assay_node_t* n,
                                uint64_t iteration, size_t n_in, assay_tensor_t* const* in,
                                size_t n_out, assay_tensor_t* const* out) {
  walk_t* k = user;
  (void)iteration, (void)n_in, (void)in;
  for (size_t o = 0; !k->found && o < n_out && o < n->n_outputs; o++) {
    assay_tensor_t *have = NULL, *want = NULL;
    if (n->graph->outer || !n->outputs[o] || !is_float(out[o])) continue;
    assay_tensor_t* known = assay_executor_get(k->truth, n->outputs[o]);
    ASSAY_TRY(assay_tensor_widen(out[o], &have));
    assay_status_t st = is_float(known) ? assay_tensor_widen(known, &want) : NULL;
    if (!st) see_value(k, l, n, have, want);
    assay_tensor_release(have);
    assay_tensor_release(want);
    if (st) return st;
  }
  return NULL;
}

static assay_status_t run_on(assay_executor_t* e, const assay_set_t* inputs) {
  const assay_graph_t* g = assay_executor_graph(e);
  assay_executor_reset(e);
  for (size_t i = 0; i < g->n_inputs; i++) {
    assay_tensor_t* t = assay_set_find(inputs, g->inputs[i]->name);
    if (t) ASSAY_TRY(assay_executor_set(e, g->inputs[i], t));
  }
  return assay_executor_run(e);
}

// Runs the engine beside the evaluator, on the graph that the engine runs.
static assay_status_t inspect_engine(pg_runner_t* r, const assay_set_t* inputs, assay_str_t* out) {
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_NATIVE, .keep_all = true};
  assay_executor_t *native = NULL, *engine = NULL;
  walk_t walk = {.text = out};
  const assay_tap_t tap = {see_layer, &walk};
  assay_status_t st = assay_executor_evaluate(r->model, &config, &native);
  if (!st) st = run_on(native, inputs);
  walk.truth = native;
  if (!st) st = assay_executor_run_engine(r->engine, &tap, &engine);
  if (!st) st = run_on(engine, inputs);
  if (!st && !walk.found && walk.steepest.len)
    assay_str_printf(out, "the engine's error grows most after %s, from %.2g to %.2g of the values",
                     assay_str_get(&walk.steepest), walk.before, walk.worst);
  if (!st && !walk.found && !walk.steepest.len)
    assay_str_append(out, "the engine's layers are as the evaluator has them");
  assay_str_deinit(&walk.steepest);
  assay_executor_destroy(engine);
  assay_executor_destroy(native);
  return st;
}

// The first node whose values are not finite; nothing where all are.
static assay_status_t inspect_model(const assay_model_t* m, const assay_set_t* inputs,
                                    assay_str_t* out) {
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_NATIVE, .keep_all = true};
  assay_executor_t* e = NULL;
  ASSAY_TRY(assay_executor_evaluate(m, &config, &e));
  assay_status_t st = run_on(e, inputs);
  const assay_graph_t* g = m->graph;
  for (size_t i = 0; !st && !out->len && i < g->n_nodes; i++)
    for (size_t o = 0; !st && !out->len && o < g->nodes[i]->n_outputs; o++) {
      assay_tensor_t *t = g->nodes[i]->outputs[o] ? assay_executor_get(e, g->nodes[i]->outputs[o])
                                                  : NULL,
                     *wide = NULL;
      double largest;
      if (!is_float(t)) continue;
      st = assay_tensor_widen(t, &wide);
      if (!st && broken(wide, &largest))
        assay_str_printf(out,
                         "node '%s' (%s) is the first to give what is not finite, in the model's "
                         "own types: it is the model and its inputs, not a precision",
                         g->nodes[i]->label, g->nodes[i]->op_type);
      assay_tensor_release(wide);
    }
  assay_executor_destroy(e);
  return st;
}

// ---- the line -----------------------------------------------------------------------------------

static bool is_engine(const pg_runner_t* r) { return r && r->engine; }

static assay_status_t find_cause(const pg_disputed_t* d, assay_str_t* out) {
  const bool engines = is_engine(d->first) || is_engine(d->second);
  pg_runner_t* r = is_engine(d->first) || !is_engine(d->second) ? d->first : d->second;
  if (!r) r = d->second;
  if (!r || !d->inputs) {
    assay_str_append(out, "both results come from files: they are of different runs");
    return NULL;
  }
  if (engines) return inspect_engine(r, d->inputs, out);
  ASSAY_TRY(inspect_model(r->model, d->inputs, out));
  if (!out->len)
    assay_str_append(out, d->first && d->second
                              ? "the evaluators differ by the rounding of the model's own types"
                              : "the results in the file are of another model, of other inputs, or "
                                "of a precision that this line does not ask for");
  return NULL;
}

static void report(pg_job_t* j, const pg_runner_t* r, assay_status_t st, assay_str_t* why) {
  assay_str_t next = {0};
  if (st) assay_str_printf(why, "it could not be looked for: %s", assay_status_message(st));
  st = assay_status_join(st, pg_put_check(j, r, &next));
  pg_log(PG_INFO, "Cause: %s%s | Next: %s", assay_str_get(why),
         pg_saves_inputs(j) ? "" : " (--save-inputs " PG_INPUTS_FILE " writes the inputs)",
         assay_str_get(&next));
  assay_status_free(st);
  assay_str_deinit(&next);
  assay_str_deinit(why);
}

void pg_cause(pg_job_t* j, const pg_disputed_t* d) {
  assay_str_t why = {0};
  report(j, is_engine(d->first) ? d->first : d->second, find_cause(d, &why), &why);
}

void pg_cause_invalid(pg_job_t* j, pg_runner_t* r, const assay_set_t* inputs) {
  assay_str_t why = {0};
  report(j, r, r->engine ? inspect_engine(r, inputs, &why) : inspect_model(r->model, inputs, &why),
         &why);
}
