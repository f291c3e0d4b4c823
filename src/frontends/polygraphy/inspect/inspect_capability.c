// polygraphy inspect capability: nodes that this build cannot run, and the parts that it can.
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/shown.h"
#include "edit/capability.h"
#include "frontends/polygraphy/model.h"

static const char* folder_of(const pg_job_t* j) {
  const char* path = pg_text(j->args, PG_FLAG_output);
  return path ? path : "polygraphy_capability_dumps";
}

static assay_status_t make_folder(const char* path) {
  if (mkdir(path, 0777) == 0 || errno == EEXIST) return NULL;
  return ASSAY_ERROR(ASSAY_NOT_FOUND, "folder '%s' cannot be made: %s", path, strerror(errno));
}

static assay_status_t report(const pg_job_t* j, const assay_str_t* summary) {
  const char* path = NULL;
  FILE* file;
  ASSAY_TRY(assay_str_status(summary));
  pg_log(PG_INFO, ASSAY_LINES, assay_str_get(summary));
  ASSAY_TRY(assay_arena_printf(j->arena, &path, "%s/results.txt", folder_of(j)));
  pg_log(PG_INFO, "Saving results to %s", path);
  file = fopen(path, "w");
  const bool written = file && fputs(assay_str_get(summary), file) >= 0;
  if ((file && fclose(file)) || !written)
    return ASSAY_ERROR(ASSAY_NOT_FOUND, "'%s' cannot be written: %s", path, strerror(errno));
  return NULL;
}

static int wider(int width, const char* text) {
  const int n = (int)strlen(text);
  return n > width ? n : width;
}

static void put_rule(assay_str_t* out, size_t n) {
  for (size_t i = 0; i < n; i++) assay_str_append(out, "-");
  assay_str_append(out, "\n");
}

// ---- node by node -------------------------------------------------------------------------------

static void put_nodes(assay_str_t* out, const assay_model_t* m, const assay_capability_t* c) {
  int op = 9, node = 5, reason = 0;  // as wide as "Operator ", "Node "
  for (size_t i = 0; i < c->n; i++) {
    if (!c->reasons[i]) continue;
    op = wider(op, m->graph->nodes[i]->op_type);
    node = wider(node, m->graph->nodes[i]->label);
    reason = wider(reason, c->reasons[i]);
  }
  assay_str_append(out, "===== Summary =====\n");
  const size_t start = out->len;
  assay_str_printf(out, "%-12s | %-*s | %-*s | %-*s\n", "Stack trace", op, "Operator", node, "Node",
                   reason, "Reason");
  put_rule(out, out->len - start);
  for (size_t i = 0; i < c->n; i++)
    if (c->reasons[i])
      assay_str_printf(out, "%-12s | %-*s | %-*s | %-*s\n", "", op, m->graph->nodes[i]->op_type,
                       node, m->graph->nodes[i]->label, reason, c->reasons[i]);
}

// ---- by parts -----------------------------------------------------------------------------------

// Neighbours that can be run, or that cannot.
typedef struct part {
  size_t from, to;
  const char* reason;  // NULL: they can
  bool reported;
} part_t;

static assay_status_t join_reasons(assay_arena_t* arena, const assay_capability_t* c, part_t* p) {
  assay_str_t text = {0};
  for (size_t i = p->from; i < p->to; i++)
    assay_str_printf(&text, "%s%s", i > p->from ? " | " : "", c->reasons[i]);
  assay_status_t st = assay_str_status(&text);
  if (!st) st = assay_arena_strdup(arena, assay_str_get(&text), &p->reason);
  assay_str_deinit(&text);
  return st;
}

static assay_status_t find_parts(assay_arena_t* arena, const assay_capability_t* c, part_t** out,
                                 size_t* out_n) {
  part_t* parts = NULL;
  size_t n = 0;
  ASSAY_TRY(assay_arena_new(arena, c->n, sizeof *parts, &parts));
  for (size_t i = 0; i < c->n; i++) {
    if (!n || !c->reasons[i] != !c->reasons[i - 1]) parts[n++] = (part_t){.from = i};
    parts[n - 1].to = i + 1;
  }
  for (size_t i = 0; i < n; i++)
    if (c->reasons[parts[i].from]) ASSAY_TRY(join_reasons(arena, c, &parts[i]));
  *out = parts;
  *out_n = n;
  return NULL;
}

static assay_status_t save_part(pg_job_t* j, const assay_model_t* m, const assay_capability_t* c,
                                const part_t* p) {
  const char* path = NULL;
  assay_model_t* made = NULL;
  ASSAY_TRY(assay_arena_printf(j->arena, &path, "%s/%s_subgraph-nodes-%zu-%zu.onnx", folder_of(j),
                               p->reason ? "unsupported" : "supported", p->from, p->to - 1));
  ASSAY_TRY(assay_capability_cut(c, m, p->from, p->to, &made));
  assay_status_t st = pg_save_model(j, made, path);
  assay_model_release(made);
  return st;
}

// One line for all parts that begin with the same operator and fail for the same reason.
static void put_line(assay_str_t* out, const assay_model_t* m, part_t* parts, size_t n, size_t at,
                     int op, int reason) {
  const char* name = m->graph->nodes[parts[at].from]->op_type;
  assay_str_t ranges = {0};
  size_t count = 0;
  for (size_t i = at; i < n; i++) {
    if (!parts[i].reason || strcmp(parts[i].reason, parts[at].reason) != 0 ||
        strcmp(m->graph->nodes[parts[i].from]->op_type, name) != 0)
      continue;
    parts[i].reported = true;
    assay_str_printf(&ranges, "%s[%zu, %zu]", count++ ? ", " : "", parts[i].from, parts[i].to);
  }
  assay_str_printf(out, "%-*s| %7zu | %-*s | [%s]\n", op, name, count, reason, parts[at].reason,
                   assay_str_get(&ranges));
  out->failed |= ranges.failed;
  assay_str_deinit(&ranges);
}

static void put_parts(assay_str_t* out, const assay_model_t* m, part_t* parts, size_t n) {
  int op = 9, reason = 0;  // as wide as "Operator "
  for (size_t i = 0; i < n; i++) {
    if (!parts[i].reason) continue;
    op = wider(op, m->graph->nodes[parts[i].from]->op_type);
    reason = wider(reason, parts[i].reason);
  }
  assay_str_append(out, "===== Summary =====\n");
  const size_t start = out->len;
  assay_str_printf(out, "%-*s| %-7s | %-*s | Nodes\n", op, "Operator", "Count", reason, "Reason");
  put_rule(out, out->len - start);
  for (size_t i = 0; i < n; i++)
    if (parts[i].reason && !parts[i].reported) put_line(out, m, parts, n, i, op, reason);
}

static assay_status_t partition(pg_job_t* j, const assay_model_t* m, const assay_capability_t* c,
                                assay_str_t* summary) {
  part_t* parts = NULL;
  size_t n;
  ASSAY_TRY(find_parts(j->arena, c, &parts, &n));
  for (size_t i = 0; i < n; i++) ASSAY_TRY(save_part(j, m, c, &parts[i]));
  put_parts(summary, m, parts, n);
  return NULL;
}

// ---- all of it ----------------------------------------------------------------------------------

static assay_status_t inspect(pg_job_t* j, assay_model_t* m, const assay_capability_t* c) {
  const bool parts = pg_given(j->args, PG_FLAG_with_partitioning);
  assay_str_t summary = {0};
  if (!c->n_unsupported) {
    pg_log(PG_INFO, "Graph is fully supported by Assay; Will not %s.",
           parts ? "generate subgraphs" : "report errors");
    return NULL;
  }
  ASSAY_TRY(make_folder(folder_of(j)));
  assay_status_t st = parts ? partition(j, m, c, &summary) : NULL;
  if (!parts) put_nodes(&summary, m, c);
  if (!st) st = report(j, &summary);
  assay_str_deinit(&summary);
  return st;
}

assay_status_t pg_run_inspect_capability(pg_job_t* j) {
  assay_model_t* m = NULL;
  assay_capability_t c = {0};
  ASSAY_TRY(pg_read_model(j, NULL, &m));
  assay_status_t st = pg_convert_model(j, &m);
  if (!st) st = assay_capability_find(m, &c);
  if (!st) st = inspect(j, m, &c);
  assay_capability_deinit(&c);
  assay_model_release(m);
  return st;
}
