// The backend for Triton with inputs and outputs in memory of a GPU, and on a GPU: test_gpu
// LIBRARY. On the CUDA platform for tests without a GPU (tests/cuda/fake), or on GPU 0 where
// ASSAY_TEST_LIBCUDA is not set.
#include "server_case.h"

enum { N = 4 };

// Alone in one piece and in two, and two that are a batch; outputs on the host and on the GPU.
static void serve(const char* config) {
  static const int64_t rows[N] = {1, 2, 3, 1};
  TRITONBACKEND_Request* requests[N];
  fake_model_t* model = load("classifier/model.onnx", config);
  for (int k = 0; k < N; k++) {
    requests[k] = image_request(k, rows[k], k == 1 ? 2 : 1);
    if (k != 3) fake_place_inputs(requests[k], TRITONSERVER_MEMORY_GPU);
    if (k % 2) fake_place_outputs(requests[k]);
  }
  for (int k = 0; k < N; k += k < 2 ? 1 : 2)
    no_error(fake_execute(fake_instance(model, 0), &requests[k], k < 2 ? 1 : 2));
  for (int k = 0; k < N; k++) check_image(requests[k], k, rows[k]);
  assert_int_equal(fake_statistics(model).runs, 3);
  fake_unload(model);
}

static void test_memory(void** state) {
  (void)state;
  run_target = "cpu";
  serve("{}");
}

static void test_device(void** state) {
  (void)state;
  run_target = "cuda:0";
  serve("{\"instance_group\":[{\"kind\":\"KIND_GPU\",\"gpus\":[0]}]}");
}

static void test_no_device(void** state) {
  fake_model_t* model = NULL;
  (void)state;
  has_error(fake_load(repository("classifier/model.onnx"),
                      "{\"instance_group\":[{\"kind\":\"KIND_GPU\",\"gpus\":[63]}]}", true, &model),
            "cuda:63");
}

int main(int argc, char** argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory), cmocka_unit_test(test_device),
                                     cmocka_unit_test(test_no_device)};
  const char* platform = getenv("ASSAY_TEST_LIBCUDA");
  if (argc < 2) return 2;
  if (platform) setenv("ASSAY_CUDA_PATH", platform, 1);
  fake_set_version(1, 19);
  const char* error =
      fake_gpu_open() ? fake_open(argv[1], NULL) : "no GPU, and no platform for tests";
  if (error) return fprintf(stderr, "%s\n", error), 1;
  const int failures = cmocka_run_group_tests(tests, NULL, NULL);
  fake_close();
  fake_reset();
  if (fake_broken())
    fprintf(stderr, "%d rules are broken: %s\n", fake_broken(), fake_first_broken());
  return failures || fake_broken();
}
