// Nodes that a model lacks: a small expression over its values, in ai.onnx's operators.
#include "diagnose/formula.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "eval/evaluator.h"
#include "formats/format.h"

enum { STACK = 16, WORD = 64 };

struct assay_formula {
  size_t references;
  assay_formula_terms_t terms;
  char program[ASSAY_FORMULA_TEXT];
};

// Calls a function with each formula that this one reads.
static void each_made(assay_formula_t* f, void (*call)(assay_formula_t*)) {
  call(f->terms.source_made);
  call(f->terms.value_made);
  call(f->terms.value2_made);
  for (int i = 0; i < ASSAY_FORMULA_MORE; i++) call(f->terms.more_made[i]);
}

static void retain(assay_formula_t* f) {
  if (f) assay_formula_retain(f);
}

assay_status_t assay_formula_create(const assay_formula_terms_t* terms, assay_formula_t** out) {
  const size_t n = strlen(terms->program);
  if (n >= sizeof(*out)->program)
    return ASSAY_ERROR(ASSAY_INTERNAL, "the formula '%s' is too long", terms->program);
  ASSAY_TRY(assay_new_array(1, sizeof **out, out));
  assay_formula_t* f = *out;
  f->references = 1;
  f->terms = *terms;
  memcpy(f->program, terms->program, n + 1);
  f->terms.program = f->program;
  assay_tensor_retain(f->terms.c);
  assay_tensor_retain(f->terms.d);
  each_made(f, retain);
  for (int i = 0; i < ASSAY_FORMULA_MORE; i++) assay_tensor_retain(f->terms.constants[i]);
  return NULL;
}

assay_formula_t* assay_formula_retain(assay_formula_t* f) {
  f->references++;
  return f;
}

void assay_formula_release(assay_formula_t* f) {
  if (!f || --f->references) return;
  assay_tensor_release(f->terms.c);
  assay_tensor_release(f->terms.d);
  each_made(f, assay_formula_release);
  for (int i = 0; i < ASSAY_FORMULA_MORE; i++) assay_tensor_release(f->terms.constants[i]);
  assay_free(f);
}

const assay_value_t* assay_formula_source(const assay_formula_t* f) { return f->terms.source; }

// ---- words -------------------------------------------------------------------------------------

// What one word does: an operator of so many operands from the stack, then maybe one that belongs
// to the formula (axes, elements), and attributes.
typedef struct word {
  const char *text, *op_type;
  int n;      // operands on the stack
  bool axes;  // the axes: input 1 from version `axes_from` on, before it an attribute
  int axes_from;
  bool drops;  // attribute `keepdims` 0
  bool axis;   // attribute `axis`, the first of the axes
  bool holds;  // the last operand is a constant of the formula
  int which;   // that is 0 `c`, 1 `d`; of gather along axes[0], axes[1]
  const char* reduction;
} word_t;

static const word_t WORDS[] = {
    {.text = "+", .op_type = "Add", .n = 2},
    {.text = "-", .op_type = "Sub", .n = 2},
    {.text = "*", .op_type = "Mul", .n = 2},
    {.text = "/", .op_type = "Div", .n = 2},
    {.text = "^", .op_type = "Pow", .n = 2},
    {.text = "max", .op_type = "Max", .n = 2},
    {.text = "min", .op_type = "Min", .n = 2},
    {.text = ">", .op_type = "Greater", .n = 2},
    {.text = "<", .op_type = "Less", .n = 2},
    {.text = ">=", .op_type = "GreaterOrEqual", .n = 2},
    {.text = "<=", .op_type = "LessOrEqual", .n = 2},
    {.text = "==", .op_type = "Equal", .n = 2},
    {.text = "and", .op_type = "And", .n = 2},
    {.text = "or", .op_type = "Or", .n = 2},
    {.text = "xor", .op_type = "Xor", .n = 2},
    {.text = "matmul", .op_type = "MatMul", .n = 2},
    {.text = "not", .op_type = "Not", .n = 1},
    {.text = "cast", .op_type = "Cast", .n = 1},
    {.text = "bool", .op_type = "Cast", .n = 1},
    {.text = "where", .op_type = "Where", .n = 3},
    {.text = "mean", .op_type = "ReduceMean", .n = 1, .axes = true, .axes_from = 18},
    {.text = "mean.",
     .op_type = "ReduceMean",
     .n = 1,
     .axes = true,
     .axes_from = 18,
     .drops = true},
    {.text = "sum", .op_type = "ReduceSum", .n = 1, .axes = true, .axes_from = 13},
    {.text = "sum.", .op_type = "ReduceSum", .n = 1, .axes = true, .axes_from = 13, .drops = true},
    {.text = "highest", .op_type = "ReduceMax", .n = 1, .axes = true, .axes_from = 18},
    {.text = "highest.",
     .op_type = "ReduceMax",
     .n = 1,
     .axes = true,
     .axes_from = 18,
     .drops = true},
    {.text = "lowest", .op_type = "ReduceMin", .n = 1, .axes = true, .axes_from = 18},
    {.text = "lowest.",
     .op_type = "ReduceMin",
     .n = 1,
     .axes = true,
     .axes_from = 18,
     .drops = true},
    {.text = "softmax", .op_type = "Softmax", .n = 1, .axis = true},
    {.text = "logsoftmax", .op_type = "LogSoftmax", .n = 1, .axis = true},
    {.text = "gather", .op_type = "Gather", .n = 1, .axis = true, .holds = true, .which = 0},
    {.text = "gather2", .op_type = "Gather", .n = 1, .axis = true, .holds = true, .which = 1},
    {.text = "take", .op_type = "Gather", .n = 2, .axis = true},
    {.text = "scatter", .op_type = "ScatterND", .n = 3},
    {.text = "scatter+", .op_type = "ScatterND", .n = 3, .reduction = "add"},
    {.text = "put", .op_type = "ScatterElements", .n = 3, .axis = true},
    {.text = "put+", .op_type = "ScatterElements", .n = 3, .axis = true, .reduction = "add"},
    {.text = "unsqueeze", .op_type = "Unsqueeze", .n = 1, .axes = true, .axes_from = 13},
};

static const word_t* find_word(const char* text) {
  for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
    if (strcmp(WORDS[i].text, text) == 0) return &WORDS[i];
  return NULL;
}

static bool next_word(const char** at, char* out) {
  *at += strspn(*at, " ");
  const size_t n = strcspn(*at, " ");
  if (!n || n >= WORD) return false;
  memcpy(out, *at, n);
  out[n] = 0;
  *at += n;
  return true;
}

// Says in turn what a program pushes and computes. What the stack holds is the receiver's.
typedef struct wanted_operator {
  const char *domain, *op_type;
  const assay_attr_t* attrs;
  size_t n_attrs, n_outputs, of;
} operator_t;

typedef struct receiver {
  void* user;
  assay_type_t type;
  int64_t opset;
  assay_status_t (*source)(void* user);
  assay_status_t (*value)(void* user, const assay_value_t* v);
  assay_status_t (*constant)(void* user, assay_tensor_t* t);
  assay_status_t (*duplicate)(void* user);
  // What another formula makes.
  assay_status_t (*made)(void* user, const struct receiver* r, const assay_formula_t* f);
  assay_status_t (*none)(void* user);
  // Takes n operands from the stack, the last on top, and puts output `of` there.
  assay_status_t (*node)(void* user, const operator_t* op, size_t n);
} receiver_t;

static assay_status_t push_new(const receiver_t* r, assay_status_t made, assay_tensor_t* t) {
  if (!made) made = r->constant(r->user, t);
  assay_tensor_release(t);
  return made;
}

enum { ATTRS = 16 };

static assay_status_t put_node(const receiver_t* r, const char* op_type, size_t n,
                               const assay_attr_t* attrs, size_t n_attrs) {
  const operator_t op = {
      .domain = "", .op_type = op_type, .attrs = attrs, .n_attrs = n_attrs, .n_outputs = 1};
  return r->node(r->user, &op, n);
}

static assay_attr_t int_attr(const char* name, int64_t i) {
  return (assay_attr_t){
      .name = name, .doc = "", .ref = "", .type = ASSAY_ATTR_INT, .n = 1, .u.i = i};
}

static assay_attr_t ints_attr(const char* name, const int64_t* list, size_t n) {
  return (assay_attr_t){.name = name,
                        .doc = "",
                        .ref = "",
                        .type = ASSAY_ATTR_INTS,
                        .n = n,
                        .u.ints = (int64_t*)list};
}

// The axes: an operand, or an attribute.
static assay_status_t do_axes(const assay_formula_t* f, const word_t* w, const receiver_t* r,
                              assay_attr_t* attrs, size_t* n_attrs, size_t* n) {
  if (r->opset >= w->axes_from) {
    assay_tensor_t* t = NULL;
    assay_status_t st =
        assay_tensor_vector_i64(ASSAY_TYPE_INT64, f->terms.n_axes, f->terms.axes, &t);
    (*n)++;
    return push_new(r, st, t);
  }
  attrs[(*n_attrs)++] = ints_attr("axes", f->terms.axes, (size_t)f->terms.n_axes);
  return NULL;
}

static assay_status_t do_word(const assay_formula_t* f, const word_t* w, const receiver_t* r) {
  assay_attr_t attrs[ATTRS];
  size_t n_attrs = 0, n = (size_t)w->n;
  if (w->holds) {
    ASSAY_TRY(r->constant(r->user, w->which ? f->terms.d : f->terms.c));
    n++;
  }
  if (w->axes) ASSAY_TRY(do_axes(f, w, r, attrs, &n_attrs, &n));
  if (w->drops) attrs[n_attrs++] = int_attr("keepdims", 0);
  if (w->axis) attrs[n_attrs++] = int_attr("axis", f->terms.axes[w->which]);
  if (w->reduction)
    attrs[n_attrs++] = (assay_attr_t){.name = "reduction",
                                      .doc = "",
                                      .ref = "",
                                      .type = ASSAY_ATTR_STRING,
                                      .n = 1,
                                      .u.s = {w->reduction, strlen(w->reduction)}};
  const bool is_bool = strcmp(w->text, "bool") == 0;
  if (is_bool || strcmp(w->text, "cast") == 0)
    attrs[n_attrs++] = int_attr("to", is_bool ? ASSAY_TYPE_BOOL : (int64_t)r->type);
  return put_node(r, w->op_type, n, attrs, n_attrs);
}

size_t assay_formula_append(char* program, size_t used, const char* word, const int64_t* list,
                            int n) {
  enum { NUMBER = 24 };
  used +=
      (size_t)snprintf(program + used, ASSAY_FORMULA_TEXT - used, "%s%s", used ? " " : "", word);
  for (int i = 0; i < n && used + NUMBER < ASSAY_FORMULA_TEXT; i++)
    used += (size_t)snprintf(program + used, ASSAY_FORMULA_TEXT - used, "%c%lld", i ? ',' : ':',
                             (long long)list[i]);
  return used + NUMBER < ASSAY_FORMULA_TEXT ? used : ASSAY_FORMULA_TEXT;
}

// Reads the numbers of a word such as "transpose:0,2,1". False: it is another word.
static bool read_list(const char* text, const char* word, int64_t* out, size_t* n) {
  const size_t length = strlen(word);
  char* end = (char*)text + length;
  *n = 0;
  if (strncmp(text, word, length) != 0 || text[length] != ':') return false;
  while (*end && *n < ASSAY_MAX_RANK) out[(*n)++] = strtoll(end + 1, &end, 10);
  return !*end;
}

static assay_status_t do_reshape(const receiver_t* r, const int64_t* dims, size_t n) {
  assay_tensor_t* t = NULL;
  assay_status_t st = assay_tensor_vector_i64(ASSAY_TYPE_INT64, (int64_t)n, dims, &t);
  ASSAY_TRY(push_new(r, st, t));
  return put_node(r, "Reshape", 2, NULL, 0);
}

static assay_status_t do_transpose(const receiver_t* r, const int64_t* order, size_t n) {
  const assay_attr_t perm = ints_attr("perm", order, n);
  return put_node(r, "Transpose", 1, &perm, 1);
}

static assay_status_t put_vector(const receiver_t* r, int64_t n, const int64_t* list) {
  assay_tensor_t* t = NULL;
  assay_status_t st = assay_tensor_vector_i64(ASSAY_TYPE_INT64, n, list, &t);
  return push_new(r, st, t);
}

// Elements begin to before end of an axis: inputs from version 10 on, before it attributes.
static assay_status_t do_slice(const receiver_t* r, const int64_t* list) {
  const assay_attr_t attrs[] = {ints_attr("axes", &list[0], 1), ints_attr("starts", &list[1], 1),
                                ints_attr("ends", &list[2], 1)};
  if (r->opset < 10) return put_node(r, "Slice", 1, attrs, 3);
  ASSAY_TRY(put_vector(r, 1, &list[1]));
  ASSAY_TRY(put_vector(r, 1, &list[2]));
  ASSAY_TRY(put_vector(r, 1, &list[0]));
  ASSAY_TRY(put_vector(r, 1, &list[3]));
  return put_node(r, "Slice", 5, NULL, 0);
}

static assay_status_t do_reversed(const receiver_t* r, const int64_t* list) {
  const assay_attr_t attrs[] = {int_attr("time_axis", list[0]), int_attr("batch_axis", list[1])};
  return put_node(r, "ReverseSequence", 2, attrs, 2);
}

static assay_status_t do_like(const assay_formula_t* f, const receiver_t* r, const int64_t* list) {
  const assay_node_t* n = f->terms.like[list[1]];
  const operator_t op = {.domain = n->domain,
                         .op_type = n->op_type,
                         .attrs = n->attrs,
                         .n_attrs = n->n_attrs,
                         .n_outputs = n->n_outputs,
                         .of = (size_t)list[2]};
  return r->node(r->user, &op, (size_t)list[0]);
}

static bool is_place(int64_t i) { return i >= 0 && i < ASSAY_FORMULA_MORE; }

// Words with numbers. *out_is false: it is another word.
static assay_status_t do_numbered(const assay_formula_t* f, const receiver_t* r, const char* text,
                                  bool* out_is) {
  int64_t list[ASSAY_MAX_RANK];
  size_t n = 0;
  *out_is = true;
  if (read_list(text, "reshape", list, &n)) return do_reshape(r, list, n);
  if (read_list(text, "transpose", list, &n)) return do_transpose(r, list, n);
  if (read_list(text, "slice", list, &n) && n == 4) return do_slice(r, list);
  if (read_list(text, "reversed", list, &n) && n == 2) return do_reversed(r, list);
  if (read_list(text, "concat", list, &n) && n == 2) {
    const assay_attr_t axis = int_attr("axis", list[0]);
    return put_node(r, "Concat", (size_t)list[1], &axis, 1);
  }
  if (read_list(text, "last", list, &n) && n == 1) {
    const assay_attr_t batch = int_attr("batch_dims", list[0]);
    return put_node(r, "GatherND", 2, &batch, 1);
  }
  if (read_list(text, "like", list, &n) && n == 3 && is_place(list[1]) && f->terms.like[list[1]])
    return do_like(f, r, list);
  if (read_list(text, "w", list, &n) && n == 1 && is_place(list[0]))
    return f->terms.more_made[list[0]] ? r->made(r->user, r, f->terms.more_made[list[0]])
                                       : r->value(r->user, f->terms.more[list[0]]);
  if (read_list(text, "k", list, &n) && n == 1 && is_place(list[0]))
    return r->constant(r->user, f->terms.constants[list[0]]);
  *out_is = false;
  return NULL;
}

static assay_status_t do_value(const assay_formula_t* f, const receiver_t* r, bool second) {
  const assay_formula_t* made = second ? f->terms.value2_made : f->terms.value_made;
  return made ? r->made(r->user, r, made)
              : r->value(r->user, second ? f->terms.value2 : f->terms.value);
}

static assay_status_t run_program(const assay_formula_t* f, const receiver_t* r) {
  const char* at = f->program;
  for (char text[WORD]; next_word(&at, text);) {
    const word_t* w = find_word(text);
    char* end = NULL;
    const double number = strtod(text, &end);
    bool numbered = false;
    if (!w) ASSAY_TRY(do_numbered(f, r, text, &numbered));
    if (numbered) continue;
    if (w) {
      ASSAY_TRY(do_word(f, w, r));
    } else if (strcmp(text, "x") == 0) {
      ASSAY_TRY(f->terms.source_made ? r->made(r->user, r, f->terms.source_made)
                                     : r->source(r->user));
    } else if (strcmp(text, "v") == 0 || strcmp(text, "u") == 0) {
      ASSAY_TRY(do_value(f, r, *text == 'u'));
    } else if (strcmp(text, "none") == 0) {
      ASSAY_TRY(r->none(r->user));
    } else if (strcmp(text, "c") == 0 || strcmp(text, "d") == 0) {
      ASSAY_TRY(r->constant(r->user, *text == 'c' ? f->terms.c : f->terms.d));
    } else if (strcmp(text, "dup") == 0) {
      ASSAY_TRY(r->duplicate(r->user));
    } else if (!*end) {
      assay_tensor_t* t = NULL;
      const double held =
          assay_type_is_float(r->type)
              ? assay_format_round(assay_type_format(r->type), number, ASSAY_OVERFLOW_IEEE)
              : number;
      assay_status_t st = assay_tensor_scalar_f64(r->type, held, &t);
      ASSAY_TRY(push_new(r, st, t));
    } else {
      ASSAY_TRY(put_node(r, text, 1, NULL, 0));
    }
  }
  return NULL;
}

static assay_status_t no_room(const char* program) {
  return ASSAY_ERROR(ASSAY_INTERNAL, "the formula '%s' does not fit its stack", program);
}

// ---- evaluating --------------------------------------------------------------------------------

typedef struct run {
  const assay_formula_t* f;
  assay_evaluator_t* m;
  const assay_node_t* like;
  assay_tensor_t* x;  // borrowed
  assay_tensor_t* stack[STACK];
  int n;
} run_t;

static assay_status_t push(run_t* s, assay_tensor_t* t) {
  if (!t) return ASSAY_ERROR(ASSAY_NOT_FOUND, "a formula's value is not known");
  if (s->n == STACK) return no_room(s->f->program);
  s->stack[s->n++] = assay_tensor_retain(t);
  return NULL;
}

static assay_status_t run_source(void* user) { return push(user, ((run_t*)user)->x); }

static assay_status_t run_value(void* user, const assay_value_t* v) {
  return push(user, v ? assay_evaluator_get(((run_t*)user)->m, v) : NULL);
}

static assay_status_t run_constant(void* user, assay_tensor_t* t) { return push(user, t); }

static assay_status_t run_duplicate(void* user) {
  run_t* s = user;
  return s->n ? push(s, s->stack[s->n - 1]) : no_room(s->f->program);
}

static assay_status_t run_none(void* user) {
  run_t* s = user;
  if (s->n == STACK) return no_room(s->f->program);
  s->stack[s->n++] = NULL;
  return NULL;
}

// Another formula, with a source of its own.
static assay_status_t run_made(void* user, const receiver_t* r, const assay_formula_t* f) {
  run_t* s = user;
  const assay_formula_t* before = s->f;
  assay_tensor_t* x = s->x;
  s->f = f;
  s->x = f->terms.source ? assay_evaluator_get(s->m, f->terms.source) : x;
  assay_status_t st = run_program(f, r);
  s->f = before;
  s->x = x;
  return st;
}

static assay_status_t run_operator(run_t* s, assay_node_t* node, size_t n, size_t of) {
  assay_tensor_t** made = NULL;
  assay_tensor_t** in = &s->stack[(size_t)s->n - n];
  if (of >= node->n_outputs) return no_room(s->f->program);
  ASSAY_TRY(assay_new_array(node->n_outputs, sizeof *made, &made));
  assay_status_t st = assay_evaluator_node(s->m, node, n, in, node->n_outputs, made);
  for (size_t i = 0; i < n; i++) assay_tensor_release(in[i]);
  s->n -= (int)n;
  if (!st) st = push(s, made[of]);
  for (size_t i = 0; i < node->n_outputs; i++) assay_tensor_release(made[i]);
  assay_free(made);
  return st;
}

static assay_status_t run_node(void* user, const operator_t* op, size_t n) {
  run_t* s = user;
  const int64_t version = assay_model_opset(s->like->graph->model, op->domain);
  assay_node_t node = *s->like;
  assay_value_t* no_values[STACK] = {0};
  assay_attr_t copy[ATTRS];
  if (n > (size_t)s->n || op->n_attrs > ATTRS) return no_room(s->f->program);
  for (size_t i = 0; i < op->n_attrs; i++) copy[i] = op->attrs[i];
  node.domain = op->domain;
  node.op_type = op->op_type;
  node.inputs = no_values;
  node.n_inputs = n;
  node.n_outputs = op->n_outputs;
  node.attrs = copy;
  node.n_attrs = op->n_attrs;
  node.op = assay_op_find(op->domain, op->op_type, version);
  node.schema = assay_schema_find(op->domain, op->op_type, version, NULL);
  if (!node.op || !node.schema)
    return ASSAY_ERROR(ASSAY_NOT_FOUND, "there is no operator %s in version %lld", op->op_type,
                       (long long)version);
  return run_operator(s, &node, n, op->of);
}

assay_status_t assay_formula_evaluate(const assay_formula_t* f, assay_evaluator_t* m,
                                      const assay_node_t* like, assay_tensor_t* x,
                                      assay_tensor_t** out) {
  run_t s = {.f = f, .m = m, .like = like, .x = x};
  const receiver_t r = {.user = &s,
                        .type = x ? x->type : ASSAY_TYPE_FLOAT,
                        .opset = assay_model_opset(like->graph->model, ""),
                        .source = run_source,
                        .value = run_value,
                        .constant = run_constant,
                        .duplicate = run_duplicate,
                        .made = run_made,
                        .none = run_none,
                        .node = run_node};
  *out = NULL;
  assay_status_t st = run_program(f, &r);
  if (!st && s.n != 1) st = no_room(f->program);
  if (!st) *out = assay_tensor_retain(s.stack[0]);
  for (int i = 0; i < s.n; i++) assay_tensor_release(s.stack[i]);
  return st;
}

// ---- putting into a graph ----------------------------------------------------------------------

typedef struct insertion {
  const assay_formula_t* f;
  assay_graph_t* g;
  assay_value_t* x;
  const char* hint;  // of names
  size_t at;
  assay_node_t* last;
  size_t of;  // the output of `last` that holds the result
  assay_value_t* stack[STACK];
  int n;
} insertion_t;

static assay_status_t put_value(insertion_t* s, assay_value_t* v) {
  if (s->n == STACK) return no_room(s->f->program);
  s->stack[s->n++] = v;
  return NULL;
}

// The value of this name in the model as it was read.
static assay_status_t put_named(insertion_t* s, const assay_value_t* v) {
  assay_value_t* found = v ? assay_graph_find(s->g, v->name) : NULL;
  if (!found) return ASSAY_ERROR(ASSAY_NOT_FOUND, "the model has no value '%s'", v ? v->name : "");
  return put_value(s, found);
}

static assay_status_t insert_source(void* user) {
  insertion_t* s = user;
  return s->f->terms.source ? put_named(s, s->f->terms.source) : put_value(s, s->x);
}

static assay_status_t insert_value(void* user, const assay_value_t* v) {
  return put_named(user, v);
}

static assay_status_t insert_constant(void* user, assay_tensor_t* t) {
  insertion_t* s = user;
  assay_tensor_t* packed = NULL;
  assay_value_t* v = NULL;
  ASSAY_TRY(assay_graph_new_value(s->g, s->hint, &v));
  ASSAY_TRY(assay_tensor_pack(t, &packed));
  ASSAY_TRY(assay_graph_set_initializer(v, packed));
  return put_value(s, v);
}

static assay_status_t insert_duplicate(void* user) {
  insertion_t* s = user;
  return s->n ? put_value(s, s->stack[s->n - 1]) : no_room(s->f->program);
}

static assay_status_t copy_attr(assay_arena_t* arena, const assay_attr_t* from, assay_attr_t* to) {
  *to = *from;
  if (from->type != ASSAY_ATTR_INTS) return NULL;
  int64_t* numbers = NULL;
  ASSAY_TRY(assay_arena_new(arena, from->n, sizeof *numbers, &numbers));
  memcpy(numbers, from->u.ints, from->n * sizeof *numbers);
  to->u.ints = numbers;
  return NULL;
}

static assay_status_t insert_none(void* user) { return put_value(user, NULL); }

static assay_status_t insert_made(void* user, const receiver_t* r, const assay_formula_t* f) {
  insertion_t* s = user;
  const assay_formula_t* before = s->f;
  s->f = f;
  assay_status_t st = run_program(f, r);
  s->f = before;
  return st;
}

static assay_status_t insert_node(void* user, const operator_t* op, size_t n) {
  insertion_t* s = user;
  assay_value_t* to = NULL;
  assay_node_t* node = NULL;
  const char *type = NULL, *domain = NULL;
  if (n > (size_t)s->n) return no_room(s->f->program);
  ASSAY_TRY(assay_arena_printf(s->g->model->arena, &type, "%s", op->op_type));
  ASSAY_TRY(assay_arena_printf(s->g->model->arena, &domain, "%s", op->domain));
  ASSAY_TRY(assay_graph_new_value(s->g, s->hint, &to));
  ASSAY_TRY(assay_node_create(s->g, domain, type, to->name, n, op->of + 1, op->n_attrs, &node));
  s->n -= (int)n;
  for (size_t i = 0; i < n; i++) node->inputs[i] = s->stack[(size_t)s->n + i];
  for (size_t i = 0; i < op->n_attrs; i++)
    ASSAY_TRY(copy_attr(s->g->model->arena, &op->attrs[i], &node->attrs[i]));
  assay_node_set_output(node, op->of, to);
  ASSAY_TRY(assay_graph_insert(s->g, node, s->at++));
  s->last = node;
  s->of = op->of;
  return put_value(s, to);
}

assay_status_t assay_formula_insert(const assay_formula_t* f, assay_graph_t* g, assay_type_t type,
                                    assay_value_t* in, assay_value_t* result, size_t* at,
                                    assay_value_t** out) {
  insertion_t s = {.f = f, .g = g, .x = in, .at = *at};
  const receiver_t r = {.user = &s,
                        .type = type,
                        .opset = assay_model_opset(g->model, ""),
                        .source = insert_source,
                        .value = insert_value,
                        .constant = insert_constant,
                        .duplicate = insert_duplicate,
                        .made = insert_made,
                        .none = insert_none,
                        .node = insert_node};
  ASSAY_TRY(assay_arena_printf(g->model->arena, &s.hint, "%s_repaired", in->name));
  ASSAY_TRY(run_program(f, &r));
  if (s.n != 1) return no_room(f->program);
  // A formula of one value makes none of its own.
  if (result && !s.last) ASSAY_TRY(put_node(&r, "Identity", 1, NULL, 0));
  if (result) assay_node_set_output(s.last, s.of, result);
  *out = result ? result : s.stack[0];
  *at = s.at;
  return NULL;
}
