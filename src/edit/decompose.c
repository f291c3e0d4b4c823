// Operators written out in simpler ones of the model's operator set: the table in
// decompositions.inc.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "edit/editor.h"
#include "edit/expression.h"
#include "passes/edit.h"

typedef enum axes { NONE, LAST, ONE, SPACE, ROWS } axes_t;

typedef struct row {
  const char *domain, *op;
  int since, opset;
  axes_t axes;
  const char* text;
  const char* inputs[ASSAY_EXPRESSION_INPUTS];
} row_t;

static const row_t rows[] = {
#define ROW(domain, op, since, opset, axes, text, ...) \
  {domain, op, since, opset, axes, text, {__VA_ARGS__}},
#include "edit/decompositions.inc"
#undef ROW
    // Gelu by tanh is a function of its own.
    {"",
     "Gelu",
     20,
     7,
     NONE,
     "Mul(Mul(x, Add(Tanh(Mul(Add(x, Mul(Mul(x, Mul(x, x)), 0.044715)), 0.7978845608028654)), 1)), "
     "0.5)",
     {"x"}},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

typedef struct job {
  assay_editing_t* e;
  size_t done[N_ROWS];
  bool* reported;  // by row: why one was left alone
} job_t;

// ---- which row ----------------------------------------------------------------------------------

static bool is_listed(const assay_words_t* ops, const char* op) {
  for (size_t i = 0; i < ops->n; i++)
    if (strcmp(ops->items[i], op) == 0) return true;
  // Clip is as standard as what it would become: only when asked for. So are the others that every
  // engine has.
  static const char* const only_asked[] = {
      "Clip",      "Softmax", "LogSoftmax", "Gemm",     "BatchNormalization",
      "LeakyRelu", "PRelu",   "Softplus",   "Softsign", "HardSigmoid"};
  for (size_t i = 0; i < sizeof only_asked / sizeof *only_asked; i++)
    if (strcmp(only_asked[i], op) == 0) return false;
  return !ops->n;
}

static bool is_tanh(const assay_node_t* n) {
  return strcmp(n->op_type, "Gelu") == 0 && !*n->domain && assay_attr_is(n, "approximate", "tanh");
}

static int row_of(const assay_node_t* n) {
  int found = -1;
  for (int i = 0; i < N_ROWS; i++)
    if (strcmp(rows[i].op, n->op_type) == 0 && strcmp(rows[i].domain, n->domain) == 0 &&
        n->schema && n->schema->since >= rows[i].since && (i == N_ROWS - 1) == is_tanh(n))
      found = i;
  return found;
}

// ---- what keeps a node from it ------------------------------------------------------------------

static bool other_outputs_read(const assay_edit_t* x, const assay_node_t* n) {
  for (size_t i = 1; i < n->n_outputs; i++)
    if (n->outputs[i] && (assay_uses_of(&x->uses, n->outputs[i]) || n->outputs[i]->is_output))
      return true;
  return false;
}

static bool find_axes(const assay_node_t* n, axes_t kind, assay_expression_t* x) {
  const int rank = assay_rank_of(n->inputs[0]);
  int64_t axis = assay_attr_i64(n, "axis", -1);
  x->n_axes = 0;
  if (kind == NONE) return true;
  if (kind == ROWS) return x->axes[x->n_axes++] = 2, true;
  if (rank < 1) return false;
  if (kind == SPACE) axis = 2;
  if (axis < 0) axis += rank;
  for (int i = (int)axis; i >= 0 && i < rank; i++) {
    x->axes[x->n_axes++] = i;
    if (kind == ONE) break;
  }
  return x->n_axes > 0;
}

enum { WHY = 96 };

// NULL: nothing does. text: room for the answer.
static const char* why_not(const assay_edit_t* x, const assay_node_t* n, const row_t* row,
                           assay_expression_t* expression, char text[WHY]) {
  char lacks[32] = "";
  const assay_type_t type =
      n->n_inputs && n->inputs[0] ? assay_elem_of(n->inputs[0]) : ASSAY_TYPE_UNDEFINED;
  if (assay_model_opset(x->c->model, "") < row->opset) {
    snprintf(text, WHY, "needs operator set %d", row->opset);
    return text;
  }
  if (!assay_expression_fits(x, row->text, lacks)) {
    snprintf(text, WHY, "the model's operator set has no %s", lacks);
    return text;
  }
  if (!assay_type_is_float(type) && strcmp(row->op, "Clip") != 0) return "it is not of floats";
  if (other_outputs_read(x, n)) return "more than its first output is read";
  if (strcmp(n->op_type, "BatchNormalization") == 0 && assay_attr_i64(n, "training_mode", 0))
    return "it is in training mode";
  if (!find_axes(n, row->axes, expression) ||
      (strstr(row->text, "Channels") && assay_rank_of(n->inputs[0]) < 2))
    return "the rank of its input is not known";
  return NULL;
}

// ---- the edit -----------------------------------------------------------------------------------

static assay_status_t visit(job_t* j, assay_edit_t* x, assay_node_t* n) {
  const int r = row_of(n);
  char text[WHY];
  if (r < 0 || !assay_editing_wants(j->e, n) || !is_listed(&j->e->requests->ops, rows[r].op))
    return NULL;
  assay_expression_t expression = {.text = rows[r].text};
  memcpy(expression.inputs, rows[r].inputs, sizeof expression.inputs);
  const char* why = why_not(x, n, &rows[r], &expression, text);
  if (why) {
    if (!j->reported[r])
      assay_str_printf(&j->e->notes, "'%s' (%s) is left: %s\n", n->label, n->op_type, why);
    j->reported[r] = true;
    return NULL;
  }
  const assay_node_t* node = n;
  ASSAY_TRY(assay_pass_record(x->c, ASSAY_PASS_CHANGED, &node, 1, "%s written out", n->op_type));
  for (size_t i = 1; i < n->n_outputs; i++) assay_node_set_output(n, i, NULL);
  n->n_outputs = 1;
  ASSAY_TRY(assay_expression_build(x, n, &expression));
  j->done[r]++;
  return NULL;
}

// Nodes that are put in move those after them: each that was there is visited once.
static assay_status_t run_pass(assay_pass_context_t* c) {
  job_t* j = c->user;
  assay_edit_t x = {0};
  const int n_ids = c->model->n_node_ids;
  bool* seen = NULL;
  ASSAY_TRY(assay_new_array((size_t)n_ids, sizeof *seen, &seen));
  assay_status_t st = assay_edit_begin(c, &x);
  if (st) return assay_free(seen), st;
  for (size_t k = 0; !st && k < c->model->n_graphs; k++)
    for (size_t i = 0; !st && i < c->model->graphs[k]->n_nodes; i++) {
      assay_node_t* n = c->model->graphs[k]->nodes[i];
      if (n->id >= n_ids || seen[n->id]) continue;
      seen[n->id] = true;
      st = visit(j, &x, n);
    }
  assay_free(seen);
  return assay_edit_end(&x, st);
}

// Again: what Mish becomes may be written out, too.
static const assay_pass_t pass = {.name = "decompose", .until_fixpoint = true, .run = run_pass};

static assay_status_t check_ops(const assay_words_t* ops) {
  for (size_t i = 0; i < ops->n; i++) {
    bool known = false;
    assay_str_t names = {0};
    for (int r = 0; r < N_ROWS; r++) {
      known |= strcmp(rows[r].op, ops->items[i]) == 0;
      bool first = true;
      for (int k = 0; k < r; k++) first &= strcmp(rows[k].op, rows[r].op) != 0;
      if (first) assay_str_printf(&names, "%s%s", r ? ", " : "", rows[r].op);
    }
    assay_status_t st = assay_str_status(&names);
    if (!st && !known)
      st = ASSAY_ERROR(ASSAY_NOT_FOUND, "--op: '%s' cannot be written out; there are %s",
                       ops->items[i], assay_str_get(&names));
    assay_str_deinit(&names);
    if (st) return st;
  }
  return NULL;
}

static assay_status_t run(assay_editing_t* e) {
  bool reported[N_ROWS] = {false};
  job_t j = {.e = e, .reported = reported};
  assay_rewrite_t* r = NULL;
  const assay_pass_options_t options = {.within_opset = true};
  ASSAY_TRY(check_ops(&e->requests->ops));
  ASSAY_TRY(assay_passes_run_own((assay_model_t*)(uintptr_t)e->model, &pass, &j, &options, &r));
  e->out = assay_model_retain(r->model);
  assay_status_t st = assay_editing_changed(e, r);
  assay_rewrite_destroy(r);
  for (int i = 0; i < N_ROWS; i++) {
    for (int k = i + 1; k < N_ROWS; k++)
      if (strcmp(rows[k].op, rows[i].op) == 0) {
        j.done[k] += j.done[i];
        j.done[i] = 0;
      }
    assay_editing_did(e, rows[i].op, j.done[i]);
  }
  return st;
}

const assay_editor_t assay_editor_decompose = {
    .name = "decompose",
    .summary = "operators written out in simpler ones: Mish, Gelu, LayerNormalization ...",
    .promise = ASSAY_PROMISE_ROUNDS,
    .run = run,
};
