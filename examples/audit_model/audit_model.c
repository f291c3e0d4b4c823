// Finds out whether a model can overflow in fp16 for any input in a range, and which nodes may.
//
//   audit_model MODEL LOW:HIGH
#include <assay/assay.h>
#include <stdio.h>

static void print_hazards(const assay_audit_t* audit) {
  char text[256];
  for (size_t i = 0; i < assay_audit_count(audit, ASSAY_AUDIT_HAZARDS) && i < 5; i++)
    printf("  %s (%s): %s\n", assay_audit_node(audit, ASSAY_AUDIT_HAZARDS, i),
           assay_audit_operator(audit, ASSAY_AUDIT_HAZARDS, i),
           assay_audit_describe(audit, ASSAY_AUDIT_HAZARDS, i, text, sizeof text));
}

static void print_witness(const assay_audit_t* audit) {
  for (size_t i = 0; assay_audit_has_witness(audit) && i < assay_audit_input_count(audit); i++)
    printf("  an input that breaks it has %lld elements in '%s'\n",
           (long long)assay_tensor_size(assay_audit_witness(audit, i)),
           assay_audit_input_name(audit, i));
}

static assay_status_t audit_model(assay_model_t* model, const char* box) {
  assay_audit_options_t options = ASSAY_AUDIT_OPTIONS_INIT;
  assay_audit_t* audit = NULL;
  options.precision = ASSAY_FORMAT_FP16;
  options.boxes = &box;
  options.n_boxes = 1;
  options.seconds = 5;
  assay_status_t st = assay_audit_run(model, &options, &audit);
  if (st) return st;
  printf("%s\n", assay_audit_verdict_name(assay_audit_verdict(audit)));
  print_hazards(audit);
  print_witness(audit);
  printf("  safe for the range times %.3g\n", assay_audit_safe_scale(audit));
  assay_audit_destroy(audit);
  return NULL;
}

int main(int argc, char** argv) {
  assay_model_t* model = NULL;
  if (argc != 3) return fprintf(stderr, "usage: audit_model MODEL LOW:HIGH\n"), 2;
  assay_status_t st = assay_model_load(argv[1], &model);
  if (!st) st = audit_model(model, argv[2]);
  if (st) fprintf(stderr, "audit_model: %s\n", assay_status_message(st));
  const int failed = st != NULL;
  assay_status_free(st);
  assay_model_release(model);
  return failed;
}
