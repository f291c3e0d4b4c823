// Says whether a model that was exported or edited is still the one that it came from: outputs of
// the original in float64 are golden. The library may take 2 GiB of memory for it.
//
//   check_export MODEL ORIGINAL [INPUTS]     INPUTS: npz, JSON ...; random ones without
#include <assay/assay.h>
#include <stdio.h>
#include <string.h>

static const int64_t limit = INT64_C(2) << 30;

// The report as JSON: for a program that reads one.
static assay_status_t print_report(const assay_check_t* check, const char* path) {
  assay_check_report_options_t names = ASSAY_CHECK_REPORT_OPTIONS_INIT;
  char* text = NULL;
  names.model = path;
  assay_status_t st =
      assay_check_report(check, ASSAY_REPORT_JSON, &names, assay_report_collect, &text);
  if (!st)
    printf("the report as JSON: %s\n", strlen(text) > 2 && *text == '{' ? "an object" : "empty");
  assay_text_free(text);
  return st;
}

static assay_status_t check_export(assay_model_t* model, assay_samples_t* inputs,
                                   assay_golden_t* golden) {
  assay_check_options_t options = ASSAY_CHECK_OPTIONS_INIT;
  assay_check_t* check = NULL;
  options.precision = ASSAY_FORMAT_FP32;
  assay_status_t st = assay_check_create(model, &options, &check);
  if (!st) st = assay_check_run(check, inputs, golden);
  if (!st)
    printf("%s, blame: %s\n", assay_check_faithful(check) ? "faithful" : "not faithful",
           assay_blame_name(assay_check_blame(check)));
  if (!st) st = print_report(check, assay_model_path(model));
  assay_check_destroy(check);
  return st;
}

static assay_status_t run_original(assay_model_t* model, const char* original, const char* file) {
  assay_samples_t* inputs = NULL;
  assay_golden_t* golden = NULL;
  assay_status_t st = file ? assay_samples_load(model, 1, &file, NULL, &inputs)
                           : assay_samples_random(model, 0, 0, NULL, &inputs);
  if (!st) st = assay_golden_run(model, original, inputs, 0, NULL, &golden);
  if (!st)
    printf("golden of %zu samples\n%s", assay_golden_count(golden), assay_golden_notes(golden));
  if (!st) st = check_export(model, inputs, golden);
  assay_golden_destroy(golden);
  assay_samples_destroy(inputs);
  return st;
}

int main(int argc, char** argv) {
  assay_model_t* model = NULL;
  if (argc < 3 || argc > 4)
    return fprintf(stderr, "usage: check_export MODEL ORIGINAL [INPUTS]\n"), 2;
  assay_memory_set_limit(limit);
  assay_status_t st = assay_model_load(argv[1], &model);
  if (!st) st = run_original(model, argv[2], argc > 3 ? argv[3] : NULL);
  if (!st) printf("memory: %s\n", assay_memory_used() <= limit ? "within the limit" : "past it");
  if (st) fprintf(stderr, "check_export: %s\n", assay_status_message(st));
  const int failed = st != NULL;
  assay_status_free(st);
  assay_model_release(model);
  return failed;
}
