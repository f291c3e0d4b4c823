// --inputIOFormats and --outputIOFormats: so far those that the model has.
#include "cli/trtexec/job.h"
#include "cli/trtexec/specs.h"

static assay_status_t check(const trt_job_t* j, trt_flag_id_t flag,
                            const assay_value_t* const* values, size_t n_values) {
  const char* name = trt_flags[flag].name;
  trt_io_format_t* formats = NULL;
  size_t n = 0;
  if (!trt_given(j->options, flag)) return NULL;
  ASSAY_TRY(trt_io_formats_parse(j->arena, name, trt_text(j->options, flag), &formats, &n));
  if (n != 1 && n != n_values)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "%s has %zu formats; the model has %zu: give one for "
                       "each, or one for all",
                       name, n, n_values);
  for (size_t i = 0; i < n_values; i++) {
    const trt_io_format_t* f = &formats[n == 1 ? 0 : i];
    const assay_valtype_t* t = values[i]->type ? values[i]->type : values[i]->declared;
    if (!f->plain)
      return ASSAY_ERROR(ASSAY_UNSUPPORTED, "%s: '%s' in layout %s is not there yet: use chw", name,
                         values[i]->name, f->layouts);
    if (!f->type || !t || t->elem == f->type) continue;
    if (trt_given(j->options, TRT_FLAG_stronglyTyped))
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "%s: '%s' is %s in the model: with --stronglyTyped "
                         "it cannot be %s",
                         name, values[i]->name, trt_type_word(t->elem), trt_type_word(f->type));
    return ASSAY_ERROR(
        ASSAY_UNSUPPORTED,
        "%s: '%s' is %s in the model, and %s is not there yet: use %s:chw, or change "
        "the model with 'assay edit cast'",
        name, values[i]->name, trt_type_word(t->elem), trt_type_word(f->type),
        trt_type_word(t->elem));
  }
  return NULL;
}

assay_status_t trt_check_io_formats(const trt_job_t* j) {
  const assay_graph_t* g = j->model->graph;
  const assay_value_t** inputs = NULL;
  size_t n = 0;
  ASSAY_TRY(assay_arena_new(j->arena, g->n_inputs, sizeof *inputs, &inputs));
  for (size_t i = 0; i < g->n_inputs; i++)
    if (!g->inputs[i]->constant) inputs[n++] = g->inputs[i];
  ASSAY_TRY(check(j, TRT_FLAG_inputIOFormats, inputs, n));
  return check(j, TRT_FLAG_outputIOFormats, (const assay_value_t* const*)g->outputs, g->n_outputs);
}
