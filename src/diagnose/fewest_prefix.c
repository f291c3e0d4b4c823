// The shortest prefix (or suffix) of a graph's nodes in higher precision, each length tried by a
// run: as other tools do (fewest.h).
#include "base/alloc.h"
#include "diagnose/fewest_strategies.h"

typedef struct state {
  size_t n;          // the prefix that is tried
  size_t bad, good;  // by halves: one that does not do, and one that does
  bool started, ended;
  assay_output_check_t* best;  // statistics of the last prefix that did
} state_t;

static void free_state(void* state) { assay_free(((state_t*)state)->best); }

static size_t n_layers(const assay_fewest_t* f) { return f->subject.model->graph->n_nodes; }

// ---- the set ------------------------------------------------------------------------------------

static bool is_float(assay_type_t t) {
  return t == ASSAY_TYPE_FLOAT || t == ASSAY_TYPE_FLOAT16 || t == ASSAY_TYPE_BFLOAT16;
}

static bool makes_floats(const assay_node_t* n) {
  bool any = false;
  for (size_t i = 0; i < n->n_outputs; i++) {
    const assay_valtype_t* t = n->outputs[i] ? n->outputs[i]->type : NULL;
    any |= t && (t->kind != ASSAY_KIND_TENSOR || is_float(t->elem));
  }
  return any;
}

// Nodes of bodies go with the node that has them.
static void add_node(assay_fp32_set_t* set, const assay_node_t* n) {
  if (makes_floats(n)) {
    set->n_chosen += !set->chosen[n->id];
    set->chosen[n->id] = true;
  }
  for (size_t a = 0; a < n->n_attrs; a++) {
    const assay_attr_t* attr = &n->attrs[a];
    const size_t graphs = attr->type == ASSAY_ATTR_GRAPH    ? 1
                          : attr->type == ASSAY_ATTR_GRAPHS ? attr->n
                                                            : 0;
    for (size_t g = 0; g < graphs; g++) {
      const assay_graph_t* body = attr->type == ASSAY_ATTR_GRAPH ? attr->u.g : attr->u.graphs[g];
      for (size_t i = 0; i < body->n_nodes; i++) add_node(set, body->nodes[i]);
    }
  }
}

static assay_status_t try_prefix(assay_fewest_t* f, state_t* s, size_t n,
                                 assay_fewest_step_t* out) {
  const assay_graph_t* g = f->subject.model->graph;
  assay_fewest_found_t* found = f->found;
  ASSAY_TRY(
      assay_grow(&found->trials, &found->cap_trials, found->n_trials + 1, sizeof *found->trials));
  assay_fp32_set_empty(&f->set);
  for (size_t i = 0; i < n; i++)
    add_node(&f->set, g->nodes[f->setting->from_end ? g->n_nodes - 1 - i : i]);
  s->n = n;
  *out = ASSAY_FEWEST_TRY;
  return NULL;
}

// What the last run said of its prefix, which is recorded if it did.
static assay_status_t take(assay_fewest_t* f, state_t* s, bool tried_none, bool* out_yes) {
  assay_fewest_found_t* found = f->found;
  *out_yes = f->last.faithful;
  found->trials[found->n_trials++] = (assay_fewest_trial_t){s->n, *out_yes};
  if (tried_none) return assay_fewest_take_asked(f), NULL;
  assay_fewest_take_fix(f);
  if (!*out_yes) return NULL;
  found->n_prefix = s->n;
  assay_free(s->best);
  s->best = found->fix.outputs;
  found->fix.outputs = NULL;
  found->has_fix = true;
  return assay_fp32_set_record(&f->set, &found->fix);
}

// The statistics of the fix are those of the prefix that did, not of the last one tried.
static assay_status_t finish(assay_fewest_t* f) {
  assay_fewest_found_t* found = f->found;
  state_t* s = f->state;
  // A prefix of layers that make no floats is the model as it was asked for.
  if (found->faithful) {
    found->has_fix = false;
    found->n_prefix = 0;
  }
  found->fix.verified = found->has_fix;
  if (!s->best) return NULL;
  assay_free(found->fix.outputs);
  found->fix.outputs = s->best;
  s->best = NULL;
  return NULL;
}

// ---- by halves ----------------------------------------------------------------------------------

// All layers first, then half as many between what did and what did not.
static assay_status_t propose_half(assay_fewest_t* f, assay_fewest_step_t* out) {
  const size_t all = n_layers(f);
  state_t* s = f->state;
  if (!s->started) {
    s->started = true;
    s->good = all + 1;
    s->n = all;
  }
  if (s->ended) return NULL;
  if (s->good - s->bad > 1 && s->n <= all) {
    assay_fewest_progress(f, "bisecting", 1 - (double)(s->good - s->bad) / (double)(all + 1));
    return try_prefix(f, s, s->n, out);
  }
  // One layer does: perhaps none has to be kept.
  s->ended = true;
  return s->good == 1 ? try_prefix(f, s, 0, out) : NULL;
}

static assay_status_t learn_half(assay_fewest_t* f, bool tried_none) {
  state_t* s = f->state;
  bool yes = false;
  ASSAY_TRY(take(f, s, tried_none, &yes));
  if (s->ended) return NULL;
  *(yes ? &s->good : &s->bad) = s->n;
  s->n = yes ? (s->good + s->bad) / 2 : (s->good + s->bad + 1) / 2;
  return NULL;
}

const assay_fewest_row_t assay_fewest_bisect = {.state_bytes = sizeof(state_t),
                                                .propose = propose_half,
                                                .learn = learn_half,
                                                .finish = finish,
                                                .free_state = free_state,
                                                .fixed = true};

// ---- one by one ---------------------------------------------------------------------------------

static assay_status_t propose_longer(assay_fewest_t* f, assay_fewest_step_t* out) {
  const size_t all = n_layers(f);
  state_t* s = f->state;
  const size_t n = s->started ? s->n + 1 : 0;
  s->started = true;
  if (s->ended || n > all) return NULL;
  assay_fewest_progress(f, "one more layer each", (double)n / (double)all);
  return try_prefix(f, s, n, out);
}

static assay_status_t learn_longer(assay_fewest_t* f, bool tried_none) {
  state_t* s = f->state;
  return take(f, s, tried_none, &s->ended);
}

const assay_fewest_row_t assay_fewest_linear = {.state_bytes = sizeof(state_t),
                                                .propose = propose_longer,
                                                .learn = learn_longer,
                                                .finish = finish,
                                                .free_state = free_state,
                                                .fixed = true};
