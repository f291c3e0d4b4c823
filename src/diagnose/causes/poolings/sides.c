// What a window is told for each side, with the sides exchanged: height first for width first.
// Lists that go together (a dilation and its padding) are exchanged together.
// Sources: tenstorrent/tt-metal issue 19542; Keras' (rows, columns) and OpenCV's (width, height).
#include <stdio.h>
#include <string.h>

#include "diagnose/proposals.h"

static const char* const LISTS[] = {"kernel_shape", "strides", "dilations", "pads"};
enum { N_LISTS = sizeof LISTS / sizeof *LISTS };

// A list of the node with its sides exchanged. False: it has none, or that changes nothing.
static bool exchanged(const assay_suspect_t* s, size_t list, int64_t* out, size_t* out_n) {
  const assay_schema_t* schema = s->node->schema;
  const int64_t* now = NULL;
  size_t n = 0;
  if (!schema || !assay_schema_attr(schema, LISTS[list])) return false;
  now = assay_attr_ints(s->node, LISTS[list], &n);
  if (!now || (n != 2 && n != 4)) return false;
  for (size_t i = 0; i < n; i++) out[i] = now[i ^ 1];
  *out_n = n;
  return memcmp(now, out, n * sizeof *now) != 0;
}

static assay_status_t offer_lists(const assay_suspect_t* s, const char* cause, unsigned lists,
                                  const assay_trial_t* t, bool* stop) {
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_ATTR);
  size_t used = 0;
  r.n_edits = 0;
  for (size_t i = 0; i < N_LISTS; i++) {
    if (!(lists >> i & 1)) continue;
    assay_repair_edit_t* e = &r.edits[r.n_edits];
    *e = (assay_repair_edit_t){
        .kind = ASSAY_EDIT_ATTR,
        .attr = {.name = LISTS[i], .type = ASSAY_ATTR_INTS, .doc = "", .ref = ""}};
    if (!exchanged(s, i, e->numbers, &e->attr.n)) return NULL;
    used += (size_t)snprintf(r.text + used, sizeof r.text - used, "%s%s", r.n_edits ? " and " : "",
                             LISTS[i]);
    r.n_edits++;
  }
  snprintf(r.text + used, sizeof r.text - used, " of the other side");
  return assay_offer(t, &r, stop);
}

// A kernel's sides are those of its weight, where the node has one.
static unsigned may_change(const assay_suspect_t* s) {
  unsigned lists = 0;
  int64_t list[4];
  size_t n;
  for (size_t i = s->n_in > 1 ? 1 : 0; i < N_LISTS; i++)
    if (exchanged(s, i, list, &n)) lists |= 1u << i;
  return lists;
}

assay_status_t assay_propose_window_sides(const assay_suspect_t* s, const char* cause,
                                          const assay_trial_t* t, bool* stop) {
  const unsigned all = may_change(s);
  // All of them first.
  for (unsigned lists = all; lists && !*stop; lists = (lists - 1) & all)
    ASSAY_TRY(offer_lists(s, cause, lists, t, stop));
  return NULL;
}
