// What tests of the backend for Triton share: a repository of one model, requests, and the engine's
// own runs to compare with.
#ifndef TESTS_TRITON_SERVER_CASE_H_
#define TESTS_TRITON_SERVER_CASE_H_

#include <assay/assay.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake/fake.h"

enum { IMAGE = 3 * 16 * 16, CLASSES = 10, WIDTH = 16 };

// The folder of the model goes when the program ends, with what was put there.
static inline void remove_repository(void) {
  static const char* const files[] = {"1/model.onnx", "times", "1", ""};
  char path[256];
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    snprintf(path, sizeof path, "/tmp/assay_triton_%d/%s", (int)getpid(), files[i]);
    remove(path);
  }
}

// The folder of a model of the repository, with the file as version 1.
static inline const char* repository(const char* model) {
  static char folder[128];
  static bool made;
  if (!made) atexit(remove_repository);
  made = true;
  char path[512], to[256];
  snprintf(folder, sizeof folder, "/tmp/assay_triton_%d", (int)getpid());
  mkdir(folder, 0700);
  snprintf(path, sizeof path, "%s/1", folder);
  mkdir(path, 0700);
  snprintf(to, sizeof to, "%s/1/model.onnx", folder);
  snprintf(path, sizeof path, "%s/%s", getenv("ASSAY_TEST_MODELS"), model);
  unlink(to);
  assert_int_equal(symlink(path, to), 0);
  return folder;
}

static inline void no_error(const char* error) {
  if (error) fail_msg("%s", error);
}

static inline void has_error(const char* error, const char* words) {
  if (!error) fail_msg("no error, where '%s' was expected", words);
  if (!strstr(error, words)) fail_msg("'%s' is not in: %s", words, error);
}

// All went by the rules, and nothing is left over.
static inline void all_is_well(void) {
  fake_reset();
  if (fake_broken())
    fail_msg("%d rules are broken; the first: %s", fake_broken(), fake_first_broken());
}

static inline fake_model_t* load(const char* model, const char* config) {
  fake_model_t* loaded = NULL;
  no_error(fake_load(repository(model), config, true, &loaded));
  return loaded;
}

// ---- requests
// -----------------------------------------------------------------------------------

// Numbers that differ from request to request and element to element.
static inline float number(int seed, size_t i) {
  return (float)((int)((i * 37 + (size_t)seed * 101) % 97) - 48) / 16;
}

static inline TRITONBACKEND_Request* image_request(int seed, int64_t rows, uint32_t n_pieces) {
  const int64_t shape[] = {rows, 3, 16, 16};
  const size_t n = (size_t)rows * IMAGE;
  float* x = malloc(n * sizeof *x + 1);
  TRITONBACKEND_Request* request = fake_request();
  for (size_t i = 0; i < n; i++) x[i] = number(seed, i);
  fake_add_input(request, "image", TRITONSERVER_TYPE_FP32, 4, shape, x, n * sizeof *x, n_pieces);
  free(x);
  return request;
}

static inline TRITONBACKEND_Request* tokens_request(int64_t first, int64_t length) {
  const int64_t shape[] = {1, length};
  int64_t tokens[64];
  TRITONBACKEND_Request* request = fake_request();
  for (int64_t i = 0; i < length; i++) tokens[i] = i == 0 ? first : i;
  fake_add_input(request, "tokens", TRITONSERVER_TYPE_INT64, 2, shape, tokens,
                 (size_t)length * sizeof *tokens, 1);
  return request;
}

// ---- the engine's own runs
// ----------------------------------------------------------------------

static const char* run_target = "cpu";

// Output 0 of a run of a model by one input; the caller frees it.
static inline uint8_t* run_alone(const char* model, assay_type_t type, int rank,
                                 const int64_t* shape, const void* data, size_t bytes,
                                 size_t* out_bytes) {
  char path[512];
  assay_model_t* loaded = NULL;
  assay_engine_t* engine = NULL;
  assay_context_t* context = NULL;
  snprintf(path, sizeof path, "%s/%s", getenv("ASSAY_TEST_MODELS"), model);
  assay_status_t status = assay_model_load(path, &loaded);
  assay_engine_options_t options = ASSAY_ENGINE_OPTIONS_INIT;
  options.target = run_target;
  if (!status) status = assay_engine_build(loaded, &options, &engine);
  if (!status) status = assay_context_create(engine, NULL, &context);
  if (!status) status = assay_context_bind_input(context, 0, type, rank, shape, data, bytes);
  if (!status) status = assay_context_run(context);
  if (status) fail_msg("%s", assay_status_message(status));
  assay_tensor_t* made = assay_context_output(context, 0);
  *out_bytes = assay_tensor_bytes(made);
  uint8_t* out = malloc(*out_bytes + 1);
  status = assay_tensor_read(made, out, *out_bytes);
  if (status) fail_msg("%s", assay_status_message(status));
  assay_tensor_release(made);
  assay_context_destroy(context);
  assay_engine_release(engine);
  assay_model_release(loaded);
  return out;
}

static inline void same_bits(const fake_output_t* output, const uint8_t* wanted, size_t bytes) {
  assert_non_null(output);
  assert_int_equal(output->bytes, bytes);
  if (memcmp(output->data, wanted, bytes) != 0)
    fail_msg("output '%s' has other bits", output->name);
}

static inline void check_image(const TRITONBACKEND_Request* request, int seed, int64_t rows) {
  const int64_t shape[] = {rows, 3, 16, 16};
  const size_t n = (size_t)rows * IMAGE;
  size_t bytes = 0;
  float* x = malloc(n * sizeof *x + 1);
  for (size_t i = 0; i < n; i++) x[i] = number(seed, i);
  uint8_t* wanted =
      run_alone("classifier/model.onnx", ASSAY_TYPE_FLOAT, 4, shape, x, n * sizeof *x, &bytes);
  no_error(fake_answer_error(request));
  const fake_output_t* output = fake_answer(request, "probabilities");
  same_bits(output, wanted, bytes);
  assert_int_equal(output->rank, 2);
  assert_int_equal(output->shape[0], rows);
  assert_int_equal(output->shape[1], CLASSES);
  free(wanted);
  free(x);
}

static inline void check_tokens(const TRITONBACKEND_Request* request, int64_t first,
                                int64_t length) {
  const int64_t shape[] = {1, length};
  int64_t tokens[64];
  size_t bytes = 0;
  for (int64_t i = 0; i < length; i++) tokens[i] = i == 0 ? first : i;
  uint8_t* wanted = run_alone("transformer/model.onnx", ASSAY_TYPE_INT64, 2, shape, tokens,
                              (size_t)length * sizeof *tokens, &bytes);
  no_error(fake_answer_error(request));
  same_bits(fake_answer(request, "features"), wanted, bytes);
  free(wanted);
}

#endif  // TESTS_TRITON_SERVER_CASE_H_
