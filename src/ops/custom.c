// Operators that a program or a library has registered: include/assay/ops.h.
#include "ops/custom.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "ops/schema_text.h"

// Operators are put in front and never taken out: whoever looks needs no lock.
static _Atomic(assay_custom_op_t*) registered;
static pthread_mutex_t registering = PTHREAD_MUTEX_INITIALIZER;

// Operators that a function is registering; they become known together, or not at all.
struct assay_ops_list {
  const char* origin;
  assay_custom_op_t* first;
};

// ---- looking up ---------------------------------------------------------------------------------

static bool is_named(const assay_custom_op_t* op, const char* domain, const char* name) {
  return strcmp(op->row.name, name) == 0 && strcmp(op->row.domain, domain) == 0;
}

static const assay_custom_op_t* find(const char* domain, const char* name, int64_t version,
                                     bool* out_known) {
  const assay_custom_op_t* found = NULL;
  for (const assay_custom_op_t* op = atomic_load(&registered); op; op = op->next) {
    if (!is_named(op, domain, name)) continue;
    if (out_known) *out_known = true;
    if (op->row.since <= version && (!found || op->row.since > found->row.since)) found = op;
  }
  return found;
}

const assay_op_t* assay_custom_find(const char* domain, const char* name, int64_t version) {
  const assay_custom_op_t* op = find(domain, name, version, NULL);
  return op ? &op->row : NULL;
}

const assay_schema_t* assay_custom_schema(const char* domain, const char* name, int64_t version,
                                          bool* out_known) {
  const assay_custom_op_t* op = find(domain, name, version, out_known);
  return op ? op->schema : NULL;
}

bool assay_custom_has_domain(const char* domain) {
  for (const assay_custom_op_t* op = atomic_load(&registered); op; op = op->next)
    if (strcmp(op->row.domain, domain) == 0) return true;
  return false;
}

const assay_custom_op_t* assay_custom_of(const assay_op_t* row) {
  for (const assay_custom_op_t* op = atomic_load(&registered); row && op; op = op->next)
    if (row == &op->row) return op;
  return NULL;
}

// ---- what a spec says ---------------------------------------------------------------------------

static assay_status_t wrong(const assay_op_spec_t* s, const char* what) {
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "operator '%s' of domain '%s': %s",
                     s->name ? s->name : "", s->domain ? s->domain : "", what);
}

// The spec in this version's size: what an older library does not know is zero.
static assay_status_t read_spec(const assay_op_spec_t* from, assay_op_spec_t* out) {
  const size_t min = offsetof(assay_op_spec_t, bound);
  if (!from || from->struct_size < min)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "an operator's spec has struct_size %zu; begin it with ASSAY_OP_SPEC_INIT",
                       from ? from->struct_size : 0);
  if (from->version != ASSAY_OPS_VERSION)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "an operator's spec is of version %u of assay/ops.h, and this is version "
                       "%d; compile it again",
                       from->version, ASSAY_OPS_VERSION);
  *out = (assay_op_spec_t){0};
  memcpy(out, from, from->struct_size < sizeof *out ? from->struct_size : sizeof *out);
  return NULL;
}

static bool is_word(const char* text, const char* more) {
  for (const char* p = text; *p; p++)
    if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
          *p == '_' || strchr(more, *p)))
      return false;
  return *text;
}

static assay_status_t check_spec(const assay_op_spec_t* s) {
  const uint32_t flags = ASSAY_OP_SPEC_MOVES | ASSAY_OP_SPEC_RANDOM;
  if (!s->name || !is_word(s->name, ""))
    return wrong(s, "a name of letters, digits and _ is missing");
  if (!s->domain || (*s->domain && !is_word(s->domain, ".-/:")))
    return wrong(s, "a domain is missing, such as com.example");
  if (s->since_version < 1) return wrong(s, "since_version is not 1 or more");
  if (!s->schema) return wrong(s, "a schema is missing");
  if (!s->evaluate) return wrong(s, "a function `evaluate` is missing");
  if (s->takes && !s->kernel) return wrong(s, "`takes` has no `kernel`");
  if (s->flags & ~flags) return wrong(s, "it has flags that are not known");
  return NULL;
}

// Whether a default is the number that it should be.
static bool is_number(const assay_attr_spec_t* a) {
  char* end = NULL;
  errno = 0;
  if (a->type == ASSAY_ATTR_INT && strtoll(a->s, &end, 10) == 0 && end == a->s) return false;
  if (a->type == ASSAY_ATTR_FLOAT && strtof(a->s, &end) == 0 && end == a->s) return false;
  return !end || (!*end && !errno);
}

// What is wrong with the attributes; NULL: nothing.
static const char* attribute_fault(const assay_schema_t* s) {
  for (int i = 0; i < s->n_attrs; i++) {
    const assay_attr_spec_t* a = &s->attrs[i];
    if (a->type == ASSAY_ATTR_GRAPH) return "an attribute is a graph, which operators do not get";
    if (a->required && a->has_default) return "an attribute is required, and has a default";
    if (a->has_default && a->type != ASSAY_ATTR_INT && a->type != ASSAY_ATTR_FLOAT &&
        a->type != ASSAY_ATTR_STRING)
      return "only attributes of kinds i, f and s have defaults";
    if (a->has_default && !is_number(a))
      return "an attribute's default is not a number of its kind";
    for (int k = 0; k < i; k++)
      if (strcmp(s->attrs[k].name, a->name) == 0) return "two attributes have one name";
  }
  return NULL;
}

static const char* parameter_fault(const assay_param_t* params, int n) {
  for (int i = 0; i < n; i++) {
    const assay_typeset_t* t = &params[i].types;
    if (!t->tensor || t->seq || t->optional || t->optional_seq || t->map || t->seq_map)
      return "an input or output is not a tensor";
    if (params[i].is_variadic && i + 1 < n)
      return "only the last input, and the last output, may be any number of them";
    for (int k = 0; k < i; k++)
      if (strcmp(params[k].name, params[i].name) == 0)
        return "two inputs, or two outputs, have one name";
  }
  return NULL;
}

// ---- making -------------------------------------------------------------------------------------

static void op_free(assay_custom_op_t* op) {
  if (!op) return;
  if (op->schema) assay_schema_text_free(op->schema);
  assay_free(op->texts);
  assay_free(op->origin);
  assay_free(op);
}

// Copies a text to *at, which moves on after it.
static const char* keep(char** at, const char* text) {
  const size_t n = strlen(text) + 1;
  char* copy = memcpy(*at, text, n);
  *at += n;
  return copy;
}

static assay_status_t copy_texts(assay_custom_op_t* op, const char* origin) {
  assay_op_spec_t* s = &op->spec;
  if (!s->revision) s->revision = "";
  const size_t n =
      strlen(s->domain) + strlen(s->name) + strlen(s->schema) + strlen(s->revision) + 4;
  ASSAY_TRY(assay_new_array(n, 1, &op->texts));
  ASSAY_TRY(assay_new_array(strlen(origin) + 1, 1, &op->origin));
  memcpy(op->origin, origin, strlen(origin) + 1);
  char* at = op->texts;
  s->domain = strcmp(s->domain, "ai.onnx") == 0 ? keep(&at, "") : keep(&at, s->domain);
  s->name = keep(&at, s->name);
  s->schema = keep(&at, s->schema);
  s->revision = keep(&at, s->revision);
  return NULL;
}

static assay_status_t parse_schema(assay_custom_op_t* op) {
  const assay_op_spec_t* s = &op->spec;
  const char* fault = NULL;
  op->schema = assay_schema_text_parse(s->domain, s->name, s->since_version, s->schema, &fault);
  if (!op->schema && !fault) return assay_status_no_memory();
  if (!fault) fault = attribute_fault(op->schema);
  if (!fault) fault = parameter_fault(op->schema->inputs, op->schema->n_inputs);
  if (!fault) fault = parameter_fault(op->schema->outputs, op->schema->n_outputs);
  if (!fault && !op->schema->n_outputs) fault = "it has no output";
  if (!fault) return NULL;
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "operator '%s' of domain '%s': schema '%s': %s",
                     s->name, s->domain, s->schema, fault);
}

// Whether the table has an operator of the name, in any version.
static bool is_built_in(const char* domain, const char* name) {
  for (size_t f = 0; f < assay_op_family_count(); f++)
    for (const assay_op_t* op = assay_op_family(f); op->name; op++)
      if (strcmp(op->name, name) == 0 && strcmp(op->domain, domain) == 0) return true;
  for (size_t i = 0; i < assay_schema_count(); i++)
    if (strcmp(assay_schema_at(i)->name, name) == 0 &&
        strcmp(assay_schema_at(i)->domain, domain) == 0)
      return true;
  return false;
}

static const assay_custom_op_t* same_version(const assay_custom_op_t* list,
                                             const assay_custom_op_t* op) {
  for (; list; list = list->next)
    if (is_named(list, op->row.domain, op->row.name) && list->row.since == op->row.since)
      return list;
  return NULL;
}

static assay_status_t check_new(const assay_ops_list_t* list, const assay_custom_op_t* op) {
  const assay_op_spec_t* s = &op->spec;
  if (is_built_in(s->domain, s->name))
    return ASSAY_ERROR(
        ASSAY_INVALID_ARGUMENT,
        "operator '%s' of domain '%s' is built in; give yours another name or domain", s->name,
        *s->domain ? s->domain : "ai.onnx");
  const assay_custom_op_t* other = same_version(atomic_load(&registered), op);
  if (!other) other = same_version(list->first, op);
  if (!other) return NULL;
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "version %d of operator '%s' of domain '%s' is registered already, by %s",
                     s->since_version, s->name, s->domain, other->origin);
}

assay_status_t assay_custom_add(assay_ops_list_t* list, const assay_op_spec_t* spec) {
  assay_custom_op_t* op = NULL;
  assay_op_spec_t s;
  ASSAY_TRY(read_spec(spec, &s));
  ASSAY_TRY(check_spec(&s));
  ASSAY_TRY(ASSAY_NEW(&op));
  op->spec = s;
  assay_status_t st = copy_texts(op, list->origin);
  if (!st) st = parse_schema(op);
  if (!st) assay_custom_make_row(op);
  if (!st) st = check_new(list, op);
  if (st) return op_free(op), st;
  op->next = list->first;
  list->first = op;
  return NULL;
}

assay_status_t assay_ops_register(assay_ops_fn_t* fn, const char* origin) {
  assay_ops_list_t list = {.origin = origin ? origin : "the program"};
  if (!fn) return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "there is no function to register operators");
  pthread_mutex_lock(&registering);
  assay_status_t st = fn(&assay_custom_api, &list);
  if (!st && !list.first)
    st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "it registers no operator: call api->add");
  while (list.first) {
    assay_custom_op_t* op = list.first;
    list.first = op->next;
    if (st) {
      op_free(op);
      continue;
    }
    op->next = atomic_load(&registered);
    atomic_store(&registered, op);
  }
  pthread_mutex_unlock(&registering);
  return assay_status_note(st, "operators of %s", origin ? origin : "the program");
}
