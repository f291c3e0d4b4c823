// Constants that tactics read when they make a kernel.
#include "backends/constants.h"

#include <string.h>

bool assay_known_ints(const assay_sized_layer_t* l, const assay_node_t* n, size_t i, int max,
                      int64_t* out, int* out_n) {
  *out_n = -1;
  if (i >= n->n_inputs || !n->inputs[i]) return true;
  const assay_operand_t* o = assay_sized_input(l, n->inputs[i]);
  if (!o || !o->constant || o->size > max || o->rank > 1 || assay_type_is_float(o->type) ||
      o->type == ASSAY_TYPE_STRING)
    return false;
  assay_tensor_t* wide = NULL;
  assay_status_t st = assay_tensor_widen((assay_tensor_t*)(uintptr_t)o->constant, &wide);
  const bool ok = !st && wide->store == ASSAY_STORE_I64;
  if (ok && o->size) memcpy(out, assay_i64(wide), (size_t)o->size * sizeof *out);
  if (ok) *out_n = (int)o->size;
  assay_tensor_release(wide);
  assay_status_free(st);
  return ok;
}

bool assay_known_list(const assay_sized_layer_t* l, const assay_node_t* n, const char* attribute,
                      size_t i, int max, int64_t* out, int* out_n) {
  size_t count = 0;
  const int64_t* given = assay_attr_ints(n, attribute, &count);
  if (i < n->n_inputs && n->inputs[i]) return assay_known_ints(l, n, i, max, out, out_n);
  *out_n = given ? (int)count : -1;
  if (count > (size_t)max) return false;
  if (given && count) memcpy(out, given, count * sizeof *out);
  return true;
}

int assay_known_axis(int64_t a, int rank) {
  if (a < 0) a += rank;
  return a < 0 || a >= rank ? -1 : (int)a;
}
