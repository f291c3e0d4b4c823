// Values that no input of the model reaches, as weights are that are unpacked, dequantized or
// brought into another layout: what golden has of them holds for every sample.
//
// Where the node can be read backwards (a Cast, a DequantizeLinear, another shape), its constant is
// what golden asks for, in the constant's own type; elsewhere golden's value takes the place of
// what the node makes.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/solve/solve.h"
#include "formats/format.h"
#include "ops/math/pointwise.h"

// ---- what no input reaches ---------------------------------------------------------------------

static bool is_random(const assay_node_t* n) { return n->op && n->op->flags & ASSAY_OP_RANDOM; }

// By value id, whether it is made of constants alone.
static assay_status_t find_fixed(const assay_graph_t* g, bool** out) {
  ASSAY_TRY(assay_new_array((size_t)g->model->n_values, sizeof **out, out));
  for (size_t i = 0; i < g->n_nodes; i++) {
    const assay_node_t* n = g->nodes[i];
    bool fixed = !is_random(n) && !(n->op && n->op->flags & ASSAY_OP_CONTROL);
    for (size_t k = 0; k < n->n_inputs; k++) {
      const assay_value_t* v = n->inputs[k];
      fixed = fixed && (!v || v->constant || (*out)[v->id]);
    }
    for (size_t k = 0; fixed && k < n->n_outputs; k++)
      if (n->outputs[k]) (*out)[n->outputs[k]->id] = true;
  }
  return NULL;
}

// ---- read backwards ----------------------------------------------------------------------------

typedef struct folded {
  assay_evaluator_t* m;
  const assay_node_t* node;
  const assay_search_target_t* target;
  assay_tensor_t* in[3];  // as they are in the slots, widened; NULL: left out, or not read here
} folded_t;

// A number as the constant's type holds it; false: it does not.
static bool put_number(assay_tensor_t* to, int64_t i, double x) {
  if (to->store == ASSAY_STORE_F64) return assay_f64(to)[i] = x, isfinite(x);
  if (to->store != ASSAY_STORE_I64 || !(fabs(x) < 0x1p53)) return false;
  const int64_t q = (int64_t)floor(x + 0.5);
  assay_i64(to)[i] = q;
  return to->type == ASSAY_TYPE_INT64 || assay_type_saturate(to->type, (double)q) == q;
}

static double number(const assay_tensor_t* t, int64_t i) {
  return t->store == ASSAY_STORE_I64 ? assay_i64_to_f64(t->type, assay_i64(t)[i]) : assay_f64(t)[i];
}

// Which scale an element of a quantized tensor has; -1: not known.
static int64_t scale_of(const folded_t* k, int64_t i) {
  const assay_tensor_t *q = k->in[0], *scale = k->in[1];
  if (scale->size == 1) return 0;
  int64_t axis = assay_attr_i64(k->node, "axis", 1);
  if (axis < 0) axis += q->rank;
  if (scale->rank != 1 || axis < 0 || axis >= q->rank || scale->size != q->dims[axis]) return -1;
  return i / assay_dims_product(q->dims, (int)axis + 1, q->rank) % q->dims[axis];
}

// q of (q - zero) scale.
static bool dequantized(const folded_t* k, const assay_tensor_t* want, int64_t i, double* out) {
  const int64_t s = scale_of(k, i);
  const assay_tensor_t* zero = k->in[2];
  if (s < 0 || (zero && s >= zero->size) || number(k->in[1], s) == 0) return false;
  *out = number(want, i) / number(k->in[1], s) + (zero ? number(zero, s) : 0);
  return true;
}

static bool has_scale(const folded_t* k) {
  return k->in[1] && k->in[1]->store == ASSAY_STORE_F64 && k->in[1]->size &&
         (!k->in[2] || k->in[2]->store == ASSAY_STORE_I64);
}

// What input 0 has to be; *out NULL: it cannot be told.
static assay_status_t read_back(const folded_t* k, const assay_tensor_t* want,
                                assay_tensor_t** out) {
  static const char* const LAYOUTS[] = {"Cast",    "Identity",  "Reshape",
                                        "Squeeze", "Unsqueeze", "Flatten"};
  const bool scaled = strcmp(k->node->op_type, "DequantizeLinear") == 0;
  bool known = scaled && has_scale(k);
  for (size_t i = 0; i < sizeof LAYOUTS / sizeof *LAYOUTS; i++)
    known |= strcmp(k->node->op_type, LAYOUTS[i]) == 0;
  *out = NULL;
  if (!known || !k->in[0] || k->in[0]->size != want->size) return NULL;
  ASSAY_TRY(assay_tensor_create(k->in[0]->type, k->in[0]->rank, k->in[0]->dims, out));
  for (int64_t i = 0; known && i < want->size; i++) {
    double x = number(want, i);
    known = (!scaled || dequantized(k, want, i, &x)) && put_number(*out, i, x);
  }
  if (!known) assay_tensor_release(*out), *out = NULL;
  return NULL;
}

// ---- what it looks like ------------------------------------------------------------------------

static bool same_row(const assay_tensor_t* a, int64_t i, const assay_tensor_t* b, int64_t j,
                     int64_t row) {
  return memcmp(assay_i64(a) + i * row, assay_i64(b) + j * row, (size_t)row * sizeof(int64_t)) == 0;
}

// Whether the rows are the same ones in another order.
static bool rows_moved(const assay_tensor_t* was, const assay_tensor_t* now) {
  enum { MOST = 4096 };
  const int64_t rows = was->rank ? was->dims[0] : 0, row = rows ? was->size / rows : 0;
  if (was->rank < 2 || rows < 2 || rows > MOST) return false;
  for (int64_t i = 0; i < rows; i++) {
    bool found = false;
    for (int64_t j = 0; !found && j < rows; j++) found = same_row(now, i, was, j, row);
    if (!found) return false;
  }
  return true;
}

static void describe(const assay_tensor_t* was, const assay_tensor_t* now, const char* name,
                     char* out, size_t size) {
  long long changed = 0, sum = 0;
  uint64_t flips = 0, kept = ~(uint64_t)0;
  for (int64_t i = 0; was->store == ASSAY_STORE_I64 && i < now->size; i++) {
    const uint64_t bits = (uint64_t)assay_i64(was)[i] ^ (uint64_t)assay_i64(now)[i];
    changed += bits != 0;
    sum += assay_i64(was)[i] - assay_i64(now)[i];
    flips |= bits;
    kept &= bits;
  }
  if (was->store != ASSAY_STORE_I64)
    snprintf(out, size, "'%.120s' as golden has it", name);
  else if (flips && flips == kept)
    snprintf(out, size, "bits 0x%llx of every element of '%.100s' are the other way round",
             (unsigned long long)flips & 0xffffffff, name);
  else if (rows_moved(was, now))
    snprintf(out, size, "the rows of '%.120s' are in another order", name);
  else
    snprintf(out, size, "%lld of %lld integers of '%.100s' are others, by %.4g on average", changed,
             (long long)now->size, name, changed ? (double)sum / (double)changed : 0);
}

// ---- the repairs -------------------------------------------------------------------------------

static assay_status_t with_constant(const folded_t* k, const assay_tensor_t* want,
                                    assay_repair_t* out, bool* out_found) {
  const assay_value_t* v = k->node->n_inputs ? k->node->inputs[0] : NULL;
  assay_tensor_t *now = NULL, **in = NULL;
  if (!v || !v->constant) return NULL;
  ASSAY_TRY(read_back(k, want, &now));
  if (!now) return NULL;
  *out = (assay_repair_t){.node = k->node, .cause = "solved constant", .n_edits = 1};
  out->edits[0] = (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = 0, .tensor = now};
  describe(k->in[0], now, v->name, out->text, sizeof out->text);
  assay_status_t st = assay_new_array(k->node->n_inputs, sizeof *in, &in);
  for (size_t i = 0; !st && i < k->node->n_inputs; i++)
    in[i] = k->node->inputs[i] ? assay_evaluator_get(k->m, k->node->inputs[i]) : NULL;
  if (!st) st = assay_solve_restores(k->m, out, k->target, k->node->n_inputs, in, out_found);
  assay_free(in);
  if (st || !*out_found) assay_repair_deinit(out);
  return st;
}

static assay_status_t as_golden(const folded_t* k, assay_tensor_t* want, size_t output,
                                assay_repair_t* out, bool* out_found) {
  assay_tensor_t* now = NULL;
  assay_formula_t* f = NULL;
  ASSAY_TRY(assay_tensor_retype(want, k->target->truth->type, &now));
  const assay_formula_terms_t terms = {.program = "c", .c = now};
  assay_status_t st = assay_formula_create(&terms, &f);
  assay_tensor_release(now);
  if (st) return st;
  *out = (assay_repair_t){.node = k->node, .cause = "constant", .n_edits = 1};
  out->edits[0] = (assay_repair_edit_t){.kind = ASSAY_EDIT_AFTER, .input = output, .formula = f};
  snprintf(out->text, sizeof out->text, "'%.120s', which no input reaches, as golden has it",
           k->target->value->name);
  *out_found = true;
  return NULL;
}

static assay_status_t solve(folded_t* k, bool whole, assay_repair_t* out, bool* out_found) {
  size_t output = 0;
  assay_tensor_t* want = NULL;
  while (k->node->outputs[output] != k->target->value) output++;
  ASSAY_TRY(assay_tensor_widen(k->target->golden, &want));
  assay_status_t st = NULL;
  if (!whole)
    st = with_constant(k, want, out, out_found);
  else if (assay_tensor_alike(want, k->target->truth))
    st = as_golden(k, want, output, out, out_found);
  assay_tensor_release(want);
  return st;
}

assay_status_t assay_solve_folded(assay_evaluator_t* m, const assay_node_t* node,
                                  const assay_search_target_t* target, bool whole,
                                  assay_repair_t* out, bool* out_found) {
  folded_t k = {.m = m, .node = node, .target = target};
  bool* fixed = NULL;
  *out_found = false;
  if (!node->n_inputs || !target->truth || target->truth->kind != ASSAY_KIND_TENSOR ||
      target->golden->kind != ASSAY_KIND_TENSOR || target->golden->store > ASSAY_STORE_I64)
    return NULL;
  ASSAY_TRY(find_fixed(node->graph, &fixed));
  const bool is_fixed = fixed[target->value->id];
  assay_free(fixed);
  if (!is_fixed) return NULL;
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < node->n_inputs && i < sizeof k.in / sizeof *k.in; i++) {
    assay_tensor_t* t = node->inputs[i] ? assay_evaluator_get(m, node->inputs[i]) : NULL;
    if (t && t->kind == ASSAY_KIND_TENSOR) st = assay_tensor_widen(t, &k.in[i]);
  }
  if (!st) st = solve(&k, whole, out, out_found);
  for (size_t i = 0; i < sizeof k.in / sizeof *k.in; i++) assay_tensor_release(k.in[i]);
  return st;
}
