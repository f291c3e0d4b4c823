// Notes what a run of a model on the emulated engine is, and holds a run of the CPU's kernels
// against that.
//
//   certify_run MODEL
#include <assay/assay.h>
#include <stdio.h>

static void print_changes(const assay_verification_t* v) {
  for (size_t i = 0; i < assay_verification_change_count(v); i++)
    printf("  %s %s: %s\n", assay_verification_change_kind(v, i),
           assay_verification_change_node(v, i), assay_verification_change_why(v, i));
}

static assay_status_t verify(const assay_certificate_t* certificate, assay_model_t* model) {
  assay_verify_options_t options = ASSAY_VERIFY_OPTIONS_INIT;
  assay_verification_t* v = NULL;
  options.target = "cpu";
  assay_status_t st = assay_verification_run(certificate, model, &options, &v);
  if (st) return st;
  printf("on cpu %s: %zu layers, %zu values\n",
         assay_verification_holds(v) ? "it holds" : "it has changed",
         assay_verification_layer_count(v), assay_verification_value_count(v));
  print_changes(v);
  assay_verification_destroy(v);
  return NULL;
}

static assay_status_t certify(assay_model_t* model) {
  assay_certify_options_t options = ASSAY_CERTIFY_OPTIONS_INIT;
  assay_certificate_t* certificate = NULL;
  options.precision = ASSAY_FORMAT_BF16;
  assay_status_t st = assay_certificate_make(model, &options, &certificate);
  if (st) return st;
  // assay_certificate_save() writes it to a file, assay_certificate_load() reads it.
  printf("certified in %s on %s: %zu bytes\n", assay_certificate_precision(certificate),
         assay_certificate_target(certificate), assay_certificate_bytes(certificate));
  st = verify(certificate, model);
  assay_certificate_destroy(certificate);
  return st;
}

int main(int argc, char** argv) {
  assay_model_t* model = NULL;
  if (argc != 2) return fprintf(stderr, "usage: certify_run MODEL\n"), 2;
  assay_status_t st = assay_model_load(argv[1], &model);
  if (!st) st = certify(model);
  if (st) fprintf(stderr, "certify_run: %s\n", assay_status_message(st));
  const int failed = st != NULL;
  assay_status_free(st);
  assay_model_release(model);
  return failed;
}
