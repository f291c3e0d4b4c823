// What a formula is made of, and its program, word by word.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/formula/program.h"
#include "formats/format.h"

enum { WORD = 64 };

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

void assay_formula_set_rounding(assay_formula_t* f, bool rounds) { f->rounds = rounds; }

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
  bool turns;  // attributes `batch_axis` and `time_axis`: the first and the second of the axes
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
    {.text = "int", .op_type = "Cast", .n = 1},
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
    {.text = "product", .op_type = "ReduceProd", .n = 1, .axes = true, .axes_from = 18},
    {.text = "product.",
     .op_type = "ReduceProd",
     .n = 1,
     .axes = true,
     .axes_from = 18,
     .drops = true},
    {.text = "length", .op_type = "ReduceL2", .n = 1, .axes = true, .axes_from = 18},
    {.text = "length.",
     .op_type = "ReduceL2",
     .n = 1,
     .axes = true,
     .axes_from = 18,
     .drops = true},
    {.text = "magnitude", .op_type = "ReduceL1", .n = 1, .axes = true, .axes_from = 18},
    {.text = "magnitude.",
     .op_type = "ReduceL1",
     .n = 1,
     .axes = true,
     .axes_from = 18,
     .drops = true},
    {.text = "squares", .op_type = "ReduceSumSquare", .n = 1, .axes = true, .axes_from = 18},
    {.text = "squares.",
     .op_type = "ReduceSumSquare",
     .n = 1,
     .axes = true,
     .axes_from = 18,
     .drops = true},
    {.text = "logsumexp", .op_type = "ReduceLogSumExp", .n = 1, .axes = true, .axes_from = 18},
    {.text = "logsumexp.",
     .op_type = "ReduceLogSumExp",
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
    {.text = "reverse", .op_type = "ReverseSequence", .n = 2, .turns = true},
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

static assay_status_t push_new(const assay_formula_receiver_t* r, assay_status_t made,
                               assay_tensor_t* t) {
  if (!made) made = r->constant(r->user, t);
  assay_tensor_release(t);
  return made;
}

assay_status_t assay_formula_put_node(const assay_formula_receiver_t* r, const char* op_type,
                                      size_t n, const assay_attr_t* attrs, size_t n_attrs) {
  const assay_formula_operator_t op = {
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
static assay_status_t do_axes(const assay_formula_t* f, const word_t* w,
                              const assay_formula_receiver_t* r, assay_attr_t* attrs,
                              size_t* n_attrs, size_t* n) {
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

static int64_t type_to(const word_t* w, assay_type_t source) {
  return strcmp(w->text, "bool") == 0  ? ASSAY_TYPE_BOOL
         : strcmp(w->text, "int") == 0 ? ASSAY_TYPE_INT64
                                       : (int64_t)source;
}

static assay_status_t do_word(const assay_formula_t* f, const word_t* w,
                              const assay_formula_receiver_t* r) {
  assay_attr_t attrs[ASSAY_FORMULA_ATTRS];
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
  if (w->turns) {
    attrs[n_attrs++] = int_attr("batch_axis", f->terms.axes[0]);
    attrs[n_attrs++] = int_attr("time_axis", f->terms.axes[1]);
  }
  if (strcmp(w->op_type, "Cast") == 0) attrs[n_attrs++] = int_attr("to", type_to(w, r->type));
  return assay_formula_put_node(r, w->op_type, n, attrs, n_attrs);
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

static assay_status_t do_reshape(const assay_formula_receiver_t* r, const int64_t* dims, size_t n) {
  assay_tensor_t* t = NULL;
  assay_status_t st = assay_tensor_vector_i64(ASSAY_TYPE_INT64, (int64_t)n, dims, &t);
  ASSAY_TRY(push_new(r, st, t));
  return assay_formula_put_node(r, "Reshape", 2, NULL, 0);
}

static assay_status_t do_transpose(const assay_formula_receiver_t* r, const int64_t* order,
                                   size_t n) {
  const assay_attr_t perm = ints_attr("perm", order, n);
  return assay_formula_put_node(r, "Transpose", 1, &perm, 1);
}

static assay_status_t put_vector(const assay_formula_receiver_t* r, int64_t n,
                                 const int64_t* list) {
  assay_tensor_t* t = NULL;
  assay_status_t st = assay_tensor_vector_i64(ASSAY_TYPE_INT64, n, list, &t);
  return push_new(r, st, t);
}

// Zeros around: of so many before and behind each dimension, an operand from version 11 on.
static assay_status_t do_pad(const assay_formula_receiver_t* r, const int64_t* pads, size_t n) {
  enum { AS_INPUT = 11 };
  const assay_attr_t attr = ints_attr("pads", pads, n);
  if (r->opset < AS_INPUT) return assay_formula_put_node(r, "Pad", 1, &attr, 1);
  ASSAY_TRY(put_vector(r, (int64_t)n, pads));
  return assay_formula_put_node(r, "Pad", 2, NULL, 0);
}

// Elements begin to before end of an axis: inputs from version 10 on, before it attributes.
static assay_status_t do_slice(const assay_formula_receiver_t* r, const int64_t* list) {
  const assay_attr_t attrs[] = {ints_attr("axes", &list[0], 1), ints_attr("starts", &list[1], 1),
                                ints_attr("ends", &list[2], 1)};
  if (r->opset < 10) return assay_formula_put_node(r, "Slice", 1, attrs, 3);
  ASSAY_TRY(put_vector(r, 1, &list[1]));
  ASSAY_TRY(put_vector(r, 1, &list[2]));
  ASSAY_TRY(put_vector(r, 1, &list[0]));
  ASSAY_TRY(put_vector(r, 1, &list[3]));
  return assay_formula_put_node(r, "Slice", 5, NULL, 0);
}

// Sums of all before, of an axis; exclusive: without the element itself.
static assay_status_t do_cumsum(const assay_formula_receiver_t* r, const int64_t* list) {
  const assay_attr_t attrs[] = {int_attr("exclusive", list[1]), int_attr("reverse", list[2])};
  assay_tensor_t* axis = NULL;
  assay_status_t st = assay_tensor_scalar_i64(ASSAY_TYPE_INT64, list[0], &axis);
  ASSAY_TRY(push_new(r, st, axis));
  return assay_formula_put_node(r, "CumSum", 2, attrs, 2);
}

static assay_status_t do_reversed(const assay_formula_receiver_t* r, const int64_t* list) {
  const assay_attr_t attrs[] = {int_attr("time_axis", list[0]), int_attr("batch_axis", list[1])};
  return assay_formula_put_node(r, "ReverseSequence", 2, attrs, 2);
}

static assay_status_t do_like(const assay_formula_t* f, const assay_formula_receiver_t* r,
                              const int64_t* list) {
  const assay_node_t* n = f->terms.like[list[1]];
  const assay_formula_operator_t op = {.domain = n->domain,
                                       .op_type = n->op_type,
                                       .attrs = n->attrs,
                                       .n_attrs = n->n_attrs,
                                       .n_outputs = n->n_outputs,
                                       .of = (size_t)list[2]};
  return r->node(r->user, &op, (size_t)list[0]);
}

static assay_status_t do_pool(const assay_formula_receiver_t* r, const char* op_type,
                              const int64_t* list) {
  assay_formula_pool_t pool;
  const size_t n = assay_formula_read_pool(list, &pool);
  return n ? assay_formula_put_node(r, op_type, 1, pool.attrs, n) : assay_formula_no_room(op_type);
}

static bool is_place(int64_t i) { return i >= 0 && i < ASSAY_FORMULA_MORE; }

// Words with numbers. *out_is false: it is another word.
static assay_status_t do_numbered(const assay_formula_t* f, const assay_formula_receiver_t* r,
                                  const char* text, bool* out_is) {
  int64_t list[ASSAY_MAX_RANK];
  size_t n = 0;
  *out_is = true;
  if (read_list(text, "reshape", list, &n)) return do_reshape(r, list, n);
  if (read_list(text, "transpose", list, &n)) return do_transpose(r, list, n);
  if (read_list(text, "pad", list, &n)) return do_pad(r, list, n);
  if (read_list(text, "slice", list, &n) && n == 4) return do_slice(r, list);
  if (read_list(text, "maxpool", list, &n) && n == 6) return do_pool(r, "MaxPool", list);
  if (read_list(text, "meanpool", list, &n) && n == 6) return do_pool(r, "AveragePool", list);
  if (read_list(text, "cumsum", list, &n) && n == 3) return do_cumsum(r, list);
  if (read_list(text, "reversed", list, &n) && n == 2) return do_reversed(r, list);
  if (read_list(text, "concat", list, &n) && n == 2) {
    const assay_attr_t axis = int_attr("axis", list[0]);
    return assay_formula_put_node(r, "Concat", (size_t)list[1], &axis, 1);
  }
  if (read_list(text, "last", list, &n) && n == 1) {
    const assay_attr_t batch = int_attr("batch_dims", list[0]);
    return assay_formula_put_node(r, "GatherND", 2, &batch, 1);
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

static assay_status_t do_value(const assay_formula_t* f, const assay_formula_receiver_t* r,
                               bool second) {
  const assay_formula_t* made = second ? f->terms.value2_made : f->terms.value_made;
  return made ? r->made(r->user, r, made)
              : r->value(r->user, second ? f->terms.value2 : f->terms.value);
}

assay_status_t assay_formula_run(const assay_formula_t* f, const assay_formula_receiver_t* r) {
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
      ASSAY_TRY(assay_formula_put_node(r, text, 1, NULL, 0));
    }
  }
  return NULL;
}

assay_status_t assay_formula_no_room(const char* program) {
  return ASSAY_ERROR(ASSAY_INTERNAL, "the formula '%s' does not fit its stack", program);
}
