// Finds which layers of a model can be in fp16 so that its outputs keep an SNR of 60 dB and a GPU
// is fast with it, and prints the assignments that were run and the nodes that stay in fp32.
//
//   tune_model MODEL INPUTS [MIXED]     MIXED: where the model in mixed precision is written
#include <assay/assay.h>
#include <stdio.h>

static assay_status_t print_assignments(const assay_tune_t* tune) {
  for (size_t i = 0; i < assay_tune_assignment_count(tune); i++) {
    assay_tune_assignment_t a = ASSAY_TUNE_ASSIGNMENT_INIT;
    assay_status_t st = assay_tune_assignment(tune, i, &a);
    if (st) return st;
    for (size_t f = 0; assay_tune_format(tune, f); f++)
      printf("%zu in %s, ", assay_tune_assignment_layers(tune, i, f),
             assay_format_name(assay_tune_format(tune, f)));
    printf("%.2g ms: %s%s\n", 1e3 * a.seconds, a.met ? "met" : "not met",
           a.chosen ? ", chosen" : "");
  }
  return NULL;
}

// fp32 is the last of the formats.
static void print_fp32(const assay_tune_t* tune) {
  size_t fp32 = 0;
  while (assay_tune_format(tune, fp32 + 1)) fp32++;
  for (size_t i = 0; i < assay_tune_node_count(tune, fp32); i++)
    printf("fp32: %s\n", assay_tune_node(tune, fp32, i));
}

static assay_status_t tune_model(assay_model_t* model, const char* inputs, const char* mixed,
                                 assay_samples_t** samples, assay_tune_t** tune) {
  const char* const requirements[] = {"snr_db >= 60"};
  assay_tune_options_t options = ASSAY_TUNE_OPTIONS_INIT;
  options.requirements = requirements;
  options.n_requirements = 1;
  options.device = "orin";
  assay_status_t st = assay_tune_create(model, &options, tune);
  if (!st) st = assay_samples_load(model, 1, &inputs, NULL, samples);
  if (!st) st = assay_tune_run(*tune, *samples, NULL);
  if (!st) st = print_assignments(*tune);
  if (!st) print_fp32(*tune);
  if (!st && mixed && assay_tune_met(*tune)) st = assay_tune_write_model(*tune, mixed);
  return st;
}

int main(int argc, char** argv) {
  assay_model_t* model = NULL;
  assay_samples_t* samples = NULL;
  assay_tune_t* tune = NULL;
  if (argc < 3 || argc > 4) return fprintf(stderr, "usage: tune_model MODEL INPUTS [MIXED]\n"), 2;
  assay_status_t st = assay_model_load(argv[1], &model);
  if (!st) st = tune_model(model, argv[2], argc > 3 ? argv[3] : NULL, &samples, &tune);
  if (st) fprintf(stderr, "tune_model: %s\n", assay_status_message(st));
  assay_tune_destroy(tune);
  assay_samples_destroy(samples);
  assay_model_release(model);
  if (!st) return 0;
  assay_status_free(st);
  return 1;
}
