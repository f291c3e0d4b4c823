// --dumpOutput, --exportOutput and --dumpRawBindingsToFile.
#include <stdio.h>

#include "base/file.h"
#include "base/shown.h"
#include "formats/format.h"
#include "frontends/trtexec/bindings.h"
#include "frontends/trtexec/log.h"
#include "frontends/trtexec/specs.h"
#include "frontends/trtexec/text.h"

// Values from `from` on, with a separator between.
static void put_values(assay_str_t* out, const assay_tensor_t* t, const char* separator) {
  for (int64_t i = 0; i < t->size; i++) {
    if (i) assay_str_append(out, separator);
    trt_put_element(out, t, i);
  }
}

static assay_status_t dump(const char* name, const assay_tensor_t* t) {
  assay_str_t text = {0};
  assay_str_printf(&text, "%s: (", name);
  trt_put_dims(&text, t->rank, t->dims);
  assay_str_append(&text, ")");
  trt_info("%s", assay_str_get(&text));
  assay_str_deinit(&text);
  text = (assay_str_t){0};
  put_values(&text, t, " ");
  assay_status_t st = assay_str_status(&text);
  if (!st) trt_info("%s", assay_str_get(&text));
  assay_str_deinit(&text);
  return st;
}

static void put_output(assay_str_t* out, const char* name, const assay_tensor_t* t, bool first) {
  assay_str_append(out, first ? "  { \"name\" : " : ", { \"name\" : ");
  trt_put_json(out, name);
  assay_str_append(out, "\n  , \"dimensions\" : \"");
  trt_put_dims(out, t->rank, t->dims);
  assay_str_append(out, "\"\n  , \"values\" : [ ");
  put_values(out, t, ", ");
  assay_str_append(out, " ]\n  }\n");
}

// The bytes of a tensor's buffer in its layout; freed by the caller.
static assay_status_t make_buffer(assay_tensor_t* t, const trt_layout_t* l, uint8_t** out,
                                  size_t* out_n) {
  uint8_t *rows = NULL, *buffer = NULL;
  int64_t n = 0;
  *out_n = assay_tensor_bytes(t);
  ASSAY_TRY(assay_new_array(*out_n, 1, &rows));
  assay_status_t st = assay_tensor_read(t, rows, *out_n);
  if (!st && l->spatial) {
    const size_t width = (size_t)assay_type_bits(t->type) / 8;
    if (!trt_layout_elems(l, t->rank, t->dims, &n))
      st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "this shape cannot be in layout %s", l->word);
    if (!st) st = assay_new_array((size_t)n, width, &buffer);
    if (!st) trt_layout_put(l, t->rank, t->dims, width, rows, buffer);
    *out_n = (size_t)n * width;
    assay_free(rows);
    rows = buffer;
  }
  if (st) return assay_free(rows), st;
  *out = rows;
  return NULL;
}

// "<name>.<input or output>.<d0.d1...>.<type>.raw"
static assay_status_t write_raw(const char* name, const char* which, const trt_layout_t* l,
                                assay_tensor_t* t) {
  assay_str_t path = {0};
  uint8_t* bytes = NULL;
  size_t n = 0;
  if (t->kind != ASSAY_KIND_TENSOR || t->type == ASSAY_TYPE_STRING) {
    trt_warn("--dumpRawBindingsToFile: %s is not a tensor of numbers, and is not written", name);
    return NULL;
  }
  trt_file_name(name, &path);
  assay_str_printf_raw(&path, ".%s.", which);
  for (int d = 0; d < t->rank; d++)
    assay_str_printf_raw(&path, d ? ".%lld" : "%lld", (long long)t->dims[d]);
  assay_str_printf_raw(&path, ".%s.raw", trt_type_word(t->type));
  assay_status_t st = assay_str_status(&path);
  if (!st) st = make_buffer(t, l, &bytes, &n);
  if (!st) st = assay_file_write(assay_str_get(&path), bytes, n);
  if (!st) trt_info("Wrote %s", assay_str_get(&path));
  assay_free(bytes);
  assay_str_deinit(&path);
  return assay_status_note(st, "--dumpRawBindingsToFile");
}

static assay_status_t report_output(const trt_job_t* j, const assay_io_t* io, assay_tensor_t* t,
                                    assay_str_t* exported, bool first) {
  const char* name = assay_io_name(io);
  assay_tensor_t* wide = NULL;
  assay_status_t st = NULL;
  if (t->kind != ASSAY_KIND_TENSOR)
    return trt_warn("Output %s is not a tensor, and is left out", name), NULL;
  ASSAY_TRY(assay_tensor_widen(t, &wide));
  if (trt_given(j->options, TRT_FLAG_dumpOutput)) st = dump(name, wide);
  if (trt_given(j->options, TRT_FLAG_exportOutput)) put_output(exported, name, wide, first);
  assay_tensor_release(wide);
  if (!st && trt_given(j->options, TRT_FLAG_dumpRawBindingsToFile))
    st = write_raw(name, "output", trt_layout_of(j, io, true), t);
  return st;
}

assay_status_t trt_report_outputs(const trt_job_t* j, const trt_inputs_t* in, assay_context_t* c) {
  const trt_options_t* o = j->options;
  assay_str_t exported = {0};
  assay_status_t st = NULL;
  bool first = true;
  if (trt_given(o, TRT_FLAG_dumpOutput)) trt_info("Output Tensors:");
  assay_str_append(&exported, "[\n");
  for (size_t i = 0; !st && i < trt_output_count(j); i++) {
    assay_tensor_t* t = assay_context_output(c, i);
    if (!t) continue;
    st = report_output(j, assay_engine_output(j->engine, i), t, &exported, first);
    assay_tensor_release(t);
    first = false;
  }
  for (size_t i = 0; !st && trt_given(o, TRT_FLAG_dumpRawBindingsToFile) && i < in->n; i++) {
    const assay_io_t* io = assay_engine_input(j->engine, i);
    st = write_raw(assay_io_name(io), "input", trt_layout_of(j, io, false), in->tensors[i]);
  }
  assay_str_append(&exported, "]\n");
  if (!st && trt_given(o, TRT_FLAG_exportOutput))
    return trt_write_text("--exportOutput", trt_text(o, TRT_FLAG_exportOutput), &exported);
  assay_str_deinit(&exported);
  return st;
}
