// What `debug batch` found, told.
#include <math.h>
#include <string.h>

#include "base/shown.h"
#include "io/json.h"
#include "report/report.h"

// What each relation says; in the order of the table.
static const struct {
  const char *name, *says;
} relations[] = {
    {"again", "the same run once more"},
    {"static", "a plan of a fixed batch gives what the open one gives"},
    {"size", "alone, as in batches of 2, 3 and 4"},
    {"position", "the same at each place in the batch"},
    {"neighbours", "the same among other samples"},
    {"padding", "the same among rows of zeros"},
    {"single", "inputs of another batch may have one row for all"},
};
enum { N_RELATIONS = sizeof relations / sizeof *relations };

static void verdict(const assay_batch_blame_t* b, const assay_report_debug_t* n, assay_str_t* out) {
  static const char* const words[] = {"SOUND", "UNEQUAL", "FAULT", "FAULT"};
  const assay_batch_found_t* g = b->guilty;
  assay_str_printf(out, "%s  %s in %s on %s: ", words[b->verdict], n->model, n->precision,
                   n->target);
  if (!g)
    assay_str_printf(out, "a sample's result does not depend on its batch; %zu runs, %s\n",
                     b->n_relations, n->target);
  else if (g->model)
    assay_str_printf(out, "the model itself makes samples depend on their batch, in %s\n", g->node);
  else if (!*g->node)
    assay_str_append(out, "a batch that the model allows does not run\n");
  else if (g->bits)
    assay_str_printf(out, "a sample's bits depend on its batch, from layer %s on, by rounding\n",
                     g->node);
  else
    assay_str_printf(out, "the engine makes samples depend on their batch, in layer %s\n", g->node);
}

static void where(const assay_batch_blame_t* b, const assay_batch_found_t* f, assay_str_t* out) {
  const assay_batch_relation_t* r = &b->relations[f->relation];
  assay_str_printf(out, "first in '%s': ", r->name);
  if (r->n == 1)
    assay_str_append(out, "alone");
  else
    assay_str_printf(out, "at place %d of %d", r->place + 1, r->n);
  if (isfinite(f->moved)) assay_str_printf(out, ", moved by %.2g of its largest", f->moved);
}

static void guilty_lines(const assay_batch_blame_t* b, assay_str_t* out) {
  enum { SHOWN = 2 };
  const assay_batch_found_t* g = b->guilty;
  size_t shown = 0, more = 0;
  if (g && *g->node) assay_str_printf(out, "  node    %s (%s)   ", g->node, g->op);
  if (g && !*g->node) assay_str_append(out, "  where   ");
  if (g) where(b, g, out);
  if (g) assay_str_printf(out, "\n  why     %s\n", g->why);
  if (g && *g->reader) assay_str_printf(out, "  read by %s\n", g->reader);
  for (size_t i = 0; i < b->n_found; i++) {
    const assay_batch_found_t* f = &b->found[i];
    if (f == g || (g && f->bits && !g->bits)) continue;
    if (shown++ >= SHOWN)
      more++;
    else
      assay_str_printf(out, "  %-7s %s (%s): %s\n", f->note ? "note" : "also", f->node, f->op,
                       f->why);
  }
  if (more) assay_str_printf(out, "  and %zu more nodes\n", more);
}

// Of all runs of a relation: whether one was, whether it holds, and who broke it first.
typedef struct summary {
  size_t n;
  bool truth, engine, failed;
  const char* node;
} summary_t;

static summary_t sum_up(const assay_batch_blame_t* b, const char* name) {
  summary_t s = {.truth = true, .engine = true, .node = ""};
  for (size_t i = 0; i < b->n_relations; i++) {
    const assay_batch_relation_t* r = &b->relations[i];
    if (strcmp(r->name, name) != 0) continue;
    s.n++;
    s.truth &= r->truth_holds;
    s.engine &= r->engine_holds;
    s.failed |= r->truth_failed;
    if (!*s.node && r->at != SIZE_MAX && !(r->truth_holds && r->engine_holds && !r->truth_failed))
      s.node = b->found[r->at].node;
  }
  return s;
}

assay_status_t assay_report_batch_text(const assay_batch_blame_t* b, const assay_report_debug_t* n,
                                       assay_str_t* out) {
  verdict(b, n, out);
  guilty_lines(b, out);
  for (int i = 0; i < N_RELATIONS; i++) {
    const summary_t s = sum_up(b, relations[i].name);
    if (!s.n) continue;
    assay_str_printf(out, "  %-10s  %-9s %2zu runs  %s%s%s%s\n", relations[i].name,
                     !s.truth || !s.engine ? "broken"
                     : s.failed            ? "fails"
                                           : "holds",
                     s.n, relations[i].says, *s.node ? "; " : "", s.node,
                     !s.truth || s.failed ? " (truth, too)" : "");
  }
  if (b->axis) assay_str_printf(out, "  batch   axis %d of the inputs, from 0 on\n", b->axis);
  if (b->notes.len) assay_str_printf(out, "  note    " ASSAY_LINES, assay_str_get(&b->notes));
  if (b->given < ASSAY_BATCH_MAX)
    assay_str_printf(out, "  samples %zu given, the others drawn\n", b->given);
  return assay_str_status(out);
}

static json_t* found_json(const assay_batch_blame_t* b, const assay_batch_found_t* f) {
  return json_pack("{s:o, s:o, s:o, s:s, s:b, s:o, s:o, s:o, s:s, s:I}", "node",
                   assay_json_text(f->node), "op", assay_json_text(f->op), "value",
                   assay_json_text(f->value), "blame", f->model ? "model" : "engine", "fault",
                   (int)!f->note, "rounding", json_boolean(f->bits), "why", assay_json_text(f->why),
                   "moved", assay_json_number(f->moved), "relation", b->relations[f->relation].name,
                   "runs", (json_int_t)f->n_broken);
}

static json_t* relation_json(const assay_batch_blame_t* b, const assay_batch_relation_t* r) {
  return json_pack("{s:s, s:i, s:i, s:b, s:b, s:b, s:b, s:b, s:o}", "relation", r->name, "batch",
                   r->n, "place", r->place, "fixed", (int)r->fixed, "truth_holds",
                   (int)r->truth_holds, "truth_runs", (int)!r->truth_failed, "engine_holds",
                   (int)r->engine_holds, "engine_runs", (int)r->engine_ran, "node",
                   r->at == SIZE_MAX ? json_null() : assay_json_text(b->found[r->at].node));
}

assay_status_t assay_report_batch_json(const assay_batch_blame_t* b, const assay_report_debug_t* n,
                                       json_t** out) {
  json_t *found = json_array(), *runs = json_array();
  for (size_t i = 0; i < b->n_found; i++)
    found = assay_json_push(found, found_json(b, &b->found[i]));
  for (size_t i = 0; i < b->n_relations; i++)
    runs = assay_json_push(runs, relation_json(b, &b->relations[i]));
  json_t* j = json_pack(
      "{s:s, s:o, s:o, s:o, s:s, s:o, s:o, s:i, s:I, s:o, s:o, s:o, s:o}", "schema",
      "assay.debug.batch/1", "model", assay_json_text(n->model), "precision",
      assay_json_text(n->precision), "target", assay_json_text(n->target), "verdict",
      assay_batch_verdict_name(b->verdict), "seconds", assay_json_number(n->seconds), "batch",
      b->batch ? json_integer(b->batch) : json_null(), "axis", b->axis, "samples_given",
      (json_int_t)b->given, "guilty", b->guilty ? found_json(b, b->guilty) : json_null(), "nodes",
      found, "runs", runs, "notes", assay_json_text(assay_str_get(&b->notes)));
  if (!j) return assay_status_no_memory();
  *out = j;
  return NULL;
}
