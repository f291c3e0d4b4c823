// Models of the line: read, changed as flags say, written, told.
#include "frontends/polygraphy/model.h"

#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/shown.h"
#include "edit/editor.h"
#include "io/numpy_text.h"
#include "onnx/load.h"
#include "onnx/onnx.h"

// ---- types --------------------------------------------------------------------------------------

static const struct {
  assay_type_t type;
  const char* names;  // NumPy's first
} types[] = {
    {ASSAY_TYPE_FLOAT, "float32|float|fp32"},
    {ASSAY_TYPE_FLOAT16, "float16|half|fp16"},
    {ASSAY_TYPE_BFLOAT16, "bfloat16|bf16"},
    {ASSAY_TYPE_DOUBLE, "float64|double"},
    {ASSAY_TYPE_INT8, "int8"},
    {ASSAY_TYPE_UINT8, "uint8"},
    {ASSAY_TYPE_INT16, "int16"},
    {ASSAY_TYPE_UINT16, "uint16"},
    {ASSAY_TYPE_INT32, "int32"},
    {ASSAY_TYPE_UINT32, "uint32"},
    {ASSAY_TYPE_INT64, "int64"},
    {ASSAY_TYPE_UINT64, "uint64"},
    {ASSAY_TYPE_BOOL, "bool|boolean"},
    {ASSAY_TYPE_STRING, "object|string|str"},
    {ASSAY_TYPE_COMPLEX64, "complex64"},
    {ASSAY_TYPE_COMPLEX128, "complex128"},
    {ASSAY_TYPE_FLOAT8E4M3FN, "float8e4m3fn|fp8"},
};
enum { N_TYPES = sizeof types / sizeof *types };

assay_type_t pg_type_parse(const char* name) {
  for (size_t i = 0; i < N_TYPES; i++)
    if (pg_is_choice(types[i].names, name)) return types[i].type;
  return ASSAY_TYPE_UNDEFINED;
}

// ---- reading ------------------------------------------------------------------------------------

static bool ends_with(const char* text, const char* end) {
  const size_t n = strlen(text), m = strlen(end);
  return n >= m && strcasecmp(text + n - m, end) == 0;
}

bool pg_is_engine(const pg_job_t* j, const char* path) {
  if (pg_given(j->args, PG_FLAG_model_type)) return pg_is(j->args, PG_FLAG_model_type, "engine");
  return ends_with(path, ".engine") || ends_with(path, ".plan") || ends_with(path, ".trt");
}

// Takes the edit's result in place of *m.
static assay_status_t edit(const assay_editor_t* editor, const assay_edit_requests_t* requests,
                           assay_model_t** m) {
  const assay_editor_options_t options = {.no_proof = true, .force = true};
  assay_edit_result_t r = {0};
  assay_status_t st = assay_editor_run(editor, *m, requests, &options, &r);
  if (!st && r.notes.len) pg_log(PG_INFO, ASSAY_LINES, assay_str_get(&r.notes));
  if (!st) {
    assay_model_release(*m);
    *m = assay_model_retain(r.model);
  }
  assay_edit_result_deinit(&r);
  return st;
}

static assay_status_t to_fp16(pg_job_t* j, assay_model_t** m) {
  const assay_edit_requests_t requests = {.format = "fp16"};
  if (!pg_given(j->args, PG_FLAG_fp_to_fp16)) return NULL;
  pg_log(PG_INFO, "Converting the float32 values of the model to float16");
  return assay_status_note(edit(&assay_editor_cast, &requests, m), "--fp-to-fp16");
}

static assay_status_t infer_shapes(pg_job_t* j, assay_model_t** m) {
  const assay_edit_requests_t requests = {.no_fold = true, .no_dedupe = true, .no_names = true};
  if (!pg_given(j->args, PG_FLAG_shape_inference)) return NULL;
  return assay_status_note(edit(&assay_editor_sanitize, &requests, m), "--shape-inference");
}

// An error becomes a warning.
static assay_status_t only_warn(assay_status_t st) {
  if (!st || assay_status_code(st) == ASSAY_NO_MEMORY) return st;
  pg_log(PG_WARNING, "%s: the model stays as it is", assay_status_message(st));
  assay_status_free(st);
  return NULL;
}

assay_status_t pg_convert_model(pg_job_t* j, assay_model_t** m) {
  if (!pg_given(j->args, PG_FLAG_fp_to_fp16) && !pg_given(j->args, PG_FLAG_shape_inference))
    return NULL;
  ASSAY_TRY(only_warn(to_fp16(j, m)));
  ASSAY_TRY(only_warn(infer_shapes(j, m)));
  return only_warn(assay_onnx_sort(*m));  // nodes that were added count from the end
}

static assay_status_t change(pg_job_t* j, bool marked, assay_model_t** m) {
  const pg_args_t* a = j->args;
  const pg_marks_t marks = {.names = pg_words(a, PG_FLAG_onnx_outputs),
                            .exclude = pg_words(a, PG_FLAG_onnx_exclude_outputs),
                            .by_type = pg_words(a, PG_FLAG_onnx_outputs_by_type),
                            .flag = "--onnx-outputs"};
  ASSAY_TRY(to_fp16(j, m));
  if (marked) ASSAY_TRY(pg_mark_outputs(*m, &marks));
  return infer_shapes(j, m);
}

typedef struct pg_warned {
  const char* text;
  struct pg_warned* next;
} pg_warned_t;

static assay_status_t warn_of_model(pg_job_t* j, const assay_model_t* m) {
  const char* text;
  for (size_t i = 0; (text = assay_model_warning(m, i)); i++) {
    pg_warned_t* w = j->warned;
    while (w && strcmp(w->text, text) != 0) w = w->next;
    if (w) continue;  // shown when it was loaded before
    ASSAY_TRY(assay_arena_new(j->arena, 1, sizeof *w, &w));
    ASSAY_TRY(assay_arena_strdup(j->arena, text, &w->text));
    w->next = j->warned;
    j->warned = w;
    pg_log(PG_WARNING, "%s", text);
  }
  return NULL;
}

assay_status_t pg_prepare_model(pg_job_t* j, assay_model_t* m, bool known, assay_model_t** out) {
  assay_model_t* ready = NULL;
  ASSAY_TRY(known ? assay_onnx_prepare_known(m, 0, NULL, &ready)
                  : assay_onnx_prepare(m, 0, NULL, &ready));
  assay_status_t st = warn_of_model(j, ready);
  if (st) return assay_model_release(ready), st;
  *out = ready;
  return NULL;
}

assay_status_t pg_read_model(pg_job_t* j, const assay_onnx_read_options_t* allow,
                             assay_model_t** out) {
  const pg_args_t* a = j->args;
  const char* path = a->positional.n ? a->positional.items[0] : NULL;
  assay_onnx_read_options_t options = allow ? *allow : (assay_onnx_read_options_t){0};
  options.folder = pg_text(a, PG_FLAG_external_data_dir);
  options.hollow = pg_given(a, PG_FLAG_ignore_external_data);
  if (!path) return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "A model is needed: give its file");
  if (pg_is_engine(j, path))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "'%s' is a plan already: give the ONNX model that it was built from", path);
  if (access(path, F_OK) != 0 && !j->reported_model)
    pg_log(PG_WARNING, "Model path does not exist: %s", path);
  pg_log(j->reported_model ? PG_VERBOSE : PG_INFO, "Loading model: %s", path);
  j->reported_model = true;
  ASSAY_TRY(assay_onnx_read_with(path, &options, out));
  assay_status_t st = warn_of_model(j, *out);
  if (st) assay_model_release(*out), *out = NULL;
  return st;
}

static assay_status_t load(pg_job_t* j, bool marked, assay_model_t** out) {
  assay_model_t* m = NULL;
  ASSAY_TRY(pg_read_model(j, NULL, &m));
  assay_status_t st = assay_onnx_check_known(m);
  if (!st) st = change(j, marked, &m);
  if (st) return assay_model_release(m), st;
  *out = m;
  return NULL;
}

assay_status_t pg_load_model(pg_job_t* j, assay_model_t** out) { return load(j, true, out); }
assay_status_t pg_load_unmarked(pg_job_t* j, assay_model_t** out) { return load(j, false, out); }

// ---- writing ------------------------------------------------------------------------------------

assay_status_t pg_save_model(pg_job_t* j, const assay_model_t* m, const char* path) {
  const pg_args_t* a = j->args;
  const pg_value_t* external = &a->at[PG_FLAG_save_external_data];
  const char* size = pg_text(a, PG_FLAG_external_data_size_threshold);
  uint64_t min = 1024;
  if (size && !assay_bytes_parse(size, &min))
    return ASSAY_ERROR(
        ASSAY_INVALID_ARGUMENT,
        "--external-data-size-threshold: '%s' is not a size, such as 1024, 16K or 1M", size);
  const assay_onnx_write_options_t options = {
      .external = external->given ? ASSAY_ONNX_EXTERNAL_ALL : ASSAY_ONNX_EXTERNAL_KEEP,
      .min_bytes = (int64_t)(min ? min : 1),
      .data_name = external->text && *external->text ? external->text : NULL,
      .apart = pg_given(a, PG_FLAG_no_save_all_tensors_to_one_file)};
  pg_log(PG_INFO, "Saving ONNX model to: %s", path);
  return assay_onnx_write(m, path, &options);
}

// ---- telling ------------------------------------------------------------------------------------

static void put_dim(assay_str_t* out, const assay_dim_t* d) {
  int64_t n;
  if (assay_dim_value(d, &n))
    assay_str_printf(out, "%lld", (long long)n);
  else if (!d)
    assay_str_append(out, "-1");
  else
    assay_str_printf(out, "'%s'", assay_dim_text(d, (char[256]){0}, 256));
}

void pg_put_tensor_info(assay_str_t* out, const assay_value_t* v) {
  const assay_valtype_t* t = v->declared ? v->declared : v->type;
  assay_str_shown(out, v->name);
  if (!t && v->constant) {
    assay_str_printf(out, " [dtype=%s, shape=(", assay_numpy_type_name(v->constant->type));
    for (int d = 0; d < v->constant->rank; d++)
      assay_str_printf(out, "%s%lld", d ? ", " : "", (long long)v->constant->dims[d]);
    assay_str_printf(out, "%s)]", v->constant->rank == 1 ? "," : "");
  }
  if (!t || t->kind != ASSAY_KIND_TENSOR || !t->elem) return;
  assay_str_printf(out, " [dtype=%s", assay_numpy_type_name(t->elem));
  if (t->has_shape) {
    assay_str_append(out, ", shape=(");
    for (int d = 0; d < t->rank; d++) {
      if (d) assay_str_append(out, ", ");
      put_dim(out, t->dims ? t->dims[d] : NULL);
    }
    assay_str_append(out, t->rank == 1 ? ",)" : ")");
  }
  assay_str_append(out, "]");
}

// "{a [...],\n b [...]}" of values; constants among inputs are left out.
static size_t put_list(assay_str_t* out, assay_value_t* const* values, size_t n) {
  size_t count = 0;
  assay_str_append(out, "{");
  for (size_t i = 0; i < n; i++) {
    if (values[i]->constant && values[i]->is_input) continue;
    if (count++) assay_str_append(out, ",\n ");
    pg_put_tensor_info(out, values[i]);
  }
  assay_str_append(out, "}");
  return count;
}

static void put_ends(assay_str_t* out, const char* what, assay_value_t* const* values, size_t n) {
  assay_str_t list = {0};
  const size_t count = put_list(&list, values, n);
  assay_str_printf(out, "---- %zu Graph %s(s) ----\n" ASSAY_LINES "\n\n", count, what,
                   assay_str_get(&list));
  out->failed |= list.failed;
  assay_str_deinit(&list);
}

assay_status_t pg_report_model(const char* heading, const assay_model_t* m) {
  const assay_graph_t* g = m->graph;
  assay_str_t text = {0};
  assay_str_printf(&text, "%s\nName: %s | ONNX Opset: %lld\n\n", heading, g->name,
                   (long long)assay_model_opset(m, ""));
  put_ends(&text, "Input", g->inputs, g->n_inputs);
  put_ends(&text, "Output", g->outputs, g->n_outputs);
  assay_str_printf(&text, "---- %zu Initializer(s) ----\n\n---- %zu Node(s) ----\n",
                   g->n_initializers, g->n_nodes);
  assay_status_t st = assay_str_status(&text);
  if (!st) pg_log(PG_INFO, ASSAY_LINES, assay_str_get(&text));
  assay_str_deinit(&text);
  return st;
}

assay_status_t pg_change_model(pg_job_t* j,
                               assay_status_t (*change_it)(pg_job_t* j, assay_model_t* m)) {
  assay_model_t* m = NULL;
  ASSAY_TRY(pg_load_model(j, &m));
  assay_status_t st = pg_report_model("Original Model:", m);
  if (!st) st = change_it(j, m);
  if (!st) st = pg_save_model(j, m, pg_text(j->args, PG_FLAG_output));
  if (!st) st = pg_report_model("New Model:", m);
  assay_model_release(m);
  return st;
}
