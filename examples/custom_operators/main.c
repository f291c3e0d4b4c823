// Runs a model with operators that are part of this program (operators.c), once in native mode and
// once in truth, and shows the outputs' first elements.
//
//   custom_operators MODEL
//
// The model's only input is float [N, 64].
#include <assay/assay.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 2, LENGTH = 64, SHOWN = 4 };

static void show(const char* name, const char* mode, assay_tensor_t* t) {
  const size_t n = (size_t)assay_tensor_size(t);
  double* values = malloc(n * sizeof *values + 1);
  int64_t* numbers = malloc(n * sizeof *numbers + 1);
  printf("%-6s %-6s", name, mode);
  if (assay_tensor_type(t) == ASSAY_TYPE_INT64) {
    assay_status_free(assay_tensor_read(t, numbers, n * sizeof *numbers));
    for (size_t i = 0; i < SHOWN && i < n; i++) printf(" %lld", (long long)numbers[i]);
  } else {
    assay_status_free(assay_tensor_read_f64(t, values, n));
    for (size_t i = 0; i < SHOWN && i < n; i++) printf(" %.9g", values[i]);
  }
  putchar('\n');
  free(values);
  free(numbers);
}

static assay_status_t run(assay_model_t* model, assay_run_mode_t mode) {
  assay_session_options_t options = ASSAY_SESSION_OPTIONS_INIT;
  assay_session_t* session = NULL;
  assay_tensor_t *input = NULL, *outputs[2] = {NULL, NULL};
  const int64_t dims[] = {ROWS, LENGTH};
  float x[ROWS * LENGTH];
  for (int i = 0; i < ROWS * LENGTH; i++) x[i] = 3 * sinf(0.7f * (float)i);
  options.mode = mode;
  assay_status_t st = assay_session_create(model, &options, &session);
  if (!st) st = assay_tensor_make(ASSAY_TYPE_FLOAT, 2, dims, x, sizeof x, &input);
  if (!st) st = assay_session_run(session, 1, &input, 2, outputs);
  for (size_t i = 0; !st && i < 2; i++)
    show(assay_model_output_name(model, i), mode == ASSAY_RUN_TRUTH ? "truth" : "native",
         outputs[i]);
  assay_tensor_release(outputs[0]);
  assay_tensor_release(outputs[1]);
  assay_tensor_release(input);
  assay_session_destroy(session);
  return st;
}

int main(int argc, char** argv) {
  assay_model_t* model = NULL;
  if (argc != 2) return fprintf(stderr, "usage: custom_operators MODEL\n"), 2;
  assay_status_t st = assay_ops_register(assay_register_ops, NULL);
  if (!st) st = assay_model_load(argv[1], &model);
  if (!st) st = run(model, ASSAY_RUN_NATIVE);
  if (!st) st = run(model, ASSAY_RUN_TRUTH);
  if (st) fprintf(stderr, "%s\n", assay_status_message(st));
  const int failed = st != NULL;
  assay_status_free(st);
  assay_model_release(model);
  return failed;
}
