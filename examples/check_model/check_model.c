// Checks a model in fp16 against its float64 reference, and prints the report, the layers with the
// largest errors of their own, and what has to stay in fp32. Ctrl-C ends it at once, with nothing
// left behind.
//
//   check_model MODEL [INPUTS]     INPUTS: npz, JSON ...; random ones without
#include <assay/assay.h>
#include <signal.h>
#include <stdio.h>

static assay_cancel_t* interrupted;

static void interrupt(int number) {
  (void)number;
  assay_cancel_request(interrupted);
}

static assay_status_t print(void* user, const char* data, size_t size) {
  (void)user;
  fwrite(data, 1, size, stdout);
  return NULL;
}

static assay_status_t print_layers(const assay_check_t* check) {
  for (size_t i = 0; i < assay_check_layer_count(check); i++) {
    assay_check_layer_t layer = ASSAY_CHECK_LAYER_INIT;
    assay_status_t st = assay_check_layer(check, i, &layer);
    if (st) return st;
    if (layer.verdict == ASSAY_VERDICT_EXACT) continue;
    printf("%-20s %-8s own RMS %.2g, inherited %.2g\n", layer.name,
           assay_verdict_name(layer.verdict), layer.own_rms, layer.inherited_rms);
  }
  return NULL;
}

static void print_fix(const assay_check_t* check) {
  for (size_t i = 0; i < assay_check_fix_count(check); i++)
    printf("keep %s in %s\n", assay_check_fix_node(check, i),
           assay_format_name(assay_check_fix_format(check)));
}

static assay_status_t check_model(assay_model_t* model, const char* path, const char* inputs,
                                  assay_samples_t** samples, assay_check_t** check) {
  const char* const requirements[] = {"cosine >= 0.99999"};
  assay_check_options_t options = ASSAY_CHECK_OPTIONS_INIT;
  assay_check_report_options_t names = ASSAY_CHECK_REPORT_OPTIONS_INIT;
  options.precision = ASSAY_FORMAT_FP16;
  options.requirements = requirements;
  options.n_requirements = 1;
  names.model = path;
  assay_status_t st = assay_check_create(model, &options, check);
  if (!st && inputs) st = assay_samples_load(model, 1, &inputs, NULL, samples);
  if (!st && !inputs) st = assay_samples_random(model, 0, 0, NULL, samples);
  if (!st) st = assay_check_run(*check, *samples, NULL);
  if (!st) st = assay_check_report(*check, ASSAY_REPORT_TEXT, &names, print, NULL);
  if (!st) st = print_layers(*check);
  if (!st) print_fix(*check);
  return st;
}

int main(int argc, char** argv) {
  assay_model_t* model = NULL;
  assay_samples_t* samples = NULL;
  assay_check_t* check = NULL;
  if (argc < 2 || argc > 3) return fprintf(stderr, "usage: check_model MODEL [INPUTS]\n"), 2;
  assay_status_t st = assay_cancel_create(&interrupted);
  assay_cancel_watch(interrupted);
  signal(SIGINT, interrupt);
  if (!st) st = assay_model_load(argv[1], &model);
  if (!st) st = check_model(model, argv[1], argc > 2 ? argv[2] : NULL, &samples, &check);
  if (st) fprintf(stderr, "check_model: %s\n", assay_status_message(st));
  assay_check_destroy(check);
  assay_samples_destroy(samples);
  assay_model_release(model);
  signal(SIGINT, SIG_DFL);
  assay_cancel_watch(NULL);
  assay_cancel_destroy(interrupted);
  if (!st) return 0;
  assay_status_free(st);
  return 1;
}
