// Shares of a model's outputs against ablation, as JSON: for bench/account_figures.py.
//
//   shares_ablation LAYERS MODEL INPUTS.npz FORMAT...     the LAYERS largest shares are tried
#include <stdlib.h>

#include "account/ablation.h"
#include "formats/format.h"

static assay_status_t one(assay_model_t* m, const assay_samples_t* inputs, size_t max,
                          const char* format) {
  const assay_precision_t precision = {.format = assay_format_parse(format)};
  assay_plan_t* plan = NULL;
  ablation_t a = {0};
  assay_shares_t s = {0};
  ASSAY_TRY(assay_plan_create(m, &precision, NULL, 0, &plan));
  assay_status_t st = ablation_run(plan, assay_samples_get(inputs, 0), max, 0, &a, &s);
  if (!st)
    printf(
        "{\"format\": \"%s\", \"layers\": %zu, \"layer_ranges\": %zu, \"runs\": %d, \"tried\": "
        "%zu, "
        "\"sum_off\": %.3g, \"engine_off\": %.3g, \"alone_off\": %.3g, \"exact_off\": %.3g, "
        "\"finite\": %s}\n",
        format, assay_plan_layers(plan)->n_layers, s.n, s.runs, a.tried, a.sum_off, a.engine_off,
        a.alone_off, a.exact_off, a.finite ? "true" : "false");
  if (a.layers) ablation_deinit(&a);
  assay_shares_deinit(&s);
  assay_plan_destroy(plan);
  return st;
}

int main(int argc, char** argv) {
  assay_model_t* m = NULL;
  assay_samples_t inputs = {0};
  if (argc < 5) return fprintf(stderr, "shares_ablation LAYERS MODEL INPUTS FORMAT...\n"), 2;
  assay_status_t st = account_case_load(argv[2], argv[3], &m, &inputs);
  for (int i = 4; !st && i < argc; i++) {
    st = one(m, &inputs, (size_t)strtoul(argv[1], NULL, 10), argv[i]);
    fflush(stdout);
  }
  if (st) fprintf(stderr, "shares_ablation: %s\n", assay_status_message(st));
  const int code = st ? 1 : 0;
  assay_status_free(st);
  assay_samples_deinit(&inputs);
  assay_model_release(m);
  return code;
}
