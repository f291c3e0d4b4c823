// Random graphs on a device: layers that are emulated lie anywhere between those that are not,
// outputs are made on the way, values lie in layouts of kernels. The bits are those of the emulated
// engine; with other kernels, those of the same kernels with nothing emulated.
#include "backends/random_graph_steps.h"
#include "run_case.h"

enum { SEED = 11, GRAPHS = 120, N = 3, L = 5 };

static void graph_case(run_case_t* c, uint64_t number, int format) {
  static random_graph_t g;
  *c = (run_case_t){0};
  random_graph_make(&g, SEED, number, 1, false);
  c->model = random_graph_model(&g, -1, -1);
  for (int i = 0; i < g.n_inputs; i++)
    ok(assay_set_add(&c->inputs, c->model->graph->inputs[i]->name,
                     random_graph_input(&g, i, 0, N, L)));
  run_case_plan(c, (assay_format_t[]){ASSAY_FORMAT_FP32, ASSAY_FORMAT_BF16}[format], true);
}

static void name_graph(uint64_t number, const char* what, char text[128]) {
  snprintf(text, 128, "graph %llu of seed %d, %s", (unsigned long long)number, SEED, what);
}

// Runs of one state; each has to give the same. *out: of the first.
static bool run_some(const run_case_t* c, const char* what, int runs, run_outputs_t* out) {
  const assay_backend_t* b = &assay_backend_mock;
  run_outputs_t again;
  void* s = NULL;
  ok(b->open(assay_plan_layers(c->plan), NULL, NULL, &s));
  assay_status_t st = run_case_once(c, b, s, out);
  for (int k = 1; !st && k < runs; k++) {
    if (k == runs - 1) b->stepwise(s, true);
    ok(run_case_once(c, b, s, &again));
    outputs_same(what, out, &again);
    outputs_release(&again);
  }
  b->close(s);
  assert_int_equal(mock_live(), 0);
  if (st && assay_status_code(st) == ASSAY_NO_MEMORY) fail_msg("%s", assay_status_message(st));
  assay_status_free(st);
  return !st;
}

static void bits_are_those_of_the_emulated_engine(void** state) {
  (void)state;
  static const unsigned every[] = {0, 2, 4, 1};  // 1: all are emulated
  for (uint64_t i = 0; i < GRAPHS; i++) {
    run_case_t c;
    run_outputs_t want, got = {0};
    char what[128];
    void* emu = NULL;
    graph_case(&c, i, (int)(i % 2));
    ok(assay_backend_emu.open(assay_plan_layers(c.plan), NULL, NULL, &emu));
    assay_status_t st = run_case_once(&c, &assay_backend_emu, emu, &want);
    mock_delay((unsigned)i, 50);
    for (int k = 0; k < 4; k++) {
      mock_decline(every[k], true);
      name_graph(i, "evaluated", what);
      const bool ran = run_some(&c, what, 4, &got);
      if (ran != !st) fail_msg("%s: runs here or there only", what);
      if (ran) outputs_same(what, &want, &got);
      outputs_release(&got);
    }
    assay_status_free(st);
    outputs_release(&want);
    assay_backend_emu.close(emu);
    run_case_close(&c);
  }
}

static void emulated_layers_read_any_layout(void** state) {
  (void)state;
  mock_prefer_cpu_kernels(true);
  for (uint64_t i = 0; i < GRAPHS; i++)
    for (unsigned every = 2; every <= 6; every += 2) {
      run_case_t c;
      run_outputs_t want = {0}, got = {0};
      char what[128];
      graph_case(&c, i, (int)(i % 2));
      name_graph(i, "CPU kernels", what);
      mock_decline(every, false);
      const bool ran = run_some(&c, what, 4, &want);
      mock_decline(every, true);
      if (run_some(&c, what, 4, &got) != ran) fail_msg("%s: runs here or there only", what);
      if (ran) outputs_same(what, &want, &got);
      outputs_release(&want);
      outputs_release(&got);
      run_case_close(&c);
    }
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, calm, calm)
  const struct CMUnitTest tests[] = {TEST(bits_are_those_of_the_emulated_engine),
                                     TEST(emulated_layers_read_any_layout)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
