// Whether a sample's result depends on the batch it is in: what `debug batch` finds.
#include "debug/batch_debug.h"

#include <string.h>

#include "base/alloc.h"

// ---- relations ----------------------------------------------------------------------------------

// The sample is row 0; `others` fills the other places: from row 1 on, in turns, or with one kind.
static assay_status_t relate(assay_batch_job_t* j, const char* name, int n, int place, int others,
                             bool fixed) {
  assay_batch_blame_t* b = j->out;
  ASSAY_TRY(assay_grow(&b->relations, &b->cap_relations, b->n_relations + 1, sizeof *b->relations));
  assay_batch_relation_t* r = &b->relations[b->n_relations++];
  *r = (assay_batch_relation_t){.name = name,
                                .n = n,
                                .place = place,
                                .fixed = fixed,
                                .truth_holds = true,
                                .engine_holds = true,
                                .at = SIZE_MAX};
  for (int i = 0, next = 1; i < n; i++)
    r->rows[i] = i == place ? 0 : others ? others : 1 + (next++ - 1) % (ASSAY_BATCH_MAX - 1);
  return NULL;
}

static assay_status_t relate_sizes(assay_batch_job_t* j) {
  ASSAY_TRY(relate(j, "static", 1, 0, 0, true));
  for (int n = 2; n <= ASSAY_BATCH_MAX; n++) ASSAY_TRY(relate(j, "size", n, 0, 0, false));
  return relate(j, "static", ASSAY_BATCH_MAX, 0, 0, true);
}

// In batches of n.
static assay_status_t relate_places(assay_batch_job_t* j, int n, bool fixed) {
  for (int place = 1; place < n && place < ASSAY_BATCH_MAX; place++)
    ASSAY_TRY(relate(j, "position", n, place, 0, fixed));
  if (n > ASSAY_BATCH_MAX) ASSAY_TRY(relate(j, "position", n, n - 1, 0, fixed));
  ASSAY_TRY(relate(j, "neighbours", n, 0, ASSAY_ROW_OTHER, fixed));
  ASSAY_TRY(relate(j, "neighbours", n, n - 1, ASSAY_ROW_OTHER, fixed));
  ASSAY_TRY(relate(j, "padding", n, 0, ASSAY_ROW_PADDING, fixed));
  return relate(j, "padding", n, n - 1, ASSAY_ROW_PADDING, fixed);
}

// Inputs whose batch has another name than the first one's may have one row.
static assay_status_t relate_single(assay_batch_job_t* j) {
  const assay_graph_t* g = j->open->graph;
  const assay_dim_t* first = NULL;
  bool any = false;
  for (size_t i = 0; i < g->n_inputs; i++) {
    const assay_valtype_t* t = g->inputs[i]->type ? g->inputs[i]->type : g->inputs[i]->declared;
    if (j->rows.axis[i] < 0) continue;
    const assay_dim_t* own = t->dims[j->rows.axis[i]];
    if (!first) first = own;
    j->single[i] = first && own && !assay_dim_same(first, own);
    any |= j->single[i];
  }
  if (!any) return NULL;
  ASSAY_TRY(relate(j, "single", 2, 0, 0, false));
  j->out->relations[j->out->n_relations - 1].single = true;
  return NULL;
}

static assay_status_t relate_all(assay_batch_job_t* j) {
  const int64_t given = j->out->batch;
  const bool own = given > 1 && given <= ASSAY_BATCH_ROWS;
  j->out->n_relations = 0;
  ASSAY_TRY(relate(j, "again", j->ref_n, 0, 0, false));
  if (j->closed) return j->ref_n > 1 ? relate_places(j, j->ref_n, false) : NULL;
  ASSAY_TRY(relate_sizes(j));
  // Kernels end differently where the rows are no multiple of what they take at once.
  for (int n = 2; n < ASSAY_BATCH_MAX; n++) ASSAY_TRY(relate(j, "position", n, n - 1, 0, false));
  ASSAY_TRY(relate_places(j, ASSAY_BATCH_MAX, false));
  if (own) ASSAY_TRY(relate(j, "static", (int)given, 0, 0, true));
  if (own) ASSAY_TRY(relate_places(j, (int)given, true));
  return relate_single(j);
}

// ---- the whole ----------------------------------------------------------------------------------

// Values that are made of samples: not of their sizes, nor of constants.
static void mark_data(const assay_batch_job_t* j) {
  const assay_graph_t* g = j->open->graph;
  for (size_t i = 0; i < g->n_inputs; i++) j->data[g->inputs[i]->id] = j->rows.axis[i] >= 0;
  for (size_t i = 0; i < g->n_nodes; i++) {
    const assay_node_t* n = g->nodes[i];
    bool data = n->op && n->op->flags & ASSAY_OP_CONTROL;
    for (size_t k = 0; k < n->n_inputs; k++) data |= n->inputs[k] && j->data[n->inputs[k]->id];
    if (!strcmp(n->op_type, "Shape") || !strcmp(n->op_type, "Size")) data = false;
    for (size_t k = 0; k < n->n_outputs; k++)
      if (n->outputs[k]) j->data[n->outputs[k]->id] = data;
  }
}

static void clear(assay_batch_job_t* j) {
  for (size_t i = 0; j->spoiled && i < j->out->n_relations; i++) assay_free(j->spoiled[i]);
  assay_free(j->spoiled);
  if (j->open) assay_batch_forget(j);
  assay_free(j->ref);
  assay_free(j->data);
  assay_free(j->single);
  assay_rows_deinit(&j->rows);
  assay_model_release(j->open);
  j->spoiled = NULL;
  j->ref = NULL;
  j->data = j->single = NULL;
  j->open = NULL;
}

static assay_status_t start(assay_batch_job_t* j, const assay_samples_t* inputs) {
  ASSAY_TRY(assay_rows_make(j->open, inputs, &j->axis, j->closed ? j->out->batch : 0,
                            j->options->seed, &j->rows));
  j->out->given = j->rows.given;
  const size_t n = (size_t)j->open->n_values;
  ASSAY_TRY(assay_new_array(j->rows.n_inputs, sizeof *j->single, &j->single));
  ASSAY_TRY(assay_new_array(n, sizeof *j->data, &j->data));
  ASSAY_TRY(assay_new_array(n, sizeof *j->ref, &j->ref));
  mark_data(j);
  ASSAY_TRY(relate_all(j));
  return assay_new_array(j->out->n_relations, sizeof *j->spoiled, &j->spoiled);
}

static void conclude(assay_batch_blame_t* b) {
  for (size_t i = 0; i < b->n_found; i++) {
    const assay_batch_found_t* f = &b->found[i];
    const assay_batch_verdict_t v = f->note    ? ASSAY_BATCH_SOUND
                                    : f->model ? ASSAY_BATCH_MODEL
                                    : f->bits  ? ASSAY_BATCH_BITS
                                               : ASSAY_BATCH_ENGINE;
    if (v <= b->verdict) continue;
    b->verdict = v;
    b->guilty = f;
  }
}

static assay_status_t run(assay_batch_job_t* j, const assay_samples_t* inputs, bool* out_runs) {
  ASSAY_TRY(start(j, inputs));
  ASSAY_TRY(assay_batch_truth(j, out_runs));
  return *out_runs ? assay_batch_engine(j) : NULL;
}

// What a fixed model fits its batch with keeps it from being run at another: then it is compared
// with itself, at its own.
static assay_status_t run_closed(assay_batch_job_t* j, const assay_samples_t* inputs,
                                 bool* out_runs) {
  clear(j);
  j->closed = true;
  j->ref_n = (int)j->out->batch;
  j->open = assay_model_retain(j->given);
  if (j->out->batch <= ASSAY_BATCH_ROWS) return run(j, inputs, out_runs);
  return ASSAY_ERROR(
      ASSAY_UNSUPPORTED,
      "the model is made for a batch of %lld, and no other runs: at most %d can be tried",
      (long long)j->out->batch, ASSAY_BATCH_ROWS);
}

static assay_status_t run_open(assay_batch_job_t* j, const assay_samples_t* inputs,
                               bool* out_runs) {
  assay_status_t st = assay_batch_axis_find(j->given, j->how->axis, &j->axis);
  if (st) return st;
  j->out->axis = j->axis.place;
  if (j->axis.open)
    j->open = assay_model_retain(j->given);
  else
    st = assay_onnx_open_batch(j->given, j->axis.place, &j->out->batch, &j->open);
  const assay_code_t code = assay_status_code(st);
  if (!st) return run(j, inputs, out_runs);
  if (!j->out->batch || code == ASSAY_NO_MEMORY || code == ASSAY_INTERNAL) return st;
  assay_str_printf(&j->out->notes, "its batch of %lld cannot be opened: %s\n",
                   (long long)j->out->batch, assay_status_message(st));
  assay_status_free(st);
  return NULL;
}

assay_status_t assay_batch_debug(assay_model_t* model, const assay_check_setting_t* options,
                                 const assay_batch_options_t* how, const assay_samples_t* inputs,
                                 assay_batch_blame_t* out) {
  assay_batch_blame_t b = {0};
  assay_batch_job_t j = {.options = options, .how = how, .given = model, .ref_n = 1, .out = &b};
  bool runs = false;
  assay_status_t st = run_open(&j, inputs, &runs);
  if (!st && !runs && b.batch) st = run_closed(&j, inputs, &runs);
  clear(&j);
  if (!st) st = assay_str_status(&b.notes);
  if (!st && !runs)
    st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "the model does not run on one sample: %s",
                     assay_str_get(&b.notes));
  if (st) return assay_batch_blame_deinit(&b), st;
  conclude(&b);
  *out = b;
  return NULL;
}
