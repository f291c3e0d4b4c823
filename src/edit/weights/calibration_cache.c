// INT8 calibration caches of TensorRT: a line of the version and the algorithm, then "NAME: SCALE"
// a line, the scale being the 8 hexadecimal digits of a float's bits.
#include "edit/weights/calibration_cache.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/shown.h"

static assay_status_t bad_line(size_t number, const char* why) {
  return ASSAY_ERROR(ASSAY_CORRUPT, "line %zu of the calibration cache %s", number, why);
}

// "3c010a14" as the float of these bits.
static assay_status_t parse_scale(const char* digits, size_t n, size_t number, float* out) {
  uint32_t bits = 0;
  if (n != 8) return bad_line(number, "has no 8 hexadecimal digits after its ': '");
  for (size_t i = 0; i < n; i++) {
    const int c = tolower((unsigned char)digits[i]);
    if (!isxdigit(c)) return bad_line(number, "has no 8 hexadecimal digits after its ': '");
    bits = bits << 4 | (uint32_t)(isdigit(c) ? c - '0' : c - 'a' + 10);
  }
  memcpy(out, &bits, sizeof bits);
  if (!isfinite(*out) || *out < 0)
    return bad_line(number, "has a scale that is negative or no number");
  return NULL;
}

assay_status_t assay_calibration_cache_parse(assay_arena_t* arena, const char* text, size_t n,
                                             assay_edit_scale_t** out, size_t* out_n) {
  assay_edit_scale_t* scales = NULL;
  size_t lines = 1, count = 0;
  for (size_t i = 0; i < n; i++) lines += text[i] == '\n';
  if (n < 4 || memcmp(text, "TRT-", 4) != 0)
    return bad_line(1, "is not TRT-VERSION-ALGORITHM: this is not a calibration cache");
  ASSAY_TRY(assay_arena_new(arena, lines, sizeof *scales, &scales));
  for (size_t at = 0, number = 1; at < n; number++) {
    const char* line = text + at;
    const char* end = memchr(line, '\n', n - at);
    size_t len = end ? (size_t)(end - line) : n - at, colon = len;
    at += len + 1;
    if (len && line[len - 1] == '\r') len--;
    for (size_t i = 0; i < len; i++)
      if (line[i] == ':') colon = i;
    if (number == 1 || colon >= len) continue;
    if (colon + 1 == len || line[colon + 1] != ' ')
      return bad_line(number, "has no space after its last ':'");
    ASSAY_TRY(parse_scale(line + colon + 2, len - colon - 2, number, &scales[count].scale));
    ASSAY_TRY(assay_arena_strndup(arena, line, colon, &scales[count++].name));
  }
  *out = scales;
  *out_n = count;
  return NULL;
}

assay_status_t assay_calibration_cache_read(assay_arena_t* arena, const char* path,
                                            assay_edit_scale_t** out, size_t* out_n) {
  assay_mapping_t* m = NULL;
  ASSAY_TRY(assay_mapping_open(path, &m));
  assay_status_t st = assay_calibration_cache_parse(arena, (const char*)assay_mapping_data(m),
                                                    assay_mapping_size(m), out, out_n);
  assay_mapping_release(m);
  return assay_status_note(st, "'%s'", path);
}

// ---- writing ------------------------------------------------------------------------------------

// Whether a node quantizes an activation, of which a line of a cache can speak.
static bool quantizes(const assay_node_t* n) {
  return strcmp(n->op_type, "QuantizeLinear") == 0 && n->n_inputs >= 2 && n->inputs[0] &&
         n->inputs[1] && !n->inputs[0]->constant && !strchr(n->inputs[0]->name, '\n') &&
         n->inputs[1]->constant && n->inputs[1]->constant->size == 1;
}

// false: it is none that a cache can hold.
static assay_status_t read_scale(const assay_node_t* n, float* out, bool* out_ok) {
  assay_tensor_t* wide = NULL;
  ASSAY_TRY(assay_tensor_widen(n->inputs[1]->constant, &wide));
  *out_ok = wide->store == ASSAY_STORE_F64;
  if (*out_ok) *out = (float)assay_f64(wide)[0];
  *out_ok = *out_ok && isfinite(*out) && *out >= 0;
  assay_tensor_release(wide);
  return NULL;
}

static assay_status_t add_scale(assay_arena_t* arena, const char* name, float scale,
                                assay_map_t* seen, assay_edit_scale_t* list, size_t* n) {
  uint64_t at;
  if (assay_map_get(seen, name, &at)) return NULL;
  ASSAY_TRY(assay_map_put(seen, name, *n, NULL));
  list[*n].scale = scale;
  return assay_arena_strdup(arena, name, &list[(*n)++].name);
}

assay_status_t assay_calibration_cache_of_model(assay_arena_t* arena, const assay_model_t* m,
                                                assay_edit_scale_t** out, size_t* out_n) {
  assay_status_t st = NULL;
  assay_map_t seen = {0};
  assay_edit_scale_t* list = NULL;
  size_t max = 0, n = 0;
  float scale = 0;
  for (size_t g = 0; g < m->n_graphs; g++) max += m->graphs[g]->n_nodes;
  ASSAY_TRY(assay_arena_new(arena, max, sizeof *list, &list));
  for (size_t g = 0; g < m->n_graphs; g++)
    for (size_t i = 0; !st && i < m->graphs[g]->n_nodes; i++) {
      const assay_node_t* node = m->graphs[g]->nodes[i];
      bool ok = quantizes(node);
      if (ok) st = read_scale(node, &scale, &ok);
      if (!st && ok) st = add_scale(arena, node->inputs[0]->name, scale, &seen, list, &n);
    }
  assay_map_deinit(&seen);
  *out = list;
  *out_n = n;
  return st;
}

assay_status_t assay_calibration_cache_write(const char* path, const char* algorithm,
                                             const assay_edit_scale_t* scales, size_t n) {
  assay_str_t text = {0};
  assay_str_printf_raw(&text, "TRT-100100-%s\n", algorithm);
  for (size_t i = 0; i < n; i++) {
    uint32_t bits;
    memcpy(&bits, &scales[i].scale, sizeof bits);
    assay_str_printf_raw(&text, "%s: %08" PRIx32 "\n", scales[i].name, bits);
  }
  assay_status_t st = assay_str_status(&text);
  if (!st) st = assay_file_write(path, assay_str_get(&text), text.len);
  assay_str_deinit(&text);
  return st;
}
