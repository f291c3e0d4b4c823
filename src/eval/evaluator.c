// Runs a graph node by node: the one evaluator behind truth, native mode and the emu backend.
#include "eval/evaluator.h"

#include <string.h>

#include "base/alloc.h"
#include "base/cancel/cancel.h"
#include "base/contention.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/spill.h"
#include "ops/math/pointwise.h"
#include "ops/quant/quant.h"

// Values that no longer matter once a node has run: a slice of `ids`.
typedef struct release_list {
  size_t first, n;
} release_list_t;

struct assay_evaluator {
  const assay_model_t* model;
  assay_evaluator_config_t config;
  assay_tensor_t** slots;  // by value id; retained
  size_t n_slots;
  assay_tensor_t**
      settled;  // by value id: integer outputs of an unquantized run, as they are given out
  release_list_t** lists;  // by graph (position in model->graphs), then by node
  int* positions;          // of each node in its graph, by node id
  int* ids;                // all lists, one after the other
  size_t n_ids, cap_ids;
  uint64_t iteration;  // of the loops around the node that runs
  int64_t max_elems;   // of an output; 0: any
};

// ---- lifetimes ------------------------------------------------------------------------------

static size_t graph_number(const assay_evaluator_t* m, const assay_graph_t* g) {
  for (size_t i = 0; i < m->model->n_graphs; i++)
    if (m->model->graphs[i] == g) return i;
  return 0;
}

// Notes that `node`, at position `at` of graph g, reads what is defined in g: its inputs, and what
// its subgraphs capture. Later positions overwrite earlier ones.
static void note_reads(const assay_graph_t* g, const assay_node_t* node, int at, int* last) {
  for (size_t i = 0; i < node->n_inputs; i++)
    if (node->inputs[i] && node->inputs[i]->graph == g) last[node->inputs[i]->id] = at;
  for (size_t a = 0; a < node->n_attrs; a++) {
    const assay_attr_t* attr = &node->attrs[a];
    bool single = attr->type == ASSAY_ATTR_GRAPH;
    if (!single && attr->type != ASSAY_ATTR_GRAPHS) continue;
    for (size_t k = 0; k < (single ? 1 : attr->n); k++) {
      const assay_graph_t* sub = single ? attr->u.g : attr->u.graphs[k];
      for (size_t i = 0; i < sub->n_nodes; i++) note_reads(g, sub->nodes[i], at, last);
      for (size_t i = 0; i < sub->n_outputs; i++)
        if (sub->outputs[i]->graph == g) last[sub->outputs[i]->id] = at;
    }
  }
}

// The values that a graph defines and that can die in it: inputs and outputs of nodes.
static assay_status_t defined_values(const assay_graph_t* g, int** out_ids, size_t* out_n) {
  size_t n = g->n_inputs;
  for (size_t i = 0; i < g->n_nodes; i++) n += g->nodes[i]->n_outputs;
  int* ids = NULL;
  ASSAY_TRY(assay_new_array(n, sizeof *ids, &ids));
  n = 0;
  for (size_t i = 0; i < g->n_inputs; i++) ids[n++] = g->inputs[i]->id;
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t k = 0; k < g->nodes[i]->n_outputs; k++)
      if (g->nodes[i]->outputs[k]) ids[n++] = g->nodes[i]->outputs[k]->id;
  *out_ids = ids;
  *out_n = n;
  return NULL;
}

// Lists, for each node of a graph, the values of the graph that die after it: a counting sort of
// the values by their last reader. `last` is scratch, by value id.
static assay_status_t find_lifetimes(assay_evaluator_t* m, size_t number, int* last) {
  const assay_graph_t* g = m->model->graphs[number];
  if (!g->n_nodes) return NULL;
  ASSAY_TRY(assay_new_array(g->n_nodes, sizeof *m->lists[number], &m->lists[number]));
  for (size_t i = 0; i < g->n_nodes; i++) m->positions[g->nodes[i]->id] = (int)i;
  release_list_t* lists = m->lists[number];
  int* ids = NULL;
  size_t n = 0;
  ASSAY_TRY(defined_values(g, &ids, &n));
  for (size_t i = 0; i < n; i++) last[ids[i]] = -1;
  // What nobody reads is released where it is made.
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t k = 0; k < g->nodes[i]->n_outputs; k++)
      if (g->nodes[i]->outputs[k]) last[g->nodes[i]->outputs[k]->id] = (int)i;
  for (size_t i = 0; i < g->n_nodes; i++) note_reads(g, g->nodes[i], (int)i, last);
  for (size_t i = 0; i < g->n_outputs; i++) last[g->outputs[i]->id] = -1;
  for (size_t i = 0; i < n; i++)
    if (last[ids[i]] >= 0) lists[last[ids[i]]].n++;
  size_t end = m->n_ids;
  for (size_t i = 0; i < g->n_nodes; i++) {
    lists[i].first = end;
    end += lists[i].n;
    lists[i].n = 0;
  }
  assay_status_t st = assay_grow(&m->ids, &m->cap_ids, end, sizeof *m->ids);
  for (size_t i = 0; !st && i < n; i++) {
    if (last[ids[i]] < 0) continue;
    release_list_t* list = &lists[last[ids[i]]];
    m->ids[list->first + list->n++] = ids[i];
  }
  if (!st) m->n_ids = end;
  assay_free(ids);
  return st;
}

// ---- making ---------------------------------------------------------------------------------

assay_status_t assay_evaluator_create(const assay_model_t* model,
                                      const assay_evaluator_config_t* config,
                                      assay_evaluator_t** out) {
  assay_evaluator_t* m = NULL;
  int* last = NULL;
  ASSAY_TRY(ASSAY_NEW(&m));
  assay_memory_keep(true);  // each run makes the same tensors
  m->model = model;
  m->config = *config;
  m->n_slots = (size_t)model->n_values;
  assay_status_t st = assay_new_array(m->n_slots, sizeof *m->slots, &m->slots);
  if (!st && m->config.unquantized)
    st = assay_new_array(m->n_slots, sizeof *m->settled, &m->settled);
  if (!st) st = assay_new_array(model->n_graphs, sizeof *m->lists, &m->lists);
  if (!st) st = assay_new_array(m->n_slots, sizeof *last, &last);
  if (!st) st = assay_new_array((size_t)model->n_node_ids, sizeof *m->positions, &m->positions);
  for (size_t i = 0; !st && i < m->n_slots; i++) last[i] = -1;
  for (size_t i = 0; !st && i < model->n_graphs; i++) st = find_lifetimes(m, i, last);
  assay_free(last);
  if (st) return assay_evaluator_destroy(m), st;
  *out = m;
  return NULL;
}

void assay_evaluator_reset(assay_evaluator_t* m) {
  for (size_t i = 0; i < m->n_slots; i++) {
    assay_tensor_release(m->slots[i]);
    m->slots[i] = NULL;
    if (!m->settled) continue;
    assay_tensor_release(m->settled[i]);
    m->settled[i] = NULL;
  }
}

void assay_evaluator_destroy(assay_evaluator_t* m) {
  if (!m) return;
  if (m->slots) assay_evaluator_reset(m);
  for (size_t i = 0; m->lists && i < m->model->n_graphs; i++) assay_free(m->lists[i]);
  assay_free(m->lists);
  assay_free(m->slots);
  assay_free(m->settled);
  assay_free(m->positions);
  assay_free(m->ids);
  assay_free(m);
  assay_memory_keep(false);
}

static void put(assay_tensor_t** slot, assay_tensor_t* take_tensor) {
  assay_tensor_release(*slot);
  *slot = take_tensor;
}

void assay_evaluator_set(assay_evaluator_t* m, const assay_value_t* value, assay_tensor_t* t) {
  put(&m->slots[value->id], assay_tensor_retain(t));
}

assay_status_t assay_evaluator_set_widened(assay_evaluator_t* m, const assay_value_t* value,
                                           assay_tensor_t* t) {
  assay_tensor_t* wide = NULL;
  ASSAY_TRY(assay_tensor_widen(t, &wide));
  put(&m->slots[value->id], wide);
  return NULL;
}

void assay_evaluator_set_inputs(assay_evaluator_t* m, assay_tensor_t* const* inputs) {
  const assay_graph_t* g = m->model->graph;
  for (size_t i = 0; i < g->n_inputs; i++)
    if (inputs[i]) assay_evaluator_set(m, g->inputs[i], inputs[i]);
}

assay_status_t assay_evaluator_set_inputs_widened(assay_evaluator_t* m,
                                                  assay_tensor_t* const* inputs) {
  const assay_graph_t* g = m->model->graph;
  for (size_t i = 0; i < g->n_inputs; i++)
    if (inputs[i]) ASSAY_TRY(assay_evaluator_set_widened(m, g->inputs[i], inputs[i]));
  return NULL;
}

uint64_t assay_evaluator_iteration(const assay_evaluator_t* m) { return m->iteration; }
void assay_evaluator_limit(assay_evaluator_t* m, int64_t max_elems) { m->max_elems = max_elems; }

void assay_evaluator_set_iteration(assay_evaluator_t* m, uint64_t iteration) {
  m->iteration = iteration;
}

// What nodes read.
static assay_tensor_t* slot_or_constant(const assay_evaluator_t* m, const assay_value_t* value) {
  assay_tensor_t* t = m->slots[value->id];
  return t ? t : value->constant;
}

assay_tensor_t* assay_evaluator_get(const assay_evaluator_t* m, const assay_value_t* value) {
  assay_tensor_t* settled = m->settled ? m->settled[value->id] : NULL;
  return settled ? settled : slot_or_constant(m, value);
}

// ---- rounding and checks ----------------------------------------------------------------------

static bool is_rounded_by(const assay_tensor_t* t, assay_format_t format) {
  return t->kind == ASSAY_KIND_TENSOR && format != ASSAY_FORMAT_FP64 &&
         format != ASSAY_FORMAT_NONE &&
         (assay_type_is_float(t->type) || assay_type_is_complex(t->type));
}

static void round_elements(const assay_tensor_t* t, assay_format_t format, double* to) {
  size_t n = (size_t)t->size * (t->store == ASSAY_STORE_C128 ? 2 : 1);
  assay_format_round_n(format, assay_f64(t), to, n, ASSAY_OVERFLOW_IEEE);
}

// Weights as they lie in the file: half the memory of canonical ones.
static assay_status_t round_packed(const assay_tensor_t* t, assay_format_t format,
                                   assay_tensor_t** out) {
  enum { CHUNK = 1 << 12 };
  assay_tensor_t* r = NULL;
  ASSAY_TRY(assay_tensor_create_packed(t->type, t->rank, t->dims, &r));
#pragma omp parallel for schedule(static) if (t->size > 32 * CHUNK)
  for (int64_t i = 0; i < t->size; i += CHUNK) {
    double x[CHUNK];
    int64_t n = t->size - i < CHUNK ? t->size - i : CHUNK;
    assay_unpack(t->type, t->data, i, n, x);
    assay_format_round_n(format, x, x, (size_t)n, ASSAY_OVERFLOW_IEEE);
    assay_pack(t->type, x, n, (float*)r->data + i, ASSAY_OVERFLOW_IEEE);
  }
  *out = r;
  return NULL;
}

assay_status_t assay_round_tensor(assay_tensor_t* t, assay_format_t format, assay_tensor_t** out) {
  if (!is_rounded_by(t, format)) {
    *out = assay_tensor_retain(t);
    return NULL;
  }
  if (t->store == ASSAY_STORE_PACKED && t->type == ASSAY_TYPE_FLOAT &&
      assay_format_info(format)->is_float)
    return round_packed(t, format, out);
  assay_tensor_t *wide = NULL, *r = NULL;
  ASSAY_TRY(assay_tensor_widen(t, &wide));
  if (wide != t && assay_tensor_is_sole(wide)) {  // a fresh copy: rounded in place
    round_elements(wide, format, assay_f64(wide));
    *out = wide;
    return NULL;
  }
  assay_status_t st = assay_tensor_create(t->type, t->rank, t->dims, &r);
  if (!st) round_elements(wide, format, assay_f64(r));
  assay_tensor_release(wide);
  if (st) return st;
  *out = r;
  return NULL;
}

assay_status_t assay_round_replace(assay_tensor_t** t, assay_format_t format) {
  assay_tensor_t* r = NULL;
  if (!assay_tensor_is_canonical(*t)) {
    ASSAY_TRY(assay_tensor_widen(*t, &r));
    assay_tensor_release(*t);
    *t = r;
  }
  if (!is_rounded_by(*t, format)) return NULL;
  if (assay_tensor_is_sole(*t)) return round_elements(*t, format, assay_f64(*t)), NULL;
  ASSAY_TRY(assay_round_tensor(*t, format, &r));
  assay_tensor_release(*t);
  *t = r;
  return NULL;
}

// Rounds what a node made to the types that it declares; sequences item by item.
static assay_status_t round_to_type(assay_tensor_t** t) {
  if ((*t)->kind != ASSAY_KIND_TENSOR) {
    ASSAY_TRY(assay_container_unshare(t));
    for (int64_t i = 0; i < (*t)->n_items; i++) ASSAY_TRY(round_to_type(&(*t)->items[i]));
    return NULL;
  }
  assay_format_t format = assay_type_format((*t)->type);
  if ((*t)->store != ASSAY_STORE_F64 && (*t)->store != ASSAY_STORE_C128) return NULL;
  if (format == ASSAY_FORMAT_FP64) return NULL;
  return assay_round_replace(t, format);
}

// ---- truth 'unquantized' ------------------------------------------------------------------------

// The type variable of an input; NULL if it has none that binds it to others.
static const char* variable_of(const assay_node_t* node, size_t i) {
  const assay_param_t* p = node->schema ? assay_schema_input(node->schema, i) : NULL;
  return p && *p->type && (!p->is_variadic || p->is_homogeneous) ? p->type : NULL;
}

// Whole numbers beside real ones of the same type variable become real, too.
static assay_status_t join_reals(const assay_node_t* node, size_t n_in, assay_tensor_t** in,
                                 const char* variable) {
  for (size_t i = 0; i < n_in; i++) {
    const char* v = variable_of(node, i);
    if (!in[i] || in[i]->kind != ASSAY_KIND_TENSOR || in[i]->store != ASSAY_STORE_I64 || !v ||
        strcmp(v, variable) != 0)
      continue;
    assay_tensor_t* real = NULL;
    ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_FLOAT, in[i]->rank, in[i]->dims, &real));
    for (int64_t k = 0; k < in[i]->size; k++)
      assay_f64(real)[k] = assay_i64_to_f64(in[i]->type, assay_i64(in[i])[k]);
    put(&in[i], real);
  }
  return NULL;
}

// Real numbers where the node declares integers: it gets them if it could take floats there, and
// otherwise the integers that they round to. See ops/quant/quant.h.
static assay_status_t fit_reals(const assay_node_t* node, size_t n_in, assay_tensor_t** in) {
  if (node->op->flags & (ASSAY_OP_QUANTIZES | ASSAY_OP_CONTROL)) return NULL;
  for (size_t i = 0; i < n_in; i++) {
    if (!assay_quant_is_real(node->inputs[i], in[i])) continue;
    const assay_param_t* p = node->schema ? assay_schema_input(node->schema, i) : NULL;
    if (p && p->types.tensor >> ASSAY_TYPE_FLOAT & 1) {
      const char* variable = variable_of(node, i);
      if (variable) ASSAY_TRY(join_reals(node, n_in, in, variable));
      continue;
    }
    assay_tensor_t* settled = NULL;
    ASSAY_TRY(assay_quant_settle(in[i], node->inputs[i]->type->elem, &settled));
    put(&in[i], settled);
  }
  return NULL;
}

// What inference said of an output must hold for what evaluation made.
static assay_status_t verify_output(const assay_node_t* n, size_t i, const assay_tensor_t* t) {
  const assay_valtype_t* want = n->outputs[i]->type;
  if (!want || t->kind != want->kind) {
    if (!want) return NULL;
    return ASSAY_NODE_ERROR(n, ASSAY_INTERNAL, "output %zu is of another kind than %s", i,
                            ASSAY_VALTYPE_TEXT(want));
  }
  if (t->kind != ASSAY_KIND_TENSOR) return NULL;
  bool same = !want->elem || want->elem == t->type || assay_quant_is_real(n->outputs[i], t);
  if (want->has_shape) {
    same = same && want->rank == t->rank;
    for (int k = 0; same && k < t->rank; k++) {
      int64_t d;
      same = !assay_dim_value(want->dims[k], &d) || d == t->dims[k];
    }
  }
  if (same) return NULL;
  return ASSAY_NODE_ERROR(n, ASSAY_INTERNAL, "output %zu is %s%s, but inference said %s", i,
                          assay_type_name(t->type), ASSAY_DIMS_TEXT(t), ASSAY_VALTYPE_TEXT(want));
}

// ---- running nodes ----------------------------------------------------------------------------

static assay_status_t run_graph(assay_eval_t* c, assay_graph_t* graph, size_t n_in,
                                assay_tensor_t* const* in, size_t n_out, assay_tensor_t** out);

// Evaluates a node on inputs that it may replace. Fills out[]; on failure nothing is left in it.
static assay_status_t evaluate(assay_evaluator_t* m, const assay_node_t* node, size_t n_in,
                               assay_tensor_t** in, size_t n_out, assay_tensor_t** out) {
  if (!node->op || !node->op->eval)
    return ASSAY_NODE_ERROR(node, ASSAY_UNSUPPORTED, "Assay cannot evaluate this operator");
  assay_status_t st = assay_cancel_check();
  if (!st && m->config.hooks.before)
    st = m->config.hooks.before(m->config.hooks.user, node, n_in, in);
  bool packed_ok = node->op->flags & ASSAY_OP_PACKED;
  for (size_t i = 0; !st && i < n_in; i++) {
    if (!in[i] || assay_tensor_is_canonical(in[i])) continue;
    bool tensor = in[i]->kind == ASSAY_KIND_TENSOR;
    const bool packed = tensor && in[i]->store == ASSAY_STORE_PACKED;
    if (packed_ok && packed && assay_type_is_float(in[i]->type)) continue;
    assay_tensor_t* wide = NULL;
    st = assay_tensor_widen(in[i], &wide);
    if (st) break;
    assay_tensor_release(in[i]);
    in[i] = wide;
  }
  if (!st && m->config.unquantized) st = fit_reals(node, n_in, in);
  assay_eval_t c = {.node = node,
                    .mode = m->config.mode,
                    .unquantized = m->config.unquantized,
                    .arith = m->config.arith,
                    .accumulator = m->config.accumulator,
                    .seed = m->config.seed,
                    .iteration = m->iteration,
                    .max_elems = m->max_elems,
                    .n_in = n_in,
                    .n_out = n_out,
                    .in = in,
                    .out = out,
                    .run_graph = run_graph,
                    .driver = m};
  if (m->config.hooks.configure) m->config.hooks.configure(m->config.hooks.user, node, &c);
  if (!st) st = c.node->op->eval(&c);
  // Products that are cancelled leave their tiles as they are.
  if (!st) st = assay_cancel_check();
  for (size_t i = 0; !st && i < n_out; i++) {
    if (!node->outputs[i]) continue;
    if (!out[i]) st = ASSAY_NODE_ERROR(node, ASSAY_INTERNAL, "output %zu was not made", i);
    if (!st && m->config.verify) st = verify_output(node, i, out[i]);
    if (!st && m->config.mode == ASSAY_MODE_NATIVE) st = round_to_type(&out[i]);
  }
  if (!st && m->config.hooks.after)
    st = m->config.hooks.after(m->config.hooks.user, node, n_in, in, n_out, out);
  if (st) {
    for (size_t i = 0; i < n_out; i++) {
      assay_tensor_release(out[i]);
      out[i] = NULL;
    }
  }
  // What a kernel lacks room for, it does not say of which node.
  if (assay_status_code(st) == ASSAY_NO_MEMORY &&
      strncmp(assay_status_message(st), "node '", 6) != 0)
    st = assay_status_note(st, "node '%s' (%s)", node->label, node->op_type);
  return st;
}

// Small arrays of tensors: on the stack for nearly all nodes.
enum { FEW = 16 };

assay_status_t assay_evaluator_node(assay_evaluator_t* m, const assay_node_t* node, size_t n_in,
                                    assay_tensor_t* const* in, size_t n_out, assay_tensor_t** out) {
  assay_tensor_t *few[FEW], **copy = few;
  assay_contention_watch();
  if (n_in > FEW) ASSAY_TRY(assay_new_array(n_in, sizeof *copy, &copy));
  for (size_t i = 0; i < n_in; i++) copy[i] = assay_tensor_retain(in[i]);
  for (size_t i = 0; i < n_out; i++) out[i] = NULL;
  assay_status_t st = evaluate(m, node, n_in, copy, n_out, out);
  for (size_t i = 0; i < n_in; i++) assay_tensor_release(copy[i]);
  if (m->config.spill) assay_spill_trim();
  if (copy != few) assay_free(copy);
  return st;
}

// Integer outputs of the graph leave it as integers, whatever the slots hold.
static assay_status_t settle_outputs(assay_evaluator_t* m, const assay_node_t* node) {
  for (size_t i = 0; i < node->n_outputs; i++) {
    const assay_value_t* v = node->outputs[i];
    if (!v || !v->is_output || !assay_quant_is_real(v, m->slots[v->id])) continue;
    assay_tensor_t* settled = NULL;
    ASSAY_TRY(assay_quant_settle(m->slots[v->id], v->type->elem, &settled));
    put(&m->settled[v->id], settled);
  }
  return NULL;
}

// Runs a node from slot to slot.
// What a node reads, to be released; *out NULL: there is none. A constant that lies in 16 bits is
// float32 to all that see it.
static assay_status_t take_input(const assay_evaluator_t* m, const assay_value_t* v,
                                 assay_tensor_t** out) {
  assay_tensor_t* t = slot_or_constant(m, v);
  if (t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_NARROW)
    return assay_tensor_pack(t, out);
  *out = assay_tensor_retain(t);
  return NULL;
}

static assay_status_t step(assay_evaluator_t* m, const assay_node_t* node) {
  assay_tensor_t *few_in[FEW], *few_out[FEW], **in = few_in, **out = few_out;
  assay_status_t st = NULL;
  if (node->n_inputs > FEW) ASSAY_TRY(assay_new_array(node->n_inputs, sizeof *in, &in));
  if (node->n_outputs > FEW) st = assay_new_array(node->n_outputs, sizeof *out, &out);
  for (size_t i = 0; !st && i < node->n_outputs; i++) out[i] = NULL;
  size_t n_in = 0;
  for (; !st && n_in < node->n_inputs; n_in++) {
    const assay_value_t* v = node->inputs[n_in];
    in[n_in] = NULL;
    if (v) st = take_input(m, v, &in[n_in]);
    if (!st && v && !in[n_in]) {
      st = ASSAY_NODE_ERROR(node, ASSAY_NOT_FOUND, "input %zu '%s' has no value", n_in, v->name);
    }
  }
  if (!st) st = evaluate(m, node, node->n_inputs, in, node->n_outputs, out);
  for (size_t i = 0; i < n_in; i++) assay_tensor_release(in[i]);
  if (m->config.spill) assay_spill_trim();
  for (size_t i = 0; !st && i < node->n_outputs; i++) {
    if (node->outputs[i] && m->config.spill) assay_tensor_spill(out[i]);
    if (node->outputs[i]) assay_evaluator_set(m, node->outputs[i], out[i]);
    assay_tensor_release(out[i]);
  }
  if (!st && m->settled) st = settle_outputs(m, node);
  if (in != few_in) assay_free(in);
  if (out != few_out) assay_free(out);
  return st;
}

static void release_behind(assay_evaluator_t* m, size_t number, size_t i) {
  if (m->config.keep_all) return;
  const release_list_t* list = &m->lists[number][i];
  for (size_t k = 0; k < list->n; k++) {
    assay_tensor_t** slot = &m->slots[m->ids[list->first + k]];
    assay_tensor_release(*slot);
    *slot = NULL;
  }
}

static assay_status_t run_node_of(assay_evaluator_t* m, const assay_graph_t* g, size_t number,
                                  size_t i) {
  ASSAY_TRY(step(m, g->nodes[i]));
  release_behind(m, number, i);
  return NULL;
}

static void empty_slot(assay_evaluator_t* m, const assay_value_t* v) {
  if (v) put(&m->slots[v->id], NULL);
}

static assay_status_t run_graph(assay_eval_t* c, assay_graph_t* graph, size_t n_in,
                                assay_tensor_t* const* in, size_t n_out, assay_tensor_t** out) {
  assay_evaluator_t* m = c->driver;
  size_t number = graph_number(m, graph);
  if (n_in > graph->n_inputs || n_out > graph->n_outputs)
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                            "its body '%s' has %zu inputs and %zu outputs; %zu and %zu are needed",
                            graph->name, graph->n_inputs, graph->n_outputs, n_in, n_out);
  for (size_t i = 0; i < n_in; i++) assay_evaluator_set(m, graph->inputs[i], in[i]);
  assay_status_t st = NULL;
  if (c->round) m->iteration = assay_random_iteration(c->iteration, c->round);
  for (size_t i = 0; !st && i < graph->n_nodes; i++) st = run_node_of(m, graph, number, i);
  m->iteration = c->iteration;
  for (size_t i = 0; !st && i < n_out; i++) {
    assay_tensor_t* t = slot_or_constant(m, graph->outputs[i]);
    if (!t)
      st = ASSAY_NODE_ERROR(c->node, ASSAY_NOT_FOUND, "output '%s' of its body has no value",
                            graph->outputs[i]->name);
    if (!st) st = assay_tensor_widen(t, &out[i]);
    for (size_t k = 0; st && k < i; k++) {
      assay_tensor_release(out[k]);
      out[k] = NULL;
    }
  }
  // The next run of the body must not see this one's values.
  for (size_t i = 0; i < graph->n_inputs; i++) empty_slot(m, graph->inputs[i]);
  for (size_t i = 0; i < graph->n_nodes; i++)
    for (size_t k = 0; k < graph->nodes[i]->n_outputs; k++)
      empty_slot(m, graph->nodes[i]->outputs[k]);
  return st;
}

assay_status_t assay_evaluator_step(assay_evaluator_t* m, const assay_node_t* node) {
  return run_node_of(m, node->graph, graph_number(m, node->graph), (size_t)m->positions[node->id]);
}

void assay_evaluator_pass(assay_evaluator_t* m, const assay_node_t* node) {
  release_behind(m, graph_number(m, node->graph), (size_t)m->positions[node->id]);
}

assay_status_t assay_evaluator_check_inputs(const assay_evaluator_t* m) {
  const assay_graph_t* g = m->model->graph;
  for (size_t i = 0; i < g->n_inputs; i++) {
    const assay_value_t* v = g->inputs[i];
    const assay_tensor_t* t = assay_evaluator_get(m, v);
    const assay_valtype_t* want = v->declared;
    if (!t)
      return ASSAY_ERROR(ASSAY_NOT_FOUND, "input '%s' (%s) was not given", v->name,
                         ASSAY_VALTYPE_TEXT(want));
    if (!want) continue;
    bool same = t->kind == want->kind;
    if (same && t->kind == ASSAY_KIND_TENSOR) {
      same = (!want->elem || want->elem == t->type) && (!want->has_shape || want->rank == t->rank);
      for (int k = 0; same && want->has_shape && k < t->rank; k++) {
        int64_t d;
        same = !assay_dim_value(want->dims[k], &d) || d == t->dims[k];
      }
    }
    if (!same)
      return ASSAY_ERROR(
          ASSAY_INVALID_ARGUMENT, "input '%s' is %s%s; the model wants %s", v->name,
          t->kind == ASSAY_KIND_TENSOR ? assay_type_name(t->type) : "of another kind",
          t->kind == ASSAY_KIND_TENSOR ? ASSAY_DIMS_TEXT(t) : "", ASSAY_VALTYPE_TEXT(want));
  }
  return NULL;
}

assay_status_t assay_evaluator_run(assay_evaluator_t* m) {
  ASSAY_TRY(assay_evaluator_check_inputs(m));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < m->model->graph->n_nodes; i++)
    st = assay_evaluator_step(m, m->model->graph->nodes[i]);
  return st;
}

assay_status_t assay_evaluator_run_on(assay_evaluator_t* m, assay_tensor_t* const* inputs) {
  assay_evaluator_reset(m);
  assay_evaluator_set_inputs(m, inputs);
  return assay_evaluator_run(m);
}

assay_status_t assay_evaluator_create_run(const assay_model_t* model,
                                          const assay_evaluator_config_t* config,
                                          assay_tensor_t* const* inputs, assay_evaluator_t** out) {
  ASSAY_TRY(assay_evaluator_create(model, config, out));
  return assay_evaluator_run_on(*out, inputs);
}
