// The same bits on every CPU: digests of what emu makes of every operator row in every format, and
// of the functions of base/functions.h, against those of ops/digests.txt.
//
// Inputs are our own random numbers, with all bits of their types, so that sums round. A line of
// the table is an operator's version; a column is a format, or "FORMAT/ACCUMULATOR". A cell has
// four digits for each case, "=": as in the column before. A line that is missing is a failure, and
// so is one too many. NaN counts as NaN: its sign and payload are the CPU's.
//   test_digests [--write] [ROW]   ROW: one operator, "MatMul"; --write: all lines anew
#include <assay/types.h>

#include "base/functions.h"
#include "base/hash.h"
#include "ops/op_model.h"
#include "plan/plan.h"
#include "runtime/executor.h"

#define TABLE "ops/digests.txt"

enum { CASES = 4, SPECIAL = 3, CELL = 4, COLUMNS = 32, LINE = 4096, LINES = 2000 };
enum { MAX = 7, MIN = 3 };

static struct {
  const char* only;
  bool write;
  FILE* out;
  char* lines[LINES];  // of the table
  bool met[LINES];
  size_t n_lines;
  int failures;
  bool zeros_alike;  // in a format without NaN: a NaN became a zero of its sign
} run;

// ---- columns ------------------------------------------------------------------------------------

typedef struct column {
  char name[32];
  assay_format_t format, accumulator;
} column_t;

static column_t columns[COLUMNS];
static size_t n_columns;

static void add_column(assay_format_t format, assay_format_t accumulator) {
  assert_true(n_columns < COLUMNS);
  column_t* c = &columns[n_columns++];
  c->format = format;
  c->accumulator = accumulator;
  snprintf(c->name, sizeof c->name, "%s%s%s", assay_format_name(format), accumulator ? "/" : "",
           accumulator ? assay_format_name(accumulator) : "");
}

static void make_columns(void) {
  for (int f = 1; f < ASSAY_FORMAT_COUNT; f++)
    if (assay_format_info((assay_format_t)f)->is_float)
      add_column((assay_format_t)f, ASSAY_FORMAT_NONE);
  add_column(ASSAY_FORMAT_FP16, ASSAY_FORMAT_FP16);
  add_column(ASSAY_FORMAT_BF16, ASSAY_FORMAT_BF16);
  add_column(ASSAY_FORMAT_FP16, ASSAY_FORMAT_FP64);
}

// ---- digests ------------------------------------------------------------------------------------

static uint64_t hash_doubles(uint64_t h, const double* x, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    uint64_t bits = UINT64_C(0x7ff8) << 48;
    const double v = run.zeros_alike && x[i] == 0 ? 0 : x[i];
    if (!isnan(v)) memcpy(&bits, &v, sizeof bits);
    h = assay_hash(&bits, sizeof bits, h);
  }
  return h;
}

static uint64_t hash_tensor(uint64_t h, assay_tensor_t* t) {
  if (!t) return assay_hash("none", 4, h);
  const int64_t head[] = {t->kind, t->type, t->rank, t->size, t->n_items};
  h = assay_hash(head, sizeof head, h);
  for (int64_t i = 0; i < t->n_items; i++) h = hash_tensor(h, t->items[i]);
  if (t->kind != ASSAY_KIND_TENSOR) return h;
  if (t->rank) h = assay_hash(t->dims, (size_t)t->rank * sizeof *t->dims, h);
  assay_tensor_t* wide = NULL;
  op_case_ok(assay_tensor_widen(t, &wide));
  if (wide->store == ASSAY_STORE_STR) {
    for (int64_t i = 0; i < wide->size; i++) {
      const assay_string_t* s = &assay_strings(wide)[i];
      h = assay_hash(s->text, s->len, assay_hash(&s->len, sizeof s->len, h));
    }
  } else if (wide->store == ASSAY_STORE_I64) {
    if (wide->size) h = assay_hash(assay_i64(wide), (size_t)wide->size * sizeof(int64_t), h);
  } else if (wide->store == ASSAY_STORE_C128) {
    h = hash_doubles(h, assay_c128(wide), 2 * wide->size);
  } else {
    h = hash_doubles(h, assay_f64(wide), wide->size);
  }
  assay_tensor_release(wide);
  return h;
}

// Of what emu makes of a model.
static assay_status_t digest_of(assay_model_t* m, const column_t* column, assay_tensor_t* const* in,
                                uint64_t* out) {
  assay_plan_t* plan = NULL;
  assay_executor_t* e = NULL;
  const assay_precision_t precision = {.format = column->format,
                                       .accumulator = column->accumulator};
  op_case_ok(assay_plan_create(m, &precision, NULL, 1, &plan));
  op_case_ok(assay_executor_run_plan(plan, assay_backend_find("emu"), NULL, &e));
  const assay_graph_t* g = assay_executor_graph(e);
  op_case_ok(assay_executor_set_inputs(e, in));
  assay_status_t st = assay_executor_run(e);
  *out = 0;
  run.zeros_alike = !assay_format_info(column->format)->has_nan;
  for (size_t i = 0; !st && i < g->n_outputs; i++)
    *out = hash_tensor(*out, assay_executor_get(e, g->outputs[i]));
  assay_executor_destroy(e);
  assay_plan_destroy(plan);
  return st;
}

// ---- lines --------------------------------------------------------------------------------------

static void add_digest(char* cell, size_t capacity, uint64_t h) {
  const size_t used = strlen(cell);
  assert_true(used + CELL < capacity);
  snprintf(cell + used, capacity - used, "%04x", (unsigned)(h & 0xffff));
}

static char* line_of(const char* key) {
  const size_t n = strlen(key);
  for (size_t i = 0; i < run.n_lines; i++)
    if (strncmp(run.lines[i], key, n) == 0 && run.lines[i][n] == ' ') {
      run.met[i] = true;
      return run.lines[i] + n + 1;
    }
  return NULL;
}

static void differs(const char* key, const char* column, size_t number) {
  run.failures++;
  if (run.failures > 40) return;
  print_error(
      "%s, %s: case %zu has other bits than " TABLE
      " says\n"
      "  alone: ops_test_digests %.*s, in tests/; if it is meant: ops_test_digests --write\n",
      key, column, number, (int)strcspn(key, "-"), key);
}

// Compares a line's cells with the table's, or writes them.
static void finish_line(const char* key, size_t n, const char* const* names, char (*cells)[LINE]) {
  if (run.write) {
    fprintf(run.out, "%s", key);
    for (size_t i = 0; i < n; i++)
      fprintf(run.out, " %s", i && strcmp(cells[i], cells[i - 1]) == 0 ? "=" : cells[i]);
    fputc('\n', run.out);
    return;
  }
  char *text = line_of(key), before[LINE] = "";
  if (!text) {
    run.failures++;
    print_error("%s has no line in " TABLE ": ops_test_digests --write makes it\n", key);
    return;
  }
  for (size_t i = 0; i < n; i++) {
    const size_t size = strcspn(text, " ");
    if (strncmp(text, "=", size) != 0) snprintf(before, sizeof before, "%.*s", (int)size, text);
    text += size + (text[size] == ' ');
    if (strcmp(before, cells[i]) == 0) continue;
    size_t at = 0;
    while (before[at] && before[at] == cells[i][at]) at++;
    differs(key, names[i], at / CELL);
  }
}

// ---- operators ----------------------------------------------------------------------------------

// Sums that are long enough for a library to cut them, and operands that it takes as they lie.
typedef struct large {
  const char *op, *line;
} large_t;

static const large_t large[] = {
    {"MatMul", "[37,67]; [67,29] | T@float"},
    {"MatMul", "[2,37,67]; [67,29] | T@double"},
    {"MatMul", "[1,131]; [131,70] | T@double"},
    {"MatMul", "[70,131]; [131,1] | T@double"},
    {"MatMul", "[3,600]; [600,3] | T@double"},
    {"Gemm", "[67,37]; [67,29]; [37,29] | transA=1 T@double"},
    {"Gemm", "[37,67]; [29,67]; [37,29] | transB=1 T@double"},
    {"Gemm", "[67,37]; [29,67]; [37,29] | transA=1 transB=1 T@float"},
    {"Conv", "[1,19,9,9]; [7,19,3,3]; [7] | pads=1,1,1,1 T@double"},
    {"Conv", "[1,97,5,5]; [98,97,1,1]; [98] | T@double"},
    {"Conv", "[2,6,9,9]; [6,1,3,3]; [6] | group=6 T@double"},
    {"Conv", "[1,19,9,9]; [7,19,3,3]; [7] | strides=2,2 T@float"},
    {"ConvTranspose", "[1,19,5,5]; [19,7,3,3]; [7] | strides=2,2 T@double"},
    {"ConvTranspose", "[1,19,5,5]; [19,7,3,3]; [7] | strides=2,2 T@float"},
    {"Einsum", "[9,33]; [33,17] | equation='ij,jk->ik' T@double"},
    {"LSTM", "[3,2,33]; [1,80,33]; [1,80,20]; [1,160] | hidden_size=20 out=3 T@double"},
    {"GRU", "[3,2,33]; [1,60,33]; [1,60,20]; [1,120] | hidden_size=20 out=2 T@double"},
    {"RNN", "[3,2,33]; [1,20,33]; [1,20,20]; [1,40] | hidden_size=20 out=2 T@double"},
    {"Attention", "[1,2,33,40]; [1,2,50,40]; [1,2,50,40] | out=1 T1@double T2@double"},
    {"com.microsoft.FusedMatMul", "[37,67]; [29,67] | transB=1 T@double"},
    {"com.microsoft.MultiHeadAttention", "[1,33,40]; [1,50,40]; [1,50,40] | num_heads=8 out=1"},
    {"ReduceSum", "[5,333] | T@double"},
    {"ReduceL2", "[5,333] | T@double"},
    {"ReduceLogSumExp", "[5,333] | T@double"},
    {"ReduceMean", "[333,5] | T@float"},
    {"Softmax", "[5,333] | T@double"},
    {"LayerNormalization", "[5,333]; [333]; [333] | out=1 T@double"},
    {"RMSNormalization", "[5,333]; [333] | T@double V@double"},
    {"InstanceNormalization", "[2,3,11,11]; [3]; [3] | T@double"},
    {"GlobalAveragePool", "[2,3,17,17] | T@double"},
    {"AveragePool", "[2,3,17,17] | kernel_shape=5,5 T@double"},
    {"CumSum", "[5,333]; [] {=1} | T@double"},
    {"DFT", "[1,300,1] | T1@double"},
    {"Det", "[9,9] | T@double"},
};

static char cells[COLUMNS][LINE];

// One of the row's cases, in all formats. Sizes that do not fit each other are drawn again,
// smaller.
static void add_case(const assay_schema_t* s, const char* line, const op_hint_t* hint,
                     assay_type_t type, bool special, uint64_t seed) {
  random_case_t c;
  assay_model_t* m = NULL;
  assay_value_t* values[RANDOM_IN];
  assay_tensor_t* in[RANDOM_IN] = {NULL};
  assay_status_t st = NULL;
  for (int64_t max = MAX; max >= MIN; max = st ? max - 1 : 0) {
    assay_model_release(m);
    if (st) random_deinit(&c);
    assay_status_free(st);
    memset(values, 0, sizeof values);
    c = (random_case_t){
        .schema = s, .state = seed, .max = max, .fine = true, .special = special, .type = type};
    random_make_of(&c, line);
    m = make_model(&c, hint, STATIC, seed, values);
    st = assay_onnx_check(m);
    if (!st) st = assay_infer_model(m);
  }
  size_t n = 0;
  for (size_t i = 0; i < c.n_in; i++)
    if (values[i]) in[n++] = c.in[i];
  // Without the numbers that it needs an operator may refuse: that is its digest then.
  for (size_t i = 0; !st && i < n_columns; i++) {
    uint64_t h;
    assay_status_t refused = digest_of(m, &columns[i], in, &h);
    add_digest(cells[i], LINE, refused ? (uint64_t)assay_status_code(refused) : h);
    if (i == 0 && !special)
      st = refused;
    else
      assay_status_free(refused);
  }
  if (st) {
    run.failures++;
    print_error("%s-%d refuses '%s': %s\n", s->name, s->since, line ? line : "",
                assay_status_message(st));
  }
  assay_status_free(st);
  assay_model_release(m);
  random_deinit(&c);
}

static void digest_row(const assay_schema_t* s) {
  char name[96], where[128];
  const char* names[COLUMNS];
  const op_hint_t* hints[OP_ROW_HINTS];
  full_name(s, name, sizeof name);
  snprintf(where, sizeof where, "%s-%d", name, s->since);
  if (LISTED(not_driven, name) || (run.only && strcmp(run.only, name) != 0)) return;
  const size_t n = op_row_hints(s, name, hints), cases = 2 * n > CASES ? 2 * n : CASES;
  for (size_t i = 0; i < n_columns; i++) {
    names[i] = columns[i].name;
    cells[i][0] = 0;
  }
  for (size_t k = 0; k < cases; k++) {
    const op_hint_t* hint = n ? hints[k % n] : NULL;
    const assay_type_t type = k < (n > 2 ? n : 2) ? ASSAY_TYPE_FLOAT
                              : k + 1 < cases     ? ASSAY_TYPE_DOUBLE
                                                  : ASSAY_TYPE_UNDEFINED;
    add_case(s, hint ? hint->line : NULL, hint, type, false, hash(k + 1, where));
  }
  const op_hint_t* first = n ? hints[0] : NULL;
  for (size_t k = 0; k < SPECIAL; k++)
    add_case(s, first ? first->line : NULL, first, ASSAY_TYPE_FLOAT, true, hash(k, where));
  for (size_t k = 0; k < sizeof large / sizeof *large; k++)
    if (strcmp(large[k].op, name) == 0)
      add_case(s, large[k].line, NULL, ASSAY_TYPE_UNDEFINED, false, hash(~k, where));
  finish_line(where, n_columns, names, cells);
}

// ---- functions ----------------------------------------------------------------------------------

typedef struct function {
  const char* name;
  double (*one)(double);
  double (*two)(double, double);
} function_t;

static const function_t functions[] = {
    {"exp", assay_exp, NULL},     {"exp2", assay_exp2, NULL},   {"expm1", assay_expm1, NULL},
    {"log", assay_log, NULL},     {"log2", assay_log2, NULL},   {"log10", assay_log10, NULL},
    {"log1p", assay_log1p, NULL}, {"pow", NULL, assay_pow},     {"sin", assay_sin, NULL},
    {"cos", assay_cos, NULL},     {"tan", assay_tan, NULL},     {"asin", assay_asin, NULL},
    {"acos", assay_acos, NULL},   {"atan", assay_atan, NULL},   {"sinh", assay_sinh, NULL},
    {"cosh", assay_cosh, NULL},   {"tanh", assay_tanh, NULL},   {"asinh", assay_asinh, NULL},
    {"acosh", assay_acosh, NULL}, {"atanh", assay_atanh, NULL}, {"erf", assay_erf, NULL},
    {"erfc", assay_erfc, NULL},   {"hypot", NULL, assay_hypot},
};

// A number in [-limit, limit], or with `wide` any magnitude, or with any bits at all.
static double argument(random_case_t* r, int kind) {
  static const double limit[] = {1, 8, 700, 1e6};
  const uint64_t bits = random_next(r);
  const double u = (double)(bits >> 11) * 0x1p-52 - 1;
  if (kind < 4) return u * limit[kind];
  if (kind < 6) return ldexp(u, (int)random_int(r, -1000, 1000) / (kind == 4 ? 30 : 1));
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static void digest_function(const function_t* f) {
  enum { KINDS = 7, EACH = 20000 };
  const char* names[] = {"float64"};
  char key[64];
  random_case_t r = {.state = 1};
  cells[0][0] = 0;
  for (int kind = 0; kind < KINDS; kind++) {
    uint64_t h = 0;
    for (int i = 0; i < EACH; i++) {
      const double x = argument(&r, kind), other = argument(&r, kind);
      const double y = f->one ? f->one(x) : f->two(i % 2 ? fabs(x) : x, other);
      h = hash_doubles(h, &y, 1);
    }
    add_digest(cells[0], LINE, h);
  }
  snprintf(key, sizeof key, "%s()", f->name);
  finish_line(key, 1, names, cells);
}

// ---- the table ----------------------------------------------------------------------------------

static void read_table(void) {
  static char line[COLUMNS * 64];
  FILE* f = fopen(TABLE, "r");
  if (!f) fail_msg("no " TABLE " here: run in tests/, or make it with --write");
  while (fgets(line, sizeof line, f)) {
    line[strcspn(line, "\n")] = 0;
    if (*line == '#' || !*line) continue;
    assert_true(run.n_lines < LINES);
    run.lines[run.n_lines++] = strdup(line);
  }
  fclose(f);
}

static void digests_are_those_of_the_table(void** state) {
  (void)state;
  make_columns();
  if (run.write) {
    run.out = fopen(TABLE, "w");
    assert_non_null(run.out);
    fprintf(run.out,
            "# Digests of what emu makes of random cases, by operator row and format: see "
            "test_digests.c, whose --write makes this.\n#");
    for (size_t i = 0; i < n_columns; i++) fprintf(run.out, " %s", columns[i].name);
    fputc('\n', run.out);
  } else {
    read_table();
  }
  run.zeros_alike = false;
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (!run.only) digest_function(&functions[i]);
  op_rows_each(digest_row);
  if (run.write) assert_int_equal(fclose(run.out), 0);
  for (size_t i = 0; i < run.n_lines; i++) {
    if (!run.met[i] && !run.only) {
      run.failures++;
      print_error("'%.40s...' of " TABLE " is of no row that runs\n", run.lines[i]);
    }
    free(run.lines[i]);
  }
  if (run.failures) fail_msg("%d differences", run.failures);
}

int main(int argc, char** argv) {
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--write") == 0)
      run.write = true;
    else
      run.only = argv[i];
  }
  if (run.write && run.only) return fprintf(stderr, "--write makes all lines: no ROW\n"), 2;
  assay_memory_set_limit(INT64_C(1) << 28);
  const struct CMUnitTest tests[] = {cmocka_unit_test(digests_are_those_of_the_table)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
