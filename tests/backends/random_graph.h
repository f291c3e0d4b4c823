// Random graphs: legal models of what networks are made of, for tests of whole plans.
//
// A graph is rows of text (inputs, constants, nodes, outputs), drawn from a seed and a number, so
// that the same graph can be built with open and with fixed sizes, and printed. While rows are
// drawn, a model grows with them: inference says which sizes each value has.
//
// The batch is the open size N, a length L: inputs have them in their declared types. Of each value
// it is known on which axis the samples of the batch lie, each computed by itself. Graphs of two
// batches have inputs of a batch M as well, which is N or 1, and values that follow from sizes.
#ifndef ASSAY_TESTS_BACKENDS_RANDOM_GRAPH_H_
#define ASSAY_TESTS_BACKENDS_RANDOM_GRAPH_H_

#include "base/random.h"
#include "formats/format.h"
#include "passes/graph_case.h"

enum {
  RANDOM_GRAPH_ROWS = 220,
  RANDOM_GRAPH_VALUES = 260,
  RANDOM_GRAPH_RANK = 8,
  RANDOM_GRAPH_TEXT = 400,
  RANDOM_GRAPH_N = 2,  // what sizes are while rows are drawn
  RANDOM_GRAPH_L = 5,
  // Where samples lie, beside an axis.
  ROWS_NONE = -1,   // the same for any batch
  ROWS_MIXED = -2,  // samples read each other, or lie in no axis of their own
};

// A value that nodes may read.
typedef struct random_value {
  char name[16];
  assay_type_t type;
  int rank;
  int64_t dims[RANDOM_GRAPH_RANK];
  bool open[RANDOM_GRAPH_RANK];
  int64_t size;
  int rows;
  int readers;
} random_value_t;

typedef struct random_graph {
  uint64_t seed, number, state;
  int opset;
  assay_type_t type;  // of most values
  int scale;          // 1: small sizes; 2: enough for several threads
  bool is_quantized;  // has steps of QuantizeLinear
  bool is_special;    // inputs hold infinities, NaN and the like
  bool one_m;         // M is 1, whatever N is
  char inputs[4][RANDOM_GRAPH_TEXT];
  char constants[RANDOM_GRAPH_ROWS][RANDOM_GRAPH_TEXT];
  char nodes[RANDOM_GRAPH_ROWS][RANDOM_GRAPH_TEXT];
  int n_inputs, n_constants, n_nodes;
  random_value_t values[RANDOM_GRAPH_VALUES];
  int n_values;
  int outputs[RANDOM_GRAPH_VALUES];  // indices of values
  int n_outputs;
  assay_model_t* model;  // while it is drawn
} random_graph_t;

// ---- numbers --------------------------------------------------------------------------------

static inline uint64_t random_graph_next(random_graph_t* g) {  // splitmix64
  uint64_t z = g->state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static inline int64_t draw(random_graph_t* g, int64_t low, int64_t high) {
  return high <= low ? low : low + (int64_t)(random_graph_next(g) % (uint64_t)(high - low + 1));
}

static inline bool one_in(random_graph_t* g, int n) {
  return random_graph_next(g) % (uint64_t)n == 0;
}

// ---- printing -------------------------------------------------------------------------------

static inline void random_graph_print(const random_graph_t* g, FILE* to) {
  fprintf(to, "graph %llu of seed %llu: opset %d%s\n", (unsigned long long)g->number,
          (unsigned long long)g->seed, g->opset, g->is_special ? ", special inputs" : "");
  for (int i = 0; i < g->n_inputs; i++) fprintf(to, "  input %s\n", g->inputs[i]);
  for (int i = 0; i < g->n_constants; i++) fprintf(to, "  constant %s\n", g->constants[i]);
  for (int i = 0; i < g->n_nodes; i++) fprintf(to, "  %s\n", g->nodes[i]);
  fprintf(to, "  outputs");
  for (int i = 0; i < g->n_outputs; i++) fprintf(to, " %s", g->values[g->outputs[i]].name);
  fprintf(to, "\n");
}

static inline void random_graph_ok(const random_graph_t* g, assay_status_t st) {
  if (!st) return;
  random_graph_print(g, stderr);
  fprintf(stderr, "%s\n", assay_status_message(st));
  assay_status_free(st);
  fail();
}

// ---- tensors of rows ------------------------------------------------------------------------

// Splits "name type[dims] rest"; dims of letters are N, M or L.
static inline const char* random_graph_row(const char* row, char name[64], assay_type_t* type,
                                           int* rank, char dims[RANDOM_GRAPH_RANK][16]) {
  char text[32];
  int used = 0;
  assert_int_equal(sscanf(row, "%63s %31[^[][%n", name, text, &used), 2);
  *type = assay_type_parse(text);
  *rank = 0;
  const char* p = row + used;
  while (*p != ']') {
    assert_int_equal(sscanf(p, "%15[^],]", dims[(*rank)++]), 1);
    p += strcspn(p, ",]");
    p += *p == ',';
  }
  return p + 1 + (p[1] == ' ');
}

static inline int64_t random_graph_dim(const char* text, int64_t n, int64_t l) {
  return *text == 'N' || *text == 'M' ? n : *text == 'L' ? l : strtoll(text, NULL, 10);
}

// Element i of a stream, as `kind` says: "normal S" (of deviation S), "range A B", "ints A B".
static inline double random_graph_element(const assay_random_t* r, uint64_t i, const char* kind) {
  double a = 0, b = 0;
  if (sscanf(kind, "normal %lf", &a) == 1) return a * assay_random_normal(r, i);
  const double u = assay_random_uniform(r, i);
  if (sscanf(kind, "range %lf %lf", &a, &b) == 2) return a + (b - a) * u;
  if (sscanf(kind, "ints %lf %lf", &a, &b) == 2) return a + floor((b - a + 1) * u);
  fail_msg("contents '%s'", kind);
  return 0;
}

// Rounds a tensor to its type; takes it.
static inline assay_tensor_t* random_graph_rounded(assay_tensor_t* t) {
  assay_tensor_t* out = NULL;
  if (t->store != ASSAY_STORE_F64) return t;
  op_case_ok(assay_round_tensor(t, assay_type_format(t->type), &out));
  assay_tensor_release(t);
  return out;
}

static inline assay_tensor_t* random_graph_constant(const random_graph_t* g, const char* row,
                                                    char name[64]) {
  char dims[RANDOM_GRAPH_RANK][16];
  assay_type_t type;
  int rank;
  const char* rest = random_graph_row(row, name, &type, &rank, dims);
  if (*rest == '=') {
    char text[RANDOM_GRAPH_TEXT];
    const size_t head = (size_t)(rest - row) - strlen(name) - 1;
    snprintf(text, sizeof text, "%.*s%s", (int)head, row + strlen(name) + 1, rest + 1);
    return random_graph_rounded(op_case_tensor(text));
  }
  int64_t sizes[RANDOM_GRAPH_RANK] = {0};
  for (int i = 0; i < rank; i++) sizes[i] = random_graph_dim(dims[i], 0, 0);
  assay_tensor_t* t = NULL;
  op_case_ok(assay_tensor_create_zero(type, rank, sizes, &t));
  char stream[96];
  snprintf(stream, sizeof stream, "%s of %llu", name, (unsigned long long)g->number);
  const assay_random_t r = assay_random_make(g->seed, stream, 0);
  for (int64_t i = 0; i < t->size; i++) {
    const double x = random_graph_element(&r, (uint64_t)i, rest);
    if (t->store == ASSAY_STORE_F64)
      assay_f64(t)[i] = x;
    else
      assay_i64(t)[i] = (int64_t)x;
  }
  return random_graph_rounded(t);
}

// Input `at` for samples first .. first+n-1: a sample's numbers do not depend on which others there
// are.
static inline assay_tensor_t* random_graph_input(const random_graph_t* g, int at, int64_t first,
                                                 int64_t n, int64_t l) {
  static const double specials[] = {INFINITY, -INFINITY, NAN, 0, -0.0, 1e-41, 6e4, -1e-39};
  char name[64], dims[RANDOM_GRAPH_RANK][16], stream[96];
  assay_type_t type;
  int rank, axis = -1;
  const char* kind = random_graph_row(g->inputs[at], name, &type, &rank, dims);
  int64_t sizes[RANDOM_GRAPH_RANK] = {0}, inner = 1, outer = 1;
  for (int i = 0; i < rank; i++) {
    const bool shared = g->one_m && *dims[i] == 'M';
    sizes[i] = random_graph_dim(dims[i], shared ? 1 : n, l);
    if (!shared && (*dims[i] == 'N' || *dims[i] == 'M'))
      axis = i;
    else if (axis < 0)
      outer *= sizes[i];
    else
      inner *= sizes[i];
  }
  if (axis < 0) inner = outer, outer = 1;
  const int64_t samples = axis < 0 ? 1 : n;
  assay_tensor_t* t = NULL;
  op_case_ok(assay_tensor_create_zero(type, rank, sizes, &t));
  for (int64_t s = 0; s < samples; s++) {
    snprintf(stream, sizeof stream, "%s of %llu", name, (unsigned long long)g->number);
    const assay_random_t r =
        assay_random_make(g->seed, stream, (uint64_t)(axis < 0 ? 1 : first + s + 1));
    for (int64_t i = 0; i < outer * inner; i++) {
      const int64_t to = (i / inner * samples + s) * inner + i % inner;
      double x = random_graph_element(&r, (uint64_t)i, kind);
      const uint64_t z = (uint64_t)(assay_random_uniform(&r, (uint64_t)(i + (1 << 30))) * 400);
      if (g->is_special && t->store == ASSAY_STORE_F64 && z < sizeof specials / sizeof *specials)
        x = specials[z];
      if (t->store == ASSAY_STORE_F64)
        assay_f64(t)[to] = x;
      else
        assay_i64(t)[to] = (int64_t)x;
    }
  }
  return random_graph_rounded(t);
}

// ---- models of rows -------------------------------------------------------------------------

static inline assay_model_t* random_graph_empty(const random_graph_t* g) {
  assay_model_t* m = NULL;
  op_case_ok(assay_model_create(&m));
  m->ir_version = 10;
  m->opsets = assay_arena_alloc(m->arena, 1, sizeof *m->opsets);
  assert_non_null(m->opsets);
  m->opsets[0] = (assay_opset_t){"", g->opset};
  m->n_opsets = 1;
  op_case_ok(assay_graph_create(m, NULL, &m->graph));
  m->graph->name = "random";
  m->graph->inputs = op_case_list(m, 4);
  m->graph->outputs = op_case_list(m, RANDOM_GRAPH_VALUES);
  return m;
}

// Declares an input; n, l negative: open sizes.
static inline void random_graph_declare(assay_model_t* m, const char* row, int64_t n, int64_t l) {
  char name[64], dims[RANDOM_GRAPH_RANK][16];
  const assay_dim_t* sizes[RANDOM_GRAPH_RANK];
  assay_type_t type;
  int rank;
  assay_value_t* v = NULL;
  random_graph_row(row, name, &type, &rank, dims);
  for (int i = 0; i < rank; i++) {
    const int64_t size = random_graph_dim(dims[i], n, l);
    sizes[i] = size < 0 ? assay_dim_symbol(m->dims, dims[i]) : assay_dim_const(m->dims, size);
  }
  op_case_ok(assay_graph_add_value(m->graph, name, &v));
  v->is_input = true;
  op_case_ok(assay_valtype_tensor(m, type, rank, sizes, &v->declared));
  m->graph->inputs[m->graph->n_inputs++] = v;
}

static inline void random_graph_hold(const random_graph_t* g, assay_model_t* m, const char* row) {
  char name[64];
  assay_value_t* v = NULL;
  assay_tensor_t* t = random_graph_constant(g, row, name);
  op_case_ok(assay_graph_add_value(m->graph, name, &v));
  op_case_ok(assay_graph_set_initializer(v, t));
}

// The model with open sizes (n, l negative) or fixed ones.
static inline assay_model_t* random_graph_model(const random_graph_t* g, int64_t n, int64_t l) {
  assay_model_t* m = random_graph_empty(g);
  for (int i = 0; i < g->n_inputs; i++) random_graph_declare(m, g->inputs[i], n, l);
  for (int i = 0; i < g->n_constants; i++) random_graph_hold(g, m, g->constants[i]);
  for (int i = 0; i < g->n_nodes; i++) graph_case_node(m->graph, g->nodes[i], g->opset);
  for (int i = 0; i < g->n_outputs; i++) {
    assay_value_t* v = assay_graph_find(m->graph, g->values[g->outputs[i]].name);
    assert_non_null(v);
    v->is_output = true;
    m->graph->outputs[m->graph->n_outputs++] = v;
  }
  random_graph_ok(g, assay_onnx_check(m));
  random_graph_ok(g, assay_infer_model(m));
  return m;
}

// ---- drawing rows ---------------------------------------------------------------------------

static inline bool random_graph_size(void* user, const char* name, int64_t* out) {
  (void)user;
  *out = *name == 'L' ? RANDOM_GRAPH_L : RANDOM_GRAPH_N;
  return *name == 'N' || *name == 'M' || *name == 'L';
}

// Notes a value that the growing model has; -1: of no known sizes, nobody may read it.
static inline int random_graph_note(random_graph_t* g, const assay_value_t* v, int rows) {
  const assay_valtype_t* type = v->type ? v->type : v->declared;
  if (!type || !type->has_shape || type->rank > RANDOM_GRAPH_RANK ||
      g->n_values == RANDOM_GRAPH_VALUES)
    return -1;
  random_value_t* r = &g->values[g->n_values];
  *r = (random_value_t){.type = type->elem, .rank = type->rank, .rows = rows, .size = 1};
  snprintf(r->name, sizeof r->name, "%.15s", v->name);
  for (int i = 0; i < r->rank; i++) {
    int64_t known;
    if (!assay_dim_eval(type->dims[i], random_graph_size, NULL, &r->dims[i])) return -1;
    r->open[i] = !assay_dim_value(type->dims[i], &known);
    r->size *= r->dims[i];
  }
  return g->n_values++;
}

static inline void random_graph_add_input(random_graph_t* g, int rows, const char* format, ...)
    ASSAY_PRINTF(3, 4);
static inline void random_graph_add_input(random_graph_t* g, int rows, const char* format, ...) {
  char* row = g->inputs[g->n_inputs];
  const int head = snprintf(row, RANDOM_GRAPH_TEXT, "x%d ", g->n_inputs++);
  va_list args;
  va_start(args, format);
  vsnprintf(row + head, (size_t)(RANDOM_GRAPH_TEXT - head), format, args);
  va_end(args);
  random_graph_declare(g->model, row, -1, -1);
  random_graph_note(g, g->model->graph->inputs[g->n_inputs - 1], rows);
}

// A constant; its name.
static inline const char* constant(random_graph_t* g, assay_type_t type, int rank,
                                   const int64_t* dims, const char* contents) {
  static char names[64][16];
  static unsigned next;
  assert_true(g->n_constants < RANDOM_GRAPH_ROWS);
  char *row = g->constants[g->n_constants], *name = names[next++ % 64];
  snprintf(name, sizeof names[0], "c%d", g->n_constants++);
  int n = snprintf(row, RANDOM_GRAPH_TEXT, "%s %s[", name, assay_type_name(type));
  for (int i = 0; i < rank; i++)
    n += snprintf(row + n, (size_t)(RANDOM_GRAPH_TEXT - n), "%s%lld", i ? "," : "",
                  (long long)dims[i]);
  snprintf(row + n, (size_t)(RANDOM_GRAPH_TEXT - n), "] %s", contents);
  random_graph_hold(g, g->model, row);
  return name;
}

// A list of integers.
static inline const char* integers(random_graph_t* g, int n, const int64_t* x) {
  char text[RANDOM_GRAPH_TEXT] = "=";
  for (int i = 0, used = 1; i < n; i++)
    used += snprintf(text + used, sizeof text - (size_t)used, " %lld", (long long)x[i]);
  const int64_t dims[1] = {n};
  return constant(g, ASSAY_TYPE_INT64, 1, dims, text);
}

// A single number, of rank 0.
static inline const char* number(random_graph_t* g, assay_type_t type, double x) {
  char text[40];
  snprintf(text, sizeof text, "= %.9g", x);
  return constant(g, type, 0, NULL, text);
}

// "Op in... | attrs": adds the node with n_out outputs whose samples lie on axis `rows`. The index
// of the first output; -1: its sizes are not known.
static inline int emit(random_graph_t* g, int rows, int n_out, const char* format, ...)
    ASSAY_PRINTF(4, 5);
static inline int emit(random_graph_t* g, int rows, int n_out, const char* format, ...) {
  char text[RANDOM_GRAPH_TEXT];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  assert_true(g->n_nodes < RANDOM_GRAPH_ROWS);
  const size_t op = strcspn(text, " "), inputs = strcspn(text, "|");
  char* row = g->nodes[g->n_nodes];
  int n = snprintf(row, RANDOM_GRAPH_TEXT, "%.*s n%d%.*s ->", (int)op, text, g->n_nodes,
                   (int)(inputs - op), text + op);
  for (int i = 0; i < n_out; i++)
    n += snprintf(row + n, (size_t)(RANDOM_GRAPH_TEXT - n), " v%d_%d", g->n_nodes, i);
  if (text[inputs]) snprintf(row + n, (size_t)(RANDOM_GRAPH_TEXT - n), " %s", text + inputs);
  g->n_nodes++;
  const assay_node_t* node = graph_case_node(g->model->graph, row, g->opset);
  for (size_t i = 0; i < node->n_inputs; i++)
    for (int k = 0; node->inputs[i] && k < g->n_values; k++)
      if (strcmp(g->values[k].name, node->inputs[i]->name) == 0) g->values[k].readers++;
  g->model->graph->n_outputs = 0;
  g->model->graph->outputs[g->model->graph->n_outputs++] = node->outputs[0];
  node->outputs[0]->is_output = true;
  assay_status_t st = assay_onnx_check(g->model);
  if (!st) st = assay_infer_model(g->model);
  random_graph_ok(g, st);
  node->outputs[0]->is_output = false;
  int first = -1;
  for (int i = 0; i < n_out; i++) {
    const int at = random_graph_note(g, node->outputs[i], rows);
    if (at < 0) return -1;
    if (i == 0) first = at;
  }
  return first;
}

// A value that fits, of late ones rather than early ones; -1: none does.
static inline int pick(random_graph_t* g,
                       bool (*fits)(const random_graph_t*, const random_value_t*)) {
  int found[RANDOM_GRAPH_VALUES], n = 0;
  for (int i = 0; i < g->n_values; i++)
    if (fits(g, &g->values[i])) found[n++] = i;
  if (!n) return -1;
  const int64_t a = draw(g, 0, n - 1), b = draw(g, 0, n - 1);
  return found[one_in(g, 3) ? n - 1 : a > b ? a : b];
}

// ---- a whole graph --------------------------------------------------------------------------

// One kind of step; false: no value fits, and nothing was added.
typedef struct random_step {
  const char* name;
  bool (*add)(random_graph_t* g);
  int weight;
} random_step_t;
extern const random_step_t random_steps[];
extern const size_t n_random_steps;

// A step of graphs of two batches: values that follow from sizes.
static bool random_graph_of_sizes(random_graph_t* g);

// Inputs of a batch of their own, of shapes that broadcast with those of the first input's values.
static inline void random_graph_second_batch(random_graph_t* g) {
  const random_value_t x = g->values[0];
  char dims[RANDOM_GRAPH_TEXT] = "";
  int used = 0;
  for (int i = 1; i < x.rank; i++) {
    if (x.open[i])
      used += snprintf(dims + used, sizeof dims - (size_t)used, ",L");
    else
      used += snprintf(dims + used, sizeof dims - (size_t)used, ",%lld",
                       one_in(g, 3) ? 1 : (long long)x.dims[i]);
  }
  random_graph_add_input(g, 0, "%s[M%s] normal 1", assay_type_name(g->type), dims);
}

static inline void random_graph_inputs(random_graph_t* g) {
  const char* t = assay_type_name(g->type);
  const int64_t channels[] = {1, 3, 5, 8, 12, 16, 31, 64};
  const int64_t c = channels[draw(g, 0, g->scale == 2 ? 7 : 5)];
  const int64_t s = g->scale == 2 ? 16 : 7;
  const int kind = (int)draw(g, 0, 9);
  if (kind < 5) {
    random_graph_add_input(g, 0, "%s[N,%lld,%lld,%lld] normal 1", t, (long long)c,
                           (long long)draw(g, 1, s + 3), (long long)draw(g, 3, s + 3));
  } else if (kind < 7) {
    random_graph_add_input(g, 0, "%s[N,L,%lld] normal 1", t, (long long)draw(g, 1, 4) * s);
  } else if (kind == 7) {
    random_graph_add_input(g, 0, "%s[N,%lld] normal 1", t, (long long)(draw(g, 1, 40) * g->scale));
  } else if (kind == 8) {
    random_graph_add_input(g, 0, "%s[N,%lld,%lld] normal 1", t, (long long)c,
                           (long long)draw(g, 4, 40));
  } else {
    random_graph_add_input(g, 0, "%s[N,%lld,%lld,%lld,%lld] normal 1", t, (long long)(c % 9 + 1),
                           (long long)draw(g, 2, 5), (long long)draw(g, 3, 6),
                           (long long)draw(g, 3, 6));
  }
  if (one_in(g, 4))
    random_graph_add_input(g, 0, "%s[N,%lld] normal 1", t, (long long)(draw(g, 1, 12) * g->scale));
  if (one_in(g, 8)) random_graph_add_input(g, 0, "int64[N,L] ints 0 6");
}

// Draws graph `number` of a seed.
static inline void random_graph_make(random_graph_t* g, uint64_t seed, uint64_t number, int scale,
                                     bool two_batches) {
  static const int opsets[] = {17, 18, 20, 21, 22};
  *g = (random_graph_t){.seed = seed, .number = number, .scale = scale, .type = ASSAY_TYPE_FLOAT};
  g->state = seed * UINT64_C(0x2545f4914f6cdd1d) + number;
  g->opset = opsets[draw(g, 0, 4)];
  if (one_in(g, 12)) g->type = ASSAY_TYPE_FLOAT16;
  if (one_in(g, 16)) g->type = ASSAY_TYPE_BFLOAT16, g->opset = 22;
  g->is_special = one_in(g, 12);
  g->model = random_graph_empty(g);
  random_graph_inputs(g);
  if (two_batches && g->n_inputs < 4) random_graph_second_batch(g);
  const int nodes = (int)draw(g, 3, 25);
  int64_t total = 0;
  for (size_t i = 0; i < n_random_steps; i++) total += random_steps[i].weight;
  for (int tries = 0; g->n_nodes < nodes && tries < 300; tries++) {
    int64_t at = draw(g, 0, total - 1);
    size_t i = 0;
    for (; at >= random_steps[i].weight; i++) at -= random_steps[i].weight;
    if (two_batches && one_in(g, 8))
      random_graph_of_sizes(g);
    else
      random_steps[i].add(g);
  }
  if (!g->n_nodes) emit(g, 0, 1, "Identity x0");
  // What nobody reads is an output, and an inner value now and then.
  for (int i = g->n_inputs; i < g->n_values; i++)
    if (!g->values[i].readers || one_in(g, 10)) g->outputs[g->n_outputs++] = i;
  assay_model_release(g->model);
  g->model = NULL;
}

#endif  // ASSAY_TESTS_BACKENDS_RANDOM_GRAPH_H_
