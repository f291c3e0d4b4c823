// Which layer runs in which format: the text form of the rules.
#include <string.h>

#include "base/alloc.h"
#include "base/shown.h"
#include "formats/format.h"
#include "ops/quant/book.h"
#include "plan/plan.h"

void assay_precision_deinit(assay_precision_t* p) {
  assay_free(p->rules);
  assay_free(p->text);
  *p = (assay_precision_t){0};
}

// ---- what is asked for --------------------------------------------------------------------------

bool assay_model_quantizes(const assay_model_t* m) {
  for (size_t g = 0; g < m->n_graphs; g++)
    for (size_t i = 0; i < m->graphs[g]->n_nodes; i++) {
      const assay_op_t* op = m->graphs[g]->nodes[i]->op;
      if (op && op->flags & ASSAY_OP_QUANTIZES) return true;
    }
  return false;
}

// Whether a Cast makes small floats: 8 bits or fewer.
static bool casts_to_few(const assay_node_t* n) {
  const assay_valtype_t* t = n->n_outputs && n->outputs[0] ? n->outputs[0]->type : NULL;
  return !*n->domain && strcmp(n->op_type, "Cast") == 0 && t && t->kind == ASSAY_KIND_TENSOR &&
         assay_type_is_float(t->elem) && assay_type_bits(t->elem) <= 8;
}

bool assay_model_has_few_bits(const assay_model_t* m) {
  if (assay_model_quantizes(m) || assay_model_has_books(m)) return true;
  for (size_t g = 0; g < m->n_graphs; g++)
    for (size_t i = 0; i < m->graphs[g]->n_nodes; i++)
      if (casts_to_few(m->graphs[g]->nodes[i])) return true;
  return false;
}

assay_status_t assay_model_want_quantizers(const assay_model_t* m) {
  if (assay_model_quantizes(m)) return NULL;
  return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                     "precision int8 needs a model with QuantizeLinear and DequantizeLinear (or "
                     "QLinear operators): this one has none; 'assay edit quantize' puts them in");
}

static assay_status_t check_float(const char* what, assay_format_t f) {
  if ((unsigned)f < ASSAY_FORMAT_COUNT && (!f || assay_format_info(f)->is_float)) return NULL;
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "%s has to be a floating-point format, such as fp16; it is %s", what,
                     assay_format_name(f));
}

assay_status_t assay_precision_open(const assay_model_t* model, assay_format_t format,
                                    assay_format_t accumulator, const char* rules,
                                    assay_precision_t* out) {
  assay_precision_t p = {.format = ASSAY_FORMAT_FP32, .accumulator = accumulator};
  if (format == ASSAY_FORMAT_INT8)
    ASSAY_TRY(assay_model_want_quantizers(model));
  else
    ASSAY_TRY(check_float("the precision", format));
  ASSAY_TRY(check_float("the accumulator", accumulator));
  if (format && format != ASSAY_FORMAT_INT8) p.format = format;
  assay_status_t st = rules ? assay_precision_parse(&p, rules) : NULL;
  if (st) return assay_precision_deinit(&p), st;
  *out = p;
  return NULL;
}

assay_status_t assay_plan_options_settle(assay_plan_options_t* o, assay_fusion_t fusion,
                                         bool target_fuses) {
  if ((unsigned)fusion > ASSAY_FUSION_OFF)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "fusion %d does not exist; use one of assay_fusion_t", (int)fusion);
  if ((unsigned)o->fp32 > ASSAY_FP32_BOUND)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "fp32 is plain, tight or bound, not %d",
                       (int)o->fp32);
  if (fusion == ASSAY_FUSION_OFF && o->passes.n_off)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "passes_off is of a fused plan; fusion is off");
  o->fused = fusion == ASSAY_FUSION_ON || o->passes.n_off ||
             (fusion == ASSAY_FUSION_TARGET && target_fuses);
  return NULL;
}

// ---- rules --------------------------------------------------------------------------------------

// Finds the end of an entry: an unescaped ',' or the end of the text; *colon: its last unescaped
// ':'.
static char* entry_end(char* s, char** colon) {
  *colon = NULL;
  for (; *s && *s != ','; s++) {
    if (*s == '\\' && s[1])
      s++;
    else if (*s == ':')
      *colon = s;
  }
  return s;
}

static assay_status_t add_rule(assay_precision_t* p, const char* pattern, assay_format_t format) {
  ASSAY_TRY(assay_grow(&p->rules, &p->cap_rules, p->n_rules + 1, sizeof *p->rules));
  p->rules[p->n_rules++] = (assay_precision_rule_t){pattern, format};
  return NULL;
}

assay_status_t assay_precision_parse(assay_precision_t* p, const char* text) {
  size_t n = strlen(text);
  if (p->text)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "give the layers' precisions once, with ',' between");
  p->text = assay_malloc(n + 1);
  if (!p->text) return assay_status_no_memory();
  memcpy(p->text, text, n + 1);
  for (char* s = p->text; *s;) {
    char *colon, *end = entry_end(s, &colon);
    bool last = !*end;
    *end = 0;
    if (!colon || colon == s)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "'%s' is not PATTERN:FORMAT, such as '/encoder/*:fp32'", s);
    *colon = 0;
    assay_format_t format = assay_format_parse(colon + 1);
    if (!assay_format_info(format)->is_float)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "'%s' is not a floating-point format (pattern '%s'); use fp32, fp16, "
                         "bf16, tf32, fp64 ...",
                         colon + 1, s);
    ASSAY_TRY(add_rule(p, s, format));
    s = last ? end : end + 1;
  }
  if (!p->n_rules) return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "the layers' precisions are empty");
  return NULL;
}

assay_status_t assay_precision_copy(const assay_precision_t* p, assay_precision_t* out) {
  assay_precision_t copy = {.format = p->format,
                            .accumulator = p->accumulator,
                            .pinned = p->pinned,
                            .pinned_format = p->pinned_format,
                            .given = p->given,
                            .undeclared = p->undeclared};
  assay_str_t text = {0};
  for (size_t i = 0; i < p->n_rules; i++)
    assay_str_printf_raw(&text, "%s%s:%s", i ? "," : "", p->rules[i].pattern,
                         assay_format_name(p->rules[i].format));
  assay_status_t st = assay_str_status(&text);
  if (!st && text.len) st = assay_precision_parse(&copy, assay_str_get(&text));
  assay_str_deinit(&text);
  if (st) return assay_precision_deinit(&copy), st;
  *out = copy;
  return NULL;
}

void assay_precision_print(const assay_node_t* const* nodes, size_t n, assay_format_t format,
                           assay_str_t* out) {
  for (size_t i = 0; i < n; i++) {
    if (i) assay_str_append(out, ",");
    for (const char* c = nodes[i]->label; *c; c++) {
      // A leading @ would name a file.
      const bool at = *c == '@' && c == nodes[i]->label;
      if (at || strchr(",:*?[\\", *c)) assay_str_append(out, "\\");
      assay_str_append_n(out, c, 1);
    }
    assay_str_printf_raw(out, ":%s", assay_format_name(format));
  }
}
