// Layouts over a graph on the CPU: injected times give the layouts that are expected, and whatever
// is assigned, the bits are the same.
#include "backends/tactic_case.h"
#include "runtime/engine.h"

static const graph_case_t graph = {
    "layers that follow between convolutions and the ends of the graph",
    17,
    {"x float[2,6,8,8]"},
    {"w float[6,6,1,1]", "b float[1,6,1,1]", "r int64[3] 2 6 64", "sizes int64[4] 2 6 16 16"},
    {"Conv c1 x w -> a", "Sigmoid s a -> e", "Mul m e b -> f", "Concat j f a -> g | axis=1",
     "Resize up f _ _ sizes -> u | mode=nearest", "Reshape v f r -> h", "Tanh t h -> y",
     "Transpose p g -> q | perm=0,2,3,1", "Exp d q -> z", "Neg n u -> k"},
    "y z k"};

typedef struct layout_run {
  assay_tensor_t* out[3];
  char* text;          // the times, as text
  size_t plain, last;  // layers that were assigned so, of those with a choice
} layout_run_t;

static void release(layout_run_t* r) {
  for (int i = 0; i < 3; i++) assay_tensor_release(r->out[i]);
  free(r->text);
}

static size_t count(const char* text, const char* what) {
  size_t n = 0;
  for (const char* s = text; (s = strstr(s, what)); s++) n++;
  return n;
}

static void run(assay_model_t* m, assay_tensor_t* const* in, assay_format_t format, bool assigned,
                const assay_backend_options_t* o, layout_run_t* r) {
  static const char* const off[] = {"view_chains",      "transposes",      "no_ops",
                                    "pointwise_fusion", "epilogue_fusion", "layout_assignment"};
  const assay_plan_options_t options = {
      .fused = true, .passes = {.off = off, .n_off = sizeof off / sizeof *off - assigned}};
  const assay_precision_t precision = {.format = format};
  assay_plan_t* plan = NULL;
  assay_engine_t* engine = NULL;
  assay_executor_t* e = NULL;
  assay_str_t text = {0};
  bool measured;
  *r = (layout_run_t){0};
  op_case_ok(assay_plan_create(m, &precision, &options, 1, &plan));
  op_case_ok(assay_engine_create(plan, assay_backend_find("cpu"), o, &engine));
  op_case_ok(assay_executor_run_engine(engine, NULL, &e));
  const assay_graph_t* g = assay_executor_graph(e);
  op_case_ok(assay_executor_set(e, g->inputs[0], in[0]));
  op_case_ok(assay_executor_run(e));
  for (size_t i = 0; i < 3; i++)
    r->out[i] = assay_tensor_retain(assay_executor_get(e, g->outputs[i]));
  for (size_t i = 0; i < assay_executor_n_steps(e); i++) assay_executor_explain(e, i, &text);
  r->plain = count(assay_str_get(&text), "* layout plain");
  r->last = count(assay_str_get(&text), "* layout channels last");
  assay_str_deinit(&text);
  text = (assay_str_t){0};
  op_case_ok(assay_backend_cpu.timings(assay_engine_shared(engine), &text, &measured));
  r->text = strdup(assay_str_get(&text));
  assert_non_null(r->text);
  assay_str_deinit(&text);
  assay_executor_destroy(e);
  assay_engine_release(engine);
}

// The same lines with other times: by whether a layer reads channels last, and of reorders.
static void inject(const char* times, double plain, double last, double reorder, assay_str_t* out) {
  int number = 0;
  for (const char* s = times; *s; number++) {
    const char* end = strchr(s, '\n');
    assert_non_null(end);
    const size_t n = (size_t)(end - s);
    const char* key = memchr(s, ' ', n);
    char line[4096];
    assert_true(n < sizeof line);
    memcpy(line, s, n);
    line[n] = 0;
    if (number < 2 || !key)
      assay_str_printf(out, "%s\n", line);
    else
      assay_str_printf(out, "%g%s\n",
                       strncmp(key, " reorder ", 9) == 0 ? reorder
                       : strstr(line, " last")           ? last
                                                         : plain,
                       line + (key - s));
    s = end + 1;
  }
}

static void compare(const layout_run_t* a, const layout_run_t* b, const char* what) {
  for (int i = 0; i < 3; i++)
    if (!tactic_case_identical(a->out[i], b->out[i])) fail_msg("%s: other bits", what);
}

static void injected_times_assign_and_bits_stay(void** state) {
  (void)state;
  static const struct {
    const char* name;
    double plain, last, reorder;
    int wanted;  // 1: all that can be are plain, 2: channels last; 0: as they come
  } rows[] = {{"plain is faster", 1, 100, 0.01, 1},
              {"channels last is faster", 100, 1, 0.01, 2},
              {"reorders are dear", 1, 1.5, 1000, 0}};
  static const assay_format_t formats[] = {ASSAY_FORMAT_FP32, ASSAY_FORMAT_BF16, ASSAY_FORMAT_FP16};
  for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&graph, in);
    const assay_backend_options_t measure = {.measure = true};
    layout_run_t before, measured;
    run(m, in, formats[f], false, NULL, &before);
    assert_int_equal(before.plain + before.last, 0);
    run(m, in, formats[f], true, &measure, &measured);
    compare(&before, &measured, "measured");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
      assay_str_t times = {0};
      layout_run_t r;
      inject(measured.text, rows[i].plain, rows[i].last, rows[i].reorder, &times);
      const assay_backend_options_t o = {.timings = assay_str_get(&times),
                                         .timings_bytes = strlen(assay_str_get(&times))};
      run(m, in, formats[f], true, &o, &r);
      compare(&before, &r, rows[i].name);
      print_message("%s: %zu layers plain, %zu channels last\n", rows[i].name, r.plain, r.last);
      if ((rows[i].wanted == 1 && (r.last || !r.plain)) ||
          (rows[i].wanted == 2 && (r.plain || !r.last)))
        fail_msg("%s: %zu layers plain, %zu channels last", rows[i].name, r.plain, r.last);
      release(&r);
      assay_str_deinit(&times);
    }
    release(&before);
    release(&measured);
    graph_case_release(in);
    assay_model_release(m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(injected_times_assign_and_bits_stay)};
  return cmocka_run_group_tests_name("layouts on the CPU", tests, NULL, NULL);
}
