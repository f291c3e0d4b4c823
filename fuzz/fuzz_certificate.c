// Certificates. The checksum is made to fit, so that what is behind it is read.
#include <stdlib.h>
#include <string.h>

#include "accuracy/certificate/certificate.h"
#include "base/alloc.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  assay_certificate_t c = {0};
  uint8_t* sealed = NULL;
  assay_status_t st = assay_new_array(size, 1, &sealed);
  if (st) abort();
  if (size) memcpy(sealed, data, size);
  assay_certificate_seal(sealed, size);
  st = assay_certificate_decode(sealed, size, &c);
  assay_status_free(st);
  assay_certificate_deinit(&c);
  assay_free(sealed);
  if (assay_alloc_live()) abort();
  return 0;
}
