// Attention with a past becomes a Concat of past and new keys, one of values, and Attention of what
// they make: a cache then grows as any value does, and tactics for Attention need no caches.
//
//   Attention(Q, K, V, mask, past_key, past_value) -> Y, present_key, present_value
//   = Attention(Q, present_key, present_value, mask) -> Y
//   with present_key = Concat(past_key, K), present_value = Concat(past_value, V) along the keys
//
// Source: ONNX Attention 23. Causality and windows count a query's place from the end of the past,
// which Attention without a past does not: such nodes stay, but where a lone query sees all keys.
#include "passes/edit.h"

enum { Q, K, V, MASK, PAST, COUNTS = PAST + 2 };
enum { Y, PRESENT, SCORES = PRESENT + 2 };
enum { ROWS = 2 };  // the dimension of [batch, heads, rows, channels] that grows

static assay_value_t* input(const assay_node_t* n, size_t i) {
  return i < n->n_inputs ? n->inputs[i] : NULL;
}
static assay_value_t* output(const assay_node_t* n, size_t i) {
  return i < n->n_outputs ? n->outputs[i] : NULL;
}

static bool sees_all_keys(const assay_node_t* n) {
  int64_t rows;
  const assay_value_t* q = n->inputs[Q];
  const bool lone =
      assay_rank_of(q) == 4 && assay_dim_value(q->type->dims[ROWS], &rows) && rows == 1;
  return assay_attr_i64(n, "left_window_size", -1) < 0 &&
         assay_attr_i64(n, "right_window_size", -1) < 0 &&
         (lone || !assay_attr_i64(n, "is_causal", 0));
}

static bool can_come_apart(const assay_edit_t* e, const assay_node_t* n) {
  if (!assay_is(n, "Attention") || input(n, COUNTS) || output(n, SCORES) ||
      !assay_edit_allows(e, "Concat", input(n, K)))
    return false;
  for (size_t i = 0; i < 2; i++) {
    const assay_value_t *past = input(n, PAST + i), *now = input(n, K + i);
    if (!past || !now || !output(n, PRESENT + i) || assay_rank_of(past) != 4 ||
        assay_rank_of(now) != 4 || assay_elem_of(past) != assay_elem_of(now))
      return false;
  }
  return sees_all_keys(n);
}

static assay_status_t grow(assay_edit_t* e, assay_node_t* n, size_t i) {
  assay_value_t *in[2] = {n->inputs[PAST + i], n->inputs[K + i]},
                *present = n->outputs[PRESENT + i];
  assay_node_t* concat = NULL;
  ASSAY_TRY(assay_edit_insert_bare(e, n, "Concat", 2, in, 1, &concat));
  ASSAY_TRY(assay_edit_attr_i(e, concat, "axis", ROWS));
  assay_node_set_output(n, PRESENT + i, NULL);
  assay_node_set_output(concat, 0, present);
  ASSAY_TRY(assay_edit_set_input(e, n, K + i, present));
  return assay_edit_set_input(e, n, PAST + i, NULL);
}

static assay_status_t visit(assay_edit_t* e, assay_node_t* n) {
  if (!can_come_apart(e, n)) return NULL;
  const assay_node_t* nodes[] = {n};
  ASSAY_TRY(assay_pass_record(e->c, ASSAY_PASS_CHANGED, nodes, 1,
                              "its caches grow by Concats, of which it reads what they make"));
  for (size_t i = 0; i < 2; i++) ASSAY_TRY(grow(e, n, i));
  return assay_edit_set_i(e, n, "is_causal", 0);
}

static assay_status_t run(assay_pass_context_t* c) { return assay_edit_each(c, visit); }

const assay_pass_t assay_pass_attention_caches = {
    .name = "attention_caches",
    .summary = "Attention with a past becomes Concats and Attention of what they make",
    .run = run,
};
