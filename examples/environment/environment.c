// Shows what numbers depend on besides the model, or what of it differs between two machines.
//
//   environment                     what is on this machine
//   environment HERE THERE          files that `assay debug environment --json FILE` wrote
#include <assay/assay.h>
#include <stdio.h>

static assay_status_t print(void* user, const char* data, size_t size) {
  (void)user;
  fwrite(data, 1, size, stdout);
  return NULL;
}

static assay_status_t compare(const char* here, const char* there) {
  assay_environment_comparison_t* c = NULL;
  assay_status_t st = assay_environment_compare(here, there, &c);
  if (st) return st;
  st = assay_environment_comparison_report(c, ASSAY_REPORT_TEXT, print, NULL);
  if (!st && assay_environment_comparison_changes_numbers(c))
    printf("results may differ between these machines\n");
  assay_environment_comparison_destroy(c);
  return st;
}

int main(int argc, char** argv) {
  printf("assay %s\n", assay_version());
  assay_status_t st = argc > 2 ? compare(argv[1], argv[2])
                               : assay_environment_report(ASSAY_REPORT_TEXT, print, NULL);
  if (!st) return 0;
  fprintf(stderr, "environment: %s\n", assay_status_message(st));
  assay_status_free(st);
  return 1;
}
