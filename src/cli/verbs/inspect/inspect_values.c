// Types and shapes of graph inputs and outputs, as JSON and as text.
#include "cli/verbs/inspect/inspect_values.h"

#include "base/shown.h"

json_t* cli_value_json(const assay_value_t* v) {
  const assay_valtype_t* t = v->type ? v->type : v->declared;
  json_t* j = json_pack("{s:o, s:o}", "name", assay_json_text(v->name), "type",
                        assay_json_text(ASSAY_VALTYPE_TEXT(t)));
  if (!t || t->kind != ASSAY_KIND_TENSOR) return j;
  j = assay_json_put(j, "elem", json_string(assay_type_name(t->elem)));
  json_t* shape = t->has_shape ? json_array() : json_null();
  for (int i = 0; t->has_shape && i < t->rank; i++) {
    int64_t d;
    shape = assay_json_push(shape,
                            assay_dim_value(t->dims[i], &d)
                                ? json_integer(d)
                                : assay_json_text(assay_dim_text(t->dims[i], (char[128]){0}, 128)));
  }
  return assay_json_put(j, "shape", shape);
}

json_t* cli_values_json(assay_value_t* const* values, size_t n) {
  json_t* list = json_array();
  for (size_t i = 0; i < n; i++) list = assay_json_push(list, cli_value_json(values[i]));
  return list;
}

void cli_values_print(const char* what, assay_value_t* const* values, size_t n) {
  for (size_t i = 0; i < n; i++)
    assay_print(stdout, "%-10s '%s' %s\n", what, values[i]->name,
                ASSAY_VALTYPE_TEXT(values[i]->type ? values[i]->type : values[i]->declared));
}
