// Operators and operator sets of a model against the standard.
// Source: ONNX IR.md ('Operator Sets', 'Nodes', 'Functions') and onnx::OpSchema::Verify.
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/shown.h"
#include "onnx/onnx-ml.pb-c.h"
#include "onnx/onnx.h"
#include "ops/custom.h"
#include "ops/data/control.h"

// What an operator's name stands for under one set of imports; kept, since models use few operators
// many times.
typedef struct found {
  const char* key;  // "domain\1name"
  int64_t version;  // of the domain; 0: not imported
  const assay_schema_t* schema;
  const assay_op_t* op;
  bool known;  // in some version
} found_t;

typedef struct checker {
  assay_model_t* model;
  const assay_function_t* function;  // whose body is being checked; NULL: the main graph
  assay_arena_t* arena;
  assay_map_t found;  // key -> found_t*, for the imports in force
  bool lenient;       // operators that nobody knows stay without schema
  // Of nodes one after the other, as assay_onnx_check_versions has them; NULL: by the imports.
  const assay_onnx_version_t* versions;
  size_t n_versions, at;
} checker_t;

static const char* domain_name(const char* domain) { return *domain ? domain : "ai.onnx"; }

static int64_t imported(const checker_t* c, const char* domain) {
  const assay_function_t* f = c->function;
  for (size_t i = 0; f && i < f->n_opsets; i++)
    if (strcmp(f->opsets[i].domain, domain) == 0) return f->opsets[i].version;
  return assay_model_opset(c->model, domain);
}

static assay_status_t look_up(checker_t* c, const assay_node_t* n, const found_t** out) {
  assay_str_t key = {0};
  assay_str_printf_raw(&key, "%s\1%s", n->domain, n->op_type);
  assay_status_t st = assay_str_status(&key);
  uint64_t at;
  found_t* f = NULL;
  if (!st && assay_map_get(&c->found, assay_str_get(&key), &at)) {
    f = (found_t*)(uintptr_t)at;
  } else if (!st) {
    st = assay_arena_new(c->arena, 1, sizeof *f, &f);
    if (!st) st = assay_arena_strdup(c->arena, assay_str_get(&key), &f->key);
    if (!st) st = assay_map_put(&c->found, f->key, (uint64_t)(uintptr_t)f, NULL);
    if (!st) {
      f->version = imported(c, n->domain);
      f->schema = assay_schema_find(n->domain, n->op_type, f->version, &f->known);
      f->op = assay_op_find(n->domain, n->op_type, f->version);
    }
  }
  assay_str_deinit(&key);
  if (!st) *out = f;
  return st;
}

static assay_status_t other_nodes(void) {
  return ASSAY_ERROR(ASSAY_CORRUPT, "the operator versions are those of other nodes");
}

// What a node stands for by its own version.
static assay_status_t take_version(checker_t* c, const assay_node_t* n, found_t* out) {
  const assay_onnx_version_t* v = c->at < c->n_versions ? &c->versions[c->at++] : NULL;
  if (!v || strcmp(v->op_type, n->op_type) != 0) return other_nodes();
  *out = (found_t){.version = v->version};
  out->schema = assay_schema_find(n->domain, n->op_type, v->version, &out->known);
  out->op = assay_op_find(n->domain, n->op_type, v->version);
  return NULL;
}

// ---- what an operator is ----------------------------------------------------------------------

#define OPS_HINT "give the library that has it with --ops LIB.so (docs/custom-operators.md)"

// The first version of an operator; 0 if there is none.
static int first_version(const char* domain, const char* name) {
  for (size_t i = 0; i < assay_schema_count(); i++) {
    const assay_schema_t* s = assay_schema_at(i);
    if (strcmp(s->domain, domain) == 0 && strcmp(s->name, name) == 0) return s->since;
  }
  return 0;
}

// Another domain that has an operator of this name; NULL if none.
static const char* other_domain(const assay_node_t* n) {
  for (size_t i = 0; i < assay_schema_count(); i++) {
    const assay_schema_t* s = assay_schema_at(i);
    if (strcmp(s->name, n->op_type) == 0 && strcmp(s->domain, n->domain) != 0) return s->domain;
  }
  return NULL;
}

static assay_status_t check_version(const assay_node_t* n, const found_t* f) {
  const char* domain = domain_name(n->domain);
  int newest = assay_schema_newest(n->domain);
  // Of domains of the user's own all versions are known.
  if (!newest && assay_custom_has_domain(n->domain)) newest = INT_MAX;
  if (!newest)
    return ASSAY_NODE_ERROR(n, ASSAY_UNSUPPORTED,
                            "unknown operator: domain '%s' is neither a standard one nor has the "
                            "model a function of this name; " OPS_HINT,
                            domain);
  if (!f->version)
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT,
                            "domain '%s' is not imported; add it to the model's opset_import",
                            domain);
  if (f->version < 1)
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT,
                            "domain '%s' is imported as version %lld; versions "
                            "start at 1",
                            domain, (long long)f->version);
  if (f->version > newest)
    return ASSAY_NODE_ERROR(n, ASSAY_UNSUPPORTED,
                            "the model imports version %lld of '%s'; the newest known is %d",
                            (long long)f->version, domain, newest);
  return NULL;
}

// Whether a version is marked as deprecated because a later one of the same name replaces it
// (GroupNormalization-18, by 21): under the operator sets from the one to the other it is what the
// name stands for, and exporters wrote it. Names that were withdrawn have no later version.
static bool is_replaced(const assay_schema_t* deprecated) {
  for (size_t i = 0; i < assay_schema_count(); i++) {
    const assay_schema_t* s = assay_schema_at(i);
    if (s->since > deprecated->since && !s->deprecated && strcmp(s->name, deprecated->name) == 0 &&
        strcmp(s->domain, deprecated->domain) == 0)
      return true;
  }
  return false;
}

static assay_status_t check_operator(const assay_node_t* n, const found_t* f) {
  const char* domain = domain_name(n->domain);
  ASSAY_TRY(check_version(n, f));
  if (f->schema && f->schema->deprecated && !is_replaced(f->schema))
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT,
                            "the operator is deprecated since version %d of '%s', and the model "
                            "imports version %lld",
                            f->schema->since, domain, (long long)f->version);
  if (f->schema) return NULL;
  int first = first_version(n->domain, n->op_type);
  if (first)
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT,
                            "the operator came with version %d of '%s', and the model imports "
                            "version %lld",
                            first, domain, (long long)f->version);
  if (f->known)
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT,
                            "the operator is registered for later versions of '%s' only, and the "
                            "model imports version %lld",
                            domain, (long long)f->version);
  const char* other = other_domain(n);
  if (other)
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT,
                            "unknown operator: '%s' has none of this name; domain '%s' has", domain,
                            domain_name(other));
  return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT,
                          "unknown operator: no version of '%s' has it; " OPS_HINT, domain);
}

// ---- inputs, outputs, attributes --------------------------------------------------------------

// Whether a node's count of inputs or outputs, and those that must be there, are as the schema
// says.
static assay_status_t check_values(const assay_node_t* n, const assay_schema_t* s, const char* what,
                                   assay_value_t* const* values, size_t count, int min, int max,
                                   const assay_param_t* (*param)(const assay_schema_t*, size_t)) {
  // What is left out at the end counts where so many must be there (Loop's M and cond may both be
  // left out, and it takes 2 or more), and does not where no more may be.
  size_t there = count;
  while (there && !values[there - 1]) there--;
  if (count < (size_t)min || (max != INT_MAX && there > (size_t)max)) {
    char range[64] = "";
    if (min == max)
      snprintf(range, sizeof range, "%d", min);
    else if (max == INT_MAX)
      snprintf(range, sizeof range, "%d or more", min);
    else
      snprintf(range, sizeof range, "%d to %d", min, max);
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "has %zu %ss; version %d of the operator takes %s",
                            count, what, s->since, range);
  }
  for (size_t i = 0; i < count; i++) {
    const assay_param_t* p = param(s, i);
    if (!values[i] && p && !p->is_optional && !p->is_variadic)
      return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "%s %zu (%s) is left out, and is not optional",
                              what, i, p->name);
  }
  return NULL;
}

static const char* attr_type_name(assay_attr_type_t type) {
  static const char* const names[] = {"undefined",      "float",   "int",    "string",
                                      "tensor",         "graph",   "floats", "ints",
                                      "strings",        "tensors", "graphs", "sparse tensor",
                                      "sparse tensors", "type",    "types"};
  return names[type];
}

static bool function_has_attr(const assay_function_t* f, const char* name) {
  for (size_t i = 0; i < f->n_attr_names; i++)
    if (strcmp(f->attr_names[i], name) == 0) return true;
  for (size_t i = 0; i < f->n_attr_defaults; i++)
    if (strcmp(f->attr_defaults[i].name, name) == 0) return true;
  return false;
}

static assay_status_t check_reference(const checker_t* c, const assay_node_t* n,
                                      const assay_attr_t* a) {
  if (!*a->ref) return NULL;
  if (!c->function)
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT,
                            "attribute '%s' refers to '%s' of a function, and is in none", a->name,
                            a->ref);
  if (!function_has_attr(c->function, a->ref))
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT,
                            "attribute '%s' refers to '%s', which function '%s' does not have",
                            a->name, a->ref, c->function->name);
  return NULL;
}

static assay_status_t check_attrs(const assay_node_t* n, const assay_schema_t* s) {
  for (size_t i = 0; i < n->n_attrs; i++) {
    const assay_attr_t* a = &n->attrs[i];
    const assay_attr_spec_t* spec = assay_schema_attr(s, a->name);
    // Names with two underscores are a tool's own.
    if (!spec && strncmp(a->name, "__", 2) == 0) continue;
    if (!spec)
      return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT,
                              "has an attribute '%s'; version %d of the operator has none of this "
                              "name",
                              a->name, s->since);
    if (a->type != spec->type && !(*a->ref && a->type == ASSAY_ATTR_UNDEFINED))
      return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "attribute '%s' is of type %s; expected %s",
                              a->name, attr_type_name(a->type), attr_type_name(spec->type));
  }
  for (int i = 0; i < s->n_attrs; i++)
    if (s->attrs[i].required && !assay_node_attr(n, s->attrs[i].name))
      return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "attribute '%s' is missing; it has no default",
                              s->attrs[i].name);
  return NULL;
}

static assay_status_t check_call(const assay_node_t* n) {
  const assay_function_t* f = n->function;
  if (n->n_inputs > f->n_inputs || n->n_outputs > f->n_outputs)
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT,
                            "has %zu inputs and %zu outputs; the model's function of this name has "
                            "%zu and %zu",
                            n->n_inputs, n->n_outputs, f->n_inputs, f->n_outputs);
  return NULL;
}

static assay_status_t check_by_schema(assay_node_t* n, const found_t* f) {
  ASSAY_TRY(check_operator(n, f));
  const assay_schema_t* s = f->schema;
  n->schema = s;
  n->op = f->op;
  ASSAY_TRY(check_values(n, s, "input", n->inputs, n->n_inputs, s->min_inputs, s->max_inputs,
                         assay_schema_input));
  ASSAY_TRY(check_values(n, s, "output", n->outputs, n->n_outputs, s->min_outputs, s->max_outputs,
                         assay_schema_output));
  ASSAY_TRY(check_attrs(n, s));
  return assay_control_check(n);
}

static assay_status_t check_graph(checker_t* c, assay_graph_t* g);

static assay_status_t check_node(checker_t* c, assay_node_t* n) {
  for (size_t i = 0; i < n->n_attrs; i++) ASSAY_TRY(check_reference(c, n, &n->attrs[i]));
  n->schema = NULL;
  n->op = NULL;
  if (c->versions) {
    found_t own;
    ASSAY_TRY(take_version(c, n, &own));
    ASSAY_TRY(check_by_schema(n, &own));
    if (!n->op)
      return ASSAY_NODE_ERROR(n, ASSAY_UNSUPPORTED, "version %lld of the operator is not built in",
                              (long long)own.version);
  } else if (n->function) {
    ASSAY_TRY(check_call(n));
  } else {
    const found_t* f = NULL;
    ASSAY_TRY(look_up(c, n, &f));
    if (!c->lenient || f->schema || f->known) ASSAY_TRY(check_by_schema(n, f));
  }
  for (size_t i = 0; i < n->n_attrs; i++) {
    const assay_attr_t* a = &n->attrs[i];
    if (*a->ref) continue;
    if (a->type == ASSAY_ATTR_GRAPH) ASSAY_TRY(check_graph(c, a->u.g));
    for (size_t k = 0; a->type == ASSAY_ATTR_GRAPHS && k < a->n; k++)
      ASSAY_TRY(check_graph(c, a->u.graphs[k]));
  }
  return NULL;
}

// Recursion ends where src/ir ends the nesting of graphs.
static assay_status_t check_graph(checker_t* c, assay_graph_t* g) {
  for (size_t i = 0; i < g->n_nodes; i++) ASSAY_TRY(check_node(c, g->nodes[i]));
  return NULL;
}

// ---- the model --------------------------------------------------------------------------------

static assay_status_t check_header(const assay_model_t* m) {
  if (m->ir_version < 1)
    return ASSAY_ERROR(ASSAY_CORRUPT, "the model's ir_version is %lld; versions start at 1",
                       (long long)m->ir_version);
  if (m->ir_version > ONNX__VERSION__IR_VERSION)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "the model's ir_version is %lld; the newest known is %d",
                       (long long)m->ir_version, ONNX__VERSION__IR_VERSION);
  if (!m->n_opsets)
    return ASSAY_ERROR(ASSAY_CORRUPT,
                       "the model imports no operator set; from ir_version 3 on it must");
  int64_t version = assay_model_opset(m, "");
  if (version > assay_schema_newest(""))
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "the model imports version %lld of ai.onnx; the newest known is %d",
                       (long long)version, assay_schema_newest(""));
  for (size_t i = 0; i < m->graph->n_inputs; i++) {
    const assay_value_t* v = m->graph->inputs[i];
    if (!v->declared && !v->constant && !v->extra.len)
      return ASSAY_ERROR(ASSAY_CORRUPT, "graph input '%s' has no type", v->name);
  }
  return NULL;
}

static assay_status_t check_under_imports(checker_t* c, assay_graph_t* g,
                                          const assay_function_t* f) {
  c->function = f;
  assay_status_t st = check_graph(c, g);
  assay_map_deinit(&c->found);
  return f ? assay_status_note(st, "function '%s'", f->name) : st;
}

static assay_status_t check(assay_model_t* model, bool lenient) {
  ASSAY_TRY(check_header(model));
  checker_t c = {.model = model, .lenient = lenient};
  ASSAY_TRY(assay_arena_create(&c.arena));
  assay_status_t st = check_under_imports(&c, model->graph, NULL);
  for (size_t i = 0; !st && i < model->n_functions; i++)
    st = check_under_imports(&c, model->functions[i]->body, model->functions[i]);
  assay_arena_destroy(c.arena);
  return st;
}

assay_status_t assay_onnx_check_versions(assay_model_t* model, const assay_onnx_version_t* versions,
                                         size_t n) {
  static const assay_onnx_version_t none = {"", 0};
  checker_t c = {.model = model, .versions = n ? versions : &none, .n_versions = n};
  ASSAY_TRY(check_header(model));
  if (model->n_functions)
    return ASSAY_ERROR(ASSAY_CORRUPT, "the model has functions, whose calls have no versions");
  ASSAY_TRY(check_graph(&c, model->graph));
  return c.at == n ? NULL : other_nodes();
}

assay_status_t assay_onnx_check(assay_model_t* model) { return check(model, false); }

assay_status_t assay_onnx_check_known(assay_model_t* model) { return check(model, true); }
