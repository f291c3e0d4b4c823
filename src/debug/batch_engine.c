// The engine's runs of one sample in several batches: the first layer whose result for it changes.
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "account/external.h"
#include "account/special.h"
#include "base/alloc.h"
#include "base/process.h"
#include "base/shown.h"
#include "debug/batch_debug.h"
#include "onnx/onnx.h"

#define OPEN_FILE "open.onnx"
#define FIXED_FILE "fixed.onnx"

// A plan and a state that runs it; of another engine, of what its command gave for these inputs.
typedef struct engine {
  const assay_backend_t* backend;
  assay_external_engine_t* command;
  assay_model_t* model;
  assay_plan_t* plan;
  const assay_layers_t* layers;
  assay_locals_t* locals;
  void* state;
} engine_t;

typedef struct run {
  assay_batch_job_t* job;
  assay_str_t folder;  // with the models that commands are given
  engine_t* engine;
  size_t relation;  // SIZE_MAX: the reference
  bool differs;     // some layer's bits did: what comes after is judged by its own inputs
  bool done;        // a layer was found that breaks the relation
} run_t;

// ---- one layer ----------------------------------------------------------------------------------

typedef struct seen {
  const assay_layer_t* layer;
  const assay_node_t* node;
  size_t n_in, n_out;
  assay_tensor_t* const* in;
  assay_tensor_t* const* out;
} seen_t;

// Elements of the sample's part that lie further apart than two results within the limits can.
static int64_t count_beyond(const assay_tensor_t* got, const assay_tensor_t* ref,
                            const assay_row_difference_t* d, const assay_tensor_t* limit,
                            assay_format_t storage) {
  int64_t n = 0;
  if (got->store != ASSAY_STORE_F64) return d->differing;
  for (int64_t o = 0; o < d->outer; o++) {
    for (int64_t i = 0; i < d->inner; i++) {
      const int64_t at = o * d->stride + d->offset + i;
      const double x = assay_f64(got)[at], y = assay_f64(ref)[o * d->ref_stride + i];
      if (x == y || (isnan(x) && isnan(y))) continue;
      const double margin = limit && limit->size == got->size ? 2 * assay_f64(limit)[at] : 0;
      n += !(fabs(x - y) <= margin + assay_format_ulp(storage, y));
    }
  }
  return n;
}

static assay_status_t run_local(run_t* r, const seen_t* s, assay_rounding_t* rounding,
                                assay_local_t* out) {
  r->engine->backend->rounding(r->engine->state, s->layer, s->n_in, s->in, rounding);
  return assay_locals_run(r->engine->locals, s->layer, s->node, s->n_in, s->in, rounding, NULL,
                          out);
}

static bool is_judged(const seen_t* s) {
  return s->node->op && !(s->node->op->flags & (ASSAY_OP_CONTROL | ASSAY_OP_RANDOM));
}

// Whether a difference, the first, is more than rounding explains.
static assay_status_t is_beyond(run_t* r, const seen_t* s, size_t i, const assay_tensor_t* ref,
                                const assay_row_difference_t* d, bool* out) {
  assay_rounding_t rounding = {0};
  assay_local_t local = {0};
  *out = true;
  if (d->fit == ASSAY_ROW_MISFIT || d->mismatched || !is_judged(s)) return NULL;
  ASSAY_TRY(run_local(r, s, &rounding, &local));
  const assay_format_t storage = assay_layer_storage(s->layer, s->out[i]->type);
  if (local.bounded && i < local.n_out)
    *out = count_beyond(s->out[i], ref, d, local.limits[i].guaranteed, storage) > 0;
  assay_local_deinit(&local);
  return NULL;
}

// After a difference that rounding explains: whether the layer does more on its own inputs.
static assay_status_t does_more(run_t* r, const seen_t* s, bool* out) {
  assay_rounding_t rounding = {0};
  assay_local_t local = {0};
  assay_judgement_t one = {0};
  *out = false;
  if (!is_judged(s)) return NULL;
  ASSAY_TRY(run_local(r, s, &rounding, &local));
  const assay_layer_rerun_t of = {s->layer, s->node, s->n_in, s->in, s->out};
  const bool external = r->engine->backend->external;
  assay_special_t special = {0};
  assay_status_t st =
      assay_special_find(r->engine->locals, &of, &local, &rounding, !external, &special);
  if (!st)
    st = assay_local_judge(&local, local.converted, s->out, s->layer, &rounding, &special, &one);
  const assay_external_run_t run_of = {s->layer, s->node, s->n_in,   s->in,
                                       s->out,   &local,  &rounding, &special};
  bool final;
  if (!st && external) st = assay_external_judge(r->engine->locals, &run_of, &one, &final);
  *out = one.beyond > 0;
  assay_special_deinit(&special);
  assay_local_deinit(&local);
  return st;
}

static assay_status_t blame(run_t* r, const seen_t* s, const assay_value_t* v,
                            const assay_row_difference_t* d, bool bits) {
  assay_batch_relation_t* rel = &r->job->out->relations[r->relation];
  assay_batch_found_t f = {.bits = bits,
                           .moved = d->fit == ASSAY_ROW_FITS && !d->mismatched
                                        ? d->max / fmax(d->ref_max, 1e-300)
                                        : INFINITY,
                           .relation = r->relation};
  snprintf(f.node, sizeof f.node, "%s", s->layer->name);
  snprintf(f.op, sizeof f.op, "%s", s->node->op_type);
  snprintf(f.value, sizeof f.value, "%s", v->name);
  if (d->fit == ASSAY_ROW_MISFIT)
    snprintf(f.why, sizeof f.why, "its shape does not go with the batch");
  else
    snprintf(f.why, sizeof f.why,
             "what enters it stays the same, %lld of its %lld elements do not (%.3g of %.3g)%s",
             (long long)d->differing, (long long)d->n, d->max, d->ref_max,
             bits ? ": rounding explains as much" : "");
  rel->engine_holds = false;
  r->done |= !bits;
  return assay_batch_add(r->job, &f);
}

static assay_status_t compare(run_t* r, const seen_t* s, size_t i, const assay_value_t* v) {
  assay_batch_job_t* j = r->job;
  const assay_batch_relation_t* rel = &j->out->relations[r->relation];
  const assay_tensor_t* ref = j->ref[v->id];
  bool beyond = false;
  if (!ref || j->spoiled[r->relation][v->id]) return NULL;
  const assay_row_difference_t d =
      assay_row_compare(s->out[i], rel->n, rel->place, ref, j->ref_n, j->axis.place);
  if (d.fit == ASSAY_ROW_UNSIZED || (d.fit == ASSAY_ROW_FITS && !d.differing)) return NULL;
  if (r->differs) {
    ASSAY_TRY(does_more(r, s, &beyond));
    return beyond ? blame(r, s, v, &d, false) : NULL;
  }
  ASSAY_TRY(is_beyond(r, s, i, ref, &d, &beyond));
  r->differs = true;
  return blame(r, s, v, &d, !beyond);
}

static assay_status_t on_layer(void* user, const assay_layer_t* layer, const assay_node_t* node,
                               uint64_t iteration, size_t n_in, assay_tensor_t* const* in,
                               size_t n_out, assay_tensor_t* const* out) {
  run_t* r = user;
  assay_batch_job_t* j = r->job;
  const seen_t s = {layer, node, n_in, n_out, in, out};
  (void)iteration;
  if (!layer || (size_t)(layer - r->engine->layers->layers) >= r->engine->layers->n_layers)
    return NULL;
  for (size_t i = 0; i < n_out && !r->done; i++) {
    // Values of other models have the names of this one's.
    const assay_value_t* v =
        node->outputs[i] ? assay_graph_find(j->open->graph, node->outputs[i]->name) : NULL;
    if (!v || !out[i] || !j->data[v->id]) continue;
    if (r->relation == SIZE_MAX && !j->ref[v->id])
      j->ref[v->id] = assay_tensor_retain(out[i]);
    else if (r->relation != SIZE_MAX)
      ASSAY_TRY(compare(r, &s, i, v));
  }
  return NULL;
}

// ---- runs ---------------------------------------------------------------------------------------

// What the models are to commands: files, of which one is the user's own.
static assay_status_t file_of(run_t* r, assay_model_t* model, assay_str_t* path) {
  const assay_batch_job_t* j = r->job;
  const bool open = model == j->open;
  if (model == j->given) return assay_str_append(path, j->how->exec->model), assay_str_status(path);
  if (!r->folder.len) ASSAY_TRY(assay_folder_make_temporary(&r->folder));
  assay_str_printf_raw(path, "%s/%s", assay_str_get(&r->folder), open ? OPEN_FILE : FIXED_FILE);
  ASSAY_TRY(assay_str_status(path));
  if (open && access(assay_str_get(path), F_OK) == 0) return NULL;
  return assay_onnx_write(model, assay_str_get(path), NULL);
}

static assay_status_t run_command(run_t* r, assay_model_t* model, assay_tensor_t* const* in,
                                  assay_external_engine_t** out) {
  static const assay_name_map_t no_names = {0};
  const size_t n = model->graph->n_inputs;
  assay_samples_t sample = {.n = 1, .n_values = n};
  assay_str_t path = {0};
  ASSAY_TRY(assay_new_array(n, sizeof *sample.at, &sample.at));
  for (size_t i = 0; i < n; i++) sample.at[i] = assay_tensor_retain(in[i]);
  assay_status_t st = file_of(r, model, &path);
  assay_external_engine_command_t how = *r->job->how->exec;
  how.model = assay_str_get(&path);
  if (!st) st = assay_external_engine_run(model, &how, &sample, &no_names, out);
  assay_str_deinit(&path);
  assay_samples_deinit(&sample);
  return st;
}

static void drop_files(run_t* r) {
  if (r->folder.len) assay_folder_remove_temporary(assay_str_get(&r->folder));
  assay_str_deinit(&r->folder);
}

static void engine_close(engine_t* e) {
  if (e->state) e->backend->close(e->state);
  assay_locals_destroy(e->locals);
  assay_plan_destroy(e->plan);
  assay_external_engine_destroy(e->command);
  assay_model_release(e->model);
  *e = (engine_t){0};
}

// in: for commands, which run at once.
static assay_status_t engine_open(run_t* r, assay_model_t* model, assay_tensor_t* const* in,
                                  const assay_tap_t* tap, engine_t* e) {
  const assay_check_setting_t* o = r->job->options;
  assay_plan_options_t plan = o->plan;
  e->backend = o->backend;
  e->model = assay_model_retain(model);
  if (r->job->how->exec) {
    ASSAY_TRY(run_command(r, model, in, &e->command));
    e->backend = &assay_backend_recorded;
    plan = (assay_plan_options_t){.recorded = assay_external_engine_recorded(e->command)};
  }
  ASSAY_TRY(assay_plan_create(model, &o->precision, &plan, o->seed, &e->plan));
  e->layers = assay_plan_layers(e->plan);
  ASSAY_TRY(assay_locals_create(e->layers, o->unquantized, &e->locals));
  ASSAY_TRY(assay_backend_open(e->backend, e->layers, NULL, tap, &e->state));
  const assay_outer_t outer = {.get = e->backend->get, .user = e->state};
  if (e->backend->external) assay_locals_set_outer(e->locals, &outer);
  return NULL;
}

static assay_status_t run_engine(run_t* r, assay_tensor_t* const* in) {
  const assay_backend_t* b = r->engine->backend;
  const assay_graph_t* g = r->engine->layers->model->graph;
  b->reset(r->engine->state);
  for (size_t i = 0; i < g->n_inputs; i++)
    if (in[i]) ASSAY_TRY(b->set(r->engine->state, g->inputs[i], in[i]));
  for (size_t l = 0; l < r->engine->layers->n_layers && !r->done; l++)
    ASSAY_TRY(b->step(r->engine->state, l));
  return NULL;
}

// A model with the sizes of these inputs; the one that was given where they are its own.
static assay_status_t fix_sizes(const assay_batch_job_t* j, int n, assay_tensor_t* const* in,
                                assay_model_t** out) {
  const assay_graph_t* g = j->open->graph;
  assay_input_shape_t* shapes = NULL;
  size_t k = 0;
  if (j->out->batch == n) return *out = assay_model_retain(j->given), NULL;
  ASSAY_TRY(assay_new_array(g->n_inputs, sizeof *shapes, &shapes));
  for (size_t i = 0; i < g->n_inputs; i++)
    if (in[i] && in[i]->kind == ASSAY_KIND_TENSOR)
      shapes[k++] = (assay_input_shape_t){g->inputs[i]->name, in[i]->rank, in[i]->dims};
  assay_status_t st = assay_onnx_reshape(j->open, k, shapes, out);
  assay_free(shapes);
  return st;
}

// By a plan of its own: of a fixed batch (NULL: of the open one).
static assay_status_t run_alone(run_t* r, const assay_batch_relation_t* fixed,
                                const assay_tap_t* tap, assay_tensor_t* const* in) {
  engine_t e = {0};
  assay_model_t* m = fixed ? NULL : assay_model_retain(r->job->open);
  if (fixed) ASSAY_TRY(fix_sizes(r->job, fixed->n, in, &m));
  r->engine = &e;
  assay_status_t st = engine_open(r, m, in, tap, &e);
  if (!st) st = run_engine(r, in);
  engine_close(&e);
  r->engine = NULL;
  assay_model_release(m);
  return st;
}

static assay_status_t run_relation(run_t* r, engine_t* open, const assay_tap_t* tap) {
  assay_batch_relation_t* rel =
      r->relation == SIZE_MAX ? NULL : &r->job->out->relations[r->relation];
  assay_tensor_t** in = NULL;
  r->differs = r->done = false;
  r->engine = open;
  ASSAY_TRY(assay_batch_inputs(r->job, rel, &in));
  const bool fixed = rel && rel->fixed;
  assay_status_t st =
      fixed || r->job->how->exec ? run_alone(r, fixed ? rel : NULL, tap, in) : run_engine(r, in);
  assay_rows_release_batch(in, r->job->rows.n_inputs);
  if (rel) rel->engine_ran = !st;
  return st;
}

// What truth runs, the engine has to run.
static assay_status_t take_failure(run_t* r, assay_status_t why) {
  const assay_code_t code = assay_status_code(why);
  assay_batch_relation_t* rel = &r->job->out->relations[r->relation];
  if (code == ASSAY_NO_MEMORY || code == ASSAY_INTERNAL) return why;
  assay_batch_found_t f = {.moved = INFINITY, .relation = r->relation};
  snprintf(f.why, sizeof f.why, "a batch of %d does not run: %.240s", rel->n,
           assay_status_message(why));
  rel->engine_holds = false;
  rel->engine_failed = true;
  assay_status_free(why);
  return assay_batch_add(r->job, &f);
}

assay_status_t assay_batch_engine(assay_batch_job_t* j) {
  run_t r = {.job = j, .relation = SIZE_MAX};
  const assay_tap_t tap = {.layer = on_layer, .user = &r};
  engine_t open = {0};
  assay_batch_forget(j);
  assay_status_t st = j->how->exec ? NULL : engine_open(&r, j->open, NULL, &tap, &open);
  if (!st) st = run_relation(&r, &open, &tap);
  for (size_t i = 0; !st && i < j->out->n_relations; i++) {
    if (j->options->progress)
      j->options->progress(j->options->user, "batches", (double)i / (double)j->out->n_relations);
    if (j->out->relations[i].truth_failed) continue;
    r.relation = i;
    st = run_relation(&r, &open, &tap);
    if (st) st = take_failure(&r, st);
  }
  engine_close(&open);
  drop_files(&r);
  return st;
}
