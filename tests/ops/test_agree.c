// Inference against evaluation: random cases of every operator row.
//
// A case runs in several ways: nothing known of the inputs; types but no ranks; all shapes; sizes
// as names; integers as expressions; inputs as constants; a mixture. Evaluation must give the same
// in all of them, and what inference stated before (kind, type, rank, sizes and elements, numbers
// put in for names) must be so. A row's cases are right by construction: where one fails, either
// the operator or its line in op_hints.h is wrong. Every second case is then spoilt: one input gets
// another shape or other numbers, or an attribute another value. Then all ways must fail, or none.
// Inputs without elements whose sizes are vast must be as quick as others.
//   test_agree [CASES [ROW]]   more cases a row, rows of one operator
// ASSAY_SEED: another seed; ASSAY_SHOW: counts; ASSAY_WRITE_MODELS=FOLDER: the cases that are not
// spoilt, as models whose inputs are initializers (fuzz/make_corpus.py).
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "ops/op_model.h"
#include "seed_case.h"

enum { CASES = 40, NAMES = 256 };

static const char* const way_names[] = {"nothing known", "unranked", "static", "symbolic",
                                        "content",       "constant", "mixed"};

static struct {
  uint64_t seed;
  int cases;
  const char* only;
  bool show;
  int failures, printed;
  const char* where;  // the row
  int number;         // of the case in its row
  bool spoilt, vast;  // vast ones are spoilt, too
  way_t way;
  bool starved;  // memory was short, in some way of the case
} run;

static const char* kind_of_case(void) { return run.vast ? " vast" : run.spoilt ? " spoilt" : ""; }

static void report(const char* format, ...) ASSAY_PRINTF(1, 2);
static void report(const char* format, ...) {
  char text[1500];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  run.failures++;
  if (run.printed++ < 4)
    print_error("%s case %d%s (%s): %s\n", run.where, run.number, kind_of_case(),
                way_names[run.way], text);
}

// ---- names of sizes ----------------------------------------------------------------------------

// "x0d1s5" is 5. Names that inference made get the size that they meet first.
typedef struct names {
  size_t n;
  const char* name[NAMES];
  int64_t value[NAMES];
} names_t;

static bool known_name(void* user, const char* name, int64_t* out) {
  names_t* t = user;
  const char* size = strrchr(name, 's');
  if (name[0] == 'x' && isdigit((unsigned char)name[1]) && size) {
    *out = strtoll(size + 1, NULL, 10);
    return true;
  }
  for (size_t i = 0; i < t->n; i++)
    if (strcmp(t->name[i], name) == 0) {
      *out = t->value[i];
      return true;
    }
  return false;
}

static bool holds(names_t* names, const assay_dim_t* d, int64_t actual) {
  int64_t x;
  if (!d) return true;
  if (assay_dim_eval(d, known_name, names, &x)) return x == actual;
  const char* name = assay_dim_name(d);
  if (name && names->n < NAMES) {
    names->name[names->n] = name;
    names->value[names->n++] = actual;
  }
  return true;
}

// ---- what inference said -----------------------------------------------------------------------

static bool type_holds(names_t* names, const assay_valtype_t* type, const assay_tensor_t* t) {
  if (!type) return true;
  if (type->kind != t->kind) return false;
  if (t->kind == ASSAY_KIND_MAP) return true;
  if (t->kind != ASSAY_KIND_TENSOR) {
    for (int64_t i = 0; i < t->n_items; i++) {
      names_t local = *names;  // an item's own sizes
      if (!type_holds(&local, type->of, t->items[i])) return false;
    }
    return true;
  }
  if (type->elem && type->elem != t->type) return false;
  if (type->has_shape && type->rank != t->rank) return false;
  // Of no elements, what has been spoilt may be any shape: where a name is 0, products say nothing.
  for (int i = 0; type->has_shape && i < t->rank && (t->size || !run.spoilt); i++)
    if (!holds(names, type->dims[i], t->dims[i])) return false;
  return true;
}

static bool content_holds(names_t* names, const assay_content_t* c, const assay_tensor_t* t) {
  if (!c) return true;
  if (t->kind != ASSAY_KIND_TENSOR || c->rank != t->rank || c->n != t->size ||
      t->store > ASSAY_STORE_I64)
    return false;
  for (int64_t i = 0; i < c->n; i++) {
    double x = t->store == ASSAY_STORE_I64 ? (double)assay_i64(t)[i] : assay_f64(t)[i];
    if (c->elems[i] && ((double)(int64_t)x != x || !holds(names, c->elems[i], (int64_t)x)))
      return false;
  }
  return true;
}

static void check_inferred(const assay_value_t* v, size_t i, const assay_tensor_t* t,
                           names_t* names) {
  if (!type_holds(names, v->type, t))
    report("output %zu is %s%s; inferred was %s", i,
           t->kind == ASSAY_KIND_TENSOR ? assay_type_name(t->type) : "a container",
           ASSAY_DIMS_TEXT(t), v->type ? ASSAY_VALTYPE_TEXT(v->type) : "");
  else if (!content_holds(names, v->content, t))
    report("the elements inferred for output %zu are wrong", i);
}

// Equal, bit for bit; containers item by item.
static bool same_value(const assay_tensor_t* a, const assay_tensor_t* b) {
  if (a->kind != b->kind || a->n_items != b->n_items) return false;
  for (int64_t i = 0; i < a->n_items; i++)
    if (!same_value(a->items[i], b->items[i])) return false;
  return a->kind != ASSAY_KIND_TENSOR || op_case_same(a, b);
}

// ---- cases that take too long ------------------------------------------------------------------

// A case is done in milliseconds. Where one takes this much of the processors' time, something
// counts what is not there.
enum { CASE_SECONDS = 20 };

static void too_slow(int signal_number) {
  (void)signal_number;
  fprintf(stderr, "%s case %d%s (%s): takes more than %d s with seed %llu\n", run.where, run.number,
          kind_of_case(), way_names[run.way], CASE_SECONDS, (unsigned long long)run.seed);
  _exit(1);
}

static void watch(int seconds) {
  const struct itimerval t = {.it_value = {.tv_sec = seconds}};
  setitimer(ITIMER_PROF, &t, NULL);
}
static void watch_begin(void) { watch(CASE_SECONDS); }
static void watch_end(void) { watch(0); }

// ---- one case ----------------------------------------------------------------------------------

static void write_model(const assay_model_t* m) {
  const char* folder = getenv("ASSAY_WRITE_MODELS");
  char path[4096];
  if (!folder || run.spoilt || run.way != CONSTANT) return;
  snprintf(path, sizeof path, "%s/%s_%d.onnx", folder, run.where, run.number);
  op_case_ok(assay_onnx_write(m, path, NULL));
}

// Runs a case; outputs are retained into out[]. False: *out_why says why.
static bool run_way(const random_case_t* c, const op_hint_t* hint, way_t way, uint64_t seed,
                    assay_tensor_t** out, char* out_why, size_t capacity) {
  assay_value_t* values[RANDOM_IN] = {NULL};
  assay_evaluator_t* evaluator = NULL;
  run.way = way;
  assay_model_t* m = make_model(c, hint, way, seed, values);
  assay_status_t st = assay_onnx_check(m);
  if (!st) write_model(m);
  for (size_t i = 0; way == UNKNOWN && i < c->n_in; i++)  // the checker wants a type
    if (values[i]) values[i]->declared = NULL;
  if (!st) st = assay_infer_model(m);
  bool inferred = !st;
  if (!st) {
    const assay_evaluator_config_t config = {
        .mode = ASSAY_MODE_NATIVE, .keep_all = true, .seed = 1};
    st = op_case_evaluate(m, &config, c->n_in, values, c->in, &evaluator);
  }
  bool ok = !st;
  if (st) {
    snprintf(out_why, capacity, "%s: %s", inferred ? "evaluation" : "inference",
             assay_status_message(st));
    if (assay_status_code(st) == ASSAY_INTERNAL) report("%s", out_why);
    run.starved |= assay_status_code(st) == ASSAY_NO_MEMORY;
    assay_status_free(st);
  }
  const assay_node_t* n = m->graph->nodes[0];
  names_t names = {0};
  for (size_t i = 0; ok && i < n->n_outputs; i++) {
    if (!n->outputs[i]) continue;
    out[i] = assay_tensor_retain(assay_evaluator_get(evaluator, n->outputs[i]));
    check_inferred(n->outputs[i], i, out[i], &names);
  }
  assay_evaluator_destroy(evaluator);
  assay_model_release(m);
  return ok;
}

static void release(assay_tensor_t** t) {
  for (size_t i = 0; i < RANDOM_OUT; i++) {
    assay_tensor_release(t[i]);
    t[i] = NULL;
  }
}

static void describe(const random_case_t* c, char* text, size_t capacity) {
  size_t used = 0;
  for (size_t i = 0; i < c->n_in && used < capacity; i++)
    used += (size_t)snprintf(
        text + used, capacity - used, " %s%s",
        !c->in[i]                             ? "-"
        : c->in[i]->kind != ASSAY_KIND_TENSOR ? "container"
                                              : assay_type_name(c->in[i]->type),
        c->in[i] && c->in[i]->kind == ASSAY_KIND_TENSOR ? ASSAY_DIMS_TEXT(c->in[i]) : "");
  for (size_t i = 0; i < c->n_attrs && used < capacity; i++)
    used +=
        (size_t)snprintf(text + used, capacity - used, " %s=%s", c->attr_name[i], c->attr_value[i]);
}

// Makes a case wrong, or another one.
static void spoil(random_case_t* c) {
  if (c->n_attrs && random_chance(c, 3)) {
    size_t i = (size_t)random_int(c, 0, (int64_t)c->n_attrs - 1);
    const assay_attr_spec_t* spec = assay_schema_attr(c->schema, c->attr_name[i]);
    if (spec->type == ASSAY_ATTR_INT || spec->type == ASSAY_ATTR_INTS) {
      char* value = c->attr_value[i];
      char* last = strrchr(value, ',');
      bool drop = spec->type == ASSAY_ATTR_INTS && random_chance(c, 3);
      last = last ? last + 1 : value;
      snprintf(last, sizeof c->attr_value[i] - (size_t)(last - value), "%lld",
               (long long)random_int(c, -4, 6));
      if (drop) *last = 0;
      return;
    }
  }
  if (c->schema->n_attrs && c->n_attrs < RANDOM_ATTRS &&
      random_chance(c, 3)) {  // one that the line leaves out
    const assay_attr_spec_t* spec = &c->schema->attrs[random_int(c, 0, c->schema->n_attrs - 1)];
    bool set = false;
    for (size_t i = 0; i < c->n_attrs; i++) set |= strcmp(c->attr_name[i], spec->name) == 0;
    if (!set && (spec->type == ASSAY_ATTR_INT || spec->type == ASSAY_ATTR_INTS)) {
      snprintf(c->attr_name[c->n_attrs], sizeof c->attr_name[0], "%s", spec->name);
      snprintf(c->attr_value[c->n_attrs++], sizeof c->attr_value[0], "%lld",
               (long long)random_int(c, -2, 3));
      return;
    }
  }
  if (!c->n_in) return;
  size_t i = (size_t)random_int(c, 0, (int64_t)c->n_in - 1);
  assay_tensor_t *old = c->in[i], *t = NULL;
  if (!old || old->kind != ASSAY_KIND_TENSOR) return;
  int64_t dims[ASSAY_MAX_RANK];
  int rank = old->rank;
  if (rank) memcpy(dims, old->dims, (size_t)rank * sizeof *dims);
  switch (random_int(c, 0, 3)) {
    case 0:  // one size
      if (rank) dims[random_int(c, 0, rank - 1)] = random_int(c, 0, 5);
      break;
    case 1:  // one size less, or one more
      if (rank && random_chance(c, 2))
        rank--;
      else
        dims[rank++] = random_int(c, 0, 2);
      break;
    default:;  // other numbers
  }
  op_case_ok(assay_tensor_create_zero(old->type, rank, dims, &t));
  random_fill(c, t, random_chance(c, 2), assay_type_is_signed(old->type) ? -9 : 0, 9);
  assay_tensor_release(old);
  c->in[i] = t;
}

// Makes an input that has no elements and yet vast sizes: nothing may count those one by one. Of
// its sizes `zero` is 0, and `vast` is vast, or all others where that is -1. False: there are no
// such axes.
static bool make_vast(random_case_t* c, size_t i, int zero, int vast) {
  assay_tensor_t *old = c->in[i], *t = NULL;
  if (!old || old->kind != ASSAY_KIND_TENSOR || old->rank < 2 || zero >= old->rank ||
      vast >= old->rank || zero == vast)
    return false;
  int64_t dims[ASSAY_MAX_RANK];
  for (int d = 0; d < old->rank; d++) {
    dims[d] = vast < 0 ? INT64_C(1) << 60 / old->rank : old->dims[d];
    if (d == vast) dims[d] = INT64_C(1) << 40;
  }
  dims[zero] = 0;
  op_case_ok(assay_tensor_create_zero(old->type, old->rank, dims, &t));
  assay_tensor_release(old);
  c->in[i] = t;
  return true;
}

static void make_some_vast(random_case_t* c) {
  if (!c->n_in) return;
  const size_t i = (size_t)random_int(c, 0, (int64_t)c->n_in - 1);
  const int rank = c->in[i] && c->in[i]->kind == ASSAY_KIND_TENSOR ? c->in[i]->rank : 0;
  if (rank) make_vast(c, i, (int)random_int(c, 0, rank - 1), -1);
}

// What the other modes make of a case: it must be of the same shape.
static void run_modes(const random_case_t* c, const op_hint_t* hint, uint64_t seed,
                      assay_tensor_t* const* expected) {
  static const assay_evaluator_config_t configs[] = {
      {.mode = ASSAY_MODE_TRUTH, .seed = 1, .verify = true, .keep_all = true},
      {.mode = ASSAY_MODE_TRUTH, .seed = 1, .verify = true, .keep_all = true, .unquantized = true},
      {.mode = ASSAY_MODE_PLAN,
       .arith = ASSAY_ARITH_F32,
       .seed = 1,
       .verify = true,
       .keep_all = true},
      {.mode = ASSAY_MODE_PLAN,
       .arith = ASSAY_ARITH_NARROW,
       .accumulator = ASSAY_FORMAT_FP16,
       .seed = 1,
       .verify = true,
       .keep_all = true}};
  assay_value_t* values[RANDOM_IN] = {NULL};
  run.way = STATIC;
  assay_model_t* m = make_model(c, hint, STATIC, seed, values);
  op_case_ok(assay_onnx_check(m));
  op_case_ok(assay_infer_model(m));
  for (size_t k = 0; k < sizeof configs / sizeof *configs; k++) {
    assay_evaluator_t* evaluator = NULL;
    assay_status_t st = op_case_evaluate(m, &configs[k], c->n_in, values, c->in, &evaluator);
    const bool starved = run.vast && assay_status_code(st) == ASSAY_NO_MEMORY;
    if (st && !starved) report("mode %zu: %s", k, assay_status_message(st));
    for (size_t i = 0; !st && i < c->n_out; i++) {
      if (!expected[i]) continue;
      const assay_tensor_t* t = assay_evaluator_get(evaluator, m->graph->nodes[0]->outputs[i]);
      if (t->kind != expected[i]->kind || t->rank != expected[i]->rank ||
          (t->rank && memcmp(t->dims, expected[i]->dims, (size_t)t->rank * sizeof *t->dims) != 0))
        report("mode %zu: output %zu has another shape", k, i);
    }
    assay_status_free(st);
    assay_evaluator_destroy(evaluator);
  }
  assay_model_release(m);
}

// Runs a case in all ways, and releases it. False: it could not be evaluated.
static bool run_made(random_case_t* c, const op_hint_t* hint, uint64_t seed, bool lenient) {
  char first[600] = "", why[600] = "", what[600] = "";
  assay_tensor_t *expected[RANDOM_OUT] = {NULL}, *found[RANDOM_OUT] = {NULL};
  int before = run.failures;
  run.starved = false;
  watch_begin();
  bool ok = run_way(c, hint, UNKNOWN, seed, expected, first, sizeof first);
  if (!ok && !lenient) report("%s", first);
  for (int way = UNRANKED; way < WAYS; way++) {
    bool same = run_way(c, hint, (way_t)way, seed, found, why, sizeof why) == ok;
    // Outputs of vast inputs may be vast, where they have elements; ways differ in what they hold.
    if (!same && run.spoilt && run.starved) continue;
    // Where a body never ran, what is wrong with its results cannot be seen without knowing them.
    if (!same && ok && run.spoilt && hint && hint->body) continue;
    if (!same && ok) report("refused, and evaluated where nothing is known: %s", why);
    if (!same && !ok) report("evaluated, and refused where nothing is known: %s", first);
    for (size_t i = 0; same && ok && i < c->n_out; i++)
      // The shape of what no iteration made is as much as inference knows of it.
      if (found[i] && !same_value(found[i], expected[i]) &&
          !(hint && hint->body && expected[i]->size == 0))
        report("output %zu is another than where nothing is known", i);
    release(found);
  }
  if (ok && (!run.spoilt || run.vast) && run.failures == before) run_modes(c, hint, seed, expected);
  if (run.failures > before && run.printed <= 5) {
    describe(c, what, sizeof what);
    print_error("  %s\n", what);
  }
  watch_end();
  release(expected);
  random_deinit(c);
  return ok;
}

static bool run_case(const assay_schema_t* s, const op_hint_t* hint, uint64_t seed, bool lenient) {
  random_case_t c;
  random_make(&c, s, hint ? hint->line : NULL, seed);
  for (int64_t i = run.spoilt ? random_int(&c, 1, 2) : 0; i > 0; i--) spoil(&c);
  // A body runs as often as its sequence is long, by right.
  if (run.spoilt && !(hint && hint->body) && random_chance(&c, 6)) make_some_vast(&c);
  return run_made(&c, hint, seed, lenient);
}

// Each input vast in turn, and all of them, in each pair of axes.
static void run_vast(const assay_schema_t* s, const op_hint_t* hint, uint64_t seed) {
  enum { ALL = RANDOM_IN, MAX_AXES = 5 };
  if (hint && hint->body) return;
  run.vast = true;
  for (size_t input = 0; input <= ALL; input++)
    for (int zero = 0; zero < MAX_AXES; zero++)
      for (int vast = -1; vast < MAX_AXES; vast++) {
        random_case_t c;
        bool made = false;
        random_make(&c, s, hint ? hint->line : NULL, seed);
        for (size_t i = 0; i < c.n_in; i++)
          if (input == ALL || i == input) made |= make_vast(&c, i, zero, vast);
        if (made)
          run_made(&c, hint, seed, true);
        else
          random_deinit(&c);
      }
  run.vast = false;
}

// ---- rows --------------------------------------------------------------------------------------

static void run_schema(const assay_schema_t* s) {
  char name[96], where[128];
  const op_hint_t* hints[OP_ROW_HINTS];
  full_name(s, name, sizeof name);
  snprintf(where, sizeof where, "%s-%d", name, s->since);
  if (LISTED(not_driven, name) || (run.only && strcmp(run.only, name) != 0)) return;
  const size_t n = op_row_hints(s, name, hints);
  run.where = where;
  run.printed = 0;
  int evaluated = 0, cases = run.cases;
  if ((size_t)cases < 3 * n) cases = 3 * (int)n;
  clock_t start = clock();
  for (run.number = 0; run.number < cases; run.number++) {
    uint64_t seed = hash(run.seed + (uint64_t)run.number * UINT64_C(0x9e3779b97f4a7c15), where);
    const op_hint_t* hint = n ? hints[(size_t)run.number % n] : NULL;
    run.spoilt = false;
    evaluated += run_case(s, hint, seed, LISTED(may_fail, name));
    run.spoilt = true;
    run_case(s, hint, seed, true);
    if (run.number < (int)(n ? n : 1)) run_vast(s, hint, seed);
  }
  if (evaluated * 2 < cases) report("only %d of %d cases could be evaluated", evaluated, cases);
  if (run.show)
    print_message("%-50s %d of %d, %.0f ms\n", where, evaluated, cases,
                  1e3 * (double)(clock() - start) / CLOCKS_PER_SEC);
}

static void inference_agrees_with_evaluation(void** state) {
  (void)state;
  op_rows_each(run_schema);
  if (run.failures)
    fail_msg("%d failures with seed %llu", run.failures, (unsigned long long)run.seed);
}

// Lines of operators that are not there (any more), and reasons of rows that can be driven by now,
// are mistakes.
static void hints_belong_to_rows(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof op_hints / sizeof *op_hints; i++) {
    const char *name = op_hints[i].op, *dot = strrchr(name, '.');
    char domain[64] = "";
    if (dot) snprintf(domain, sizeof domain, "%.*s", (int)(dot - name), name);
    const assay_op_t* op = assay_op_find(domain, dot ? dot + 1 : name, INT32_MAX);
    if (!op) fail_msg("no row for the hint of '%s'", name);
  }
}

int main(int argc, char** argv) {
  const char* seed = getenv("ASSAY_SEED");
  run.seed = seed ? strtoull(seed, NULL, 10) : 1;
  run.show = getenv("ASSAY_SHOW") != NULL;
  run.cases = (int)test_draws(argc > 1 ? atoi(argv[1]) : CASES);
  run.only = argc > 2 ? argv[2] : NULL;
  print_message("seed %llu\n", (unsigned long long)run.seed);
  assay_memory_set_limit(INT64_C(1) << 24);
  signal(SIGPROF, too_slow);
  const struct CMUnitTest tests[] = {cmocka_unit_test(hints_belong_to_rows),
                                     cmocka_unit_test(inference_agrees_with_evaluation)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
