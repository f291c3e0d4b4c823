// Lays out a segment of which the survey has told the layers and made the kernels: the forms in
// which each layer reads its operands, the moves that make them, and where in memory each lies.
#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "exec/segment/segment_internal.h"
#include "formats/format.h"

// ---- slots --------------------------------------------------------------------------

static assay_status_t add_slot(builder_t* b, assay_slot_kind_t kind, const assay_value_t* v,
                               int* out) {
  assay_segment_t* s = b->s;
  ASSAY_TRY(assay_grow(&s->slots, &s->cap_slots, s->n_slots + 1, sizeof *s->slots));
  s->slots[s->n_slots] = (assay_slot_t){.kind = kind, .value = v};
  *out = (int)s->n_slots++;
  return NULL;
}

// The memory that it takes, where dimensions grow at their capacity.
static size_t bytes_of(const assay_place_t* p, assay_type_t type) {
  int64_t bytes = 0;
  return assay_type_packed_bytes(type, p->capacity, &bytes) ? (size_t)bytes : 0;
}

// The last layer that may read a value; graph outputs are copied as soon as they are made.
static int last_of(const builder_t* b, const assay_value_t* v) {
  return b->in->lifetimes->last[v->id];
}

// Memory of the arena for a value, needed from layer `first` to `last`.
static assay_status_t add_block(builder_t* b, const assay_place_t* p, assay_type_t type, int first,
                                int last, int* out) {
  ASSAY_TRY(add_slot(b, ASSAY_SLOT_ARENA, p->value, out));
  b->s->slots[*out].block = (assay_block_t){bytes_of(p, type), first, last, 0};
  return NULL;
}

static void lengthen(assay_slot_t* slot, int last) {
  if (slot->block.last < last) slot->block.last = last;
}

// Memory for what the run holds. All of a kernel span is copied to a device before its first layer
// runs.
static assay_status_t add_held(builder_t* b, const assay_place_t* p, assay_type_t type, int i,
                               int* out) {
  ASSAY_TRY(add_slot(b, ASSAY_SLOT_VALUE, p->value, out));
  b->s->slots[*out].block = (assay_block_t){bytes_of(p, type), b->span, i, 0};
  return NULL;
}

// Memory for what the caller gets: on a device until all of it has run and it is copied out.
static assay_status_t add_output(builder_t* b, const assay_place_t* p, int i, int* out) {
  ASSAY_TRY(add_slot(b, ASSAY_SLOT_OUTPUT, p->value, out));
  b->s->slots[*out].block = (assay_block_t){bytes_of(p, p->value->type->elem), i, INT_MAX, 0};
  return NULL;
}

static void add_form(assay_place_t* p, assay_storage_t form, assay_type_t through, int slot) {
  const int n = (int)(sizeof p->forms / sizeof *p->forms);
  // The one made last gives way: the first is what the others are made of.
  if (p->n_forms == n) p->n_forms--;
  p->forms[p->n_forms].form = form;
  p->forms[p->n_forms].through = through;
  p->forms[p->n_forms++].slot = slot;
}

// ---- forms -------------------------------------------------------------------------------------

// A constant that lies in 16 bits; NULL: what is at a place is none.
static const assay_tensor_t* narrow_at(const assay_place_t* p) {
  const assay_tensor_t* t = p->known ? NULL : assay_value_slot_constant(p->value);
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_NARROW ? t : NULL;
}

// The type of a value's elements outside the segment.
static assay_type_t type_outside(const builder_t* b, const assay_place_t* p) {
  const assay_tensor_t* narrow = narrow_at(p);
  return narrow ? narrow->narrow : assay_stored_type(b->in->layers, p->value);
}

// Elements that lie in 16 bits go through float32 as they are.
static assay_type_t through_at(const assay_place_t* p, assay_type_t through) {
  const assay_tensor_t* narrow = narrow_at(p);
  return narrow && through == ASSAY_TYPE_FLOAT ? narrow->narrow : through;
}

static assay_status_t add_move(builder_t* b, const assay_reformat_t* m, int from, int to) {
  assay_segment_t* s = b->s;
  ASSAY_TRY(assay_grow(&s->moves, &s->cap_moves, s->n_moves + 1, sizeof *s->moves));
  s->moves[s->n_moves++] = (assay_segment_reformat_t){*m, from, to};
  const size_t scratch = b->in->target->move_scratch(b->in->user, m);
  if (scratch > s->scratch_bytes) s->scratch_bytes = scratch;
  return NULL;
}

// A slot for a constant, or for contents that follow from sizes: those are not constants of the
// model, so a device gets them in every run.
static assay_status_t add_constant(builder_t* b, const assay_place_t* p, const assay_reformat_t* m,
                                   int i, int* out) {
  assay_value_slot_t v = {0};
  assay_tensor_t* t = NULL;
  assay_value_slot_put(
      &v, assay_tensor_retain(p->known ? p->known : assay_value_slot_constant(p->value)));
  assay_status_t st = assay_value_slot_packed(&v, m->from.type, &t);
  if (!st && p->known && b->in->target->apart) {
    st = add_held(b, p, m->from.type, i, out);
    if (!st) st = add_move(b, m, -1, *out);
  } else if (!st) {
    st = add_slot(b, ASSAY_SLOT_CONSTANT, p->value, out);
    if (!st && !b->in->target->apart) b->s->slots[*out].constant = (uintptr_t)t->data;
  }
  if (!st) b->s->slots[*out].held = assay_tensor_retain(t);
  assay_value_slot_clear(&v);
  return st;
}

// Its elements as they lie outside the segment: a constant's tensor, or what the run will hold.
static assay_status_t fetch(builder_t* b, assay_place_t* p, int i) {
  const assay_type_t type = type_outside(b, p);
  const assay_storage_t form = {type, ASSAY_LAYOUT_PLAIN};
  assay_reformat_t m = {
      .rank = p->rank, .size = p->size, .from = form, .to = form, .through = type};
  int slot;
  memcpy(m.dims, p->dims, sizeof m.dims);
  if (p->known || assay_value_slot_constant(p->value)) {
    ASSAY_TRY(add_constant(b, p, &m, i, &slot));
  } else {
    ASSAY_TRY(add_held(b, p, type, i, &slot));
    ASSAY_TRY(add_move(b, &m, -1, slot));
  }
  add_form(p, form, type, slot);
  return NULL;
}

// A constant of the model is moved once, for all segments.
static assay_status_t move_constant(builder_t* b, const assay_place_t* p, const assay_reformat_t* m,
                                    const assay_tensor_t* from, int to) {
  return b->in->target->constant(b->in->user, p->value, m, from->data, &b->s->slots[to].constant);
}

// A constant's own elements go to a device when a kernel reads them as they are.
static assay_status_t settle_constant(builder_t* b, const assay_place_t* p, assay_storage_t form,
                                      int slot) {
  const assay_slot_t* s = &b->s->slots[slot];
  assay_reformat_t m = {
      .rank = p->rank, .size = p->size, .from = form, .to = form, .through = form.type};
  if (s->kind != ASSAY_SLOT_CONSTANT || s->constant) return NULL;
  memcpy(m.dims, p->dims, sizeof m.dims);
  return move_constant(b, p, &m, s->held, slot);
}

static int find_form(const assay_place_t* p, assay_storage_t form, assay_type_t through) {
  for (int i = 0; i < p->n_forms; i++)
    if (p->forms[i].form.type == form.type && p->forms[i].through == through &&
        p->forms[i].form.layout == form.layout)
      return i;
  return -1;
}

// What a form is made of: the same elements in another order, or else what was made first.
static int source_of(const assay_place_t* p, assay_storage_t form, assay_type_t through) {
  for (int i = 0; i < p->n_forms; i++)
    if (p->forms[i].form.type == form.type && p->forms[i].through == through) return i;
  return 0;
}

// How a form comes out of one that the value has, or, where it has none, out of how it lies outside
// the segment.
static assay_reformat_t move_into(const builder_t* b, const assay_place_t* p, assay_type_t through,
                                  assay_storage_t form) {
  const assay_type_t stored = type_outside(b, p);
  const int at = p->n_forms ? source_of(p, form, through) : -1;
  const assay_type_t had = at < 0 ? stored : p->forms[at].through;
  assay_reformat_t m = {
      .rank = p->rank,
      .size = p->size,
      .from = at < 0 ? (assay_storage_t){stored, ASSAY_LAYOUT_PLAIN} : p->forms[at].form,
      .to = form,
      .through = had == through ? form.type : through};
  memcpy(m.dims, p->dims, sizeof m.dims);
  return m;
}

assay_storage_t segment_form_of(const assay_place_t* p, assay_storage_t form) {
  if (assay_layouts_are_same(p->rank, p->dims)) form.layout = ASSAY_LAYOUT_PLAIN;
  return form;
}

static bool can_be_had(const builder_t* b, const assay_place_t* p, assay_type_t type,
                       assay_storage_t wanted) {
  const assay_type_t through = through_at(p, type);
  const assay_storage_t form = segment_form_of(p, wanted);
  const assay_reformat_t m = move_into(b, p, through, form);
  return find_form(p, form, through) >= 0 || b->in->target->can_move(b->in->user, &m);
}

// The slot that holds a value in a form that can be had before layer i's kernel runs.
static assay_status_t need(builder_t* b, assay_place_t* p, assay_type_t type,
                           assay_storage_t wanted, int i, int* out) {
  const assay_type_t through = through_at(p, type);
  const assay_storage_t form = segment_form_of(p, wanted);
  if (!p->n_forms) ASSAY_TRY(fetch(b, p, i));
  const int at = find_form(p, form, through);
  if (at >= 0) {
    *out = p->forms[at].slot;
    lengthen(&b->s->slots[*out], i);
    return settle_constant(b, p, form, *out);
  }
  const int from = p->forms[source_of(p, form, through)].slot;
  const assay_reformat_t m = move_into(b, p, through, form);
  // Contents that follow from sizes are not constants of the model: moved in every run.
  if (b->s->slots[from].kind == ASSAY_SLOT_CONSTANT && !p->known) {
    ASSAY_TRY(add_slot(b, ASSAY_SLOT_CONSTANT, p->value, out));
    ASSAY_TRY(move_constant(b, p, &m, b->s->slots[from].held, *out));
  } else {
    ASSAY_TRY(add_block(b, p, form.type, i, i, out));
    ASSAY_TRY(add_move(b, &m, from, *out));
    lengthen(&b->s->slots[from], i);
  }
  add_form(p, form, through, *out);
  return NULL;
}

// ---- layers ------------------------------------------------------------------------------------

assay_status_t segment_check_inputs(builder_t* b, const assay_sized_layer_t* d,
                                    const assay_kernel_t* kernel, bool* out_ok) {
  *out_ok = true;
  for (size_t k = 0; *out_ok && k < d->n_in; k++) {
    assay_place_t* p;
    if (!kernel->in[k].type) continue;
    ASSAY_TRY(segment_place_of(b, d->in[k].value, &p));
    *out_ok = can_be_had(b, p, d->in[k].type, kernel->in[k]);
  }
  return NULL;
}

// What the kernels of a row pipeline read stays, untouched, until the last one has run.
static void keep_for_pipeline(builder_t* b, int i, int slot) {
  const assay_pipeline_t* t = assay_segment_pipeline(b->s, i);
  if (!t || i == assay_pipeline_last(t)) return;
  lengthen(&b->s->slots[slot], assay_pipeline_last(t));
  b->s->slots[slot].stays = assay_pipeline_last(t) + 1;
}

// Whether what a layer makes is handed on within a row pipeline.
static bool is_handed_on(const builder_t* b, int i) {
  const assay_pipeline_t* t = assay_segment_pipeline(b->s, i);
  return t && i < assay_pipeline_last(t);
}

// A kernel of a row pipeline cannot be had after all: those before it run by themselves, too.
static void dissolve(builder_t* b, int i) {
  const assay_pipeline_t* t = assay_segment_pipeline(b->s, i);
  if (!t) return;
  for (int k = t->first; k <= assay_pipeline_last(t); k++) {
    assay_step_t* step = &b->s->steps[k - b->s->first];
    step->pipeline = 0;
    if (k >= i) continue;
    assay_slot_t* slot = &b->s->slots[step->out[0]];
    const assay_place_t* p = assay_segment_place(b->s, slot->value);
    slot->block = (assay_block_t){bytes_of(p, step->kernel->out[0].type), k, k + 1, 0};
    slot->passes = false;
  }
}

static assay_status_t place_inputs(builder_t* b, const assay_sized_layer_t* d, int i,
                                   assay_step_t* step) {
  step->n_in = (int)d->n_in;
  for (size_t k = 0; k < d->n_in; k++) {
    assay_place_t* p;
    step->in[k] = -1;
    if (!step->kernel->in[k].type) continue;
    ASSAY_TRY(segment_place_of(b, d->in[k].value, &p));
    ASSAY_TRY(need(b, p, d->in[k].type, step->kernel->in[k], i, &step->in[k]));
    keep_for_pipeline(b, i, step->in[k]);
  }
  return NULL;
}

static bool is_caller_form(const assay_value_t* v, const assay_place_t* p, assay_storage_t form) {
  return v->is_output && form.type == v->type->elem &&
         segment_form_of(p, form).layout == ASSAY_LAYOUT_PLAIN;
}

// Whether a kernel may write over an input: memory of the arena that nobody needs after it.
static bool may_take(const builder_t* b, int slot, int i) {
  return slot >= 0 && b->s->slots[slot].kind == ASSAY_SLOT_ARENA &&
         b->s->slots[slot].block.last <= i && b->s->slots[slot].stays <= i;
}

// Whether one operand alone lies in a slot: a kernel says over which input it may write, not which
// other ones are views of it.
static bool is_read_alone(const assay_step_t* step, int slot) {
  int n = 0;
  for (int i = 0; i < step->n_in; i++) n += step->in[i] == slot;
  return n == 1;
}

// Whether what was made in a slot first has as many elements as a value, now and at the capacity.
static bool is_as_large(const builder_t* b, int slot, const assay_place_t* p) {
  const assay_place_t* first = assay_segment_place(b->s, b->s->slots[slot].value);
  return !b->s->grows || (first->size == p->size && first->capacity == p->capacity);
}

// A kernel writes over what is in a slot: it is no form of any value any more.
static void forget(builder_t* b, int slot) {
  for (size_t i = 0; i < b->s->n_places; i++) {
    assay_place_t* p = &b->s->places[i];
    for (int k = 1; k < p->n_forms; k++)
      if (p->forms[k].slot == slot) p->forms[k--] = p->forms[--p->n_forms];
  }
}

// Another shape of what is in a slot. What the run holds may be let go of before the view is: that
// is copied.
static assay_status_t view_slot(builder_t* b, const assay_place_t* p, assay_storage_t form,
                                int from, int i, int* out) {
  const int last = last_of(b, p->value);
  *out = from;
  lengthen(&b->s->slots[from], last);
  if (b->s->slots[from].kind != ASSAY_SLOT_VALUE || b->in->target->apart) return NULL;
  assay_reformat_t m = {
      .rank = p->rank, .size = p->size, .from = form, .to = form, .through = form.type};
  memcpy(m.dims, p->dims, sizeof m.dims);
  ASSAY_TRY(add_block(b, p, form.type, i, last > i ? last : i, out));
  return add_move(b, &m, from, *out);
}

// The memory that output k is written to.
static assay_status_t output_slot(builder_t* b, const assay_step_t* step, int i, size_t k,
                                  const assay_place_t* p, int* out) {
  const assay_kernel_t* kernel = step->kernel;
  const assay_value_t* v = p->value;
  const bool over = k == 0 && kernel->in_place >= 0;
  if (is_handed_on(b, i)) {
    ASSAY_TRY(add_slot(b, ASSAY_SLOT_ARENA, v, out));
    b->s->slots[*out].block = (assay_block_t){0, i, i, 0};
    b->s->slots[*out].passes = true;
    return NULL;
  }
  if (over && !kernel->run && !kernel->enqueue)
    return view_slot(b, p, kernel->out[k], step->in[kernel->in_place], i, out);
  if (is_caller_form(v, p, kernel->out[k])) return add_output(b, p, i, out);
  if (over && may_take(b, step->in[kernel->in_place], i) &&
      is_read_alone(step, step->in[kernel->in_place]) &&
      is_as_large(b, step->in[kernel->in_place], p) &&
      b->s->slots[step->in[kernel->in_place]].block.bytes == bytes_of(p, kernel->out[k].type)) {
    *out = step->in[kernel->in_place];
    forget(b, *out);
    lengthen(&b->s->slots[*out], last_of(b, v));
    return NULL;
  }
  const int last = last_of(b, v);
  return add_block(b, p, kernel->out[k].type, i, last > i ? last : i, out);
}

static assay_place_t* place_at(const builder_t* b, const assay_value_t* v) {
  return &b->s->places[b->s->place_of[v->id]];
}

static assay_status_t place_outputs(builder_t* b, const assay_sized_layer_t* d, int i,
                                    assay_step_t* step) {
  step->n_out = (int)d->n_out;
  for (size_t k = 0; k < d->n_out; k++) {
    step->out[k] = -1;
    if (!d->out[k].value) continue;
    assay_place_t* p = place_at(b, d->out[k].value);
    const assay_storage_t form = segment_form_of(p, step->kernel->out[k]);
    ASSAY_TRY(output_slot(b, step, i, k, p, &step->out[k]));
    add_form(p, form, form.type, step->out[k]);
  }
  return NULL;
}

// What the caller gets and was not written there: after the kernel, a move.
static assay_status_t hand_out(builder_t* b, const assay_sized_layer_t* d, int i,
                               const assay_step_t* step) {
  for (size_t k = 0; k < d->n_out; k++) {
    const assay_value_t* v = d->out[k].value;
    int slot;
    if (!v || !v->is_output) continue;
    const assay_slot_t* made = &b->s->slots[step->out[k]];
    if (made->kind == ASSAY_SLOT_OUTPUT && made->value == v) continue;
    const assay_place_t* p = assay_segment_place(b->s, v);
    assay_reformat_t m = {.rank = p->rank,
                          .size = p->size,
                          .from = p->forms[0].form,
                          .to = {v->type->elem, ASSAY_LAYOUT_PLAIN},
                          .through = v->type->elem};
    memcpy(m.dims, p->dims, sizeof m.dims);
    ASSAY_TRY(add_output(b, p, i, &slot));
    ASSAY_TRY(add_move(b, &m, p->forms[0].slot, slot));
  }
  return NULL;
}

// Lays out layer i, of which the survey has made the kernel.
static assay_status_t lay_layer(builder_t* b, int i) {
  assay_segment_t* s = b->s;
  assay_step_t* step = &s->steps[i - s->first];
  surveyed_t* x = &b->layers[i - s->first];
  assay_sized_layer_t d;
  bool ok = x->n > 0;
  step->moves = step->outputs = step->end = s->n_moves;
  if (step->known) return NULL;
  if (ok) ASSAY_TRY(segment_describe(b, i, &d, &ok));
  if (ok) {
    step->kernel = x->options[x->chosen].kernel;
    step->n_candidates = x->options[x->chosen].n_candidates;
    x->options[x->chosen].kernel = NULL;
    memcpy(step->candidates, x->options[x->chosen].candidates, sizeof step->candidates);
    ASSAY_TRY(segment_check_inputs(b, &d, step->kernel, &ok));
  }
  if (!ok) dissolve(b, i);
  if (!ok) segment_check_emulated(b, i);
  if (!ok && step->kernel) {
    step->kernel->destroy(step->kernel);
    step->kernel = NULL;
  }
  if (step->kernel) segment_read_forms(step->kernel, &step->forms);
  if (step->kernel) ASSAY_TRY(place_inputs(b, &d, i, step));
  step->outputs = step->end = s->n_moves;
  if (!step->kernel) return b->span = i + 1, NULL;
  if (step->kernel->scratch > s->scratch_bytes) s->scratch_bytes = step->kernel->scratch;
  ASSAY_TRY(place_outputs(b, &d, i, step));
  ASSAY_TRY(hand_out(b, &d, i, step));
  segment_check_slots(b, &d, step);
  step->end = s->n_moves;
  return NULL;
}

// ---- the segment -------------------------------------------------------------------------------

// On the host, what the run holds and what the caller gets lie where they lie.
static bool takes_memory(const builder_t* b, const assay_slot_t* s) {
  return s->kind == ASSAY_SLOT_ARENA || (b->in->target->apart && s->kind != ASSAY_SLOT_CONSTANT);
}

static assay_status_t plan_memory(const builder_t* b) {
  assay_segment_t* s = b->s;
  assay_block_t* blocks = NULL;
  ASSAY_TRY(assay_new_array(s->n_slots, sizeof *blocks, &blocks));
  size_t n = 0;
  for (size_t i = 0; i < s->n_slots; i++)
    if (takes_memory(b, &s->slots[i])) blocks[n++] = s->slots[i].block;
  assay_status_t st = assay_memory_plan(blocks, n, b->in->alignment, &s->arena_bytes);
  n = 0;
  for (size_t i = 0; i < s->n_slots; i++)
    if (takes_memory(b, &s->slots[i])) s->slots[i].block = blocks[n++];
  assay_free(blocks);
  return st;
}

static size_t max_bytes(const assay_pipeline_t* t) {
  return (size_t)t->max_parts * t->thread_bytes;
}

assay_status_t segment_begin(builder_t* b) {
  assay_segment_t* s = b->s;
  const int n = (int)b->in->layers->n_layers, n_values = b->in->layers->model->n_values;
  ASSAY_TRY(assay_new_array((size_t)(n - s->first), sizeof *s->steps, &s->steps));
  ASSAY_TRY(assay_new_array((size_t)n_values, sizeof *s->place_of, &s->place_of));
  for (int i = 0; i < n_values; i++) s->place_of[i] = -1;
  ASSAY_TRY(assay_sizes_copy(b->in->sizes, &s->sizes));
  s->grows = b->in->n_growth && b->in->target->resize && !b->in->target->apart;
  if (s->grows)
    ASSAY_TRY(
        assay_sizes_at_capacity(b->in->sizes, b->in->growth, b->in->n_growth, 0, &b->at_capacity));
  if (s->grows)
    ASSAY_TRY(assay_sizes_at_capacity(b->in->sizes, b->in->growth, b->in->n_growth, 1, &b->beyond));
  return segment_survey(b);
}

assay_status_t segment_build(builder_t* b) {
  assay_segment_t* s = b->s;
  ASSAY_TRY(segment_begin(b));
  ASSAY_TRY(segment_find_pipelines(b));
  for (size_t t = 0; t < s->n_pipelines; t++)
    if (max_bytes(&s->pipelines[t]) > s->scratch_bytes)
      s->scratch_bytes = max_bytes(&s->pipelines[t]);
  for (int i = s->first; i < s->end; i++)
    ASSAY_TRY(assay_status_note(lay_layer(b, i), "layer '%s'", b->in->layers->layers[i].name));
  ASSAY_TRY(segment_find_joints(b));
  ASSAY_TRY(segment_find_siblings(b));
  ASSAY_TRY(segment_find_pairs(b));
  return plan_memory(b);
}
