// What the ONNX standard says of each operator version: inputs, outputs, attributes, types.
#include "ops/schema.h"

#include <stdio.h>
#include <string.h>

#include "ops/custom.h"
#include "ops/op.h"
#include "ops/schema_text.h"
#include "ops/schemas.inc"

enum { N_SCHEMAS = sizeof schemas / sizeof *schemas };

size_t assay_schema_count(void) { return N_SCHEMAS; }
const assay_schema_t* assay_schema_at(size_t i) { return &schemas[i]; }

int assay_schema_newest(const char* domain) {
  for (size_t i = 0; i < sizeof newest_opsets / sizeof *newest_opsets; i++)
    if (strcmp(newest_opsets[i].domain, domain) == 0) return (int)newest_opsets[i].version;
  return assay_schema_text_newest(domain);
}

// The first row that is not before (domain, name): rows are sorted by domain, name, since.
static size_t lower_bound(const char* domain, const char* name) {
  size_t low = 0, high = N_SCHEMAS;
  while (low < high) {
    size_t mid = low + (high - low) / 2;
    int order = strcmp(schemas[mid].domain, domain);
    if (!order) order = strcmp(schemas[mid].name, name);
    if (order < 0)
      low = mid + 1;
    else
      high = mid;
  }
  return low;
}

const assay_schema_t* assay_schema_find(const char* domain, const char* name, int64_t version,
                                        bool* out_known) {
  const assay_schema_t* found = NULL;
  bool known = false;
  for (size_t i = lower_bound(domain, name); i < N_SCHEMAS; i++) {
    const assay_schema_t* s = &schemas[i];
    if (strcmp(s->domain, domain) != 0 || strcmp(s->name, name) != 0) break;
    known = true;
    if (s->since <= version) found = s;
  }
  if (!found) {  // also where a text holds before the first generated version (LayerNormalization)
    found = assay_schema_text_find(domain, name, version);
    known = known || found;
  }
  if (!found) found = assay_custom_schema(domain, name, version, &known);
  if (out_known) *out_known = known;
  return found;
}

static const assay_param_t* param(const assay_param_t* params, int n, size_t i) {
  if (i < (size_t)n) return &params[i];
  return n && params[n - 1].is_variadic ? &params[n - 1] : NULL;
}

const assay_param_t* assay_schema_input(const assay_schema_t* s, size_t i) {
  return param(s->inputs, s->n_inputs, i);
}

const assay_param_t* assay_schema_output(const assay_schema_t* s, size_t i) {
  return param(s->outputs, s->n_outputs, i);
}

const assay_attr_spec_t* assay_schema_attr(const assay_schema_t* s, const char* name) {
  for (int i = 0; i < s->n_attrs; i++)
    if (strcmp(s->attrs[i].name, name) == 0) return &s->attrs[i];
  return NULL;
}

static bool has_bit(uint32_t mask, assay_type_t type) { return mask >> type & 1; }

bool assay_typeset_has(const assay_typeset_t* set, const assay_valtype_t* t) {
  switch (t->kind) {
    case ASSAY_KIND_TENSOR:
      return has_bit(set->tensor, t->elem);
    case ASSAY_KIND_SEQUENCE:
      if (!t->of) return set->seq != 0;
      return t->of->kind == ASSAY_KIND_MAP ? set->seq_map : has_bit(set->seq, t->of->elem);
    case ASSAY_KIND_OPTIONAL:
      if (!t->of) return set->optional || set->optional_seq;
      if (t->of->kind == ASSAY_KIND_SEQUENCE)
        return !t->of->of || has_bit(set->optional_seq, t->of->of->elem);
      return has_bit(set->optional, t->of->elem);
    case ASSAY_KIND_MAP:
      return set->map;
  }
  return false;
}

const char* assay_typeset_text(const assay_typeset_t* set, char* buffer, size_t capacity) {
  const struct {
    uint32_t mask;
    const char* form;
  } parts[] = {{set->tensor, "%s%s"},
               {set->seq, "%sseq(%s)"},
               {set->optional, "%soptional(%s)"},
               {set->optional_seq, "%soptional(seq(%s))"}};
  size_t used = 0;
  buffer[0] = 0;
  for (size_t k = 0; k < 4; k++) {
    for (int i = 0; i < ASSAY_TYPE_COUNT && used < capacity; i++) {
      if (!has_bit(parts[k].mask, (assay_type_t)i)) continue;
      char item[64];
      snprintf(item, sizeof item,
               k == 0   ? "%s"
               : k == 1 ? "seq(%s)"
               : k == 2 ? "optional(%s)"
                        : "optional(seq(%s))",
               assay_type_name((assay_type_t)i));
      int n = snprintf(buffer + used, capacity - used, "%s%s", used ? ", " : "", item);
      if (n > 0) used += (size_t)n;
    }
  }
  if ((set->map || set->seq_map) && used < capacity)
    snprintf(buffer + used, capacity - used, "%s%s", used ? ", " : "",
             set->map ? "map" : "seq(map)");
  return buffer;
}
