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

// Whether a layer does nothing but give what it reads another shape.
static bool is_view(const builder_t* b, int i) {
  const assay_kernel_t* k = segment_kernel_of(b, i);
  return k && k->in_place >= 0 && !k->run && !k->enqueue &&
         segment_step_of(b, i)->moves == segment_step_of(b, i)->end;
}

// The next layer that does more.
static int next_of(const builder_t* b, int i) {
  do i++;
  while (i < b->s->end && is_view(b, i));
  return i;
}

// Whether nobody reads a value behind layer j.
static bool is_hidden(const builder_t* b, const assay_value_t* v, int j) {
  return !v->is_output && b->in->lifetimes->last[v->id] <= j;
}

// What of a value layer i makes lies in its place, where that is another shape of it.
static assay_status_t look_through(builder_t* b, int i, const assay_value_t** v) {
  assay_sized_layer_t view;
  bool described;
  ASSAY_TRY(segment_describe(b, i, &view, &described));
  const int from = segment_kernel_of(b, i)->in_place;
  if (described && view.in[from].value == *v && view.out[0].value) *v = view.out[0].value;
  return NULL;
}

// What the second one of a pair reads of the first one.
static assay_status_t find_input(builder_t* b, int i, int j, assay_layer_pair_t* p) {
  const assay_value_t* v = p->layers[0]->out[0].value;
  p->hides = is_hidden(b, v, j);
  for (int k = i + 1; k < j; k++) {
    const assay_value_t* before = v;
    ASSAY_TRY(look_through(b, k, &v));
    p->views |= v != before;
    p->hides &= is_hidden(b, v, j);
  }
  p->input = assay_sized_input_index(p->layers[1], v);
  return NULL;
}

// The kernel for layers i and j, and whether it hides what lies between; *out stays NULL where
// there is none.
static assay_status_t make(builder_t* b, int i, int j, bool* hides, assay_kernel_t** out) {
  assay_sized_layer_t first, second;
  bool described;
  assay_layer_pair_t pair = {.layers = {&first, &second},
                             .kernels = {segment_kernel_of(b, i), segment_kernel_of(b, j)}};
  *out = NULL;
  if (!pair.kernels[0] || !pair.kernels[1]) return NULL;
  ASSAY_TRY(segment_describe(b, i, &first, &described));
  if (!described || first.n_out != 1 || !first.out[0].value) return NULL;
  ASSAY_TRY(segment_describe(b, j, &second, &described));
  if (!described || second.n_out != 1 || !second.out[0].value) return NULL;
  ASSAY_TRY(find_input(b, i, j, &pair));
  if (pair.input < 0) return NULL;
  *hides = pair.hides;
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

// Whether nothing is moved for the second one, which writes over nothing that it reads but what the
// first one makes. What the caller gets of the first one's output may be moved behind both.
static bool are_next(const assay_step_t* a, const assay_step_t* b) {
  const int over = b->kernel ? b->kernel->in_place : -1;
  return a->kernel && b->kernel && b->outputs == b->moves &&
         (over < 0 || b->in[over] == a->out[0]) && !segment_runs_with_others(a) &&
         !segment_runs_with_others(b);
}

// Whether the first one writes over what it reads, which the pair does not.
static bool writes_over(const assay_kernel_t* pair, const assay_step_t* a) {
  for (int k = 0; k < a->n_in; k++)
    if (a->in[k] >= 0 && a->in[k] == a->out[0]) return pair->in_place != k;
  return false;
}

// Whether the second one may write over what the first one makes, and the pair does not.
static bool ends_over(const assay_kernel_t* pair, const assay_step_t* a, const assay_step_t* b) {
  const int over = b->kernel->in_place;
  return over >= 0 && pair->in_place != a->n_in + over;
}

// Whether the first one's output lies where the second one reads it.
static bool hands_over(const assay_step_t* a, const assay_step_t* b) {
  for (int k = 0; k < b->n_in; k++)
    if (b->in[k] == a->out[0]) return true;
  return false;
}

// Output of layer j may not lie where layer i still reads.
static void keep_inputs(builder_t* b, int i, int j) {
  const assay_step_t* step = segment_step_of(b, i);
  for (int k = 0; k < step->n_in; k++) {
    if (step->in[k] < 0) continue;
    assay_block_t* block = &b->s->slots[step->in[k]].block;
    if (block->last < j) block->last = j;
  }
}

assay_status_t segment_find_pairs(builder_t* b) {
  if (b->in->apart || !b->in->target->choose_pair) return NULL;
  for (int i = b->s->first, j; (j = next_of(b, i)) < b->s->end; i++) {
    assay_step_t *first = segment_step_of(b, i), *second = segment_step_of(b, j);
    if (!are_next(first, second) || !hands_over(first, second)) continue;
    bool hides = false;
    ASSAY_TRY(make(b, i, j, &hides, &first->pair));
    if (!first->pair) continue;
    if (!has_forms(first->pair, first, second) || ends_over(first->pair, first, second) ||
        (!hides && writes_over(first->pair, first))) {
      first->pair->destroy(first->pair);
      first->pair = NULL;
      continue;
    }
    keep_inputs(b, i, j);
    first->second = j;
    i = j;
  }
  return NULL;
}

assay_status_t segment_rehearse_pairs(builder_t* b) {
  if (b->in->apart || !b->in->target->choose_pair) return NULL;
  for (int i = b->s->first, j; (j = next_of(b, i)) < b->s->end; i++) {
    assay_kernel_t* pair;
    bool hides;
    ASSAY_TRY(make(b, i, j, &hides, &pair));
    if (pair) pair->destroy(pair);
  }
  return NULL;
}
