// Texts that several outputs of trtexec have in common.
#include "frontends/trtexec/text.h"

#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/shown.h"
#include "formats/format.h"
#include "io/json.h"

void trt_put_dims(assay_str_t* out, int rank, const int64_t* dims) {
  for (int d = 0; d < rank; d++) assay_str_printf(out, d ? "x%lld" : "%lld", (long long)dims[d]);
}

void trt_put_json(assay_str_t* out, const char* text) {
  json_t* j = assay_json_text(text);
  char* dumped = j ? json_dumps(j, JSON_ENCODE_ANY) : NULL;
  if (dumped)
    assay_str_append(out, dumped);
  else
    out->failed = true;
  free(dumped);
  json_decref(j);
}

static void put_number(assay_str_t* out, double x, int digits) {
  if (isnan(x))
    assay_str_append(out, "NaN");
  else if (isinf(x))
    assay_str_append(out, x < 0 ? "-Infinity" : "Infinity");
  else
    assay_str_printf(out, "%.*g", digits, x);
}

void trt_put_element(assay_str_t* out, const assay_tensor_t* t, int64_t i) {
  switch (t->store) {
    case ASSAY_STORE_F64:
      put_number(out, assay_f64(t)[i], t->type == ASSAY_TYPE_DOUBLE ? 17 : 9);
      return;
    case ASSAY_STORE_I64:
      if (t->type == ASSAY_TYPE_UINT64)
        assay_str_printf(out, "%llu", (unsigned long long)assay_i64(t)[i]);
      else
        assay_str_printf(out, "%lld", (long long)assay_i64(t)[i]);
      return;
    case ASSAY_STORE_C128:
      assay_str_append(out, "[");
      put_number(out, assay_c128(t)[2 * i], 17);
      assay_str_append(out, ", ");
      put_number(out, assay_c128(t)[2 * i + 1], 17);
      assay_str_append(out, "]");
      return;
    case ASSAY_STORE_STR: {
      assay_str_t text = {0};
      assay_str_append_n(&text, assay_strings(t)[i].text, assay_strings(t)[i].len);
      trt_put_json(out, assay_str_get(&text));
      assay_str_deinit(&text);
      return;
    }
    case ASSAY_STORE_PACKED:
    case ASSAY_STORE_LATE:
    case ASSAY_STORE_NARROW:
      return;
  }
}

void trt_put_layer_name(assay_str_t* out, const assay_layer_t* l, int profile) {
  for (size_t k = 0; k < l->n_nodes; k++)
    assay_str_printf_raw(out, "%s%s", k ? " + " : "", l->nodes[k]->label);
  if (profile) assay_str_printf(out, " [profile %d]", profile);
}

assay_status_t trt_write_text(const char* flag, const char* path, assay_str_t* take_text) {
  assay_status_t st = assay_str_status(take_text);
  if (!st) st = assay_file_write(path, assay_str_get(take_text), take_text->len);
  assay_str_deinit(take_text);
  return assay_status_note(st, "%s=%s", flag, path);
}
