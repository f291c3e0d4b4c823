// Layers that the host runs in a GPU's queue, on the CUDA platform without a GPU (fake/).
#include <pthread.h>

#include "account/account.h"
#include "device/run_case.h"
#include "fail_case.h"
#include "passes/graph_case.h"
#include "platform_case.h"
#include "runtime/engine_case.h"

static const char* const models[] = {"classifier", "transformer", "loop",
                                     "quantized",  "detector",    "external"};
enum { N_MODELS = sizeof models / sizeof *models };
static const assay_format_t formats[] = {ASSAY_FORMAT_FP32, ASSAY_FORMAT_BF16, ASSAY_FORMAT_FP16,
                                         ASSAY_FORMAT_TF32};

extern const assay_backend_t assay_backend_cuda;
static const assay_backend_options_t by_host = {.tactic_sources = "host"};
static const assay_backend_t* const cuda = &assay_backend_cuda;

static int calm_platform(void** state) {
  (void)state;
  *fake = (fake_state_t){.version = 13000, .devices = 1, .capability = 90};
  return 0;
}

static int nothing_is_left(void** state) {
  (void)state;
  return fake->live ? -1 : 0;
}

static void* share_host(const run_case_t* c) {
  void* shared = NULL;
  ok(cuda->share(assay_plan_layers(c->plan), &by_host, &shared));
  return shared;
}

// Every layer is in the queue but for control nodes, what follows from sizes, and what makes as
// many boxes as it finds.
static void all_are_by_host(const run_case_t* c, void* s) {
  const assay_layers_t* layers = assay_plan_layers(c->plan);
  for (size_t i = 0; i < layers->n_layers; i++) {
    const assay_node_t* node = layers->layers[i].nodes[0];
    const char* by = cuda->tactic(s, i);
    if (node->op->flags & ASSAY_OP_CONTROL || strcmp(by, "sizes") == 0 ||
        strcmp(node->op_type, "NonMaxSuppression") == 0)
      continue;
    if (strcmp(by, "host") != 0) fail_msg("layer '%s' is by %s", layers->layers[i].name, by);
  }
}

// ---- numbers ------------------------------------------------------------------------------------

// Layer by layer, captured, launched again, one at a time: the bits are those of the CPU's kernels;
// in tf32, which those have not, of the emulated engine.
static void bits_are_those_of_the_cpu(void** state) {
  (void)state;
  for (int m = 0; m < N_MODELS; m++)
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
      run_case_t c;
      run_outputs_t want, got;
      void* s = NULL;
      run_case_load(&c, models[m], formats[f], true);
      run_case_run(&c, &assay_backend_cpu, &want);
      void* shared = share_host(&c);
      ok(cuda->open(assay_plan_layers(c.plan), shared, NULL, &s));
      for (int k = 0; k < 4; k++) {
        if (k == 3) cuda->stepwise(s, true);
        ok(run_case_once(&c, cuda, s, &got));
        outputs_same(models[m], &want, &got);
        outputs_release(&got);
      }
      all_are_by_host(&c, s);
      cuda->close(s);
      cuda->unshare(shared);
      outputs_release(&want);
      run_case_close(&c);
    }
}

static void a_run_is_captured_as_a_whole(void** state) {
  (void)state;
  run_case_t c;
  run_outputs_t got;
  void* s = NULL;
  run_case_load(&c, "classifier", ASSAY_FORMAT_FP32, true);
  void* shared = share_host(&c);
  ok(cuda->open(assay_plan_layers(c.plan), shared, NULL, &s));
  for (int k = 0; k < 5; k++) {
    ok(run_case_once(&c, cuda, s, &got));
    outputs_release(&got);
  }
  const assay_device_counts_t n = assay_device_counts(s);
  assert_int_equal(n.spans, 1);
  assert_int_equal(n.captures, 1);
  assert_int_equal(n.launches, 4);
  assert_int_equal(n.uploads, 5);
  cuda->close(s);
  cuda->unshare(shared);
  run_case_close(&c);
}

// Kernels round as the CPU's do, or as the emulated engine.
static void rounding_is_that_of_the_kernel(void** state) {
  (void)state;
  for (int f = 0; f < 2; f++) {
    run_case_t c;
    run_outputs_t got, want;
    void *s = NULL, *other = NULL;
    const assay_backend_t* same = f ? &assay_backend_emu : &assay_backend_cpu;
    run_case_load(&c, "classifier", f ? ASSAY_FORMAT_TF32 : ASSAY_FORMAT_FP16, true);
    const assay_layers_t* layers = assay_plan_layers(c.plan);
    void* shared = share_host(&c);
    ok(cuda->open(layers, shared, NULL, &s));
    ok(same->open(layers, NULL, NULL, &other));
    ok(run_case_once(&c, cuda, s, &got));
    ok(run_case_once(&c, same, other, &want));
    for (size_t i = 0; i < layers->n_layers; i++) {
      assay_rounding_t a = {0}, b = {0};
      cuda->rounding(s, &layers->layers[i], 0, NULL, &a);
      same->rounding(other, &layers->layers[i], 0, NULL, &b);
      assert_int_equal(a.compute, b.compute);
      assert_int_equal(a.documented, b.documented);
      assert_int_equal(a.order, b.order);
      assert_int_equal(a.flushes, b.flushes);
      assert_true(a.function_ulps == b.function_ulps);
    }
    outputs_release(&got);
    outputs_release(&want);
    cuda->close(s);
    same->close(other);
    cuda->unshare(shared);
    run_case_close(&c);
  }
}

// An emulated layer gives all of its outputs: whoever checks it looks at those that nothing reads,
// too.
static void outputs_without_readers_are_made(void** state) {
  (void)state;
  static const graph_case_t graph = {.name = "values only",
                                     .inputs = {"x int64[2,5] 3 1 4 1 5 9 2 6 5 3"},
                                     .constants = {"k int64[1] 2"},
                                     .nodes = {"TopK n x k -> v i", "Neg last v -> y"},
                                     .outputs = "y"};
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  run_case_t c = {.model = graph_case_model(&graph, in)};
  const assay_account_options_t options = {0};
  assay_account_t* a = NULL;
  run_case_plan(&c, ASSAY_FORMAT_FP32, false);
  ok(assay_account_create(c.plan, cuda, &options, &a));
  ok(assay_account_run(a, in));
  for (size_t i = 0; i < assay_account_layer_count(a); i++) {
    const assay_layer_account_t* l = assay_account_layer(a, i);
    if (l->judged.beyond || l->verdict == ASSAY_VERDICT_DEFECT)
      fail_msg("layer '%s': %lld elements beyond", l->layer->name, (long long)l->judged.beyond);
  }
  assay_account_destroy(a);
  graph_case_release(in);
  run_case_close(&c);
}

// ---- failures -----------------------------------------------------------------------------------

static const graph_case_t looks_up = {
    .name = "looks up",
    .inputs = {"x float[4,6]", "i int64[3] 0 2 3"},
    .constants = {"a int64[1] 1"},
    .nodes = {"Relu before x -> r", "Gather find r i -> g | axis=0", "Exp behind g -> e",
              "Gather again e i -> h | axis=1", "Neg last h -> y"},
    .outputs = "y"};

// The run fails with the layer's name, also where it is captured; the next one is right.
static void a_failure_is_that_of_the_run(void** state) {
  (void)state;
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  run_case_t c = {.model = graph_case_model(&looks_up, in)};
  run_outputs_t want, got;
  void* s = NULL;
  run_case_plan(&c, ASSAY_FORMAT_FP32, false);
  assay_tensor_t* bad = op_case_tensor("int64[3] 0 77 3");
  for (int i = 0; i < 2; i++)
    ok(assay_set_add(&c.inputs, c.model->graph->inputs[i]->name, assay_tensor_retain(in[i])));
  graph_case_release(in);
  run_case_run(&c, &assay_backend_emu, &want);
  void* shared = share_host(&c);
  ok(cuda->open(assay_plan_layers(c.plan), shared, NULL, &s));
  for (int k = 0; k < 8; k++) {
    const bool wrong = k % 2;
    cuda->reset(s);
    ok(run_case_set(&c, cuda, s));
    if (wrong) ok(cuda->set(s, run_case_graph(&c)->inputs[1], bad));
    if (wrong)
      fails(run_case_steps(&c, cuda, s), ASSAY_INVALID_ARGUMENT, "layer 'find', which the host");
    if (wrong) continue;
    ok(run_case_once(&c, cuda, s, &got));
    outputs_same("behind a failure", &want, &got);
    outputs_release(&got);
  }
  assert_true(assay_device_counts(s).launches > 2);
  outputs_release(&want);
  assay_tensor_release(bad);
  cuda->close(s);
  cuda->unshare(shared);
  run_case_close(&c);
}

// ---- contexts -----------------------------------------------------------------------------------

enum { CONTEXTS = 4, RUNS = 20 };

static float images[MAX * IMAGE], expected[MAX + 1][MAX * CLASSES];

typedef struct job {
  assay_engine_t* engine;
  unsigned seed;
  const char* wrong;  // NULL: nothing
} job_t;

static assay_status_t run_images(assay_context_t* c, int64_t n, float* out) {
  const int64_t dims[] = {n, 3, 16, 16};
  assay_status_t st = assay_context_bind_input(c, 0, ASSAY_TYPE_FLOAT, 4, dims, images,
                                               (size_t)n * IMAGE * sizeof *images);
  if (!st) st = assay_context_bind_output(c, 0, out, MAX * CLASSES * sizeof *out);
  return st ? st : assay_context_run(c);
}

static void* work(void* p) {
  job_t* j = p;
  float out[MAX * CLASSES];
  assay_context_options_t o = ASSAY_CONTEXT_OPTIONS_INIT;
  assay_context_t* c = NULL;
  o.threads = 1;
  assay_status_t st = assay_context_create(j->engine, &o, &c);
  for (unsigned i = 0; !st && !j->wrong && i < RUNS; i++) {
    const int64_t n = 1 + (j->seed + i / 3) % MAX;
    st = run_images(c, n, out);
    if (!st && memcmp(out, expected[n], (size_t)n * CLASSES * sizeof *out) != 0)
      j->wrong = "other numbers than those of one thread";
  }
  if (st) j->wrong = "a run failed";
  assay_status_free(st);
  assay_context_destroy(c);
  return NULL;
}

static void contexts_do_not_share_staging_memory(void** state) {
  (void)state;
  pthread_t threads[CONTEXTS];
  job_t jobs[CONTEXTS];
  const assay_engine_options_t o = {
      .struct_size = sizeof o, .target = "cuda", .tactic_sources = "host"};
  assay_engine_t* e = build_model("classifier", &o);
  assay_context_t* c = open_context(e, NULL);
  fill(images, MAX * IMAGE, 11);
  for (int64_t n = 1; n <= MAX; n++) classify(c, images, n, expected[n]);
  assay_context_destroy(c);
  for (unsigned i = 0; i < CONTEXTS; i++) {
    jobs[i] = (job_t){.engine = e, .seed = i};
    assert_int_equal(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
  }
  for (int i = 0; i < CONTEXTS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < CONTEXTS; i++)
    if (jobs[i].wrong) fail_msg("thread %d: %s", i, jobs[i].wrong);
  assay_engine_release(e);
}

int main(void) {
  find_platform();
#define TEST(name) cmocka_unit_test_setup_teardown(name, calm_platform, nothing_is_left)
  const struct CMUnitTest tests[] = {
      TEST(bits_are_those_of_the_cpu),      TEST(a_run_is_captured_as_a_whole),
      TEST(rounding_is_that_of_the_kernel), TEST(outputs_without_readers_are_made),
      TEST(a_failure_is_that_of_the_run),   TEST(contexts_do_not_share_staging_memory),
  };
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL);
}
