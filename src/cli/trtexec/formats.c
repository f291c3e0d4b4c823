// --inputIOFormats and --outputIOFormats: the types that a caller's buffers have. Where the model
// has others, Casts are put in, as 'assay edit set --type' does.
#include "cli/trtexec/edit.h"
#include "cli/trtexec/log.h"
#include "cli/trtexec/specs.h"
#include "formats/format.h"

// Formats that stand for the same numbers, rounded: an int8 of a float has a scale besides.
static bool converts(assay_type_t from, assay_type_t to) {
  const bool floats = assay_type_is_float(from) && assay_type_bits(from) >= 16 &&
                      assay_type_is_float(to) && assay_type_bits(to) >= 16;
  const bool integers = (from == ASSAY_TYPE_INT32 || from == ASSAY_TYPE_INT64) &&
                        (to == ASSAY_TYPE_INT32 || to == ASSAY_TYPE_INT64);
  return floats || integers;
}

static assay_status_t want_type(trt_job_t* j, const char* flag, const assay_value_t* v,
                                assay_type_t from, assay_type_t to) {
  opt_list_t* list = &j->io_types;
  const char* text = NULL;
  if (trt_given(j->options, TRT_FLAG_stronglyTyped))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "%s: '%s' is %s in the model: with --stronglyTyped it cannot be %s", flag,
                       v->name, trt_type_word(from), trt_type_word(to));
  if (!converts(from, to))
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "%s: '%s' is %s in the model, and %s of it is not there yet: use %s:chw",
                       flag, v->name, trt_type_word(from), trt_type_word(to), trt_type_word(from));
  ASSAY_TRY(assay_arena_printf(j->arena, &text, "%s=%s", v->name, assay_type_name(to)));
  ASSAY_TRY(assay_grow(&list->items, &list->capacity, list->n + 1, sizeof *list->items));
  list->items[list->n++] = text;
  trt_info("%s: %s is handed over as %s, and converted to and from the model's %s", flag, v->name,
           trt_type_word(to), trt_type_word(from));
  return NULL;
}

static assay_status_t check(trt_job_t* j, trt_flag_id_t flag, const assay_value_t* const* values,
                            size_t n_values) {
  const char* name = trt_flags[flag].name;
  trt_io_format_t* formats = NULL;
  size_t n = 0;
  if (!trt_given(j->options, flag)) return NULL;
  ASSAY_TRY(trt_io_formats_parse(j->arena, name, trt_text(j->options, flag), &formats, &n));
  if (n != 1 && n != n_values)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "%s has %zu formats; the model has %zu: give one for each, or one for all",
                       name, n, n_values);
  for (size_t i = 0; i < n_values; i++) {
    const trt_io_format_t* f = &formats[n == 1 ? 0 : i];
    const assay_valtype_t* t = values[i]->type ? values[i]->type : values[i]->declared;
    if (!f->plain)
      return ASSAY_ERROR(ASSAY_UNSUPPORTED, "%s: '%s' in layout %s is not there yet: use chw", name,
                         values[i]->name, f->layouts);
    if (f->type && t && t->kind == ASSAY_KIND_TENSOR && t->elem != f->type)
      ASSAY_TRY(want_type(j, name, values[i], t->elem, f->type));
  }
  return NULL;
}

static assay_status_t put_casts(trt_job_t* j) {
  const assay_edit_wishes_t wishes = {.types = {j->io_types.items, j->io_types.n}};
  return trt_edit_model(j, &assay_editor_set, &wishes);
}

assay_status_t trt_set_io_formats(trt_job_t* j) {
  const assay_graph_t* g = j->model->graph;
  const assay_value_t** inputs = NULL;
  size_t n = 0;
  ASSAY_TRY(assay_arena_new(j->arena, g->n_inputs, sizeof *inputs, &inputs));
  for (size_t i = 0; i < g->n_inputs; i++)
    if (!g->inputs[i]->constant) inputs[n++] = g->inputs[i];
  ASSAY_TRY(check(j, TRT_FLAG_inputIOFormats, inputs, n));
  ASSAY_TRY(
      check(j, TRT_FLAG_outputIOFormats, (const assay_value_t* const*)g->outputs, g->n_outputs));
  return j->io_types.n ? put_casts(j) : NULL;
}
