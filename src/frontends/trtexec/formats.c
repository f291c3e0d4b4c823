// --inputIOFormats and --outputIOFormats: the types and layouts that a caller's buffers have. Where
// the model has other types, Casts are put in, or quantizers for int8, as 'assay edit set --type'
// does. Layouts stay out of the model: they are noted in the plan, and heeded where files are read
// and written (inputs.c, outputs.c).
#include <string.h>

#include "formats/format.h"
#include "frontends/trtexec/edit.h"
#include "frontends/trtexec/log.h"
#include "frontends/trtexec/specs.h"

// A constant of one element.
static bool one_number(const assay_value_t* v, double* out) {
  assay_tensor_t* wide = NULL;
  if (!v || !v->constant || v->constant->size != 1) return false;
  assay_status_t st = assay_tensor_widen(v->constant, &wide);
  const bool numbers = !st && (wide->store == ASSAY_STORE_F64 || wide->store == ASSAY_STORE_I64);
  if (numbers)
    *out = wide->store == ASSAY_STORE_F64 ? assay_f64(wide)[0] : (double)assay_i64(wide)[0];
  assay_tensor_release(wide);
  assay_status_free(st);
  return numbers;
}

// Formats that stand for the same numbers, rounded: an int8 of a float has a scale besides.
static bool converts(assay_type_t from, assay_type_t to) {
  const bool floats = assay_type_is_float(from) && assay_type_bits(from) >= 16 &&
                      assay_type_is_float(to) && assay_type_bits(to) >= 16;
  const bool integers = (from == ASSAY_TYPE_INT32 || from == ASSAY_TYPE_INT64) &&
                        (to == ASSAY_TYPE_INT32 || to == ASSAY_TYPE_INT64);
  return floats || integers;
}

// The scale of a QuantizeLinear that reads v, or of the DequantizeLinear that makes it: one number,
// and codes without a zero point; 0: there is none.
static float scale_in_model(const assay_model_t* m, const assay_value_t* v) {
  for (size_t i = 0; i < m->graph->n_nodes; i++) {
    const assay_node_t* n = m->graph->nodes[i];
    const bool reads = strcmp(n->op_type, "QuantizeLinear") == 0 && n->inputs[0] == v;
    const bool makes = strcmp(n->op_type, "DequantizeLinear") == 0 && n->outputs[0] == v;
    double scale, zero = 0;
    if ((!reads && !makes) || n->n_inputs < 2 || !one_number(n->inputs[1], &scale)) continue;
    if (n->n_inputs > 2 && n->inputs[2] && (!one_number(n->inputs[2], &zero) || zero != 0))
      continue;
    return (float)scale;
  }
  return 0;
}

// The scale of int8 codes of an input or output: the model's, or that of --calib.
static float scale_of(const trt_job_t* j, const assay_value_t* v) {
  const float own = scale_in_model(j->model, v);
  for (size_t i = 0; !(own > 0) && i < j->n_scales; i++)
    if (strcmp(j->scales[i].name, v->name) == 0) return j->scales[i].scale;
  return own;
}

static assay_status_t want_codes(trt_job_t* j, const char* flag, const assay_value_t* v) {
  const char* text = NULL;
  const float scale = scale_of(j, v);
  if (!(scale > 0))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "%s: '%s' as int8 needs a scale: the model has no Q/DQ nodes with one (and "
                       "zero point 0) there, and --calib names none of it",
                       flag, v->name);
  ASSAY_TRY(assay_arena_printf(j->arena, &text, "%s=int8*%.9g", v->name, (double)scale));
  ASSAY_TRY(opt_list_add(&j->io_types, text));
  trt_info("%s: %s is handed over as int8, each standing for %.9g times itself", flag, v->name,
           (double)scale);
  return NULL;
}

static assay_status_t want_type(trt_job_t* j, const char* flag, const assay_value_t* v,
                                assay_type_t from, assay_type_t to) {
  opt_list_t* list = &j->io_types;
  const char* text = NULL;
  if (trt_given(j->options, TRT_FLAG_stronglyTyped))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "%s: '%s' is %s in the model: with --stronglyTyped it cannot be %s", flag,
                       v->name, trt_type_word(from), trt_type_word(to));
  if (from == ASSAY_TYPE_FLOAT && to == ASSAY_TYPE_INT8) return want_codes(j, flag, v);
  if (!converts(from, to))
    return ASSAY_ERROR(
        ASSAY_UNSUPPORTED,
        "%s: '%s' is %s in the model, and cannot be handed over as %s: floats can be as fp32, "
        "fp16, bf16 or int8 (by a scale), integers as int32 or int64",
        flag, v->name, trt_type_word(from), trt_type_word(to));
  ASSAY_TRY(assay_arena_printf(j->arena, &text, "%s=%s", v->name, assay_type_name(to)));
  ASSAY_TRY(opt_list_add(list, text));
  trt_info("%s: %s is handed over as %s, and converted to and from the model's %s", flag, v->name,
           trt_type_word(to), trt_type_word(from));
  return NULL;
}

static assay_status_t want_layout(trt_job_t* j, const char* flag, const assay_value_t* v,
                                  bool output, const trt_io_format_t* f) {
  const assay_valtype_t* t = v->type ? v->type : v->declared;
  const bool known = t && t->kind == ASSAY_KIND_TENSOR && t->has_shape;
  const assay_type_t type = f->type ? f->type : t ? t->elem : ASSAY_TYPE_UNDEFINED;
  const trt_layout_t* l = NULL;
  const char* name = NULL;
  ASSAY_TRY(trt_layout_choose(flag, f->layouts, v->name, known ? t->rank : -1, type,
                              trt_given(j->options, TRT_FLAG_directIO), &l));
  if (!l->spatial) return NULL;
  if (trt_given(j->options, TRT_FLAG_directIO))
    return ASSAY_ERROR(
        ASSAY_UNSUPPORTED,
        "--directIO: '%s' in layout %s would be rearranged: leave the layout out, or "
        "--directIO",
        v->name, l->word);
  ASSAY_TRY(assay_arena_strdup(j->arena, v->name, &name));
  ASSAY_TRY(trt_ends_add(&j->layouts, name, output, l));
  trt_info("%s %s is handed over in layout %s, and rearranged outside the times that are measured",
           output ? "Output" : "Input", name, l->word);
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
    ASSAY_TRY(want_layout(j, name, values[i], flag == TRT_FLAG_outputIOFormats, f));
    if (f->type && t && t->kind == ASSAY_KIND_TENSOR && t->elem != f->type)
      ASSAY_TRY(want_type(j, name, values[i], t->elem, f->type));
  }
  return NULL;
}

static assay_status_t put_casts(trt_job_t* j) {
  const assay_edit_requests_t requests = {.types = {j->io_types.items, j->io_types.n}};
  return trt_edit_model(j, &assay_editor_set, &requests);
}

assay_status_t trt_set_io_formats(trt_job_t* j) {
  const assay_graph_t* g = j->model->graph;
  const assay_value_t** inputs = NULL;
  size_t n = 0;
  ASSAY_TRY(assay_arena_new(j->arena, g->n_inputs, sizeof *inputs, &inputs));
  for (size_t i = 0; i < g->n_inputs; i++)
    if (!g->inputs[i]->constant) inputs[n++] = g->inputs[i];
  ASSAY_TRY(check(j, TRT_FLAG_inputIOFormats, inputs, n));
  ASSAY_TRY(check(j, TRT_FLAG_outputIOFormats, (const assay_value_t* const*)g->outputs,
                  g->n_outputs - j->n_debug_outputs));
  return j->io_types.n ? put_casts(j) : NULL;
}
