// An operator written out in others, as text: the counterpart of passes/assemble/pattern.h.
#include "edit/expression.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { WORD = 32, MAX_ARGS = 3, MAX_NAMED = 8, MAX_NUMBERS = 16 };

// Reading a text and making its nodes as it is read: the arguments of an operator come before it.
typedef struct builder {
  assay_edit_t* e;
  assay_node_t* node;  // that is written out
  const assay_expression_t* x;
  const char* at;
  struct {
    char name[WORD];
    assay_value_t* value;
  } named[MAX_NAMED];
  int n_named;
  struct {
    double number;
    assay_value_t* value;
  } numbers[MAX_NUMBERS];
  int n_numbers;
  int depth;  // of operators around
  // The outermost operator: what the node becomes, kept until all before it is there.
  char root[WORD];
  assay_value_t* root_args[MAX_ARGS];
  size_t n_root_args;
  assay_value_t* root_value;  // where the outermost operator was left out
} builder_t;

static assay_status_t read_term(builder_t* b, assay_value_t** out);

static assay_status_t wrong(const builder_t* b) {
  return ASSAY_ERROR(ASSAY_INTERNAL, "the expression '%s' cannot be read at '%s'", b->x->text,
                     b->at);
}

static bool take(builder_t* b, const char* what) {
  while (*b->at == ' ') b->at++;
  if (strncmp(b->at, what, strlen(what)) != 0) return false;
  b->at += strlen(what);
  return true;
}

static void read_word(builder_t* b, char word[WORD]) {
  size_t n = 0;
  while (*b->at == ' ') b->at++;
  while ((isalnum((unsigned char)*b->at) || *b->at == '_') && n + 1 < WORD) word[n++] = *b->at++;
  word[n] = 0;
}

// ---- values -------------------------------------------------------------------------------------

static bool is_short(assay_type_t t) { return t == ASSAY_TYPE_FLOAT16 || t == ASSAY_TYPE_BFLOAT16; }

static assay_type_t type_of(const builder_t* b) { return assay_elem_of(b->node->inputs[0]); }

static assay_status_t number(builder_t* b, double x, assay_value_t** out) {
  for (int i = 0; i < b->n_numbers; i++)
    if (b->numbers[i].number == x) return *out = b->numbers[i].value, NULL;
  assay_tensor_t* t = NULL;
  const char* name = NULL;
  // In float32 where the node computes in it.
  const bool wide = is_short(type_of(b)) && strstr(b->x->text, "Up(");
  ASSAY_TRY(assay_tensor_scalar_f64(wide ? ASSAY_TYPE_FLOAT : type_of(b), x, &t));
  assay_status_t st =
      assay_arena_printf(b->e->c->model->arena, &name, "%s_%g", b->node->op_type, x);
  if (st) return assay_tensor_release(t), st;
  ASSAY_TRY(assay_edit_constant(b->e, b->node->graph, name, t, out));
  if (b->n_numbers == MAX_NUMBERS) return NULL;
  b->numbers[b->n_numbers].number = x;
  b->numbers[b->n_numbers++].value = *out;
  return NULL;
}

static assay_value_t* find_named(const builder_t* b, const char* word, bool* known) {
  *known = true;
  for (int i = 0; i < b->n_named; i++)
    if (strcmp(b->named[i].name, word) == 0) return b->named[i].value;
  for (size_t i = 0; i < ASSAY_EXPRESSION_INPUTS && b->x->inputs[i]; i++)
    if (strcmp(b->x->inputs[i], word) == 0)
      return i < b->node->n_inputs ? b->node->inputs[i] : NULL;
  *known = false;
  return NULL;
}

// ---- nodes --------------------------------------------------------------------------------------

static assay_status_t insert(builder_t* b, const char* op, size_t n, assay_value_t* const* in,
                             assay_type_t elem, assay_node_t** out) {
  const assay_valtype_t* type = NULL;
  const char* name = NULL;
  assay_model_t* m = b->e->c->model;
  ASSAY_TRY(assay_valtype_unranked(m, elem, &type));
  ASSAY_TRY(assay_arena_printf(m->arena, &name, "%s/%s_output", b->node->label, op));
  return assay_edit_insert(b->e, b->node, op, n, in, name, type, out);
}

// ---- helpers ------------------------------------------------------------------------------------

// A reduction over the row's axes that keeps dimensions, by attribute or by input as the operator
// set has it.
static assay_status_t reduce(builder_t* b, const char* op, assay_value_t* v, assay_value_t** out) {
  int64_t axes[ASSAY_MAX_RANK];
  assay_node_t* n = NULL;
  for (int i = 0; i < b->x->n_axes; i++) axes[i] = b->x->axes[i];
  ASSAY_TRY(insert(b, op, 1, &v, assay_elem_of(v), &n));
  if (n->schema->max_inputs > 1) {
    assay_value_t* list = NULL;
    ASSAY_TRY(assay_edit_ints(b->e, b->node->graph, "axes", b->x->n_axes, axes, &list));
    ASSAY_TRY(assay_edit_set_input(b->e, n, 1, list));
  } else {
    ASSAY_TRY(assay_edit_attr_ints(b->e, n, "axes", (size_t)b->x->n_axes, axes));
  }
  ASSAY_TRY(assay_edit_attr_i(b->e, n, "keepdims", 1));
  return *out = n->outputs[0], NULL;
}

static assay_status_t mean(builder_t* b, assay_value_t* v, assay_value_t** out) {
  return reduce(b, "ReduceMean", v, out);
}
static assay_status_t sum(builder_t* b, assay_value_t* v, assay_value_t** out) {
  return reduce(b, "ReduceSum", v, out);
}
static assay_status_t largest(builder_t* b, assay_value_t* v, assay_value_t** out) {
  return reduce(b, "ReduceMax", v, out);
}

static assay_status_t reshape(builder_t* b, assay_value_t* v, int64_t n, const int64_t* shape,
                              assay_value_t** out) {
  assay_value_t* in[2] = {v, NULL};
  assay_node_t* node = NULL;
  ASSAY_TRY(assay_edit_ints(b->e, b->node->graph, "shape", n, shape, &in[1]));
  ASSAY_TRY(insert(b, "Reshape", 2, in, assay_elem_of(v), &node));
  return *out = node->outputs[0], NULL;
}

// A vector along axis 1 of x: [C, 1, 1]. A constant becomes another constant.
static assay_status_t along(builder_t* b, assay_value_t* v, int rank, assay_value_t** out) {
  int64_t shape[ASSAY_MAX_RANK];
  const assay_tensor_t* t = assay_pass_constant(v);
  for (int i = 0; i < rank; i++) shape[i] = 1;
  shape[0] = -1;
  if (!t || rank < 2) return rank < 2 ? (*out = v, NULL) : reshape(b, v, rank, shape, out);
  assay_tensor_t* view = NULL;
  shape[0] = t->size;
  ASSAY_TRY(assay_tensor_view(v->constant, rank, shape, &view));
  return assay_edit_constant(b->e, b->node->graph, v->name, view, out);
}

static assay_status_t channels(builder_t* b, assay_value_t* v, assay_value_t** out) {
  return along(b, v, assay_rank_of(b->node->inputs[0]) - 1, out);
}

// [N, G, all the rest] of x.
static assay_status_t groups(builder_t* b, assay_value_t* v, assay_value_t** out) {
  const int64_t shape[3] = {0, assay_attr_i64(b->node, "num_groups", 1), -1};
  return reshape(b, v, 3, shape, out);
}

// The shape of the node's first input given back.
static assay_status_t shaped_like(builder_t* b, assay_value_t* v, assay_value_t** out) {
  assay_value_t *x = b->node->inputs[0], *in[2] = {v, NULL};
  int64_t shape[ASSAY_MAX_RANK];
  assay_node_t* n = NULL;
  if (assay_reshape_target(x, shape)) return reshape(b, v, assay_rank_of(x), shape, out);
  ASSAY_TRY(insert(b, "Shape", 1, &x, ASSAY_TYPE_INT64, &n));
  in[1] = n->outputs[0];
  ASSAY_TRY(insert(b, "Reshape", 2, in, assay_elem_of(v), &n));
  return *out = n->outputs[0], NULL;
}

static assay_status_t cast(builder_t* b, assay_value_t* v, assay_type_t type, assay_value_t** out) {
  assay_node_t* n = NULL;
  ASSAY_TRY(insert(b, "Cast", 1, &v, type, &n));
  ASSAY_TRY(assay_edit_attr_i(b->e, n, "to", type));
  return *out = n->outputs[0], NULL;
}

// Where the standard computes 16-bit values in float32, and back.
static assay_status_t up(builder_t* b, assay_value_t* v, assay_value_t** out) {
  return is_short(type_of(b)) ? cast(b, v, ASSAY_TYPE_FLOAT, out) : (*out = v, NULL);
}
static assay_status_t down(builder_t* b, assay_value_t* v, assay_value_t** out) {
  return is_short(type_of(b)) ? cast(b, v, type_of(b), out) : (*out = v, NULL);
}

static const struct {
  const char* name;
  const char* op;  // that it needs; NULL: none but Reshape and Cast
  assay_status_t (*build)(builder_t* b, assay_value_t* v, assay_value_t** out);
} helpers[] = {
    {"Mean", "ReduceMean", mean},
    {"Sum", "ReduceSum", sum},
    {"Largest", "ReduceMax", largest},
    {"Channels", NULL, channels},
    {"Groups", NULL, groups},
    {"ShapedLike", NULL, shaped_like},
    {"Up", NULL, up},
    {"Down", NULL, down},
};
enum { N_HELPERS = sizeof helpers / sizeof *helpers };

static int find_helper(const char* name) {
  for (int i = 0; i < N_HELPERS; i++)
    if (strcmp(helpers[i].name, name) == 0) return i;
  return -1;
}

// ---- reading ------------------------------------------------------------------------------------

static double attribute(const builder_t* b, const char* name) {
  const assay_attr_spec_t* s = assay_schema_attr(b->node->schema, name);
  return s && s->type == ASSAY_ATTR_INT ? (double)assay_attr_i64(b->node, name, 0)
                                        : assay_attr_f64(b->node, name, 1);
}

static assay_status_t is_wanted(const builder_t* b, const char* name, bool* out) {
  bool known;
  const assay_value_t* v = find_named(b, name, &known);
  const assay_attr_spec_t* s = assay_schema_attr(b->node->schema, name);
  if (!known && !s) return wrong(b);
  *out = known                       ? v != NULL
         : s->type == ASSAY_ATTR_INT ? attribute(b, name) != 0
                                     : attribute(b, name) != 1;
  return NULL;
}

// Reads the arguments of an operator that is left out: only the first one is made.
static assay_status_t skip_rest(builder_t* b) {
  int open = 1;
  while (open) {
    if (!*b->at) return wrong(b);
    open += *b->at == '(';
    open -= *b->at == ')';
    b->at++;
  }
  return NULL;
}

static assay_status_t read_operator(builder_t* b, const char* op, assay_value_t** out) {
  char condition[WORD] = "";
  bool wanted = true;
  assay_value_t* args[MAX_ARGS] = {NULL};
  size_t n = 0;
  if (take(b, "?")) {
    read_word(b, condition);
    ASSAY_TRY(is_wanted(b, condition, &wanted));
  }
  if (!take(b, "(")) return wrong(b);
  const bool is_root = b->depth++ == 0 && wanted;
  if (!wanted) b->depth--;  // what stands in its place is the outermost then
  do {
    if (n == MAX_ARGS) return wrong(b);
    ASSAY_TRY(read_term(b, &args[n++]));
    if (!wanted) {
      ASSAY_TRY(skip_rest(b));
      return *out = args[0], NULL;
    }
  } while (take(b, ","));
  if (!take(b, ")")) return wrong(b);
  b->depth--;
  const int helper = find_helper(op);
  if (helper >= 0) {
    ASSAY_TRY(helpers[helper].build(b, args[0], out));
    if (is_root) b->root_value = *out;
    return NULL;
  }
  if (is_root) {
    memcpy(b->root, op, WORD);
    memcpy(b->root_args, args, sizeof args);
    b->n_root_args = n;
    return *out = NULL, NULL;
  }
  assay_node_t* node = NULL;
  const bool compares = strcmp(op, "Greater") == 0 || strcmp(op, "Less") == 0;
  ASSAY_TRY(insert(b, op, n, args, compares ? ASSAY_TYPE_BOOL : assay_elem_of(args[n - 1]), &node));
  return *out = node->outputs[0], NULL;
}

static assay_status_t read_term(builder_t* b, assay_value_t** out) {
  char word[WORD];
  bool known;
  while (*b->at == ' ') b->at++;
  if (take(b, "$")) {
    read_word(b, word);
    return number(b, attribute(b, word), out);
  }
  if (*b->at == '-' || isdigit((unsigned char)*b->at)) {
    char* end;
    const double x = strtod(b->at, &end);
    b->at = end;
    return number(b, x, out);
  }
  read_word(b, word);
  if (isupper((unsigned char)*word)) return read_operator(b, word, out);
  if (take(b, "=")) {
    if (b->n_named == MAX_NAMED) return wrong(b);
    ASSAY_TRY(read_term(b, out));
    memcpy(b->named[b->n_named].name, word, WORD);
    b->named[b->n_named++].value = *out;
    return NULL;
  }
  *out = find_named(b, word, &known);
  return *out ? NULL : wrong(b);
}

assay_status_t assay_expression_build(assay_edit_t* e, assay_node_t* node,
                                      const assay_expression_t* x) {
  builder_t b = {.e = e, .node = node, .x = x, .at = x->text};
  assay_value_t* out = NULL;
  ASSAY_TRY(read_term(&b, &out));
  while (*b.at == ' ') b.at++;
  if (*b.at) return wrong(&b);
  if (*b.root) return assay_edit_become(e, node, b.root, b.n_root_args, b.root_args);
  // The outermost was left out, or a helper: its value is handed on.
  if (!out) return wrong(&b);
  return assay_edit_become(e, node, "Identity", 1, &out);
}

// ---- asking -------------------------------------------------------------------------------------

bool assay_expression_fits(const assay_edit_t* e, const char* text, char lacks[32]) {
  const int64_t opset = assay_model_opset(e->c->model, "");
  builder_t b = {.at = text};
  while (*b.at) {
    if (!isupper((unsigned char)*b.at)) {
      // Names hold no capital letters at their beginning: the rest of a word is passed over.
      if (isalnum((unsigned char)*b.at) || *b.at == '_') {
        char rest[WORD];
        read_word(&b, rest);
      } else {
        b.at++;
      }
      continue;
    }
    read_word(&b, lacks);
    const int helper = find_helper(lacks);
    const char* op = helper < 0 ? lacks : helpers[helper].op ? helpers[helper].op : "Reshape";
    if (!assay_op_find("", op, opset) || !assay_schema_find("", op, opset, NULL)) return false;
  }
  return true;
}
