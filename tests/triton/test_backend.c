// What the backend for Triton does with models and requests: test_backend LIBRARY.
#include <pthread.h>

#include "server_case.h"

static const char* library;

// ---- the backend and its models
// -----------------------------------------------------------------

static void test_versions(void** state) {
  char groups[64];
  (void)state;
  fake_close();
  fake_set_version(1, 15);
  has_error(fake_open(library, NULL), "UNSUPPORTED: the server's backend API is 1.15");
  fake_set_version(2, 0);
  has_error(fake_open(library, NULL), "UNSUPPORTED");
  fake_set_version(1, 19);
  no_error(fake_open(library, NULL));
  fake_prefer_groups(groups, sizeof groups);
  assert_string_equal(groups, "GPU,CPU");
}

// What is filled in, of a configuration and settings of the server.
static void completes(const char* model, const char* config, const char* const* words) {
  fake_model_t* loaded = load(model, config);
  for (; *words; words++)
    if (!strstr(fake_config(loaded), *words))
      fail_msg("'%s' is not in: %s", *words, fake_config(loaded));
  fake_unload(loaded);
}

#define WORDS(...) ((const char* const[]){__VA_ARGS__, NULL})
static const char classifier[] = "classifier/model.onnx", transformer[] = "transformer/model.onnx";

static void test_completed(void** state) {
  (void)state;
  completes(classifier, "{}",
            WORDS("\"max_batch_size\":4", "\"dynamic_batching\":{}", "\"name\":\"image\"",
                  "\"data_type\":\"TYPE_FP32\"", "\"dims\":[3,16,16]", "\"dims\":[10]"));
  completes(transformer, "{\"max_batch_size\":1}", WORDS("\"max_batch_size\":1", "\"dims\":[-1]"));
  // The batch is among the dims that somebody has written: they stay as they are.
  completes(transformer,
            "{\"input\":[{\"name\":\"tokens\",\"data_type\":\"TYPE_INT64\",\"dims\":[-1,7]}]}",
            WORDS("[-1,7]", "\"dims\":[-1,-1,16]"));
  completes(transformer,
            "{\"input\":[{\"name\":\"tokens\",\"data_type\":\"TYPE_INVALID\",\"dims\":[\"9\"]}]}",
            WORDS("\"max_batch_size\":4", "TYPE_INT64", "[\"9\"]"));
  completes("serving/scalars.onnx", "{}",
            WORDS("\"dims\":[1]", "\"dims\":[-1]", "\"dims\":[1,-1]"));
  completes("serving/rows.onnx", "{}",
            WORDS("\"dims\":[1]", "\"reshape\":{\"shape\":[]}", "\"max_batch_size\":4"));
}

// A configuration, and words of the error that it gets.
typedef struct refusal {
  const char *config, *words;
} refusal_t;

static void test_refused(void** state) {
  static const refusal_t rows[] = {
      {"[]", "INVALID_ARG: the configuration is not a JSON object"},
      {"{\"max_batch_size\":-3}", "max_batch_size is -3"},
      {"{\"max_batch_size\":\"x\",\"input\":[{}]}", "has no name"},
      {"{\"input\":[{\"name\":\"image\",\"data_type\":\"TYPE_FP32\",\"dims\":[1,2,3,4,5]}]}",
       "[-1,1,2,3,4,5]"},
      {"{\"input\":[7]}", "has no name"},
      {"{\"output\":[{\"name\":\"other\"}]}", "no output 'other'"},
      {"{\"batch_input\":[{}]}", "UNSUPPORTED: batch_input"},
      {"{\"sequence_batching\":{}}", "UNSUPPORTED: sequence_batching"},
      {"{\"ensemble_scheduling\":{}}", "UNSUPPORTED: ensemble_scheduling"},
      {"{\"model_transaction_policy\":{\"decoupled\":true}}", "UNSUPPORTED: decoupled"},
      {"{\"optimization\":{\"execution_accelerators\":{\"cpu_execution_accelerator\":[{}]}}}",
       "UNSUPPORTED: execution_accelerators"},
      {"{\"parameters\":{\"fp32\":{\"string_value\":\"loose\"}}}", "parameter 'fp32' is 'loose'"},
      {"{\"parameters\":{\"threads\":{\"string_value\":\"9999999999999999999\"}}}", "'threads'"},
      {"{\"parameters\":{\"threads\":7}}", "'threads'"},
      {"{\"parameters\":{\"strict\":{\"string_value\":\"perhaps\"}}}", "true or false"},
      {"{\"parameters\":{\"layer_precision\":{\"string_value\":\"nothing*:fp16\"}}}", "nothing*"},
      {"{\"parameters\":{\"precision\":{\"string_value\":\"fp32x\"}}}", "a format"},
      {"{\"instance_group\":[{\"kind\":\"KIND_MODEL\"}],\"parameters\":{\"target\":{\"string_"
       "value\":\"abacus\"}}}",
       "abacus"},
      {"{\"default_model_filename\":\"gone.onnx\"}", "NOT_FOUND: no readable file 'gone.onnx'"},
      {"{\"default_model_filename\":\"../1\"}", "/1/../1"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    fake_model_t* loaded = NULL;
    print_message("%s\n", rows[i].config);
    has_error(fake_load(repository(classifier), rows[i].config, true, &loaded), rows[i].words);
  }
}

// --disable-auto-complete-config: nothing is filled in.
static void test_strict(void** state) {
  static const char whole[] =
      "{\"max_batch_size\":2,\"input\":[{\"name\":\"image\",\"data_type\":\"TYPE_FP32\",\"dims\":["
      "3,16,16]}],"
      "\"output\":[{\"name\":\"probabilities\",\"data_type\":\"TYPE_FP32\",\"dims\":[10]}]}";
  fake_model_t* loaded = NULL;
  (void)state;
  has_error(fake_load(repository(classifier), "{}", false, &loaded),
            "INVALID_ARG: the model's input 'image' is not in the configuration");
  no_error(fake_load(repository(classifier), whole, false, &loaded));
  assert_string_equal(fake_config(loaded), whole);
  fake_unload(loaded);
}

// ---- requests
// -----------------------------------------------------------------------------------

static void execute(fake_model_t* model, TRITONBACKEND_Request** requests, uint32_t n) {
  no_error(fake_execute(fake_instance(model, 0), requests, n));
}

static void test_single(void** state) {
  (void)state;
  fake_model_t* model = load(classifier, "{}");
  for (uint32_t pieces = 1; pieces <= 5; pieces++) {
    TRITONBACKEND_Request* request = image_request((int)pieces, 2, pieces);
    if (pieces % 2) fake_add_output(request, "probabilities");
    if (pieces == 3) fake_place_inputs(request, TRITONSERVER_MEMORY_CPU_PINNED);
    execute(model, &request, 1);
    check_image(request, (int)pieces, 2);
  }
  assert_int_equal(fake_statistics(model).succeeded, 5);
  fake_unload(model);
}

static void test_batches(void** state) {
  enum { N = 7 };
  static const int64_t rows[N] = {1, 3, 2, 1, 4, 2, 3};
  TRITONBACKEND_Request* requests[N];
  (void)state;
  fake_model_t* model = load(classifier, "{\"max_batch_size\":8}");
  for (int k = 0; k < N; k++) requests[k] = image_request(k, rows[k], (uint32_t)k % 3 + 1);
  execute(model, requests, N);
  for (int k = 0; k < N; k++) check_image(requests[k], k, rows[k]);
  const fake_statistics_t made = fake_statistics(model);
  assert_int_equal(made.runs, 3);  // 1 + 3 + 2 + 1, 4 + 2 and 3 rows
  assert_int_equal(made.rows, 16);
  assert_int_equal(made.succeeded, N);
  fake_unload(model);
}

static void test_unlike(void** state) {
  enum { N = 6 };
  static const int64_t lengths[N] = {5, 9, 5, 1, 9, 5};
  TRITONBACKEND_Request* requests[N];
  (void)state;
  fake_model_t* model = load(transformer, "{\"max_batch_size\":8}");
  for (int k = 0; k < N; k++) requests[k] = tokens_request(k, lengths[k]);
  execute(model, requests, N);
  for (int k = 0; k < N; k++) check_tokens(requests[k], k, lengths[k]);
  assert_int_equal(fake_statistics(model).runs, 3);
  fake_unload(model);
}

// One of a batch has an index that there is not, one has been cancelled, one gets no memory.
static void test_one_fails(void** state) {
  enum { N = 5 };
  TRITONBACKEND_Request* requests[N];
  (void)state;
  fake_model_t* model = load(transformer, "{\"max_batch_size\":8}");
  for (int k = 0; k < N; k++) requests[k] = tokens_request(k == 1 ? 5000 : k, 6);
  fake_cancel_after(requests[2], 0);
  fake_refuse_outputs(requests[3]);
  execute(model, requests, N);
  has_error(fake_answer_error(requests[1]), "3: model 'tested'");
  has_error(fake_answer_error(requests[1]), "5000");
  has_error(fake_answer_error(requests[2]), "7: ");
  has_error(fake_answer_error(requests[3]), "4: no memory for outputs");
  check_tokens(requests[0], 0, 6);
  check_tokens(requests[4], 4, 6);
  assert_int_equal(fake_statistics(model).failed, 3);
  fake_unload(model);
}

// The first run takes long, so that the second is watched, whose client goes away.
static void test_cancelled_run(void** state) {
  (void)state;
  fake_model_t* model = load("loop/model.onnx", "{}");
  for (int k = 0; k < 2; k++) {
    const int64_t steps = 20000, one = 1, shape[] = {1, 4};
    const float start[4] = {1, 2, 3, 4};
    TRITONBACKEND_Request* request = fake_request();
    fake_add_input(request, "steps", TRITONSERVER_TYPE_INT64, 1, &one, &steps, sizeof steps, 1);
    fake_add_input(request, "start", TRITONSERVER_TYPE_FP32, 2, shape, start, sizeof start, 2);
    if (k == 1) fake_cancel_after(request, 2);
    execute(model, &request, 1);
    if (k == 1)
      has_error(fake_answer_error(request), "7: ");
    else
      no_error(fake_answer_error(request));
  }
  fake_unload(model);
}

// ---- requests that are wrong
// --------------------------------------------------------------------

typedef struct wrong {
  const char *name, *output;
  TRITONSERVER_DataType type;
  uint32_t rank;
  int64_t shape[5];
  size_t bytes;
  int twice;
  uint32_t flags;
  const char* words;
} wrong_t;

static const wrong_t wrongs[] = {
    {"image", 0, TRITONSERVER_TYPE_FP64, 4, {1, 3, 16, 16}, 6144, 0, 0, "TYPE_FP64"},
    {"image", 0, TRITONSERVER_TYPE_FP32, 3, {3, 16, 16}, 3072, 0, 0, "[3,16,16]"},
    {"image", 0, TRITONSERVER_TYPE_FP32, 5, {1, 1, 3, 16, 16}, 3072, 0, 0, "[1,1,3,16,16]"},
    {"image", 0, TRITONSERVER_TYPE_FP32, 4, {1, 3, 16, 15}, 2880, 0, 0, "[1,3,16,15]"},
    {"image", 0, TRITONSERVER_TYPE_FP32, 4, {1, 3, 16, 16}, 3071, 0, 0, "3071 bytes"},
    {"image", 0, TRITONSERVER_TYPE_FP32, 4, {2, 3, 16, 16}, 3072, 0, 0, "3072 bytes"},
    {"image", 0, TRITONSERVER_TYPE_FP32, 4, {-1, 3, 16, 16}, 3072, 0, 0, "not a shape"},
    {"image", 0, TRITONSERVER_TYPE_FP32, 4, {INT64_MAX, 3, 16, 16}, 3072, 0, 0, "not a shape"},
    {"image", 0, TRITONSERVER_TYPE_FP32, 4, {0, 3, 16, 16}, 0, 0, 0, "batch of 0"},
    {"image", 0, TRITONSERVER_TYPE_FP32, 4, {5, 3, 16, 16}, 15360, 0, 0, "batch of 5"},
    {"other", 0, TRITONSERVER_TYPE_FP32, 4, {1, 3, 16, 16}, 3072, 0, 0, "no input 'other'"},
    {NULL, 0, TRITONSERVER_TYPE_FP32, 0, {0}, 0, 0, 0, "'image' is missing"},
    {"image", 0, TRITONSERVER_TYPE_FP32, 4, {1, 3, 16, 16}, 3072, 1, 0, "given twice"},
    {"image", "odds", TRITONSERVER_TYPE_FP32, 4, {1, 3, 16, 16}, 3072, 0, 0, "no output 'odds'"},
    {"image", 0, TRITONSERVER_TYPE_FP32, 4, {1, 3, 16, 16}, 3072, 0, 1, "sequence"},
    {"image", 0, TRITONSERVER_TYPE_FP32, 4, {1, 3, 16, 16}, 3072, 0, 2, "sequence"},
};

static TRITONBACKEND_Request* wrong_request(const wrong_t* w) {
  TRITONBACKEND_Request* request = fake_request();
  uint8_t* zeros = calloc(w->bytes + 1, 1);
  for (int k = 0; w->name && k <= w->twice; k++)
    fake_add_input(request, w->name, w->type, w->rank, w->shape, zeros, w->bytes, 1);
  if (w->output) fake_add_output(request, w->output);
  fake_set_flags(request, w->flags);
  free(zeros);
  return request;
}

static void test_wrong_requests(void** state) {
  enum { N = sizeof wrongs / sizeof *wrongs };
  TRITONBACKEND_Request* requests[N + 2];
  (void)state;
  fake_model_t* model = load(classifier, "{}");
  requests[0] = image_request(1, 2, 1);
  requests[N + 1] = image_request(2, 2, 2);
  for (size_t i = 0; i < N; i++) requests[i + 1] = wrong_request(&wrongs[i]);
  execute(model, requests, N + 2);
  for (size_t i = 0; i < N; i++) has_error(fake_answer_error(requests[i + 1]), wrongs[i].words);
  check_image(requests[0], 1, 2);
  check_image(requests[N + 1], 2, 2);
  assert_int_equal(fake_statistics(model).runs, 1);
  fake_unload(model);
}

// Buffers that have more or less than the input says that it has.
static void test_wrong_buffers(void** state) {
  enum { N = 4 };
  TRITONBACKEND_Request* requests[N];
  (void)state;
  fake_model_t* model = load(classifier, "{}");
  for (int k = 0; k < N; k++) {
    const int64_t shape[] = {1, 3, 16, 16};
    static const uint8_t zeros[IMAGE * 4 + 640];
    const size_t bytes = k % 2 ? IMAGE * 4 + 640 : IMAGE * 4 - 64;
    requests[k] = fake_request();
    fake_add_input(requests[k], "image", TRITONSERVER_TYPE_FP32, 4, shape, zeros, bytes,
                   k / 2 ? 3 : 1);
    fake_claim_bytes(requests[k], IMAGE * 4);
  }
  execute(model, requests, N);
  for (int k = 0; k < N; k++)
    has_error(fake_answer_error(requests[k]),
              "3: the buffers of input 'image' do not have the 3072 bytes");
  fake_unload(model);
}

// Without a driver for them: an error, and the others go on.
static void test_gpu_memory(void** state) {
  TRITONBACKEND_Request* requests[2] = {image_request(1, 1, 1), image_request(2, 1, 1)};
  (void)state;
  fake_model_t* model = load(classifier, "{}");
  setenv("ASSAY_CUDA_PATH", "/dev/null", 1);
  fake_place_inputs(requests[0], TRITONSERVER_MEMORY_GPU);
  execute(model, requests, 2);
  unsetenv("ASSAY_CUDA_PATH");
  has_error(fake_answer_error(requests[0]), "4: ");
  check_image(requests[1], 2, 1);
  fake_unload(model);
}

// ---- other types and shapes
// ---------------------------------------------------------------------

static void add_strings(TRITONBACKEND_Request* request, const char* name, int64_t rows,
                        const char* data, size_t bytes, uint32_t pieces) {
  const int64_t shape[] = {rows, 2};
  fake_add_input(request, name, TRITONSERVER_TYPE_BYTES, 2, shape, data, bytes, pieces);
}

static void test_strings(void** state) {
  // Two rows of two, and one; what is cut off, and what follows the last.
  static const char two[] = "\1\0\0\0a\0\0\0\0\3\0\0\0b\0c\2\0\0\0dd", one[] = "\0\0\0\0\1\0\0\0z";
  static const char joined[] = "\2\0\0\0aa\0\0\0\0\6\0\0\0b\0cb\0c\4\0\0\0dddd";
  static const char end[] = "\1\0\0\0x\377\377\377\377y";
  TRITONBACKEND_Request* requests[4];
  (void)state;
  fake_model_t* model = load("serving/strings.onnx", "{\"max_batch_size\":8}");
  for (int k = 0; k < 4; k++) requests[k] = fake_request();
  for (int v = 0; v < 2; v++) {
    const char* name = v ? "b" : "a";
    add_strings(requests[0], name, 2, two, sizeof two - 1, v ? 5 : 1);
    add_strings(requests[1], name, 1, one, sizeof one - 1, 1);
    add_strings(requests[2], name, 1, end, sizeof end - 1, 1);
    add_strings(requests[3], name, 2, one, sizeof one - 1, 1);
  }
  execute(model, requests, 4);
  no_error(fake_answer_error(requests[0]));
  same_bits(fake_answer(requests[0], "joined"), (const uint8_t*)joined, sizeof joined - 1);
  assert_int_equal(fake_answer(requests[1], "joined")->bytes, 10);
  has_error(fake_answer_error(requests[2]), "string 2 of 2 is cut off");
  has_error(fake_answer_error(requests[3]), "too few for its strings");
  fake_unload(model);
}

static void test_scalars(void** state) {
  const int64_t four = 4, one = 1;
  const float x[4] = {0, 1, 0, 2}, s = 3;
  (void)state;
  fake_model_t* model = load("serving/scalars.onnx", "{}");
  for (int named = 0; named < 2; named++) {
    TRITONBACKEND_Request* request = fake_request();
    fake_add_input(request, "x", TRITONSERVER_TYPE_FP32, 1, &four, x, sizeof x, 1);
    fake_add_input(request, "s", TRITONSERVER_TYPE_FP32, 1, &one, &s, sizeof s, 1);
    if (named) fake_add_output(request, "places");
    execute(model, &request, 1);
    no_error(fake_answer_error(request));
    assert_int_equal(fake_answer_count(request), named ? 1 : 3);
    assert_int_equal(fake_answer(request, "places")->shape[1], 2);
    if (!named) assert_int_equal(fake_answer(request, "total")->rank, 1);
    if (!named) assert_true(*(float*)fake_answer(request, "total")->data == 15);
  }
  fake_unload(model);
}

static void test_optional(void** state) {
  const int64_t shape[] = {1, 2};
  const float x[2] = {1, 2}, z[2] = {3, 4}, negative[2] = {-3, -4};
  (void)state;
  fake_model_t* model = load("serving/optional.onnx", "{}");
  for (int given = 0; given < 2; given++) {
    TRITONBACKEND_Request* request = fake_request();
    fake_add_input(request, "z", TRITONSERVER_TYPE_FP32, 2, shape, z, sizeof z, 1);
    if (given) fake_add_input(request, "x", TRITONSERVER_TYPE_FP32, 2, shape, x, sizeof x, 2);
    execute(model, &request, 1);
    no_error(fake_answer_error(request));
    same_bits(fake_answer(request, "y"), (const uint8_t*)(given ? x : negative), sizeof x);
  }
  fake_unload(model);
}

// Operators of one's own come with the configuration; a library that is none is refused.
static void test_operators(void** state) {
  char config[1024];
  fake_model_t* model = NULL;
  (void)state;
  static const char pattern[] = "{\"model_operations\":{\"op_library_filename\":[\"%s\"]}}";
  snprintf(config, sizeof config, pattern, "1/model.onnx");
  has_error(fake_load(repository("operators/custom.onnx"), config, true, &model),
            "INVALID_ARG: op_library_filename: ");
  snprintf(config, sizeof config, pattern, "gone.so");
  has_error(fake_load(repository("operators/custom.onnx"), config, true, &model), "NOT_FOUND: ");
  has_error(fake_load(repository("operators/custom.onnx"), "{}", true, &model), "SoftClip");
  char library_path[512];
  snprintf(library_path, sizeof library_path, "%s/operators.so", getenv("ASSAY_TEST_OPS"));
  snprintf(config, sizeof config, pattern, library_path);
  no_error(fake_load(repository("operators/custom.onnx"), config, true, &model));
  const int64_t shape[] = {2, 64};
  float x[128];
  for (size_t i = 0; i < 128; i++) x[i] = number(1, i);
  TRITONBACKEND_Request* request = fake_request();
  fake_add_input(request, "x", TRITONSERVER_TYPE_FP32, 2, shape, x, sizeof x, 1);
  execute(model, &request, 1);
  no_error(fake_answer_error(request));
  assert_int_equal(fake_answer_count(request), 2);
  fake_unload(model);
}

// ---- instances at a time
// ------------------------------------------------------------------------

typedef struct client {
  TRITONBACKEND_ModelInstance* instance;
  TRITONBACKEND_Request* requests[10][2];
  pthread_t thread;
} client_t;

static void* serve(void* user) {
  client_t* client = user;
  for (int k = 0; k < 10; k++) fake_execute(client->instance, client->requests[k], 2);
  return NULL;
}

static void test_instances(void** state) {
  enum { N = 3 };
  client_t clients[N];
  (void)state;
  fake_model_t* model = load(classifier, "{\"instance_group\":[{},{\"kind\":\"KIND_CPU\"},{}]}");
  for (int i = 0; i < N; i++) {
    clients[i].instance = fake_instance(model, (size_t)i);
    for (int k = 0; k < 20; k++)
      clients[i].requests[k / 2][k % 2] = image_request(20 * i + k, 1, 1);
    assert_int_equal(pthread_create(&clients[i].thread, NULL, serve, &clients[i]), 0);
  }
  for (int i = 0; i < N; i++) pthread_join(clients[i].thread, NULL);
  for (int i = 0; i < N; i++)
    for (int k = 0; k < 20; k += 7) check_image(clients[i].requests[k / 2][k % 2], 20 * i + k, 1);
  assert_int_equal(fake_statistics(model).succeeded, 60);
  fake_unload(model);
}

// One instance has all cores, several share them, unless somebody says how many.
static void test_threads(void** state) {
  static const struct {
    const char *config, *words;
  } rows[] = {
      {"{}", "target cpu, all cores"},
      {"{\"instance_group\":[{\"kind\":\"KIND_CPU\",\"count\":3}]}", "target cpu, 2 threads"},
      {"{\"instance_group\":[{},{}]}", "target cpu, 3 threads"},
      {"{\"instance_group\":[{\"count\":50}]}", "target cpu, 1 threads"},
      {"{\"instance_group\":[{},{}],\"parameters\":{\"threads\":{\"string_value\":\"5\"}}}",
       "5 threads"},
      {"{\"instance_group\":[{},{}],\"parameters\":{\"threads\":{\"string_value\":\"0\"}}}",
       "all cores"},
  };
  (void)state;
  fake_close();
  no_error(fake_open(library, NULL));
  setenv("OMP_NUM_THREADS", "6", 1);  // as many cores as there are said to be
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    fake_model_t* model = load(classifier, rows[i].config);
    has_error(fake_last_log(), rows[i].words);
    fake_unload(model);
  }
  setenv("OMP_NUM_THREADS", "2", 1);
}

// What a model took is given back, each time.
static void test_unload(void** state) {
  int64_t used[3];
  (void)state;
  for (int k = 0; k < 3; k++) {
    fake_model_t* model = load(transformer, "{\"instance_group\":[{},{}]}");
    TRITONBACKEND_Request* request = tokens_request(k, 7);
    execute(model, &request, 1);
    assert_true(assay_memory_used() > 0);
    fake_unload(model);
    used[k] = assay_memory_used();
  }
  assert_true(used[1] == used[0]);
  assert_true(used[2] == used[0]);
}

// ---- all
// ----------------------------------------------------------------------------------------

static int begin(void** state) {
  (void)state;
  fake_set_version(1, 19);
  no_error(
      fake_open(library, "{\"cmdline\":{\"default-max-batch-size\":\"4\",\"threads\":\"2\"}}"));
  return 0;
}

static int end(void** state) {
  (void)state;
  fake_close();
  all_is_well();
  return 0;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(int argc, char** argv) {
  const struct CMUnitTest tests[] = {
      CASE(test_versions),       CASE(test_completed),     CASE(test_refused),
      CASE(test_strict),         CASE(test_single),        CASE(test_batches),
      CASE(test_unlike),         CASE(test_one_fails),     CASE(test_cancelled_run),
      CASE(test_wrong_requests), CASE(test_wrong_buffers), CASE(test_gpu_memory),
      CASE(test_strings),        CASE(test_scalars),       CASE(test_optional),
      CASE(test_operators),      CASE(test_instances),     CASE(test_unload),
      CASE(test_threads),
  };
  if (argc < 2) return 2;
  library = argv[1];
  return cmocka_run_group_tests(tests, NULL, NULL);
}
