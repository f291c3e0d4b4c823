// Attributes and constants as texts of the page.
#include <string.h>

#include "base/shown.h"
#include "io/numpy_text.h"
#include "report/model_data.h"

enum { MAX_ITEMS = 200, MAX_BYTES = 2000 };  // of a list, of a text

void assay_elements_text(assay_tensor_t* t, assay_str_t* out) {
  const assay_numpy_style_t style = {.edge_items = 3, .line_width = 75, .threshold = 100};
  assay_tensor_t* wide = NULL;
  assay_status_t st = assay_tensor_widen(t, &wide);
  if (st || (wide->store != ASSAY_STORE_F64 && wide->store != ASSAY_STORE_I64)) {
    assay_str_append(out, st ? assay_status_message(st) : "not numbers");
  } else {
    const bool is_float = wide->store == ASSAY_STORE_F64;
    const assay_numpy_array_t a = {.type = wide->type,
                                   .rank = wide->rank,
                                   .dims = wide->dims,
                                   .n = wide->size,
                                   .f = is_float ? assay_f64(wide) : NULL,
                                   .i = is_float ? NULL : assay_i64(wide)};
    assay_numpy_print(&a, &style, out);
  }
  assay_status_free(st);
  assay_tensor_release(wide);
}

static void put_tensor(assay_tensor_t* t, bool elements, assay_str_t* out) {
  assay_str_printf(out, "%s[", assay_type_name(t->type));
  for (int i = 0; i < t->rank; i++)
    assay_str_printf(out, "%s%lld", i ? ", " : "", (long long)t->dims[i]);
  assay_str_append(out, "]");
  if (!elements) return;
  assay_str_append(out, "\n");
  assay_elements_text(t, out);
}

static void put_string(const assay_string_t* s, assay_str_t* out) {
  const bool cut = s->len > MAX_BYTES;
  assay_str_append(out, "\"");
  assay_str_shown_n(out, s->text, cut ? MAX_BYTES : s->len);
  assay_str_append(out, cut ? " ...\"" : "\"");
}

// Of attributes that name a type the type is said.
static void put_int(const assay_attr_t* a, assay_str_t* out) {
  const bool is_type = strcmp(a->name, "to") == 0 || strcmp(a->name, "dtype") == 0;
  assay_str_printf(out, "%lld", (long long)a->u.i);
  if (is_type && a->u.i > 0 && a->u.i < ASSAY_TYPE_COUNT)
    assay_str_printf(out, " (%s)", assay_type_name((assay_type_t)a->u.i));
}

static void put_item(const assay_attr_t* a, size_t i, bool elements, assay_str_t* out) {
  switch (a->type) {
    case ASSAY_ATTR_FLOATS:
      assay_numpy_print_float(ASSAY_TYPE_FLOAT, (double)a->u.floats[i], out);
      return;
    case ASSAY_ATTR_INTS:
      assay_str_printf(out, "%lld", (long long)a->u.ints[i]);
      return;
    case ASSAY_ATTR_STRINGS:
      put_string(&a->u.strings[i], out);
      return;
    case ASSAY_ATTR_TENSORS:
    case ASSAY_ATTR_SPARSE_TENSORS:
      put_tensor(a->u.tensors[i], elements, out);
      return;
    case ASSAY_ATTR_TYPE_PROTOS:
      assay_str_append(out, ASSAY_VALTYPE_TEXT(a->u.types[i]));
      return;
    default:
      assay_str_append(out, "?");
  }
}

static void put_list(const assay_attr_t* a, bool elements, assay_str_t* out) {
  assay_str_append(out, "[");
  for (size_t i = 0; i < a->n && i < MAX_ITEMS; i++) {
    if (i) assay_str_append(out, ", ");
    put_item(a, i, elements, out);
  }
  if (a->n > MAX_ITEMS) assay_str_printf(out, ", ... (%zu)", a->n);
  assay_str_append(out, "]");
}

void assay_attr_text(const assay_attr_t* a, bool elements, assay_str_t* out) {
  if (*a->ref) {
    assay_str_printf(out, "as the function's '%s'", a->ref);
    return;
  }
  switch (a->type) {
    case ASSAY_ATTR_FLOAT:
      assay_numpy_print_float(ASSAY_TYPE_FLOAT, (double)a->u.f, out);
      return;
    case ASSAY_ATTR_INT:
      put_int(a, out);
      return;
    case ASSAY_ATTR_STRING:
      put_string(&a->u.s, out);
      return;
    case ASSAY_ATTR_TENSOR:
    case ASSAY_ATTR_SPARSE_TENSOR:
      put_tensor(a->u.t, elements, out);
      return;
    case ASSAY_ATTR_TYPE_PROTO:
      assay_str_append(out, ASSAY_VALTYPE_TEXT(a->u.type));
      return;
    case ASSAY_ATTR_GRAPH:
    case ASSAY_ATTR_GRAPHS:
      return;
    default:
      put_list(a, elements, out);
  }
}
