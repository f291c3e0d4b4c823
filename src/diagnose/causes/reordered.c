// Nodes that stand on the wrong side of others: a bias after the activation, one that is added to a
// logarithm, a normalization after what it is to normalize for.
//
// A section of few nodes with one entry R (sections.h) and a node f of one value before or after
// it: f(R(x)) in place of R(f(x)), and the reverse. Sources: biases that are added after the
// activation, microsoft/onnxruntime issue 15837; log(x) + 1 for log(1 + x); normalization before or
// after the sublayer, R. Xiong et al., 2020; preactivation, K. He et al., 2016.
#include <stdio.h>
#include <string.h>

#include "diagnose/causes/chains.h"
#include "diagnose/causes/sections.h"
#include "diagnose/proposals.h"

static bool is_one_of(const assay_node_t* n, const char* const* names) {
  for (; *names; names++)
    if (strcmp(n->op_type, *names) == 0) return true;
  return false;
}

// These hand on what they read: to stand elsewhere changes nothing, or what they are.
static bool only_moves(const assay_node_t* n) {
  static const char* const names[] = {"Identity", "Dropout",   "Cast",      "Reshape",  "Flatten",
                                      "Squeeze",  "Unsqueeze", "Expand",    "Concat",   "Slice",
                                      "Gather",   "Split",     "Transpose", "Constant", NULL};
  return is_one_of(n, names);
}

// Where one of these is in a section no other node is: whole layers do not pass each other.
static bool is_layer(const assay_node_t* n) {
  static const char* const names[] = {"Conv", "ConvTranspose", "Gemm", "MatMul", "Einsum", NULL};
  return is_one_of(n, names);
}

// The only value that a node reads besides constants. NULL: there are several, or none.
static const assay_value_t* read_by(const assay_surroundings_t* a, const assay_node_t* n) {
  assay_section_t alone;
  if (!n || only_moves(n) || !assay_section_begin(a, n, &alone)) return NULL;
  return alone.entry;
}

static bool may_pass(const assay_section_t* r) {
  for (size_t i = 0; i < r->n; i++)
    if (only_moves(r->nodes[i]) || (is_layer(r->nodes[i]) && r->n > 1)) return false;
  return true;
}

static assay_status_t offer(const assay_suspect_t* s, const char* cause,
                            const assay_chain_step_t* steps, const assay_node_t* moved,
                            const assay_node_t* other, const char* where, const assay_trial_t* t,
                            bool* stop) {
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_CHAIN);
  assay_chain_edit(&r.edits[0], steps, s->out[0]);
  r.beside[r.n_beside++] = moved == s->node ? other : moved;
  snprintf(r.text, sizeof r.text, "%s '%.80s' %s '%.80s'", moved->op_type, moved->label, where,
           other->label);
  return assay_offer(t, &r, stop);
}

// The node, before a section that ends in what it reads.
static assay_status_t offer_before(const assay_suspect_t* s, const char* cause,
                                   const assay_section_t* r, const assay_trial_t* t, bool* stop) {
  assay_chain_step_t steps[ASSAY_CHAIN_STEPS] = {{0}};
  const assay_chain_operand_t moved = {.kind = ASSAY_OPERAND_STEP};
  const assay_chain_operand_t entry = {.kind = ASSAY_OPERAND_VALUE, .value = r->entry};
  size_t n = 0;
  assay_section_t own;
  if (!assay_section_begin(s->around, s->node, &own)) return NULL;
  if (!assay_section_steps(&own, &entry, steps, &n)) return NULL;
  if (!assay_section_steps(r, &moved, steps, &n)) return NULL;
  return offer(s, cause, steps, s->node, r->nodes[r->n - 1], "before", t, stop);
}

// What makes a section's entry, after the section, which ends in the node.
static assay_status_t offer_after(const assay_suspect_t* s, const char* cause,
                                  const assay_section_t* r, const assay_trial_t* t, bool* stop) {
  assay_chain_step_t steps[ASSAY_CHAIN_STEPS] = {{0}};
  const assay_node_t* first = r->entry->producer;
  const assay_value_t* x = read_by(s->around, first);
  const assay_chain_operand_t entry = {.kind = ASSAY_OPERAND_VALUE, .value = x};
  size_t n = 0;
  assay_section_t own;
  if (!x || !assay_section_begin(s->around, first, &own)) return NULL;
  if (!assay_section_steps(r, &entry, steps, &n)) return NULL;
  const assay_chain_operand_t last = {.kind = ASSAY_OPERAND_STEP, .index = n - 1};
  if (!assay_section_steps(&own, &last, steps, &n)) return NULL;
  return offer(s, cause, steps, first, s->node, "after", t, stop);
}

assay_status_t assay_propose_reordered(const assay_suspect_t* s, const char* cause,
                                       const assay_trial_t* t, bool* stop) {
  assay_section_t r;
  if (!s->around || *s->node->domain || !s->n_out || !s->node->outputs[0]) return NULL;
  const assay_value_t* v = read_by(s->around, s->node);
  if (v && v->producer && assay_section_begin(s->around, v->producer, &r)) do {
      if (!may_pass(&r) || *stop) break;
      if (r.entry) ASSAY_TRY(offer_before(s, cause, &r, t, stop));
    } while (assay_section_grow(s->around, &r));
  if (*stop || !assay_section_begin(s->around, s->node, &r)) return NULL;
  // With the node alone it is the same as before.
  for (bool any = true; any && may_pass(&r) && !*stop; any = assay_section_grow(s->around, &r))
    if (r.entry && (r.n > 1 || !v)) ASSAY_TRY(offer_after(s, cause, &r, t, stop));
  return NULL;
}
