// How the account splits the errors of a model, as JSON: for bench/account_figures.py.
//
//   split_error [--fused] MODEL INPUTS.npz FORMAT...
#include "account/account_case.h"
#include "formats/format.h"

static assay_status_t one(assay_model_t* m, const assay_samples_t* inputs, bool fused,
                          const char* format) {
  const assay_precision_t precision = {.format = assay_format_parse(format)};
  assay_plan_t* plan = NULL;
  account_case_t c = {0};
  assay_account_t* a = NULL;
  int64_t defects = 0;
  ASSAY_TRY(assay_plan_create(m, &precision, &(assay_plan_options_t){.fused = fused}, 0, &plan));
  assay_status_t st = account_case_run(plan, assay_samples_get(inputs, 0), &c, &a);
  for (size_t i = 0; !st && i < assay_account_layer_count(a); i++)
    defects += assay_account_layer(a, i)->verdict == ASSAY_VERDICT_DEFECT;
  if (!st)
    printf(
        "{\"format\": \"%s\", \"layers\": %zu, \"values\": %lld, \"elements\": %lld, \"finite\": "
        "%lld, \"worst\": %.3g, \"other_engine\": %lld, \"other_truth\": %lld, \"flipped\": "
        "%lld, \"same_checksum\": %s, \"same_outputs\": %s, \"defects\": %lld}\n",
        format, assay_account_layer_count(a), (long long)c.values, (long long)c.elements,
        (long long)c.finite, c.worst, (long long)c.other_engine, (long long)c.other_truth,
        (long long)c.flipped, c.same_checksum ? "true" : "false", c.same_outputs ? "true" : "false",
        (long long)defects);
  assay_account_destroy(a);
  account_case_deinit(&c);
  assay_plan_destroy(plan);
  return st;
}

int main(int argc, char** argv) {
  const bool fused = argc > 1 && strcmp(argv[1], "--fused") == 0;
  const int at = fused ? 2 : 1;
  assay_model_t* m = NULL;
  assay_samples_t inputs = {0};
  if (argc < at + 3) return fprintf(stderr, "split_error [--fused] MODEL INPUTS FORMAT...\n"), 2;
  assay_status_t st = account_case_load(argv[at], argv[at + 1], &m, &inputs);
  for (int i = at + 2; !st && i < argc; i++) {
    st = one(m, &inputs, fused, argv[i]);
    fflush(stdout);
  }
  if (st) fprintf(stderr, "split_error: %s\n", assay_status_message(st));
  const int code = st ? 1 : 0;
  assay_status_free(st);
  assay_samples_deinit(&inputs);
  assay_model_release(m);
  return code;
}
