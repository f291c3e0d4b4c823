// Every call of the server and every allocation of the backend fails in turn, and configurations
// and requests are garbled: test_faults LIBRARY. The library is the one whose allocations can fail.
#include "seed_case.h"
#include "server_case.h"

static const char* library;

// ---- one fault at a time
// ------------------------------------------------------------------------

enum { N_REQUESTS = 4 };

static fake_output_t known[N_REQUESTS];

// What the engine itself makes of request k; made once.
static void check_once(const TRITONBACKEND_Request* request, int k) {
  const fake_output_t* output = fake_answer(request, "features");
  if (!known[k].data) {
    check_tokens(request, k, 5 + k / 3);
    known[k] = *output;
    known[k].data = malloc(output->bytes);
    memcpy(known[k].data, output->data, output->bytes);
  }
  same_bits(output, known[k].data, known[k].bytes);
}

// Loads a model, executes requests of several kinds on two instances, and unloads it. All that
// goes wrong is an error of one of these; what was answered without one is right.
static void whole_life(void) {
  fake_model_t* model = NULL;
  static const char config[] =
      "{\"instance_group\":[{},{}],\"parameters\":{\"layer_precision\":{\"string_value\":\"*:"
      "fp32\"},"
      "\"timing_cache\":{\"string_value\":\"times\"}}}";
  if (fake_load(repository("transformer/model.onnx"), config, true, &model)) return;
  for (size_t i = 0; i < 2; i++) {
    TRITONBACKEND_Request* requests[N_REQUESTS];
    for (int k = 0; k < N_REQUESTS; k++) requests[k] = tokens_request(k == 2 ? 5000 : k, 5 + k / 3);
    fake_execute(fake_instance(model, i), requests, N_REQUESTS);
    for (int k = 0; k < N_REQUESTS; k++)
      if (k != 2 && fake_answer_count(requests[k]) > 0) check_once(requests[k], k);
  }
  fake_unload(model);
}

static void begin(void) {
  fake_set_version(1, 19);
  no_error(fake_open(library, NULL));
}

static void end(const char* what, int n) {
  fake_close();
  fake_reset();
  if (fake_broken()) fail_msg("%s %d fails: %s", what, n, fake_first_broken());
}

// How many there are without a fault, and then each of them.
static void each_fails(const char* what, int (*fails)(int)) {
  begin();
  fails(0);
  whole_life();
  const int count = fails(0);
  end(what, 0);
  print_message("%d of %s\n", count, what);
  assert_true(count > 20);
  for (int n = 1; n <= count; n++) {
    begin();
    fails(n);
    whole_life();
    fails(0);
    end(what, n);
  }
}

static void test_calls(void** state) {
  (void)state;
  each_fails("calls", fake_fail_call);
}

static void test_allocations(void** state) {
  (void)state;
  each_fails("allocations", fake_fail_allocation);
}

// ---- garbled configurations and requests
// --------------------------------------------------------

static uint64_t drawn;

static uint32_t draw(uint32_t n) {
  drawn = drawn * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(drawn >> 33) % n;
}

// Words that take each other's place; a garbled text is mostly JSON still.
static const char* const words[] = {"0",
                                    "-1",
                                    "4",
                                    "99999999999",
                                    "\"x\"",
                                    "\"image\"",
                                    "\"probabilities\"",
                                    "\"TYPE_FP32\"",
                                    "\"TYPE_STRING\"",
                                    "[]",
                                    "{}",
                                    "[3,16,16]",
                                    "[10]",
                                    "true",
                                    "null",
                                    "\"3\"",
                                    "1e300",
                                    "\"KIND_GPU\"",
                                    "\"KIND_MODEL\"",
                                    "\"emu\"",
                                    "[[]]",
                                    "[{}]"};

static void garble(const char* text, char* out, size_t capacity) {
  size_t n = 0;
  while (*text && n + 32 < capacity) {
    if (*text == '$') {
      n += (size_t)snprintf(out + n, capacity - n, "%s", words[draw(sizeof words / sizeof *words)]);
      text++;
    } else if (draw(400) == 0) {
      text++;  // a character is lost
    } else {
      out[n++] = *text++;
    }
  }
  out[n] = '\0';
}

static void test_configurations(void** state) {
  static const char* const texts[] = {
      "{\"max_batch_size\":$,\"input\":[{\"name\":\"image\",\"data_type\":$,\"dims\":$}]}",
      "{\"max_batch_size\":4,\"input\":[{\"name\":\"image\",\"data_type\":\"TYPE_FP32\",\"dims\":["
      "3,16,16],\"reshape\":$}]}",
      "{\"input\":$,\"output\":$,\"dynamic_batching\":$}",
      "{\"parameters\":{\"threads\":{\"string_value\":$},\"target\":$}}",
      "{\"instance_group\":[{\"kind\":$,\"gpus\":$}],\"parameters\":$}",
      "{\"output\":[{\"name\":$,\"dims\":[10],\"data_type\":$}],\"sequence_batching\":$,\"batch_"
      "input\":$}",
      "{\"optimization\":$,\"model_transaction_policy\":$,\"default_model_filename\":$}",
  };
  char config[1024];
  int loaded = 0;
  (void)state;
  begin();
  const int n = (int)test_draws(300);
  for (int k = 0; k < n; k++) {
    fake_model_t* model = NULL;
    garble(texts[draw(sizeof texts / sizeof *texts)], config, sizeof config);
    if (fake_load(repository("classifier/model.onnx"), config, draw(8) > 0, &model)) continue;
    TRITONBACKEND_Request* request = image_request(k, 1, 1);
    fake_execute(fake_instance(model, 0), &request, 1);
    loaded++;
    fake_unload(model);
    fake_reset();
  }
  end("configuration", 0);
  print_message("%d of %d garbled configurations are right\n", loaded, n);
  assert_true(loaded > 0 && loaded < n);
}

static TRITONBACKEND_Request* garbled_request(void) {
  TRITONBACKEND_Request* request = fake_request();
  static const char* const names[] = {"image", "image", "image", "image", "imag", ""};
  uint8_t* bytes = calloc(1, 8 * IMAGE * 4);
  for (uint32_t k = draw(12) ? 1 : draw(3); k > 0; k--) {
    int64_t shape[] = {1 + draw(3), 3, 16, 16, 1};
    if (draw(6) == 0) shape[draw(4)] = (int64_t)draw(20) - 2;
    if (draw(20) == 0) shape[draw(4)] = INT64_MAX / (1 + draw(50));
    size_t n = (size_t)(shape[0] > 0 && shape[0] < 8 ? shape[0] : 1) * IMAGE * 4;
    if (draw(8) == 0) n = draw(IMAGE * 4);
    fake_add_input(request, names[draw(6)],
                   draw(10) ? TRITONSERVER_TYPE_FP32 : (TRITONSERVER_DataType)draw(15),
                   draw(10) ? 4 : draw(6), shape, bytes, n, draw(5) ? 1 : draw(5));
  }
  if (draw(3) == 0) fake_add_output(request, draw(4) ? "probabilities" : "x");
  if (draw(20) == 0) fake_set_flags(request, draw(4));
  if (draw(10) == 0) fake_cancel_after(request, (int)draw(3));
  if (draw(10) == 0) fake_refuse_outputs(request);
  free(bytes);
  return request;
}

static void test_requests(void** state) {
  int good = 0, bad = 0;
  (void)state;
  begin();
  fake_model_t* model = load("classifier/model.onnx", "{\"max_batch_size\":6}");
  const int draws = (int)test_draws(400);
  for (int k = 0; k < draws; k++) {
    TRITONBACKEND_Request* requests[6];
    const uint32_t n = 1 + draw(6);
    for (uint32_t i = 0; i < n; i++) requests[i] = garbled_request();
    no_error(fake_execute(fake_instance(model, 0), requests, n));
    for (uint32_t i = 0; i < n; i++) *(fake_answer_error(requests[i]) ? &bad : &good) += 1;
    fake_reset();
  }
  fake_unload(model);
  end("request", 0);
  print_message("%d garbled requests succeed, %d fail\n", good, bad);
  assert_true(good > 0 && bad > 0);
}

int main(int argc, char** argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_calls), cmocka_unit_test(test_allocations),
      cmocka_unit_test(test_configurations), cmocka_unit_test(test_requests)};
  if (argc < 2) return 2;
  library = argv[1];
  drawn = test_seed();
  const int failures = cmocka_run_group_tests(tests, NULL, NULL);
  for (int k = 0; k < N_REQUESTS; k++) free(known[k].data);
  return failures;
}
