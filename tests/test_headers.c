// The public headers compile alone, strictly, as C and (test_headers_cxx.cc) as C++; every function
// that they declare can be linked.
#include <assay/assay.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  int wrong = 0;
  assay_status_t ok = NULL;
  if (assay_status_code(ok) != ASSAY_OK || strcmp(assay_status_message(ok), "") != 0) wrong++;
  assay_status_free(ok);
  if (strcmp(assay_type_name(ASSAY_TYPE_BFLOAT16), "bfloat16") != 0) wrong++;
  if (strcmp(assay_format_name(ASSAY_FORMAT_FP16), "fp16") != 0) wrong++;
  if (wrong) fprintf(stderr, "headers: %d wrong answers\n", wrong);
  return wrong != 0;
}
