// What edits can be asked for: a table of their options, and requests read by it.
#include "edit/requests.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "edit/weights/calibration_cache.h"

#define AT(field) offsetof(assay_edit_requests_t, field)
#define WORDS(edits, name, value, field, help) \
  { edits, name, value, ASSAY_EDIT_FIELD_WORDS, AT(field), help }
#define TEXT(edits, name, value, field, help) \
  { edits, name, value, ASSAY_EDIT_FIELD_TEXT, AT(field), help }
#define FLAG(edits, name, field, help) \
  { edits, name, "", ASSAY_EDIT_FIELD_FLAG, AT(field), help }
#define ON_NODES " extract cast quantize broadcasts decompose set "

static const assay_edit_option_t options[] = {
    WORDS(ON_NODES, "nodes", "PATTERN", nodes, "only nodes with such a name"),
    WORDS(ON_NODES, "not-nodes", "PATTERN", not_nodes, "no nodes with such a name"),
    WORDS(" extract ", "from", "VALUE", from, "an input of the part (default: the model's inputs)"),
    WORDS(" extract ", "to", "VALUE", to, "an output of the part (default: the model's outputs)"),
    TEXT(" cast ", "to", "FORMAT", format,
         "fp16 or bf16, of float32 values; fp32, of fp16, bf16, fp64"),
    TEXT(" quantize ", "format", "FORMAT", format,
         "int8 (default), fp8 (float8e4m3fn), or int4: of products' weights alone, in blocks"),
    TEXT(" quantize ", "calibrator", "NAME", calibrator,
         "an activation's range: minmax (default), its largest magnitude; entropy, where codes "
         "diverge least from the magnitudes; percentile"),
    {" quantize ", "percentile", "P", ASSAY_EDIT_FIELD_REAL, AT(percentile),
     "with calibrator percentile, or alone: this part of the magnitudes is in range (default: "
     "99.99)"},
    FLAG(" quantize ", "per-tensor", per_tensor, "one scale for a weight, not one a channel"),
    FLAG(" quantize ", "residuals", residuals, "what residual sums add to a product, too"),
    {" quantize ", "calib", "FILE", ASSAY_EDIT_FIELD_SCALES, AT(scales),
     "scales of activations from TensorRT's INT8 calibration cache; nodes that read a value "
     "without "
     "one are left"},
    FLAG(" broadcasts ", "numbers", numbers, "constants of one element, too"),
    WORDS(" decompose assemble ", "op", "NAME", ops, "only this operator"),
    FLAG(" sanitize ", "no-fold", no_fold, "leave nodes that read only constants"),
    FLAG(" sanitize ", "no-dedupe", no_dedupe, "leave equal nodes and constants"),
    FLAG(" sanitize ", "store-codes", store_codes, "weights after quantizers become their codes"),
    FLAG(" sanitize ", "no-names", no_names, "leave nodes without a name"),
    FLAG(" sanitize ", "no-shapes", no_shapes, "do not write inferred types"),
    WORDS(" rename ", "value", "OLD=NEW", values, "rename an input, an output or a value within"),
    WORDS(" rename ", "node", "OLD=NEW", renamed_nodes, "rename a node"),
    WORDS(" rename ", "dim", "OLD=NEW", dims, "rename an open dimension"),
    WORDS(" set ", "attr", "NAME=VALUE", attrs,
          "set an attribute of the nodes that 'nodes' names; NAME= takes it away"),
    WORDS(" set ", "shape", "INPUT=DIMS", shapes,
          "shape that an input declares, such as image=Nx3x224x224"),
    WORDS(" set ", "type", "NAME=TYPE", types,
          "element type of an input or output, by a Cast: image=uint8; int8*SCALE: by a quantizer"),
    {" set ", "opset", "N", ASSAY_EDIT_FIELD_WHOLE, AT(opset),
     "operator set to import, where no operator of the model is another one there"},
};
enum { N_OPTIONS = sizeof options / sizeof *options };

static bool is_of(const assay_edit_option_t* o, const assay_editor_t* editor) {
  char word[64];
  snprintf(word, sizeof word, " %s ", editor->name);
  return strstr(o->edits, word) != NULL;
}

const assay_edit_option_t* assay_edit_option_at(const assay_editor_t* editor, size_t k) {
  for (int i = 0; i < N_OPTIONS; i++)
    if (is_of(&options[i], editor) && k-- == 0) return &options[i];
  return NULL;
}

// ---- reading ------------------------------------------------------------------------------------

static assay_status_t unknown(const assay_editor_t* editor, const char* name) {
  assay_nearest_t near = {.wanted = name};
  const assay_edit_option_t* o;
  for (size_t k = 0; (o = assay_edit_option_at(editor, k)); k++)
    assay_nearest_offer(&near, o->name);
  return ASSAY_ERROR(ASSAY_NOT_FOUND, "edit '%s' has no option '%s'%s", editor->name, name,
                     ASSAY_NEAREST_TEXT(&near));
}

static assay_status_t find_option(const assay_editor_t* editor, const char* name,
                                  const assay_edit_option_t** out) {
  if (!name) return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "a request has no option");
  for (size_t k = 0; (*out = assay_edit_option_at(editor, k)); k++)
    if (strcmp((*out)->name, name) == 0) return NULL;
  return unknown(editor, name);
}

// A list has room for all requests from its first one on.
static assay_status_t add_word(assay_arena_t* arena, size_t capacity, const char* value,
                               assay_words_t* words) {
  if (!words->items) {
    const char** items = NULL;
    ASSAY_TRY(assay_arena_new(arena, capacity, sizeof *items, &items));
    words->items = items;
  }
  ((const char**)(uintptr_t)words->items)[words->n++] = value;
  return NULL;
}

static assay_status_t read_scales(assay_arena_t* arena, const char* path,
                                  assay_edit_requests_t* out) {
  assay_edit_scale_t* scales = NULL;
  ASSAY_TRY(assay_calibration_cache_read(arena, path, &scales, &out->n_scales));
  out->scales = scales;
  return out->n_scales ? NULL : ASSAY_ERROR(ASSAY_CORRUPT, "'%s' has no scales", path);
}

static assay_status_t not_a_number(const assay_edit_request_t* r) {
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "option '%s': '%s' is not a number", r->option,
                     r->value);
}

static assay_status_t set_field(const assay_edit_option_t* o, const assay_edit_request_t* r,
                                size_t n_left, assay_arena_t* arena, assay_edit_requests_t* out) {
  void* field = (char*)out + o->offset;
  char* end;
  errno = 0;
  switch (o->field) {
    case ASSAY_EDIT_FIELD_WORDS:
      return add_word(arena, n_left, r->value, field);
    case ASSAY_EDIT_FIELD_TEXT:
      *(const char**)field = r->value;
      return NULL;
    case ASSAY_EDIT_FIELD_WHOLE:
      *(int64_t*)field = strtoll(r->value, &end, 10);
      return *end || end == r->value || errno ? not_a_number(r) : NULL;
    case ASSAY_EDIT_FIELD_REAL:
      *(double*)field = strtod(r->value, &end);
      return *end || end == r->value ? not_a_number(r) : NULL;
    case ASSAY_EDIT_FIELD_FLAG:
      *(bool*)field = true;
      return NULL;
    case ASSAY_EDIT_FIELD_SCALES:
      return read_scales(arena, r->value, out);
  }
  return NULL;
}

assay_status_t assay_edit_requests_read(const assay_editor_t* editor, size_t n,
                                        const assay_edit_request_t* requests, assay_arena_t* arena,
                                        assay_edit_requests_t* out) {
  *out = (assay_edit_requests_t){0};
  for (size_t i = 0; i < n; i++) {
    const assay_edit_request_t* r = &requests[i];
    const assay_edit_option_t* o = NULL;
    ASSAY_TRY(find_option(editor, r->option, &o));
    if (o->field != ASSAY_EDIT_FIELD_FLAG && !r->value)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "option '%s' needs a value: %s", r->option,
                         o->value);
    for (size_t k = 0; k < i && o->field != ASSAY_EDIT_FIELD_WORDS; k++)
      if (strcmp(requests[k].option, r->option) == 0)
        return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "option '%s' is given twice", r->option);
    ASSAY_TRY(set_field(o, r, n - i, arena, out));
  }
  return NULL;
}
