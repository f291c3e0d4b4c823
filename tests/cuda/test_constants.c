// Constants in a GPU's memory, on one that is not there (fake/): each lies there once, in the order
// of the kernel that runs, however many tactics the layer was shown to.
#include <unistd.h>

#include "backends/tactic_case.h"
#include "platform_case.h"

static char path[64];

// So many convolutions one after the other, none of which is a product of matrices.
static const graph_case_t chains[] = {
    {"two convolutions",
     17,
     {"x float[1,24,9,7]"},
     {"v float[24,24,3,3]", "w float[24,24,3,3]"},
     {"Conv p x v -> t | pads=1,1,1,1", "Conv q t w -> y | pads=1,1,1,1"},
     "y"},
    {"three",
     17,
     {"x float[1,24,9,7]"},
     {"u float[24,24,3,3]", "v float[24,24,3,3]", "w float[24,24,3,3]"},
     {"Conv o x u -> s | pads=1,1,1,1", "Conv p s v -> t | pads=1,1,1,1",
      "Conv q t w -> y | pads=1,1,1,1"},
     "y"},
};

static void run(assay_engine_t* engine, assay_tensor_t* const* in, assay_executor_t** out) {
  op_case_ok(assay_executor_run_engine(engine, NULL, out));
  op_case_ok(assay_executor_set_inputs(*out, in));
  op_case_ok(assay_executor_run(*out));
}

static size_t used_memory(void) {
  assay_device_t* d = NULL;
  size_t free_bytes, total;
  op_case_ok(driver->open(0, &d));
  op_case_ok(driver->memory(d, &free_bytes, &total));
  driver->close(d);
  return total - free_bytes;
}

// The device's memory that is taken while the plan's file can be run again: as it is built, layers
// are run by several kernels, to be timed.
static size_t used_after_run(const graph_case_t* row, assay_format_t format) {
  const assay_precision_t precision = {.format = format};
  const assay_plan_options_t options = {.fused = true};
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(row, in);
  assay_plan_t* plan = NULL;
  assay_engine_t* engine = NULL;
  assay_executor_t* e = NULL;
  op_case_ok(assay_plan_create(m, &precision, &options, 1, &plan));
  op_case_ok(assay_engine_create(plan, assay_backend_find("cuda"), NULL, &engine));
  run(engine, in, &e);
  op_case_ok(assay_engine_save(engine, path));
  assay_executor_destroy(e);
  assay_engine_release(engine);
  op_case_ok(assay_engine_load(path, &engine));
  run(engine, in, &e);
  const size_t used = used_memory();
  assay_executor_destroy(e);
  assay_engine_release(engine);
  assay_model_release(m);
  graph_case_release(in);
  return used;
}

// Outputs of layers take less than half as much as weights.
static void weights_lie_once(void** state) {
  (void)state;
  static const struct {
    assay_format_t format;
    size_t bytes;  // of an element
  } rows[] = {{ASSAY_FORMAT_FP16, 2},
              {ASSAY_FORMAT_BF16, 2},
              {ASSAY_FORMAT_FP32, 4},
              {ASSAY_FORMAT_TF32, 4}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const size_t weights = 24 * 24 * 3 * 3 * rows[i].bytes;
    const size_t two = used_after_run(&chains[0], rows[i].format);
    const size_t three = used_after_run(&chains[1], rows[i].format);
    if (three - two < weights || three - two > weights + weights / 2)
      fail_msg("%s: a layer with weights of %zu bytes takes %zu", assay_format_name(rows[i].format),
               weights, three - two);
  }
}

int main(void) {
  find_platform();
  if (!fake) return 0;  // a real GPU
  snprintf(path, sizeof path, "/tmp/assay-test-constants-%ld", (long)getpid());
  const struct CMUnitTest tests[] = {cmocka_unit_test(weights_lie_once)};
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  unlink(path);
  return failed;
}
