// Layers that run two at a time, in one launch (assay_tactic_t.make_pair). Each stays a layer with
// a kernel, and outputs are where they would be: a tap, and timing by layers, run them one by
// one. What only the second one reads need not be written by the kernel for both.
#include "exec/segment/segment_internal.h"

// Places and moves are not laid out yet.
static assay_kernel_t* surveyed_kernel(const builder_t* b, int i) {
  const surveyed_t* x = &b->layers[i - b->s->first];
  return x->n ? x->options[x->chosen].kernel : NULL;
}

assay_kernel_t* segment_kernel_of(const builder_t* b, int i) {
  assay_kernel_t* laid = b->s->steps[i - b->s->first].kernel;
  return laid ? laid : surveyed_kernel(b, i);
}

static bool reads(const assay_sized_layer_t* l, const assay_value_t* v) {
  return assay_sized_input_index(l, v) >= 0;
}

// Whether layer i + 1 alone reads what layer i makes.
static bool is_hidden(const builder_t* b, int i, const assay_value_t* v) {
  return !v->is_output && b->in->lifetimes->last[v->id] == i + 1;
}

// The kernel for layers i and i + 1, and whether it hides what lies between; *out stays NULL where
// there is none.
static assay_status_t make(builder_t* b, int i, bool* hides, assay_kernel_t** out) {
  assay_sized_layer_t first, second;
  bool described;
  assay_layer_pair_t pair = {
      {&first, &second}, {segment_kernel_of(b, i), segment_kernel_of(b, i + 1)}, false};
  *out = NULL;
  if (!pair.kernels[0] || !pair.kernels[1]) return NULL;
  ASSAY_TRY(segment_describe(b, i, &first, &described));
  if (!described || first.n_out != 1 || !first.out[0].value) return NULL;
  ASSAY_TRY(segment_describe(b, i + 1, &second, &described));
  if (!described || second.n_out != 1 || !second.out[0].value ||
      !reads(&second, first.out[0].value))
    return NULL;
  *hides = pair.hides = is_hidden(b, i, first.out[0].value);
  return b->in->target->choose_pair(b->in->user, &pair, out);
}

static bool same_form(assay_storage_t a, assay_storage_t b) {
  return a.type == b.type && a.layout == b.layout;
}

// Whether it finds operands as the two kernels do, but for what the first one makes.
static bool has_forms(const assay_kernel_t* pair, const assay_step_t* a, const assay_step_t* b) {
  for (int k = 0; k < a->n_in; k++)
    if (pair->in[k].type && !same_form(pair->in[k], a->kernel->in[k])) return false;
  for (int k = 0; k < b->n_in; k++)
    if (pair->in[a->n_in + k].type && !same_form(pair->in[a->n_in + k], b->kernel->in[k]))
      return false;
  return same_form(pair->out[0], a->kernel->out[0]) && same_form(pair->out[1], b->kernel->out[0]);
}

static bool runs_with_others(const assay_step_t* s) {
  return s->joint || s->is_joined || s->siblings || s->is_sibling;
}

// Whether nothing is moved for the second one, which does not write over what it reads. What the
// caller gets of the first one's output may be moved behind both.
static bool are_next(const assay_step_t* a, const assay_step_t* b) {
  return a->kernel && b->kernel && b->outputs == b->moves && b->kernel->in_place < 0 &&
         !runs_with_others(a) && !runs_with_others(b);
}

// Whether the first one writes over what it reads, which the pair does not.
static bool writes_over(const assay_kernel_t* pair, const assay_step_t* a) {
  for (int k = 0; k < a->n_in; k++)
    if (a->in[k] >= 0 && a->in[k] == a->out[0]) return pair->in_place != k;
  return false;
}

// Whether the first one's output lies where the second one reads it.
static bool hands_over(const assay_step_t* a, const assay_step_t* b) {
  for (int k = 0; k < b->n_in; k++)
    if (b->in[k] == a->out[0]) return true;
  return false;
}

// The second one's output may not lie where the first one still reads.
static void keep_inputs(builder_t* b, int i) {
  const assay_step_t* step = &b->s->steps[i - b->s->first];
  for (int k = 0; k < step->n_in; k++) {
    if (step->in[k] < 0) continue;
    assay_block_t* block = &b->s->slots[step->in[k]].block;
    if (block->last < i + 1) block->last = i + 1;
  }
}

assay_status_t segment_find_pairs(builder_t* b) {
  if (b->in->apart || !b->in->target->choose_pair) return NULL;
  for (int i = b->s->first; i + 1 < b->s->end; i++) {
    assay_step_t *first = &b->s->steps[i - b->s->first], *second = first + 1;
    if (!are_next(first, second) || !hands_over(first, second)) continue;
    bool hides = false;
    ASSAY_TRY(make(b, i, &hides, &first->pair));
    if (!first->pair) continue;
    if (!has_forms(first->pair, first, second) || (!hides && writes_over(first->pair, first))) {
      first->pair->destroy(first->pair);
      first->pair = NULL;
      continue;
    }
    keep_inputs(b, i);
    i++;
  }
  return NULL;
}

assay_status_t segment_rehearse_pairs(builder_t* b) {
  if (b->in->apart || !b->in->target->choose_pair) return NULL;
  for (int i = b->s->first; i + 1 < b->s->end; i++) {
    assay_kernel_t* pair;
    bool hides;
    ASSAY_TRY(make(b, i, &hides, &pair));
    if (pair) pair->destroy(pair);
  }
  return NULL;
}
