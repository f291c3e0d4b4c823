// What a check found, noted in the model's own nodes: viewers of ONNX files show it beside each.
#include "report/annotate.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/format.h"

static const char PREFIX[] = "assay.";

// ---- which layer a node of the file belongs to --------------------------------------------------

// Layers by their nodes: names alone may occur in several bodies.
typedef struct index {
  const assay_check_t* check;
  assay_arena_t* arena;  // of the keys
  assay_map_t layers;    // "label\noutput" -> place in the account
  assay_map_t fixed;     // the same of nodes that the fix keeps in higher precision
} index_t;

static void index_deinit(index_t* x) {
  assay_map_deinit(&x->layers);
  assay_map_deinit(&x->fixed);
  assay_arena_destroy(x->arena);
}

static assay_status_t key_of(index_t* x, const assay_node_t* n, const char** out) {
  const char* output = n->n_outputs && n->outputs[0] ? n->outputs[0]->name : "";
  return assay_arena_printf(x->arena, out, "%s\n%s", n->label, output);
}

static bool is_worse(const assay_layer_account_t* a, const assay_layer_account_t* b) {
  return a->verdict > b->verdict || (a->verdict == b->verdict && a->own.max_abs > b->own.max_abs);
}

static assay_status_t add_layer(index_t* x, size_t i) {
  const assay_account_t* account = x->check->account;
  const assay_layer_account_t* a = assay_account_layer(account, i);
  const assay_node_t* const* nodes = a->layer ? a->layer->nodes : &a->node;
  for (size_t k = 0; k < (a->layer ? a->layer->n_nodes : 1); k++) {
    const assay_origins_t o = assay_plan_origins(x->check->plan, &nodes[k]);
    for (size_t at = 0; at < o.n; at++) {
      const char* key;
      uint64_t old;
      ASSAY_TRY(key_of(x, o.nodes[at], &key));
      if (assay_map_get(&x->layers, key, &old) && !is_worse(a, assay_account_layer(account, old)))
        continue;
      ASSAY_TRY(assay_map_put(&x->layers, key, i, NULL));
    }
  }
  return NULL;
}

static assay_status_t index_create(const assay_check_t* c, index_t* x) {
  *x = (index_t){.check = c};
  ASSAY_TRY(assay_arena_create(&x->arena));
  for (size_t i = 0; i < assay_account_layer_count(c->account); i++) ASSAY_TRY(add_layer(x, i));
  for (size_t i = 0; c->has_fix && i < c->fix.n_nodes; i++) {
    const char* key;
    ASSAY_TRY(key_of(x, c->fix.nodes[i], &key));
    ASSAY_TRY(assay_map_put(&x->fixed, key, 1, NULL));
  }
  return NULL;
}

// Of a node that calls a function of the model's: the worst layer of the function's body, whose
// names begin with the call's.
static const assay_layer_account_t* worst_within(const index_t* x, const assay_node_t* call) {
  const assay_layer_account_t* worst = NULL;
  const size_t n = strlen(call->label);
  for (size_t i = 0; i < assay_account_layer_count(x->check->account); i++) {
    const assay_layer_account_t* a = assay_account_layer(x->check->account, i);
    if (strncmp(a->node->label, call->label, n) != 0 || a->node->label[n] != '/') continue;
    if (!worst || is_worse(a, worst)) worst = a;
  }
  return worst;
}

static assay_status_t find(index_t* x, const assay_node_t* node, const assay_layer_account_t** out,
                           bool* fixed) {
  const char* key;
  uint64_t at;
  ASSAY_TRY(key_of(x, node, &key));
  *fixed = assay_map_get(&x->fixed, key, NULL);
  if (assay_map_get(&x->layers, key, &at))
    *out = assay_account_layer(x->check->account, at);
  else
    *out = node->function ? worst_within(x, node) : NULL;
  return NULL;
}

// ---- what is said -------------------------------------------------------------------------------

enum { MAX_PROPS = 12, DOC = 512 };
static const char DOC_START[] = "assay: ";
static const char MARK[] = "!! ";

// Properties in the making; text lives in the model's arena.
typedef struct props {
  assay_arena_t* arena;
  assay_prop_t at[MAX_PROPS];
  size_t n;
} props_t;

static assay_status_t report(props_t* p, const char* key, const char* text) {
  const char* copy;
  ASSAY_TRY(assay_arena_strdup(p->arena, text, &copy));
  p->at[p->n++] = (assay_prop_t){key, copy};
  return NULL;
}

static assay_status_t print_error(props_t* p, const char* key, const assay_error_sum_t* e) {
  char text[128];
  if (!e->n) return NULL;
  if (e->mismatched)
    snprintf(text, sizeof text, "not finite in %lld of %lld elements", (long long)e->mismatched,
             (long long)e->n);
  else
    snprintf(text, sizeof text, "RMS %.3g, max %.3g", assay_error_sum_rms(e), e->max_abs);
  return report(p, key, text);
}

// The own error against what rounding can do.
static assay_status_t print_bound(props_t* p, const assay_layer_account_t* a) {
  const assay_judgement_t* j = &a->judged;
  char text[160];
  if (!j->elements || !a->bounded) return NULL;
  if (j->beyond)
    snprintf(text, sizeof text, "%lld of %lld elements beyond it, up to %.3g times",
             (long long)j->beyond, (long long)j->elements, j->worst);
  else
    snprintf(text, sizeof text, "%.5g %% exact, %.3g %% within; error %.2g of it",
             100.0 * (double)j->exact / (double)j->elements,
             100.0 * (double)j->explained / (double)j->elements, assay_judgement_ratio(j));
  return report(p, "assay.bound", text);
}

// The layer's part of the error of the output that it harms most, where the error was split so far.
static assay_status_t print_share(props_t* p, const assay_check_t* c,
                                  const assay_layer_account_t* a) {
  const assay_layers_t* l = assay_plan_layers(c->plan);
  const ptrdiff_t at = a->layer ? a->layer - l->layers : -1;
  char text[48];
  if (at < 0 || (size_t)at >= l->n_layers) return NULL;
  const double share = assay_shares_of_layer(&c->shares, (size_t)at);
  if (share <= 0) return NULL;
  snprintf(text, sizeof text, "%.3g %%", 100 * share);
  return report(p, "assay.share", text);
}

static assay_status_t print_layer(props_t* p, const assay_check_t* c,
                                  const assay_layer_account_t* a, bool fixed) {
  char text[48];
  ASSAY_TRY(report(p, "assay.verdict", assay_verdict_name(a->verdict)));
  ASSAY_TRY(print_error(p, "assay.own_error", &a->own));
  ASSAY_TRY(print_error(p, "assay.inherited_error", &a->inherited));
  ASSAY_TRY(print_bound(p, a));
  if (a->storage) ASSAY_TRY(report(p, "assay.format", assay_format_name(a->storage)));
  ASSAY_TRY(print_share(p, c, a));
  if (a->truth_max > 0) {
    snprintf(text, sizeof text, "%.4g", a->truth_max);
    ASSAY_TRY(report(p, "assay.largest", text));
  }
  return fixed ? report(p, "assay.fix", assay_format_name(c->fix.format)) : NULL;
}

// What was there stays, but for what an earlier check said.
static assay_status_t attach(assay_arena_t* arena, const props_t* p, assay_prop_t** props,
                             size_t* n) {
  assay_prop_t* all = NULL;
  size_t kept = 0;
  if (!p->n && !*n) return NULL;
  ASSAY_TRY(assay_arena_new(arena, *n + p->n, sizeof *all, &all));
  for (size_t i = 0; i < *n; i++)
    if (strncmp((*props)[i].key, PREFIX, strlen(PREFIX)) != 0) all[kept++] = (*props)[i];
  memcpy(all + kept, p->at, p->n * sizeof *all);
  *props = all;
  *n = kept + p->n;
  return NULL;
}

// ---- doc strings and names ----------------------------------------------------------------------

static bool is_note(const char* line) { return strncmp(line, DOC_START, strlen(DOC_START)) == 0; }

// The properties in one line: "assay: overflow; own error RMS 0.1, max 2; ...".
static void put_line(const props_t* p, char line[DOC]) {
  int n = 0;
  line[0] = '\0';
  for (size_t i = 0; i < p->n && n < DOC - 1; i++) {
    char key[32];
    snprintf(key, sizeof key, "%s", p->at[i].key + strlen(PREFIX));
    for (char* c = key; *c; c++)
      if (*c == '_') *c = ' ';
    n += snprintf(line + n, (size_t)(DOC - n), "%s%s%s%s", i ? "; " : DOC_START, i ? key : "",
                  i ? " " : "", p->at[i].value);
  }
}

static bool is_blamed(const assay_check_t* c, const assay_layer_account_t* a) {
  if (a->verdict == ASSAY_VERDICT_DEFECT) return true;
  for (size_t i = 0; i < c->culprits.n; i++)
    if (c->culprits.at[i].account == a) return true;
  return false;
}

// An earlier mark goes; a node without a name gets none.
static assay_status_t mark_name(assay_arena_t* arena, bool blamed, assay_node_t* node) {
  const bool marked = strncmp(node->name, MARK, strlen(MARK)) == 0;
  if (!*node->name || marked == blamed) return NULL;
  if (marked) return assay_arena_strdup(arena, node->name + strlen(MARK), &node->name);
  return assay_arena_printf(arena, &node->name, "%s%s", MARK, node->name);
}

// ---- nodes and the model ------------------------------------------------------------------------

static assay_status_t annotate_node(index_t* x, const assay_report_notes_t* notes, assay_model_t* m,
                                    assay_node_t* node) {
  const assay_layer_account_t* a = NULL;
  props_t p = {.arena = m->arena};
  bool fixed = false;
  char line[DOC];
  ASSAY_TRY(find(x, node, &a, &fixed));
  if (a) ASSAY_TRY(print_layer(&p, x->check, a, fixed));
  ASSAY_TRY(attach(m->arena, &p, &node->props, &node->n_props));
  put_line(&p, line);
  ASSAY_TRY(assay_annotate_doc(m->arena, node->doc, line, is_note, &node->doc));
  return notes->mark_names ? mark_name(m->arena, a && is_blamed(x->check, a), node) : NULL;
}

static assay_status_t annotate_model(const assay_check_t* c, const assay_report_names_t* names,
                                     const assay_report_notes_t* notes, assay_model_t* m) {
  props_t p = {.arena = m->arena};
  char hash[17];
  snprintf(hash, sizeof hash, "%016llx", (unsigned long long)notes->inputs);
  ASSAY_TRY(report(&p, "assay.version", ASSAY_VERSION));
  if (notes->command) ASSAY_TRY(report(&p, "assay.command", notes->command));
  ASSAY_TRY(report(&p, "assay.inputs", hash));
  if (notes->page) ASSAY_TRY(report(&p, "assay.report", notes->page));
  ASSAY_TRY(report(&p, "assay.verdict", c->faithful ? "faithful" : "unfaithful"));
  ASSAY_TRY(report(&p, "assay.blame", assay_blame_name(c->blame)));
  ASSAY_TRY(report(&p, "assay.format", names->precision));
  ASSAY_TRY(report(&p, "assay.target", names->target));
  return attach(m->arena, &p, &m->props, &m->n_props);
}

assay_status_t assay_report_annotate(const assay_check_t* c, const assay_report_names_t* names,
                                     const assay_report_notes_t* notes, assay_model_t* m) {
  enum { NODES_HAVE_PROPS = 10 };
  index_t x;
  assay_status_t st = index_create(c, &x);
  for (size_t g = 0; g < m->n_graphs; g++)
    for (size_t i = 0; !st && i < m->graphs[g]->n_nodes; i++)
      st = annotate_node(&x, notes, m, m->graphs[g]->nodes[i]);
  if (!st) st = assay_annotate_values(c, notes->pictures, m);
  if (!st) st = annotate_model(c, names, notes, m);
  if (m->ir_version < NODES_HAVE_PROPS) m->ir_version = NODES_HAVE_PROPS;
  index_deinit(&x);
  return st;
}
