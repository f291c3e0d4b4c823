// Plans on a device with memory of its own: the same bits as elsewhere, captured or not, and clear
// failures.
#include "base/alloc.h"
#include "fail_case.h"
#include "passes/graph_case.h"
#include "run_case.h"

static const char* const models[] = {"classifier", "transformer", "loop",
                                     "quantized",  "detector",    "external"};
enum { N_MODELS = sizeof models / sizeof *models };

static const assay_format_t formats[] = {ASSAY_FORMAT_FP32, ASSAY_FORMAT_BF16, ASSAY_FORMAT_FP16};

// Runs again and again in one state: layer by layer, captured, launched again.
static void check_runs(const run_case_t* c, const char* name, const run_outputs_t* want) {
  const assay_backend_t* b = &assay_backend_mock;
  run_outputs_t first = {0}, got;
  void* state = NULL;
  ok(b->open(assay_plan_layers(c->plan), NULL, NULL, &state));
  for (int k = 0; k < 4; k++) {
    ok(run_case_once(c, b, state, &got));
    if (want) outputs_same(name, want, &got);
    if (k) outputs_same(name, &first, &got);
    if (k)
      outputs_release(&got);
    else
      first = got;
  }
  outputs_release(&first);
  b->close(state);
}

static void bits_are_those_of_the_emulated_engine(void** state) {
  (void)state;
  for (int m = 0; m < N_MODELS; m++)
    for (int f = 0; f < 6; f++) {
      run_case_t c;
      run_outputs_t want;
      mock_delay((unsigned)(m * 6 + f), 200);
      run_case_load(&c, models[m], formats[f / 2], f % 2);
      run_case_run(&c, &assay_backend_emu, &want);
      check_runs(&c, models[m], &want);
      outputs_release(&want);
      run_case_close(&c);
    }
}

static void kernels_with_layouts_of_their_own_give_the_same_each_time(void** state) {
  (void)state;
  mock_prefer_cpu_kernels(true);
  for (int m = 0; m < N_MODELS; m++)
    for (int f = 0; f < 6; f++) {
      run_case_t c;
      mock_delay((unsigned)(m * 6 + f), 200);
      run_case_load(&c, models[m], formats[f / 2], f % 2);
      check_runs(&c, models[m], NULL);
      run_case_close(&c);
    }
}

static void spans_are_captured_once(void** state) {
  (void)state;
  const assay_backend_t* b = &assay_backend_mock;
  for (int on = 0; on < 2; on++) {
    run_case_t c;
    run_outputs_t got;
    void* s = NULL;
    mock_captures(on);
    run_case_load(&c, "classifier", ASSAY_FORMAT_FP32, true);
    ok(b->open(assay_plan_layers(c.plan), NULL, NULL, &s));
    for (int k = 0; k < 5; k++) {
      ok(run_case_once(&c, b, s, &got));
      outputs_release(&got);
    }
    const assay_device_counts_t n = assay_device_counts(s);
    assert_int_equal(n.captures, on ? 1 : 0);
    assert_int_equal(n.launches, on ? 4 : 0);
    assert_int_equal(n.spans, on ? 1 : 5);
    assert_int_equal(n.uploads, 5);    // the image; weights are there
    assert_int_equal(n.downloads, 5);  // the classes
    // One layer at a time, to be timed, no capture is launched.
    b->stepwise(s, true);
    ok(run_case_once(&c, b, s, &got));
    outputs_release(&got);
    assert_int_equal(assay_device_counts(s).launches, n.launches);
    assert_true(assay_device_counts(s).spans > n.spans + 1);
    b->close(s);
    run_case_close(&c);
  }
}

// Callers that bring their memory in turn have a capture each, up to four; the least recently used
// one makes room.
static void captures_are_kept_by_addresses(void** state) {
  (void)state;
  enum { MEMORIES = 5 };
  const assay_backend_t* b = &assay_backend_mock;
  run_case_t c;
  run_outputs_t want, got;
  void* s = NULL;
  assay_device_ptr_t at[MEMORIES];
  run_case_load(&c, "classifier", ASSAY_FORMAT_FP32, true);
  run_case_run(&c, &assay_backend_emu, &want);
  const assay_value_t* input = run_case_graph(&c)->inputs[0];
  assay_tensor_t *image = assay_set_find(&c.inputs, input->name), *packed = NULL;
  ok(assay_tensor_pack(image, &packed));
  const size_t bytes = assay_tensor_bytes(packed);
  for (int i = 0; i < MEMORIES; i++) {
    ok(mock_alloc(bytes, &at[i]));
    ok(mock_write(at[i], packed->data, bytes));
  }
  for (int n = 2; n <= MEMORIES; n += 3) {
    ok(b->open(assay_plan_layers(c.plan), NULL, NULL, &s));
    for (int k = 0; k < 4 * n; k++) {
      const assay_device_view_t view = {ASSAY_TYPE_FLOAT, packed->rank, packed->dims, at[k % n],
                                        bytes};
      assay_tensor_t* t = NULL;
      b->reset(s);
      ok(b->set_on_device(s, input, &view));
      ok(run_case_steps(&c, b, s));
      ok(assay_backend_output(b, s, run_case_graph(&c)->outputs[0], &t));
      got = (run_outputs_t){.at = {assay_tensor_retain(t)}, .n = 1};
      outputs_same("in turn", &want, &got);
      outputs_release(&got);
    }
    const assay_device_counts_t counts = assay_device_counts(s);
    assert_int_equal(counts.captures, n == 2 ? 2 : 0);
    assert_int_equal(counts.launches, n == 2 ? 6 : 0);
    assert_int_equal(counts.spans, n == 2 ? 2 : 4 * n);
    b->close(s);
  }
  for (int i = 0; i < MEMORIES; i++) mock_free(at[i]);
  assay_tensor_release(packed);
  outputs_release(&want);
  run_case_close(&c);
}

static void layers_without_kernels_are_emulated(void** state) {
  (void)state;
  const assay_backend_t* b = &assay_backend_mock;
  run_case_t c;
  run_outputs_t got;
  void* s = NULL;
  run_case_load(&c, "loop", ASSAY_FORMAT_FP32, false);
  ok(b->open(assay_plan_layers(c.plan), NULL, NULL, &s));
  ok(run_case_once(&c, b, s, &got));
  const assay_layers_t* layers = assay_plan_layers(c.plan);
  int emulated = 0, loops = 0;
  for (size_t i = 0; i < layers->n_layers; i++) {
    const bool loop = strcmp(layers->layers[i].nodes[0]->op_type, "Loop") == 0;
    const char* by = b->tactic(s, i);
    emulated += strcmp(by, "emu") == 0;
    loops += loop;
    if (loop) assert_string_equal(by, "emu");
  }
  assert_int_equal(loops, 1);
  assert_true(emulated >= 1);
  outputs_release(&got);
  b->close(s);
  run_case_close(&c);
}

// ---- choice -------------------------------------------------------------------------------------

// One run by what is shared; layers by mock_cpu are counted.
static int run_shared(const run_case_t* c, void* shared, run_outputs_t* out) {
  const assay_backend_t* b = &assay_backend_mock;
  const assay_layers_t* layers = assay_plan_layers(c->plan);
  void* s = NULL;
  int n = 0;
  ok(b->open(layers, shared, NULL, &s));
  ok(run_case_once(c, b, s, out));
  for (size_t i = 0; i < layers->n_layers; i++) n += strcmp(b->tactic(s, i), "mock_cpu") == 0;
  b->close(s);
  return n;
}

// Kernels that compete are timed on the device; by the same times the same are chosen.
static void kernels_are_timed(void** state) {
  (void)state;
  const assay_backend_t* b = &assay_backend_mock;
  run_case_t c;
  run_outputs_t first, second;
  assay_str_t text = {0};
  void* shared = NULL;
  bool measured = false;
  mock_prefer_cpu_kernels(true);
  run_case_load(&c, "classifier", ASSAY_FORMAT_FP32, true);
  const assay_layers_t* layers = assay_plan_layers(c.plan);
  assay_backend_options_t o = {.measure = true};
  ok(b->share(layers, &o, &shared));
  mock_fail(MOCK_FAULT_KERNEL, 2);
  void* s = NULL;
  ok(b->open(layers, shared, NULL, &s));
  fails(run_case_once(&c, b, s, &first), ASSAY_DEVICE, "timing a kernel of layer '");
  b->close(s);
  const int by_cpu = run_shared(&c, shared, &first);
  ok(b->timings(shared, &text, &measured));
  assert_true(measured);
  assert_non_null(strstr(assay_str_get(&text), " mock_cpu "));
  assert_non_null(strstr(assay_str_get(&text), " mock_eval "));
  b->unshare(shared);
  o = (assay_backend_options_t){.timings = assay_str_get(&text), .timings_bytes = text.len};
  ok(b->share(layers, &o, &shared));
  assert_int_equal(run_shared(&c, shared, &second), by_cpu);
  outputs_same("by the same times", &first, &second);
  b->unshare(shared);
  o = (assay_backend_options_t){.tactic_sources = "abacus"};
  fails(b->share(layers, &o, &shared), ASSAY_INVALID_ARGUMENT, "there are mock");
  o = (assay_backend_options_t){.device = 3};
  fails(b->share(layers, &o, &shared), ASSAY_DEVICE, "no device 3");
  assay_str_deinit(&text);
  outputs_release(&first);
  outputs_release(&second);
  run_case_close(&c);
}

// ---- taps ---------------------------------------------------------------------------------------

typedef struct watch {
  size_t calls;
  assay_tensor_t* sums[256];  // the last output of each call
} watch_t;

static assay_status_t on_layer(void* user, const assay_layer_t* l, const assay_node_t* node,
                               uint64_t iteration, size_t n_in, assay_tensor_t* const* in,
                               size_t n_out, assay_tensor_t* const* out) {
  watch_t* w = user;
  (void)l, (void)node, (void)iteration, (void)n_in, (void)in;
  assert_true(w->calls < 256);
  w->sums[w->calls++] = assay_tensor_retain(n_out ? out[0] : NULL);
  return NULL;
}

static void taps_see_every_layer(void** state) {
  (void)state;
  mock_delay(3, 100);
  for (int m = 0; m < N_MODELS; m++) {
    run_case_t c;
    watch_t watches[2] = {{0}, {0}};
    run_case_load(&c, models[m], ASSAY_FORMAT_BF16, true);
    for (int k = 0; k < 2; k++) {
      const assay_backend_t* b = k ? &assay_backend_mock : &assay_backend_emu;
      const assay_tap_t tap = {on_layer, &watches[k]};
      run_outputs_t got;
      void* s = NULL;
      ok(b->open(assay_plan_layers(c.plan), NULL, &tap, &s));
      ok(run_case_once(&c, b, s, &got));
      outputs_release(&got);
      b->close(s);
    }
    size_t n = 0;  // layers that follow from sizes show on both, too
    assert_int_equal(watches[0].calls, watches[1].calls);
    for (; n < watches[0].calls; n++) {
      const assay_tensor_t *a = watches[0].sums[n], *b = watches[1].sums[n];
      assert_true(!a == !b);
      if (a && !is_same(a, b)) fail_msg("%s: tap %zu sees other bits", models[m], n);
    }
    for (int k = 0; k < 2; k++)
      for (n = 0; n < watches[k].calls; n++) assay_tensor_release(watches[k].sums[n]);
    run_case_close(&c);
  }
}

// ---- failures -----------------------------------------------------------------------------------

typedef struct fault_row {
  mock_fault_t fault;
  assay_code_t code;
  const char* word;
} fault_row_t;

static const fault_row_t faults[] = {
    {MOCK_FAULT_ALLOC, ASSAY_NO_MEMORY, "the device has no room for"},
    {MOCK_FAULT_QUEUE, ASSAY_DEVICE, "no queue"},
    {MOCK_FAULT_UPLOAD, ASSAY_DEVICE, "the copy failed"},
    {MOCK_FAULT_DOWNLOAD, ASSAY_DEVICE, "copying from the device, after layer '"},
    {MOCK_FAULT_KERNEL, ASSAY_DEVICE, "layer '"},
    {MOCK_FAULT_CAPTURE, ASSAY_DEVICE, "the capture cannot be made"},
    {MOCK_FAULT_LAUNCH, ASSAY_DEVICE, "the device runs as a whole"},
    {MOCK_FAULT_LOST, ASSAY_DEVICE, "the device fell off the bus"}};

// Three runs, so that there is a capture; the first failure.
static assay_status_t run_thrice(const run_case_t* c, run_outputs_t* out) {
  const assay_backend_t* b = &assay_backend_mock;
  void* s = NULL;
  assay_status_t st = b->open(assay_plan_layers(c->plan), NULL, NULL, &s);
  for (int k = 0; !st && k < 3; k++) {
    outputs_release(out);
    st = run_case_once(c, b, s, out);
  }
  if (s) b->close(s);
  return st;
}

// Each place where a fault can strike: it is told, nothing is left behind, and then all is well.
static void failures_are_told(void** state) {
  (void)state;
  for (size_t f = 0; f < sizeof faults / sizeof *faults; f++) {
    int struck = 0;
    for (int m = 0; m < N_MODELS; m++) {
      const fault_row_t* row = &faults[f];
      run_case_t c;
      run_outputs_t want, got = {0};
      int nth = 1;
      run_case_load(&c, models[m], ASSAY_FORMAT_FP32, true);
      run_case_run(&c, &assay_backend_emu, &want);
      for (;; nth++) {
        mock_fail(row->fault, nth);
        assay_status_t st = run_thrice(&c, &got);
        mock_fail(MOCK_NO_FAULT, 0);
        assert_int_equal(mock_live(), 0);
        if (!st) break;
        fails(st, row->code, row->word);
        outputs_release(&got);
      }
      outputs_same(models[m], &want, &got);
      struck += nth - 1;
      outputs_release(&got);
      outputs_release(&want);
      run_case_close(&c);
    }
    if (!struck) fail_msg("nothing failed with '%s'", faults[f].word);
  }
}

// A state can run again behind any failure but the loss of the device.
static void runs_go_on_behind_failures(void** state) {
  (void)state;
  const assay_backend_t* b = &assay_backend_mock;
  run_case_t c;
  run_outputs_t want, got;
  void* s = NULL;
  run_case_load(&c, "transformer", ASSAY_FORMAT_FP32, true);
  run_case_run(&c, &assay_backend_emu, &want);
  ok(b->open(assay_plan_layers(c.plan), NULL, NULL, &s));
  for (int k = 0; k < 40; k++) {
    static const mock_fault_t strikes[] = {MOCK_FAULT_UPLOAD, MOCK_FAULT_KERNEL,
                                           MOCK_FAULT_DOWNLOAD, MOCK_FAULT_LAUNCH};
    mock_fail(strikes[k % 4], 1 + k / 8);
    assay_status_t st = run_case_once(&c, b, s, &got);
    mock_fail(MOCK_NO_FAULT, 0);
    if (st) {
      assert_int_equal(assay_status_code(st), ASSAY_DEVICE);
      assay_status_free(st);
      ok(run_case_once(&c, b, s, &got));
    }
    outputs_same("behind a failure", &want, &got);
    outputs_release(&got);
  }
  mock_fail(MOCK_FAULT_LOST, 2);
  for (int k = 0; k < 3; k++) {
    assay_status_t st = run_case_once(&c, b, s, &got);
    if (st || k)
      fails(st, ASSAY_DEVICE, k ? "the device is lost" : "fell off the bus");
    else
      outputs_release(&got);
  }
  b->close(s);
  outputs_release(&want);
  run_case_close(&c);
}

// What is left of a run that was given up is nobody's, its failure too.
static void runs_are_given_up(void** state) {
  (void)state;
  const assay_backend_t* b = &assay_backend_mock;
  run_case_t c;
  run_outputs_t want, got;
  void* s = NULL;
  mock_delay(5, 2000);
  run_case_load(&c, "transformer", ASSAY_FORMAT_FP32, true);
  run_case_run(&c, &assay_backend_emu, &want);
  ok(b->open(assay_plan_layers(c.plan), NULL, NULL, &s));
  for (int k = 0; k < 6; k++) {
    b->reset(s);
    if (k % 2) mock_fail(MOCK_FAULT_UPLOAD, 1);
    ok(run_case_set(&c, b, s));
    ok(b->step(s, 0));
    ok(run_case_once(&c, b, s, &got));
    mock_fail(MOCK_NO_FAULT, 0);
    outputs_same("behind a run that was given up", &want, &got);
    outputs_release(&got);
  }
  ok(run_case_set(&c, b, s));
  ok(b->step(s, 0));
  b->close(s);
  outputs_release(&want);
  run_case_close(&c);
}

// An output bound over an input that is read behind it.
static void outputs_are_not_made_over_inputs(void** state) {
  (void)state;
  static const graph_case_t text = {
      .inputs = {"x float[64]"}, .nodes = {"Neg a x -> y", "Exp b x -> z"}, .outputs = "y z"};
  const assay_backend_t* b = &assay_backend_mock;
  assay_tensor_t *in[GRAPH_CASE_ROWS] = {NULL}, *x = NULL;
  run_case_t c = {.model = graph_case_model(&text, in)};
  run_outputs_t want, got;
  assay_device_ptr_t p = 0;
  float have[64];
  void* s = NULL;
  run_case_plan(&c, ASSAY_FORMAT_FP32, false);
  const assay_graph_t* g = run_case_graph(&c);
  ok(assay_set_add(&c.inputs, g->inputs[0]->name, in[0]));
  run_case_run(&c, &assay_backend_emu, &want);
  ok(assay_tensor_pack(in[0], &x));
  ok(mock_alloc(256, &p));
  ok(b->open(assay_plan_layers(c.plan), NULL, NULL, &s));
  for (int k = 0; k < 4; k++) {
    const assay_device_view_t view = {ASSAY_TYPE_FLOAT, 1, x->dims, p, 256};
    int rank;
    int64_t dims[ASSAY_MAX_RANK];
    ok(mock_write(p, x->data, 256));
    b->reset(s);
    ok(b->set_on_device(s, g->inputs[0], &view));
    ok(b->bind_on_device(s, g->outputs[0], p, 256));
    ok(run_case_steps(&c, b, s));
    ok(b->deliver(s, g->outputs[0], &rank, dims));
    assert_true(rank == 1 && dims[0] == 64);
    ok(mock_read(p, have, 256));
    for (int i = 0; i < 64; i++) assert_true((double)have[i] == assay_f64(want.at[0])[i]);
    got = (run_outputs_t){{want.at[0], b->get(s, g->outputs[1])}, 2};
    outputs_same("behind the input", &want, &got);
  }
  b->close(s);
  mock_free(p);
  assay_tensor_release(x);
  outputs_release(&want);
  run_case_close(&c);
}

static void the_layer_that_failed_is_named(void** state) {
  (void)state;
  const assay_backend_t* b = &assay_backend_mock;
  run_case_t c;
  run_outputs_t got;
  run_case_load(&c, "classifier", ASSAY_FORMAT_FP32, false);
  const assay_layers_t* layers = assay_plan_layers(c.plan);
  for (size_t run = 0; run < 3; run++)  // layer by layer, captured, launched again
    for (size_t i = 0; i < layers->n_layers; i++) {
      void* s = NULL;
      char word[256];
      snprintf(word, sizeof word, "layer '%s': the kernel failed", layers->layers[i].name);
      ok(b->open(layers, NULL, NULL, &s));
      for (size_t k = 0; k < run; k++) {
        ok(run_case_once(&c, b, s, &got));
        outputs_release(&got);
      }
      mock_fail(MOCK_FAULT_KERNEL, (int)i + 1);
      fails(run_case_once(&c, b, s, &got), ASSAY_DEVICE, word);
      b->close(s);
    }
  run_case_close(&c);
}

static void failed_allocations_of_the_host_are_survived(void** state) {
  (void)state;
  run_case_t c;
  run_case_load(&c, "transformer", ASSAY_FORMAT_BF16, true);
  for (uint64_t n = 1;; n = fail_next(n, 20)) {
    run_outputs_t got = {0};
    assay_code_forget();
    const int64_t before = assay_alloc_live();
    assay_alloc_fail_after(n, false);
    assay_status_t st = run_thrice(&c, &got);
    const bool done = assay_alloc_fail_after(0, false) < n;
    if (st && assay_status_code(st) != ASSAY_NO_MEMORY)
      fail_msg("allocation %llu: %s", (unsigned long long)n, assay_status_message(st));
    assay_status_free(st);
    outputs_release(&got);
    assay_code_forget();
    assert_int_equal(mock_live(), 0);
    assert_int_equal(assay_alloc_live(), before);
    if (done) break;
  }
  run_case_close(&c);
}

// A product of so many rows, of which the first is always the same; open: the model leaves it open
// how many there are.
static void run_rows(int rows, bool open, run_outputs_t* out) {
  static const char* const inputs[] = {"x float[1,64]", "x float[8,64]"};
  const graph_case_t text = {.inputs = {inputs[rows == 8]},
                             .constants = {"w float[64,16] iota"},
                             .nodes = {"MatMul a x w -> y"},
                             .outputs = "y"};
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  run_case_t c = {.model = graph_case_model_of(&text, open, in)};
  run_case_plan(&c, ASSAY_FORMAT_FP32, false);
  ok(assay_set_add(&c.inputs, run_case_graph(&c)->inputs[0]->name, in[0]));
  run_case_run(&c, &assay_backend_mock, out);
  run_case_close(&c);
}

// Variants with bits of their own, of which another one is predicted to be the fastest for each
// number of rows: a row has the same bits among others and alone, in an engine for one size and in
// one for all.
static void bits_do_not_depend_on_predictions(void** state) {
  run_outputs_t alone, first;
  (void)state;
  mock_offer_tiles(true);
  run_rows(1, false, &alone);
  for (int k = 0; k < 3; k++) {
    run_rows(k == 1 ? 1 : 8, k > 0, &first);
    assert_int_equal(first.at[0]->dims[1], 16);
    for (int i = 0; i < 16; i++)
      assert_true(assay_f64(first.at[0])[i] == assay_f64(alone.at[0])[i]);
    outputs_release(&first);
  }
  outputs_release(&alone);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, calm, calm)
  const struct CMUnitTest tests[] = {
      TEST(bits_are_those_of_the_emulated_engine),
      TEST(kernels_with_layouts_of_their_own_give_the_same_each_time),
      TEST(spans_are_captured_once),
      TEST(captures_are_kept_by_addresses),
      TEST(layers_without_kernels_are_emulated),
      TEST(kernels_are_timed),
      TEST(bits_do_not_depend_on_predictions),
      TEST(taps_see_every_layer),
      TEST(failures_are_told),
      TEST(runs_go_on_behind_failures),
      TEST(runs_are_given_up),
      TEST(outputs_are_not_made_over_inputs),
      TEST(the_layer_that_failed_is_named),
      TEST(failed_allocations_of_the_host_are_survived)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
