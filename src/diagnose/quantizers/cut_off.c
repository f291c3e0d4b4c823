// Biases whose largest integers were cut off.
#include <math.h>

#include "base/alloc.h"
#include "diagnose/quantizers/quantizers.h"

// What a limit has left are the largest integers in magnitude, of one sign or of both.
assay_status_t assay_quantizer_cut_off(const assay_quantizer_site_t* s,
                                       const assay_tensor_t* integers, bool** out) {
  static const double WIDE = 1024;  // limits below are of numbers that few integers tell apart
  double most = 0;
  int64_t n = 0;
  *out = NULL;
  if (!s->bias || integers->rank != 1) return NULL;
  for (int64_t i = 0; i < integers->size; i++) {
    const double q = fabs((double)assay_i64(integers)[i]);
    n = q > most ? 1 : n + (q == most);
    most = fmax(most, q);
  }
  if (most < WIDE || n == integers->size) return NULL;
  ASSAY_TRY(assay_new_array((size_t)integers->size, sizeof **out, out));
  for (int64_t i = 0; i < integers->size; i++)
    (*out)[i] = fabs((double)assay_i64(integers)[i]) == most;
  return NULL;
}
