// Cancelling: every long function ends with CANCELLED wherever it is when it is asked to, frees
// what it took, and works the next time.
#include "api_case.h"

static const char model_path[] = "models/small/cnn.onnx";

static assay_cancel_t* cancel;
static int left;  // reports of progress until the request

static void report(void* user, const char* what, double fraction) {
  (void)user, (void)what, (void)fraction;
  if (left-- == 0) assay_cancel_request(cancel);
}

// What all functions below are given.
static assay_model_t* model;
static assay_samples_t* samples;

static assay_status_t evaluate(void) {
  const assay_session_options_t o = {
      .struct_size = sizeof o, .mode = ASSAY_RUN_TRUTH, .progress = report};
  assay_tensor_t* in[8] = {0};
  assay_session_t* s = NULL;
  assay_status_t st = assay_session_create(model, &o, &s);
  for (size_t i = 0; i < assay_samples_value_count(samples); i++)
    in[i] = assay_samples_tensor(samples, 0, i);
  if (!st) st = assay_session_evaluate(s, assay_samples_value_count(samples), in);
  assay_session_destroy(s);
  return st;
}

static assay_status_t check(void) {
  assay_check_options_t o = ASSAY_CHECK_OPTIONS_INIT;
  assay_check_t* c = NULL;
  o.precision = ASSAY_FORMAT_FP8E4M3;
  o.shares = true;
  o.progress = report;
  assay_status_t st = assay_check_create(model, &o, &c);
  if (!st) st = assay_check_run(c, samples, NULL);
  assay_check_destroy(c);
  return st;
}

static assay_status_t tune(void) {
  assay_tune_options_t o = ASSAY_TUNE_OPTIONS_INIT;
  assay_tune_t* t = NULL;
  o.progress = report;
  assay_status_t st = assay_tune_create(model, &o, &t);
  if (!st) st = assay_tune_run(t, samples, NULL);
  assay_tune_destroy(t);
  return st;
}

static assay_status_t audit(void) {
  assay_audit_options_t o = ASSAY_AUDIT_OPTIONS_INIT;
  assay_audit_t* a = NULL;
  o.precision = ASSAY_FORMAT_FP16;
  o.seconds = 0.1;
  o.progress = report;
  assay_status_t st = assay_audit_run(model, &o, &a);
  assay_audit_destroy(a);
  return st;
}

static assay_status_t certify(void) {
  assay_certify_options_t o = ASSAY_CERTIFY_OPTIONS_INIT;
  assay_certificate_t* c = NULL;
  o.progress = report;
  assay_status_t st = assay_certificate_make(model, &o, &c);
  assay_certificate_destroy(c);
  return st;
}

static assay_status_t edit(void) {
  const assay_edit_request_t to = {"to", "fp16"};
  assay_edit_options_t o = ASSAY_EDIT_OPTIONS_INIT;
  assay_edited_t* e = NULL;
  o.requests = &to;
  o.n_requests = 1;
  o.samples = samples;
  o.progress = report;
  assay_status_t st = assay_edit_run(model, "cast", &o, &e);
  assay_edited_destroy(e);
  return st;
}

static assay_status_t search(void) {
  assay_debug_options_t o = ASSAY_DEBUG_OPTIONS_INIT;
  assay_debug_t* d = NULL;
  assay_precision_search_t* found = NULL;
  o.precision = ASSAY_FORMAT_FP8E4M3;
  o.progress = report;
  assay_status_t st = assay_debug_create(model, &o, &d);
  if (!st) st = assay_debug_precision(d, NULL, samples, NULL, &found);
  assay_precision_search_destroy(found);
  assay_debug_release(d);
  return st;
}

static assay_status_t build(void) {
  assay_engine_t* e = NULL;
  report(NULL, "", 0);  // builds have no progress: one request, before it begins
  assay_status_t st = assay_engine_build(model, NULL, &e);
  assay_engine_release(e);
  return st;
}

// With a request after 0, 1, 2 ... reports, until the function is done before it.
static void cancelled_everywhere(const char* name, assay_status_t (*function)(void)) {
  enum { MAX = 500 };
  left = -1;
  ok(function());  // what is made once and kept
  const int64_t before = assay_memory_used();
  int n = 0;
  for (; n < MAX; n++) {
    left = n;
    assay_status_t st = function();
    const bool asked = assay_cancel_is_requested(cancel);
    assay_cancel_reset(cancel);
    if (!st && !asked) break;
    if (assay_status_code(st) != ASSAY_CANCELLED)
      fail_msg("%s, %d reports: %s", name, n, st ? assay_status_message(st) : "it went on");
    assay_status_free(st);
    if (assay_memory_used() != before)
      fail_msg("%s, %d reports: %lld bytes were kept", name, n,
               (long long)(assay_memory_used() - before));
  }
  assert_in_range(n, 1, MAX - 1);
}

static void long_functions_end_wherever_they_are(void** state) {
  (void)state;
  const struct {
    const char* name;
    assay_status_t (*function)(void);
  } rows[] = {{"evaluate", evaluate}, {"check", check}, {"tune", tune},     {"audit", audit},
              {"certify", certify},   {"edit", edit},   {"search", search}, {"build", build}};
  ok(assay_model_load(model_path, &model));
  ok(assay_samples_random(model, 1, 0, NULL, &samples));
  ok(assay_cancel_create(&cancel));
  assert_null(assay_cancel_watch(cancel));
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    cancelled_everywhere(rows[i].name, rows[i].function);
  assert_ptr_equal(assay_cancel_watch(NULL), cancel);
  // Who does not watch it goes on.
  assay_cancel_request(cancel);
  left = -1;
  ok(evaluate());
  assay_cancel_destroy(cancel);
  assay_samples_destroy(samples);
  assay_model_release(model);
}

// A context's run looks at its own request and at what its thread watches.
static void runs_of_contexts_end(void** state) {
  (void)state;
  assay_engine_t* e = NULL;
  assay_context_t* c = NULL;
  float x[192] = {0};
  const int64_t dims[] = {1, 3, 8, 8};
  ok(assay_model_load(model_path, &model));
  ok(assay_engine_build(model, NULL, &e));
  ok(assay_context_create(e, NULL, &c));
  ok(assay_context_bind_input(c, 0, ASSAY_TYPE_FLOAT, 4, dims, x, sizeof x));
  ok(assay_cancel_create(&cancel));
  assay_cancel_watch(cancel);
  ok(assay_context_run(c));
  assay_cancel_request(cancel);
  fails(assay_context_run(c), ASSAY_CANCELLED, "cancelled");
  assay_cancel_reset(cancel);
  ok(assay_context_run(c));
  assay_cancel_watch(NULL);
  assay_cancel_request(cancel);
  ok(assay_context_run(c));
  assay_cancel_destroy(cancel);
  assay_context_destroy(c);
  assay_engine_release(e);
  assay_model_release(model);
}

static void statuses_tell_their_cause(void** state) {
  (void)state;
  assay_model_t* none = NULL;
  assay_status_t st = assay_model_load("models/none.onnx", &none);
  const char *message = assay_status_message(st), *cause = assay_status_cause(st);
  const size_t n = strlen(message), k = strlen(cause);
  assert_true(k > 0 && k <= n && strcmp(message + n - k, cause) == 0);
  assay_status_free(st);
  st = assay_status_create(ASSAY_DEVICE, "alone");
  assert_string_equal(assay_status_cause(st), "alone");
  assay_status_free(st);
  assert_string_equal(assay_status_cause(NULL), "");
  assert_true(assay_version()[0] >= '0' && assay_version()[0] <= '9');
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(long_functions_end_wherever_they_are),
      cmocka_unit_test(runs_of_contexts_end),
      cmocka_unit_test(statuses_tell_their_cause),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
