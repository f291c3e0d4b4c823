// Runs a model in bf16 and in float64 on the same random inputs, and compares the outputs.
//
//   compare_outputs MODEL
#include <assay/assay.h>
#include <stdio.h>

enum { MAX_VALUES = 16 };

static assay_status_t run(assay_model_t* model, assay_run_mode_t mode, size_t n_in,
                          assay_tensor_t* const* in, size_t n_out, assay_tensor_t** out) {
  assay_session_options_t options = ASSAY_SESSION_OPTIONS_INIT;
  assay_session_t* session = NULL;
  options.mode = mode;
  if (mode == ASSAY_RUN_PLAN) options.precision = ASSAY_FORMAT_BF16;
  assay_status_t st = assay_session_create(model, &options, &session);
  if (!st) st = assay_session_run(session, n_in, in, n_out, out);
  assay_session_destroy(session);
  return st;
}

static void print_pair(const assay_comparison_t* c, size_t i) {
  printf("  %s: max abs %.3g, cosine %.6f, 99 %% of errors up to %.3g%s%s\n",
         assay_comparison_name(c, i), assay_comparison_statistic(c, i, ASSAY_STATISTIC_MAX_ABS),
         assay_comparison_statistic(c, i, ASSAY_STATISTIC_COSINE),
         assay_comparison_percentile(c, i, 0.99), *assay_comparison_why(c, i) ? ": " : "",
         assay_comparison_why(c, i));
}

static assay_status_t compare(const assay_model_t* model, size_t n, assay_tensor_t* const* got,
                              assay_tensor_t* const* want) {
  // What counts is that outputs point the same way; single elements may differ.
  const assay_limit_t limit = {NULL, ASSAY_STATISTIC_COSINE, 0.999, 2};
  assay_compare_options_t options = ASSAY_COMPARE_OPTIONS_INIT;
  assay_comparison_t* c = NULL;
  const char* names[MAX_VALUES];
  for (size_t i = 0; i < n; i++) names[i] = assay_model_output_name(model, i);
  options.no_tolerance = true;
  options.limits = &limit;
  options.n_limits = 1;
  assay_status_t st = assay_compare_tensors(n, names, got, n, names, want, &options, &c);
  if (st) return st;
  printf("%s\n", assay_comparison_passed(c) ? "close enough" : "not close enough");
  for (size_t i = 0; i < assay_comparison_count(c); i++) print_pair(c, i);
  assay_comparison_destroy(c);
  return NULL;
}

static assay_status_t run_both(assay_model_t* model) {
  assay_tensor_t *in[MAX_VALUES], *got[MAX_VALUES] = {0}, *want[MAX_VALUES] = {0};
  const size_t n_in = assay_model_input_count(model), n_out = assay_model_output_count(model);
  assay_samples_t* samples = NULL;
  assay_status_t st = assay_samples_random(model, 1, 0, NULL, &samples);
  size_t n = 0;  // inputs with an initializer have no tensor
  for (size_t i = 0; !st && n < n_in && i < assay_samples_value_count(samples); i++)
    if (assay_samples_tensor(samples, 0, i)) in[n++] = assay_samples_tensor(samples, 0, i);
  if (!st) st = run(model, ASSAY_RUN_PLAN, n_in, in, n_out, got);
  if (!st) st = run(model, ASSAY_RUN_TRUTH, n_in, in, n_out, want);
  if (!st) st = compare(model, n_out, got, want);
  for (size_t i = 0; i < MAX_VALUES; i++)
    assay_tensor_release(got[i]), assay_tensor_release(want[i]);
  assay_samples_destroy(samples);
  return st;
}

int main(int argc, char** argv) {
  assay_model_t* model = NULL;
  if (argc != 2) return fprintf(stderr, "usage: compare_outputs MODEL\n"), 2;
  assay_status_t st = assay_model_load(argv[1], &model);
  if (!st &&
      (assay_model_input_count(model) > MAX_VALUES || assay_model_output_count(model) > MAX_VALUES))
    st = assay_status_create(ASSAY_UNSUPPORTED, "over 16 inputs or outputs");
  if (!st) st = run_both(model);
  if (st) fprintf(stderr, "compare_outputs: %s\n", assay_status_message(st));
  const int failed = st != NULL;
  assay_status_free(st);
  assay_model_release(model);
  return failed;
}
