// Edits: a model in, another one out, and a proof of what truth makes of the difference.
#include "edit/editor.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "edit/names.h"
#include "onnx/onnx.h"
#include "ops/infer.h"
#include "plan/plan.h"

static const assay_editor_t* const editors[] = {
#define ASSAY_EDITOR(name) &assay_editor_##name,
#include "edit/edits.inc"
#undef ASSAY_EDITOR
};

size_t assay_editor_count(void) { return sizeof editors / sizeof *editors; }

const assay_editor_t* assay_editor_at(size_t i) {
  return i < assay_editor_count() ? editors[i] : NULL;
}

const assay_editor_t* assay_editor_find(const char* name) {
  for (size_t i = 0; i < assay_editor_count(); i++)
    if (strcmp(editors[i]->name, name) == 0) return editors[i];
  return NULL;
}

const char* assay_edit_verdict_name(assay_edit_verdict_t v) {
  static const char* const names[] = {"unchanged", "rounded", "changed", "not proven"};
  return (unsigned)v < sizeof names / sizeof *names ? names[v] : NULL;
}

// ---- for edits ----------------------------------------------------------------------------------

static bool matches(const assay_words_t* patterns, const char* label) {
  for (size_t i = 0; i < patterns->n; i++)
    if (strcmp(patterns->items[i], label) == 0 || assay_glob_match(patterns->items[i], label))
      return true;
  return false;
}

bool assay_editing_wants(const assay_editing_t* e, const assay_node_t* n) {
  const assay_edit_requests_t* w = e->requests;
  return (!w->nodes.n || matches(&w->nodes, n->label)) && !matches(&w->not_nodes, n->label);
}

assay_status_t assay_editing_rounds(assay_editing_t* e, const assay_node_t* n) {
  if (!e->rounded.nodes) {
    e->rounded.n = (size_t)e->model->n_node_ids;
    ASSAY_TRY(assay_new_array(e->rounded.n, sizeof *e->rounded.nodes, &e->rounded.nodes));
  }
  if ((size_t)n->id < e->rounded.n) e->rounded.nodes[n->id] = true;
  return NULL;
}

void assay_editing_did(assay_editing_t* e, const char* name, size_t n) {
  if (!n) return;
  assay_str_printf(&e->done, "%s%s %zu", e->done.len ? ", " : "", name, n);
  e->n_changed += n;
}

assay_status_t assay_editing_changed(assay_editing_t* e, const assay_rewrite_t* r) {
  for (size_t i = 0; i < r->n_log; i++)
    for (size_t k = 0; k < r->log[i].n_nodes; k++)
      ASSAY_TRY(assay_editing_rounds(e, r->log[i].nodes[k]));
  return NULL;
}

assay_status_t assay_editing_pass(assay_editing_t* e, const assay_pass_t* own,
                                  const assay_pass_options_t* options) {
  assay_rewrite_t* r = NULL;
  assay_pass_options_t within = *options;
  within.within_opset = true;
  // Passes change copies.
  assay_model_t* from = e->out ? e->out : (assay_model_t*)(uintptr_t)e->model;
  ASSAY_TRY(own ? assay_passes_run_own(from, own, e, &within, &r)
                : assay_passes_run(from, &within, &r));
  assay_status_t st = assay_editing_changed(e, r);
  if (!st) {
    assay_model_t* made = assay_model_retain(r->model);
    assay_model_release(e->out);
    e->out = made;
  }
  assay_rewrite_destroy(r);
  return st;
}

// ---- the model before ---------------------------------------------------------------------------

// Types of the main graph's values as they are known once functions are inlined, which keeps ids.
static void borrow_types(assay_model_t* to, const assay_model_t* from) {
  const assay_graph_t* g = from->graph;
  assay_graph_t* h = to->graph;
  for (size_t i = 0; i < h->n_inputs && i < g->n_inputs; i++)
    h->inputs[i]->type = g->inputs[i]->type;
  for (size_t i = 0; i < h->n_nodes; i++)
    for (size_t k = 0; k < h->nodes[i]->n_outputs; k++) {
      assay_value_t* v = h->nodes[i]->outputs[k];
      const assay_value_t* w = v ? assay_graph_find(g, v->name) : NULL;
      if (w) v->type = w->type;
    }
}

// The model that an edit is given: with its functions where the edit keeps them.
static assay_status_t open_model(const assay_editor_t* editor, const assay_model_t* raw,
                                 assay_model_t* prepared, assay_model_t** out) {
  assay_model_t* m = NULL;
  if (!editor->keeps_functions || !raw->n_functions)
    return *out = assay_model_retain(prepared), NULL;
  ASSAY_TRY(assay_model_clone(raw, &m));
  assay_status_t st = assay_onnx_check_known(m);
  if (st) return assay_model_release(m), st;
  borrow_types(m, prepared);
  *out = m;
  return NULL;
}

static assay_status_t check_patterns(const assay_model_t* m, const assay_edit_requests_t* w) {
  for (size_t i = 0; i < w->nodes.n; i++)
    ASSAY_TRY(assay_status_note(assay_names_node_pattern(m, w->nodes.items[i]), "--nodes"));
  for (size_t i = 0; i < w->not_nodes.n; i++)
    ASSAY_TRY(assay_status_note(assay_names_node_pattern(m, w->not_nodes.items[i]), "--not-nodes"));
  return NULL;
}

// ---- the model after ----------------------------------------------------------------------------

static void count_reads(const assay_model_t* m, int n, int* reads) {
  for (size_t k = 0; k < m->n_graphs; k++) {
    const assay_graph_t* g = m->graphs[k];
    for (size_t i = 0; i < g->n_nodes; i++)
      for (size_t j = 0; j < g->nodes[i]->n_inputs; j++) {
        const assay_value_t* v = g->nodes[i]->inputs[j];
        if (v && v->id < n) reads[v->id]++;
      }
    for (size_t i = 0; i < g->n_outputs; i++)
      if (g->outputs[i]->id < n) reads[g->outputs[i]->id]++;
  }
}

// Whether a constant is one that the edit left without readers.
static bool is_left_over(const assay_value_t* v, const int* before, int n_before,
                         const int* after) {
  return !after[v->id] && !v->is_input && (v->id >= n_before || before[v->id]);
}

// Of new nodes many stand for the same one: their labels are unique where their names are not.
static void name_new_nodes(assay_graph_t* g, int n_before) {
  for (size_t i = 0; i < g->n_nodes; i++)
    if (g->nodes[i]->id >= n_before) g->nodes[i]->name = g->nodes[i]->label;
}

static void sweep_graph(assay_graph_t* g, const int* before, int n_before, const int* after) {
  size_t kept = 0;
  for (size_t i = 0; i < g->n_initializers; i++)
    if (!is_left_over(g->initializers[i], before, n_before, after))
      g->initializers[kept++] = g->initializers[i];
  g->n_initializers = kept;
  for (size_t i = g->n_nodes; i-- > 0;) {
    const assay_node_t* n = g->nodes[i];
    if (strcmp(n->op_type, "Constant") == 0 && n->n_outputs && n->outputs[0] &&
        is_left_over(n->outputs[0], before, n_before, after))
      assay_graph_remove(g, i);
  }
  kept = 0;
  for (size_t i = 0; i < g->n_value_info; i++) {
    const assay_value_t* v = g->value_info[i];
    if (v->producer || v->is_input || (v->constant && after[v->id]))
      g->value_info[kept++] = g->value_info[i];
  }
  g->n_value_info = kept;
}

// Takes away what the edit left over: constants that nobody reads any more, types of values that
// are gone. Gives new nodes names of their own.
static assay_status_t tidy(const assay_model_t* before, assay_model_t* m) {
  int *reads = NULL, *reads_before = NULL;
  assay_status_t st = assay_new_array((size_t)m->n_values, sizeof *reads, &reads);
  if (!st) st = assay_new_array((size_t)before->n_values, sizeof *reads_before, &reads_before);
  if (!st) {
    count_reads(m, m->n_values, reads);
    count_reads(before, before->n_values, reads_before);
    for (size_t k = 0; k < m->n_graphs; k++) {
      sweep_graph(m->graphs[k], reads_before, before->n_values, reads);
      name_new_nodes(m->graphs[k], before->n_node_ids);
    }
  }
  assay_free(reads);
  assay_free(reads_before);
  return st;
}

// A function's body may have been of another operator set than the model that it stands in now.
static assay_status_t check_opsets(const assay_model_t* m) {
  for (size_t k = 0; k < m->n_graphs; k++)
    for (size_t i = 0; i < m->graphs[k]->n_nodes; i++) {
      const assay_node_t* n = m->graphs[k]->nodes[i];
      const int64_t version = assay_model_opset(m, n->domain);
      if (!n->schema || n->function) continue;
      const assay_schema_t* s = assay_schema_find(n->domain, n->op_type, version, NULL);
      if (s && s->since != n->schema->since)
        return ASSAY_NODE_ERROR(
            n, ASSAY_UNSUPPORTED,
            "it comes from a function of another operator set and is version %d there; the model "
            "imports version %lld: it cannot be written without its function",
            n->schema->since, (long long)version);
    }
  return NULL;
}

// Imports that functions had and the model has not.
static assay_status_t add_imports(assay_model_t* m) {
  for (size_t k = 0; k < m->n_graphs; k++)
    for (size_t i = 0; i < m->graphs[k]->n_nodes; i++) {
      const assay_node_t* n = m->graphs[k]->nodes[i];
      if (!n->schema || assay_model_opset(m, n->domain)) continue;
      assay_opset_t* all = NULL;
      ASSAY_TRY(assay_arena_new(m->arena, m->n_opsets + 1, sizeof *all, &all));
      if (m->n_opsets) memcpy(all, m->opsets, m->n_opsets * sizeof *all);
      all[m->n_opsets] = (assay_opset_t){n->domain, assay_schema_newest(n->domain)};
      if (all[m->n_opsets].version < 1) all[m->n_opsets].version = 1;
      m->opsets = all;
      m->n_opsets++;
    }
  return NULL;
}

static assay_edit_counts_t count(const assay_model_t* m) {
  assay_edit_counts_t c = {
      .inputs = m->graph->n_inputs, .outputs = m->graph->n_outputs, .functions = m->n_functions};
  for (size_t k = 0; k < m->n_graphs; k++) {
    c.nodes += m->graphs[k]->n_nodes;
    c.initializers += m->graphs[k]->n_initializers;
  }
  return c;
}

// ---- the proof ----------------------------------------------------------------------------------

// A proof that cannot be had is not a failure of the edit: the reason is kept.
static assay_status_t keep_reason(assay_edit_result_t* r, assay_status_t st) {
  r->verdict = ASSAY_EDIT_NOT_PROVEN;
  assay_str_append(&r->why_not, assay_status_message(st));
  assay_status_free(st);
  return assay_str_status(&r->why_not);
}

static assay_status_t prove(const assay_editor_t* editor, const assay_editing_t* e,
                            const assay_model_t* before, const assay_model_t* after,
                            const assay_samples_t* samples, const assay_editor_options_t* o,
                            assay_edit_result_t* r) {
  bool of_after = false;
  const assay_node_t* unknown = assay_onnx_unknown(before);
  if (unknown)
    return keep_reason(r, ASSAY_NODE_ERROR(unknown, ASSAY_UNSUPPORTED,
                                           "it is not known here, and the model cannot be run"));
  const assay_proof_options_t options = {
      .stored = editor->stored,
      // Truth of a model that quantizes rounds already.
      .unquantized = editor->unquantized && !assay_model_quantizes(before),
      .rounded = editor->promise == ASSAY_PROMISE_ROUNDS ? &e->rounded : NULL,
      .seed = o->seed,
      .progress = o->progress,
      .user = o->user};
  assay_status_t st = assay_proof_run(before, after, samples, &options, &r->proof, &of_after);
  if (st)
    return keep_reason(
        r, assay_status_note(st, of_after ? "running the edited model" : "running the model"));
  r->verdict = r->proof.unchanged ? ASSAY_EDIT_UNCHANGED
               : r->proof.within  ? ASSAY_EDIT_ROUNDED
                                  : ASSAY_EDIT_CHANGED;
  return NULL;
}

static bool keeps_promise(const assay_editor_t* editor, const assay_edit_result_t* r) {
  if (r->verdict == ASSAY_EDIT_NOT_PROVEN) return false;
  // What is asked for may move truth; what its quantizers do not explain may not.
  for (size_t i = 0; r->proof.unquantized && i < r->proof.n; i++)
    if (!assay_moved_is_none(&r->proof.outputs[i].unquantized)) return false;
  if (editor->promise == ASSAY_PROMISE_NONE) return true;
  return r->verdict == ASSAY_EDIT_UNCHANGED ||
         (editor->promise == ASSAY_PROMISE_ROUNDS && r->verdict == ASSAY_EDIT_ROUNDED);
}

// ---- the whole ----------------------------------------------------------------------------------

typedef struct run {
  assay_model_t *prepared, *model, *after;
  assay_samples_t made;
  assay_editing_t e;
} run_t;

static void run_deinit(run_t* x) {
  assay_free(x->e.rounded.nodes);
  assay_str_deinit(&x->e.done);
  assay_str_deinit(&x->e.notes);
  assay_samples_deinit(&x->made);
  assay_model_release(x->e.out);
  assay_model_release(x->after);
  assay_model_release(x->model);
  assay_model_release(x->prepared);
}

static assay_status_t edit(run_t* x, const assay_editor_t* editor, const assay_editor_options_t* o,
                           assay_edit_result_t* r) {
  assay_editing_t* e = &x->e;
  const bool calibrates = editor->calibrates && !e->requests->n_scales;
  const bool needed = calibrates || !o->no_proof;
  if (needed && !o->given && !assay_onnx_unknown(x->prepared)) {
    assay_status_t st =
        assay_proof_samples(x->prepared, o->n_shapes, o->shapes, o->n_samples, o->seed, &x->made);
    // An input that nothing can be made up for: the edit itself may do without.
    if (st && calibrates) return st;
    if (st) ASSAY_TRY(keep_reason(r, st));
  }
  e->samples = o->given ? o->given : &x->made;
  ASSAY_TRY(editor->run(e));
  if (e->n_changed || !e->out) r->n_changed = e->n_changed;
  if (!e->out) ASSAY_TRY(assay_model_clone(x->model, &e->out));
  ASSAY_TRY(add_imports(e->out));
  ASSAY_TRY(check_opsets(e->out));
  return tidy(x->model, e->out);
}

assay_status_t assay_editor_run(const assay_editor_t* editor, assay_model_t* model,
                                const assay_edit_requests_t* requests,
                                const assay_editor_options_t* o, assay_edit_result_t* out) {
  run_t x = {.e = {.requests = requests, .seed = o->seed}};
  *out = (assay_edit_result_t){.editor = editor};
  assay_status_t st = assay_onnx_prepare_known(model, 0, NULL, &x.prepared);
  if (!st) st = open_model(editor, model, x.prepared, &x.model);
  if (!st) st = check_patterns(x.model, requests);
  x.e.model = x.model;
  if (!st) st = edit(&x, editor, o, out);
  // As a reader of the written file has it.
  if (!st)
    st =
        assay_status_note(assay_onnx_prepare_known(x.e.out, 0, NULL, &x.after), "the edited model");
  if (!st) {
    out->before = count(model);
    out->after = count(x.e.out);
  }
  if (!st && o->no_proof) assay_str_append(&out->why_not, "--no-proof");
  if (!st && o->no_proof) out->verdict = ASSAY_EDIT_NOT_PROVEN;
  if (!st && !o->no_proof && !out->why_not.len)
    st = prove(editor, &x.e, x.prepared, x.after, x.e.samples, o, out);
  if (!st) {
    out->kept_promise = keeps_promise(editor, out);
    out->may_write = out->kept_promise || o->force || o->no_proof;
    out->model = assay_model_retain(x.e.out);
  }
  if (!st) {
    // Names in the proof are of a copy of the edited model.
    for (size_t i = 0; !st && i < out->proof.n; i++)
      st = assay_arena_strdup(out->model->arena, out->proof.outputs[i].name,
                              &out->proof.outputs[i].name);
    out->done = x.e.done;
    out->notes = x.e.notes;
    x.e.done = x.e.notes = (assay_str_t){0};
    if (!st) st = assay_str_status(&out->done);
    if (!st) st = assay_str_status(&out->notes);
  }
  run_deinit(&x);
  if (st) assay_edit_result_deinit(out);
  return st;
}

assay_status_t assay_edit_result_write(assay_edit_result_t* r, const char* path) {
  if (!r->may_write) return NULL;
  ASSAY_TRY(assay_onnx_write(r->model, path, NULL));
  r->written = true;
  return NULL;
}

void assay_edit_result_deinit(assay_edit_result_t* r) {
  assay_model_release(r->model);
  assay_str_deinit(&r->done);
  assay_str_deinit(&r->notes);
  assay_str_deinit(&r->why_not);
  assay_proof_deinit(&r->proof);
  *r = (assay_edit_result_t){0};
}
