// Runs the passes of the table, one after the other, on a copy of a model.
#include <string.h>

#include "base/alloc.h"
#include "base/cancel/cancel.h"
#include "ops/infer.h"
#include "passes/declared.h"
#include "passes/pass.h"

static const assay_pass_t* const passes[] = {
#define ASSAY_PASS(name) &assay_pass_##name,
#include "passes/passes.inc"
#undef ASSAY_PASS
};

size_t assay_pass_count(void) { return sizeof passes / sizeof *passes; }
const assay_pass_t* assay_pass_at(size_t i) { return passes[i]; }

const assay_pass_t* assay_pass_find(const char* name) {
  for (size_t i = 0; i < assay_pass_count(); i++)
    if (strcmp(passes[i]->name, name) == 0) return passes[i];
  return NULL;
}

static assay_status_t check_name(const char* name) {
  if (assay_pass_find(name)) return NULL;
  assay_str_t names = {0};
  for (size_t i = 0; i < assay_pass_count(); i++)
    assay_str_printf(&names, "%s%s", i ? ", " : "", passes[i]->name);
  assay_status_t st = ASSAY_ERROR(ASSAY_NOT_FOUND, "there is no pass '%s'; there are %s", name,
                                  assay_str_get(&names));
  assay_str_deinit(&names);
  return st;
}

bool assay_pass_is_wanted(const assay_pass_options_t* o, const assay_pass_t* p) {
  if (!o) return true;
  if (o->only) return strcmp(o->only, p->name) == 0;
  for (size_t i = 0; i < o->n_off; i++)
    if (strcmp(o->off[i], p->name) == 0) return false;
  return true;
}

// Every node stands for itself at first, and is in no group.
static assay_status_t start(assay_rewrite_t* r) {
  const assay_model_t* m = r->original;
  r->n_origins = (size_t)m->n_node_ids;
  ASSAY_TRY(assay_arena_new(r->arena, r->n_origins, sizeof *r->origins, &r->origins));
  ASSAY_TRY(assay_arena_new(r->arena, r->n_origins, sizeof *r->group_of_node, &r->group_of_node));
  for (size_t i = 0; i < r->n_origins; i++) r->group_of_node[i] = -1;
  for (size_t g = 0; g < m->n_graphs; g++) {
    for (size_t i = 0; i < m->graphs[g]->n_nodes; i++) {
      const assay_node_t* n = m->graphs[g]->nodes[i];
      const assay_node_t** self = NULL;
      ASSAY_TRY(assay_arena_new(r->arena, 1, sizeof *self, &self));
      *self = n;
      r->origins[n->id] = (assay_origins_t){self, 1};
    }
  }
  return NULL;
}

// Puts the members of each group where the last of them stands: what they read is there by then,
// and nobody else reads what they make before.
static assay_status_t gather_groups(assay_rewrite_t* r) {
  assay_graph_t* g = r->model->graph;
  if (!r->n_groups) return NULL;
  assay_node_t** order = NULL;
  size_t *left = NULL, n = 0;
  assay_status_t st = assay_new_array(g->n_nodes, sizeof *order, &order);
  if (!st) st = assay_new_array((size_t)r->n_groups, sizeof *left, &left);
  if (st) return assay_free(order), st;
  for (size_t i = 0; i < g->n_nodes; i++) {
    int group = r->group_of_node[g->nodes[i]->id];
    if (group >= 0) left[group]++;
  }
  for (size_t i = 0; i < g->n_nodes; i++) {
    int group = r->group_of_node[g->nodes[i]->id];
    if (group < 0) order[n++] = g->nodes[i];
    if (group < 0 || --left[group]) continue;
    for (size_t k = 0; k <= i; k++)
      if (r->group_of_node[g->nodes[k]->id] == group) order[n++] = g->nodes[k];
  }
  memcpy(g->nodes, order, n * sizeof *order);
  assay_free(order);
  assay_free(left);
  return NULL;
}

static assay_status_t run_one(assay_rewrite_t* r, const assay_pass_t* p, void* user, bool closed,
                              bool verify, bool* changed) {
  assay_pass_context_t c = {
      .name = p->name, .model = r->model, .rewrite = r, .closed = closed, .user = user};
  assay_status_t st = assay_cancel_check();
  if (!st) st = p->run(&c);
  *changed |= c.changed;
  if (!st && c.changed) st = assay_infer_model(r->model);
  if (!st && verify) st = assay_model_verify(r->model);
  return assay_status_note(st, "pass %s", p->name);
}

static assay_status_t run_pass(assay_rewrite_t* r, const assay_pass_t* p, bool closed, bool verify,
                               bool* changed) {
  return run_one(r, p, NULL, closed, verify, changed);
}

static void take_limits(assay_rewrite_t* r, const assay_pass_options_t* options) {
  if (!options) return;
  r->within_opset = options->within_opset;
  r->made_ops = options->made_ops;
  r->n_made_ops = options->n_made_ops;
  r->asked = options->asked;
}

assay_status_t assay_passes_run_own(assay_model_t* model, const assay_pass_t* pass, void* user,
                                    const assay_pass_options_t* options, assay_rewrite_t** out) {
  enum { MAX_ROUNDS = 100 };
  assay_rewrite_t* r = NULL;
  bool changed = true;
  ASSAY_TRY(ASSAY_NEW(&r));
  r->original = assay_model_retain(model);
  take_limits(r, options);
  assay_status_t st = assay_arena_create(&r->arena);
  if (!st) st = assay_model_clone(model, &r->model);
  if (!st) st = start(r);
  for (int round = 0; !st && changed && round < (pass->until_fixpoint ? MAX_ROUNDS : 1); round++) {
    changed = false;
    st = run_one(r, pass, user, false, options && options->verify, &changed);
  }
  if (st) return assay_rewrite_destroy(r), st;
  *out = r;
  return NULL;
}

// Runs the passes [first, end), which are marked `again`, until none of them changes anything: a
// chain of shapes computed by floats takes a round a link.
static assay_status_t run_rounds(assay_rewrite_t* r, const assay_pass_options_t* options,
                                 size_t first, size_t end, bool verify) {
  enum { MAX_ROUNDS = 100 };
  bool changed = true;
  for (int round = 0; changed && round < MAX_ROUNDS; round++) {
    changed = false;
    for (size_t i = first; i < end; i++)
      if (assay_pass_is_wanted(options, passes[i]))
        ASSAY_TRY(run_pass(r, passes[i], false, verify, &changed));
  }
  return NULL;
}

static assay_status_t run_all(assay_rewrite_t* r, const assay_pass_options_t* options,
                              bool verify) {
  bool changed = false;
  for (size_t i = 0, end; i < assay_pass_count(); i = end) {
    for (end = i; end < assay_pass_count() && passes[end]->until_fixpoint; end++) continue;
    if (end > i) {
      ASSAY_TRY(run_rounds(r, options, i, end, verify));
      continue;
    }
    if (assay_pass_is_wanted(options, passes[i]))
      ASSAY_TRY(run_pass(r, passes[i], false, verify, &changed));
    end = i + 1;
  }
  return NULL;
}

// Nodes that follow from sizes are in no group: with sizes that are known before running they are
// gone, and a layer must round the same without them.
static assay_status_t leave_groups(assay_rewrite_t* r) {
  const assay_graph_t* g = r->model->graph;
  r->n_of_sizes = (size_t)r->model->n_node_ids;
  ASSAY_TRY(assay_arena_new(r->arena, r->n_of_sizes, sizeof *r->of_sizes, &r->of_sizes));
  assay_mark_of_sizes(r->model, r->of_sizes);
  for (size_t i = 0; i < g->n_nodes; i++)
    if (assay_rewrite_is_of_sizes(r, g->nodes[i])) r->group_of_node[g->nodes[i]->id] = -1;
  return NULL;
}

// After the passes that decide what a layer is: what the given sizes make known. A round may give
// the next one more, as above.
static assay_status_t run_closing(assay_rewrite_t* r, const assay_pass_options_t* options,
                                  bool verify) {
  enum { MAX_ROUNDS = 100 };
  bool changed = true;
  for (int round = 0; changed && round < MAX_ROUNDS; round++) {
    changed = false;
    for (size_t i = 0; i < assay_pass_count(); i++)
      if (passes[i]->after_shapes && assay_pass_is_wanted(options, passes[i]))
        ASSAY_TRY(run_pass(r, passes[i], true, verify, &changed));
  }
  return NULL;
}

// Whether passes see the model as it was declared. Where that one by itself is wrong, as it is for
// any sizes but those given, they see it with those.
static assay_status_t open_sizes(assay_rewrite_t* r, bool* out_open) {
  assay_model_t* again = NULL;
  *out_open = assay_declared_is_open(r->model);
  if (!*out_open) return NULL;
  assay_status_t st = assay_declared_open(r->model);
  if (!st || assay_status_code(st) == ASSAY_NO_MEMORY) return st;
  assay_status_free(st);
  *out_open = false;
  ASSAY_TRY(assay_model_clone(r->original, &again));
  assay_model_release(r->model);
  r->model = again;
  return NULL;
}

assay_status_t assay_passes_run(assay_model_t* model, const assay_pass_options_t* options,
                                assay_rewrite_t** out) {
  assay_rewrite_t* r = NULL;
  for (size_t i = 0; options && i < options->n_off; i++) ASSAY_TRY(check_name(options->off[i]));
  if (options && options->only) ASSAY_TRY(check_name(options->only));
#ifdef NDEBUG
  bool verify = options && options->verify;
#else
  bool verify = true;
#endif
  ASSAY_TRY(ASSAY_NEW(&r));
  r->original = assay_model_retain(model);
  take_limits(r, options);
  assay_status_t st = assay_arena_create(&r->arena);
  bool open = false;
  if (!st) st = assay_model_clone(model, &r->model);
  if (!st) st = open_sizes(r, &open);
  if (!st) st = start(r);
  if (!st) st = run_all(r, options, verify);
  if (!st) st = leave_groups(r);
  if (!st && open) st = assay_declared_close(r->model, r->original);
  if (!st && open) st = run_closing(r, options, verify);
  if (!st) st = gather_groups(r);
  if (!st && verify) st = assay_model_verify(r->model);
  if (st) return assay_rewrite_destroy(r), st;
  r->asked = NULL;
  *out = r;
  return NULL;
}

assay_status_t assay_passes_instance(const assay_model_t* model, const assay_sizes_known_t* known,
                                     assay_model_t** out) {
  assay_rewrite_t* r = NULL;
  bool all = false;
  *out = NULL;
  ASSAY_TRY(ASSAY_NEW(&r));
  assay_status_t st = assay_arena_create(&r->arena);
  if (!st) st = assay_model_clone(model, &r->model);
  if (!st) r->original = assay_model_retain(r->model);  // ids are all that counts here
  if (!st) st = assay_declared_set(r->model, known, &all);
  if (!st && all) st = start(r);
  if (!st && all) st = leave_groups(r);
  if (!st && all) st = run_closing(r, NULL, false);
  if (!st && all) *out = assay_model_retain(r->model);
  assay_rewrite_destroy(r);
  return st;
}
