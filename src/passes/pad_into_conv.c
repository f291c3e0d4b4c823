// A Pad with zeros before a convolution becomes the convolution's own padding.
#include <string.h>

#include "passes/edit.h"

enum { X, PADS, VALUE, PAD_AXES, MAX_DIMS = 8 };

// Zeros before and after each dimension; false: not such a Pad.
static bool read_pad(const assay_node_t* n, int rank, int64_t* before, int64_t* behind) {
  int64_t given[2 * MAX_DIMS], axes[MAX_DIMS];
  size_t count = 0;
  double value = 0;
  if (!assay_is(n, "Pad") || !n->schema || !n->inputs[X] || assay_rank_of(n->inputs[X]) != rank ||
      rank > MAX_DIMS || strcmp(assay_attr_str(n, "mode", "constant"), "constant") != 0)
    return false;
  const int64_t* pads = assay_attr_ints(n, n->schema->since < 2 ? "paddings" : "pads", &count);
  if (n->schema->since < 11 && assay_attr_f64(n, "value", 0) != 0) return false;
  if (n->n_inputs > VALUE && n->inputs[VALUE] &&
      (!assay_pass_number(n->inputs[VALUE], &value) || value != 0))
    return false;
  if (n->n_inputs > PADS && n->inputs[PADS]) {
    const int got = assay_ints_of(n->inputs[PADS], 2 * MAX_DIMS, given);
    if (got < 0) return false;
    pads = given;
    count = (size_t)got;
  }
  int n_axes = rank;
  for (int i = 0; i < rank; i++) axes[i] = i;
  if (n->n_inputs > PAD_AXES && n->inputs[PAD_AXES])
    n_axes = assay_ints_of(n->inputs[PAD_AXES], MAX_DIMS, axes);
  if (!pads || n_axes < 0 || count != 2 * (size_t)n_axes) return false;
  memset(before, 0, (size_t)rank * sizeof *before);
  memset(behind, 0, (size_t)rank * sizeof *behind);
  for (int i = 0; i < n_axes; i++) {
    const int64_t at = axes[i] < 0 ? axes[i] + rank : axes[i];
    if (at < 0 || at >= rank || pads[i] < 0 || pads[n_axes + i] < 0) return false;
    before[at] = pads[i];
    behind[at] = pads[n_axes + i];
  }
  return true;
}

// The convolution's padding with the Pad's; false: it has none that can be written down.
static bool add_pads(const assay_node_t* conv, int rank, const int64_t* before,
                     const int64_t* behind, int64_t* sum) {
  const char* automatic = assay_attr_str(conv, "auto_pad", "NOTSET");
  size_t count = 0;
  const int64_t* own = assay_attr_ints(conv, "pads", &count);
  const int n = rank - 2;
  const bool none = strcmp(automatic, "VALID") == 0 || !own;
  if (!none && count != 2 * (size_t)n) return false;
  if (strcmp(automatic, "NOTSET") != 0 && strcmp(automatic, "VALID") != 0) return false;
  if (before[0] || before[1] || behind[0] || behind[1]) return false;
  for (int i = 0; i < n; i++) {
    if (!assay_add_i64(none ? 0 : own[i], before[i + 2], &sum[i]) ||
        !assay_add_i64(none ? 0 : own[n + i], behind[i + 2], &sum[n + i]))
      return false;
  }
  return true;
}

static assay_status_t visit(assay_edit_t* e, assay_node_t* conv) {
  int64_t before[MAX_DIMS], behind[MAX_DIMS], sum[2 * MAX_DIMS];
  assay_node_t* pad = assay_is(conv, "Conv") && conv->inputs[X] ? conv->inputs[X]->producer : NULL;
  if (!pad || pad->graph != conv->graph || conv->inputs[X]->is_output ||
      assay_uses_of(&e->uses, conv->inputs[X]) != 1)
    return NULL;
  const int rank = assay_rank_of(conv->inputs[X]);
  if (rank < 3 || !read_pad(pad, rank, before, behind) ||
      !add_pads(conv, rank, before, behind, sum))
    return NULL;
  const assay_node_t* both[] = {conv, pad};
  ASSAY_TRY(assay_pass_record(e->c, ASSAY_PASS_CHANGED, both, 2, "the convolution pads by itself"));
  ASSAY_TRY(assay_pass_absorb(e->c, pad, conv));
  assay_edit_kill(e, pad);
  ASSAY_TRY(assay_edit_set_input(e, conv, X, pad->inputs[X]));
  ASSAY_TRY(assay_edit_set_ints(e, conv, "pads", 2 * (size_t)(rank - 2), sum));
  assay_edit_drop_attr(conv, "auto_pad");
  return NULL;
}

static assay_status_t run(assay_pass_context_t* c) { return assay_edit_each(c, visit); }

const assay_pass_t assay_pass_pad_into_conv = {
    .name = "pad_into_conv",
    .summary = "a Pad with zeros before a convolution is the convolution's padding",
    .until_fixpoint = true,
    .run = run,
};
