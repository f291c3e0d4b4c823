// Lists the edits that there are, casts a model's float32 values to a format, and says how far the
// outputs moved by that.
//
//   edit_model MODEL FORMAT [OUTPUT]     OUTPUT: where the new model is written
#include <assay/assay.h>
#include <stdio.h>

static void print_edits(void) {
  const char* option;
  for (size_t i = 0; assay_edit_name(i); i++) {
    printf("%s (", assay_edit_name(i));
    for (size_t k = 0; (option = assay_edit_option_name(i, k)); k++)
      printf("%s%s", k ? ", " : "", option);
    printf(")\n");
  }
}

static void print_proof(const assay_edited_t* edited) {
  printf("cast: %s, outputs are %s\n", assay_edited_done(edited),
         assay_edit_verdict_name(assay_edited_verdict(edited)));
  for (size_t i = 0; i < assay_edited_output_count(edited); i++)
    printf("  %s: moved by %.3g of %.3g\n", assay_edited_output_name(edited, i),
           assay_edited_output_moved(edited, i), assay_edited_output_scale(edited, i));
}

static assay_status_t cast(assay_model_t* model, const char* format, const char* path) {
  const assay_edit_request_t to = {"to", format};
  assay_edit_options_t options = ASSAY_EDIT_OPTIONS_INIT;
  assay_edited_t* edited = NULL;
  assay_model_t* made = NULL;  // ready to run, or to be edited again
  options.requests = &to;
  options.n_requests = 1;
  assay_status_t st = assay_edit_run(model, "cast", &options, &edited);
  if (!st) print_proof(edited);
  if (!st && path) st = assay_edited_write(edited, path);
  if (!st) st = assay_edited_model(edited, &made);
  if (!st) printf("the new model has %zu outputs\n", assay_model_output_count(made));
  assay_model_release(made);
  assay_edited_destroy(edited);
  return st;
}

int main(int argc, char** argv) {
  assay_model_t* model = NULL;
  if (argc < 3 || argc > 4) return fprintf(stderr, "usage: edit_model MODEL FORMAT [OUTPUT]\n"), 2;
  print_edits();
  assay_status_t st = assay_model_load(argv[1], &model);
  if (!st) st = cast(model, argv[2], argc > 3 ? argv[3] : NULL);
  if (st) fprintf(stderr, "edit_model: %s\n", assay_status_message(st));
  const int failed = st != NULL;
  assay_status_free(st);
  assay_model_release(model);
  return failed;
}
