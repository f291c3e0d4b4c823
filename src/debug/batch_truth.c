// Truth of one sample in several batches: which nodes of the model mix samples.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "debug/batch_debug.h"

// Truth's own rounding, as a part of the largest value.
static const double SAME = 1e-9;

typedef struct run {
  assay_batch_job_t* job;
  size_t relation;  // SIZE_MAX: the reference
  const assay_node_t* last;
} run_t;

// ---- why a node mixes samples -------------------------------------------------------------------

static bool has_axes(const assay_node_t* n) {
  return (n->n_inputs > 1 && n->inputs[1]) || assay_node_attr(n, "axes");
}

static bool along_batch(const assay_node_t* n, int batch) {
  const assay_attr_t* axis = assay_node_attr(n, "axis");
  return !axis || axis->u.i == batch;
}

static bool takes_statistics(const assay_node_t* n, int batch) {
  (void)batch;
  const assay_attr_t* a = assay_node_attr(n, "training_mode");
  return a && a->u.i;
}

static bool fixed_shape(const assay_node_t* n) {
  return n->n_inputs > 1 && assay_value_constant(n->inputs[1]);
}

static bool any(const assay_node_t* n, int batch) { return (void)n, (void)batch, true; }
static bool no_axes(const assay_node_t* n, int batch) { return (void)batch, !has_axes(n); }
static bool reshapes(const assay_node_t* n, int batch) { return (void)batch, fixed_shape(n); }

// What is known of operators; the first row that fits. op NULL: any.
static const struct {
  const char* op;
  bool (*when)(const assay_node_t* n, int batch);
  const char* why;
} reasons[] = {
    {"Squeeze", no_axes, "drops every size that is 1: at batch 1 the batch goes, too"},
    {"Reshape", reshapes, "reshapes to a shape that is written into the model"},
    {"Expand", reshapes, "expands to a shape that is written into the model"},
    {"BatchNormalization", takes_statistics,
     "training_mode: its mean and variance are the batch's"},
    {"Softmax", along_batch, "normalizes along the batch axis"},
    {"LogSoftmax", along_batch, "normalizes along the batch axis"},
    {"LayerNormalization", along_batch, "normalizes along the batch axis, too"},
    {"CumSum", any, "adds up along the batch axis"},
    {"DynamicQuantizeLinear", any, "takes its scale from the whole batch"},
    {"Flatten", any, "puts the batch and other sizes together"},
    {"Transpose", any, "puts the batch where other sizes were"},
    {"Dropout", any, "draws random numbers by place"},
    {"RandomNormalLike", any, "draws random numbers by place"},
    {"RandomUniformLike", any, "draws random numbers by place"},
    {"Bernoulli", any, "draws random numbers by place"},
    {NULL, any, "what enters it stays the same for a sample, what leaves it does not"},
};

static void explain(const assay_node_t* n, int batch, const assay_tensor_t* got,
                    const assay_tensor_t* alone, assay_batch_found_t* f) {
  size_t i = 0;
  while (reasons[i].op && !(strcmp(reasons[i].op, n->op_type) == 0 && reasons[i].when(n, batch)))
    i++;
  const char* why = reasons[i].why;
  if (strncmp(n->op_type, "Reduce", 6) == 0) why = "reduces over the batch axis";
  if (got && alone && got->kind == ASSAY_KIND_TENSOR && alone->kind == ASSAY_KIND_TENSOR)
    snprintf(f->why, sizeof f->why, "%s: %.80s alone, %.80s in the batch", why,
             ASSAY_DIMS_TEXT(alone), ASSAY_DIMS_TEXT(got));
  else
    snprintf(f->why, sizeof f->why, "%s", why);
}

static void name(const assay_node_t* n, const assay_value_t* v, assay_batch_found_t* f) {
  snprintf(f->node, sizeof f->node, "%s", n->label);
  snprintf(f->op, sizeof f->op, "%s", n->op_type);
  snprintf(f->value, sizeof f->value, "%s", v ? v->name : "");
}

// The first that reads a value beside another one that is made of samples, of another rank.
static void find_reader(const assay_batch_job_t* j, const assay_value_t* v,
                        assay_batch_found_t* f) {
  const assay_graph_t* g = j->open->graph;
  const assay_tensor_t* own = j->ref[v->id];
  for (size_t i = 0; own && i < g->n_nodes; i++) {
    const assay_node_t* n = g->nodes[i];
    bool reads = false;
    const assay_tensor_t* other = NULL;
    for (size_t k = 0; k < n->n_inputs; k++) {
      reads |= n->inputs[k] == v;
      if (n->inputs[k] && n->inputs[k] != v && j->data[n->inputs[k]->id])
        other = j->ref[n->inputs[k]->id];
    }
    if (!reads || !other || other->rank <= own->rank) continue;
    snprintf(f->reader, sizeof f->reader,
             "%.120s (%.40s): %.60s beside %.60s, which lines up on the right", n->label,
             n->op_type, ASSAY_DIMS_TEXT(other), ASSAY_DIMS_TEXT(own));
    return;
  }
}

// ---- one node -----------------------------------------------------------------------------------

static assay_status_t keep(run_t* r, const assay_node_t* n, size_t n_out, assay_tensor_t** out) {
  for (size_t i = 0; i < n_out; i++)
    if (n->outputs[i] && out[i] && r->job->data[n->outputs[i]->id])
      r->job->ref[n->outputs[i]->id] = assay_tensor_retain(out[i]);
  return NULL;
}

static assay_status_t blame(run_t* r, const assay_node_t* n, const assay_value_t* v,
                            const assay_tensor_t* got, const assay_row_difference_t* d) {
  assay_batch_job_t* j = r->job;
  const assay_tensor_t* alone = j->ref[v->id];
  // A model of one fixed batch is never run at another: what fits that only is not a fault, unless
  // the batch itself is lost in it.
  const bool other = j->out->batch && j->out->relations[r->relation].n != j->out->batch;
  assay_batch_found_t f = {.model = true,
                           .note = j->out->batch && (other || fixed_shape(n)) &&
                                   !(d->fit == ASSAY_ROW_MISFIT && got->rank != alone->rank),
                           .moved = d->fit == ASSAY_ROW_FITS && !d->mismatched
                                        ? d->max / fmax(d->ref_max, 1e-300)
                                        : INFINITY,
                           .relation = r->relation};
  name(n, v, &f);
  explain(n, j->axis.place, got, alone, &f);
  find_reader(j, v, &f);
  return assay_batch_add(j, &f);
}

static bool spoils(const assay_row_difference_t* d) {
  return d->fit != ASSAY_ROW_FITS || d->mismatched || d->max > SAME * d->ref_max;
}

static assay_status_t compare(run_t* r, const assay_node_t* n, size_t n_out, assay_tensor_t** out) {
  assay_batch_job_t* j = r->job;
  assay_batch_relation_t* rel = &j->out->relations[r->relation];
  bool* spoiled = j->spoiled[r->relation];
  bool before = false, blamed = false;
  for (size_t i = 0; i < n->n_inputs; i++) before |= n->inputs[i] && spoiled[n->inputs[i]->id];
  for (size_t i = 0; i < n_out; i++) {
    const assay_value_t* v = n->outputs[i];
    if (!v || !out[i] || !j->data[v->id] || !j->ref[v->id]) continue;
    const assay_row_difference_t d =
        assay_row_compare(out[i], rel->n, rel->place, j->ref[v->id], j->ref_n, j->axis.place);
    if (!spoils(&d)) continue;
    spoiled[v->id] = true;
    if (d.fit == ASSAY_ROW_UNSIZED || before || blamed) continue;
    blamed = true;
    ASSAY_TRY(blame(r, n, v, out[i], &d));
  }
  return NULL;
}

static assay_status_t before(void* user, const assay_node_t* n, size_t n_in, assay_tensor_t** in) {
  run_t* r = user;
  (void)n_in, (void)in;
  if (n->graph == r->job->open->graph) r->last = n;
  return NULL;
}

static assay_status_t after(void* user, const assay_node_t* n, size_t n_in,
                            assay_tensor_t* const* in, size_t n_out, assay_tensor_t** out) {
  run_t* r = user;
  (void)n_in, (void)in;
  if (n->graph != r->job->open->graph) return NULL;
  return r->relation == SIZE_MAX ? keep(r, n, n_out, out) : compare(r, n, n_out, out);
}

// ---- runs ---------------------------------------------------------------------------------------

static assay_status_t evaluate(run_t* r, assay_tensor_t* const* in) {
  const assay_batch_job_t* j = r->job;
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH,
                                           .unquantized = j->options->unquantized,
                                           .seed = j->options->seed,
                                           .hooks = {.before = before, .after = after, .user = r}};
  assay_evaluator_t* m = NULL;
  assay_status_t st = assay_evaluator_create_run(j->open, &config, in, &m);
  assay_evaluator_destroy(m);
  return st;
}

// The nearest node before one that failed, itself included, whose shape is written into the model.
static const assay_node_t* written_before(const assay_node_t* n, int depth) {
  if (!n || depth > 8) return NULL;
  const bool written = ((!strcmp(n->op_type, "Reshape") || !strcmp(n->op_type, "Expand")) &&
                        n->n_inputs > 1 && n->inputs[1]) ||
                       (!strcmp(n->op_type, "Squeeze") && !has_axes(n));
  if (written) return n;
  for (size_t i = 0; i < n->n_inputs; i++) {
    const assay_node_t* found =
        n->inputs[i] ? written_before(n->inputs[i]->producer, depth + 1) : NULL;
    if (found) return found;
  }
  return NULL;
}

// A batch that cannot be run at all. Errors that are not the model's are handed on.
static assay_status_t take_failure(run_t* r, assay_status_t why) {
  assay_batch_job_t* j = r->job;
  const assay_code_t code = assay_status_code(why);
  assay_batch_relation_t* rel = &j->out->relations[r->relation];
  if (code == ASSAY_NO_MEMORY || code == ASSAY_INTERNAL || !r->last) return why;
  const assay_node_t* n = written_before(r->last, 0);
  if (!n) n = r->last;
  rel->truth_failed = true;
  bool known = false;
  for (size_t i = 0; i < j->out->n_found; i++)
    if (j->out->found[i].relation == r->relation) known = true;
  if (known || rel->at != SIZE_MAX) return assay_status_free(why), NULL;
  assay_batch_found_t f = {.model = true,
                           .note = rel->single || j->out->batch,
                           .moved = INFINITY,
                           .relation = r->relation};
  name(n, n->n_outputs ? n->outputs[0] : NULL, &f);
  if (n == r->last)
    snprintf(f.why, sizeof f.why, "a batch of %d does not run: %.240s", rel->n,
             assay_status_message(why));
  else
    snprintf(f.why, sizeof f.why, "a batch of %d%s fits its shape no more: %.80s fails after it",
             rel->n, rel->single ? " with one row of the other inputs" : "", r->last->label);
  assay_status_free(why);
  return assay_batch_add(j, &f);
}

static assay_status_t run_relation(assay_batch_job_t* j, size_t i) {
  run_t r = {.job = j, .relation = i};
  assay_tensor_t** in = NULL;
  ASSAY_TRY(assay_new_array((size_t)j->open->n_values, sizeof(bool), &j->spoiled[i]));
  ASSAY_TRY(assay_batch_inputs(j, &j->out->relations[i], &in));
  assay_status_t st = evaluate(&r, in);
  assay_rows_release_batch(in, j->rows.n_inputs);
  return st ? take_failure(&r, st) : NULL;
}

assay_status_t assay_batch_truth(assay_batch_job_t* j, bool* out_runs) {
  run_t r = {.job = j, .relation = SIZE_MAX};
  assay_tensor_t** in = NULL;
  ASSAY_TRY(assay_batch_inputs(j, NULL, &in));
  assay_status_t st = evaluate(&r, in);
  assay_rows_release_batch(in, j->rows.n_inputs);
  const assay_code_t code = assay_status_code(st);
  *out_runs = !st;
  if (st && r.last && code != ASSAY_NO_MEMORY && code != ASSAY_INTERNAL) {
    assay_str_printf(&j->out->notes, "a batch of %d does not run: %s\n", j->ref_n,
                     assay_status_message(st));
    assay_status_free(st);
    return NULL;
  }
  for (size_t i = 0; !st && i < j->out->n_relations; i++) st = run_relation(j, i);
  return st;
}
