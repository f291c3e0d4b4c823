// Plans on a device: what is the same for all backends with memory of their own.
#include "exec/device/device_run.h"

#include <string.h>

#include "base/alloc.h"
#include "base/shown.h"
#include "exec/device/captures.h"
#include "exec/device/device_share.h"

// What a mark (device.h) says: what * number of layers + layer.
typedef enum doing { RUNNING = 0, COPYING_IN, COPYING_OUT, LAUNCHING, N_DOING } doing_t;

// Memory of the device that the caller brings; 0: none.
typedef struct caller_memory {
  assay_device_ptr_t at;
  size_t bytes;
} caller_memory_t;

typedef struct device_run {
  assay_runner_t runner;
  assay_device_shared_t *shared, *own;  // own: NULL if it is somebody else's
  const assay_device_driver_t* driver;
  assay_queue_t* queue;
  assay_device_ptr_t arena, scratch;
  size_t arena_bytes, scratch_bytes;
  assay_device_ptr_t* at;  // by slot of the segment that runs
  size_t cap_at;
  int until;              // layers before it that have kernels are in the queue
  bool busy;              // the queue has not been waited for
  assay_tensor_t** lent;  // retained: what the queue reads and writes on the host
  size_t n_lent, cap_lent;
  bool* arriving;                     // by value id: on its way to the tensor that the run holds
  bool arrives;                       // one is
  caller_memory_t *inputs, *outputs;  // by value id
  bool* delivered;                    // by value id: the output lies where it is wanted
  bool stepwise;
  assay_run_clock_t clock;
  assay_device_counts_t counts;
} device_run_t;

// ---- what is under way --------------------------------------------------------------------------

static const char* layer_name(const device_run_t* d, int64_t i) {
  return d->runner.layers->layers[i].name;
}

// Says where in the run a failure is.
static assay_status_t print(const device_run_t* d, assay_status_t st, int64_t mark) {
  const int64_t n = (int64_t)d->runner.layers->n_layers;
  if (!st || mark < 0 || !n || mark >= N_DOING * n) return st;
  const char* name = layer_name(d, mark % n);
  switch ((doing_t)(mark / n)) {
    case RUNNING:
      return assay_status_note(st, "layer '%s'", name);
    case COPYING_IN:
      return assay_status_note(st, "copying to the device what layer '%s' and those after it read",
                               name);
    case COPYING_OUT:
      return assay_status_note(st, "copying from the device, after layer '%s'", name);
    default:
      return assay_status_note(st,
                               "layer '%s' or one after it, which the device runs as a whole (a "
                               "run with a tap or a profile tells which)",
                               name);
  }
}

static assay_status_t mark(device_run_t* d, doing_t what, int64_t layer) {
  const int64_t n = (int64_t)d->runner.layers->n_layers;
  d->busy = true;
  return d->driver->mark ? d->driver->mark(d->queue, (int64_t)what * n + layer) : NULL;
}

static void give_back(device_run_t* d) {
  for (size_t i = 0; i < d->n_lent; i++) assay_tensor_release(d->lent[i]);
  d->n_lent = 0;
}

static assay_status_t wait(device_run_t* d) {
  int64_t at = -1;
  if (!d->busy) return NULL;
  assay_status_t st = d->driver->queue_wait(d->queue, &at);
  d->busy = false;
  give_back(d);
  if (d->arrives)
    memset(d->arriving, 0, (size_t)d->runner.layers->model->n_values * sizeof *d->arriving);
  d->arrives = false;
  return print(d, st, at);
}

// Keeps a tensor until the queue has been waited for.
static assay_status_t lend(device_run_t* d, assay_tensor_t* t) {
  ASSAY_TRY(assay_grow(&d->lent, &d->cap_lent, d->n_lent + 1, sizeof *d->lent));
  d->lent[d->n_lent++] = assay_tensor_retain(t);
  return NULL;
}

static assay_status_t upload(device_run_t* d, assay_tensor_t* t, assay_device_ptr_t to) {
  const size_t bytes = assay_tensor_bytes(t);
  if (!bytes) return NULL;
  ASSAY_TRY(lend(d, t));
  d->busy = true;
  d->counts.uploads++;
  return d->driver->upload(d->queue, t->data, to, bytes);
}

static assay_status_t download(device_run_t* d, assay_device_ptr_t from, assay_tensor_t* t) {
  const size_t bytes = assay_tensor_bytes(t);
  if (!bytes) return NULL;
  ASSAY_TRY(lend(d, t));
  d->busy = true;
  d->counts.downloads++;
  return d->driver->download(d->queue, from, t->data, bytes);
}

// ---- what segments are prepared for ------------------------------------------------------------

static bool takes(void* user, const assay_layer_t* l) {
  const assay_device_shared_t* s = ((device_run_t*)user)->shared;
  return s->kind->takes(s->own, l);
}

static assay_status_t choose(void* user, const assay_sized_layer_t* l, assay_kernel_t** out,
                             assay_candidate_t* candidates, int* n_candidates) {
  return assay_choose(((device_run_t*)user)->shared->choice, l, out, candidates, n_candidates);
}

static assay_status_t choose_pair(void* user, const assay_layer_pair_t* p, assay_kernel_t** out) {
  return assay_choose_pair(((device_run_t*)user)->shared->choice, p, out);
}

static bool may_join(void* user, const assay_layer_t* l) {
  return assay_may_join(((device_run_t*)user)->shared->choice, l);
}

static assay_status_t choose_joint(void* user, assay_joint_layers_t* j, assay_kernel_t** out) {
  return assay_choose_joint(((device_run_t*)user)->shared->choice, j, out);
}

static bool are_siblings(void* user, const assay_layer_t* a, const assay_layer_t* b) {
  return assay_are_siblings(((device_run_t*)user)->shared->choice, a, b);
}

static assay_status_t choose_siblings(void* user, const assay_siblings_t* s, assay_kernel_t** out) {
  return assay_choose_siblings(((device_run_t*)user)->shared->choice, s, out);
}

// Where an engine is built, which one context does: in a rehearsal whatever shares the engine is
// given kernels that cannot be launched.
static bool rehearse(void* user) {
  const assay_device_shared_t* s = ((device_run_t*)user)->shared;
  if (!s->kind->rehearse || !s->choice->measure) return false;
  s->choice->rehearses = true;
  s->kind->rehearse(s->own);
  return true;
}

static assay_status_t rehearsed(void* user) {
  const assay_device_shared_t* s = ((device_run_t*)user)->shared;
  s->choice->rehearses = false;
  return s->kind->rehearsed(s->own);
}

static assay_status_t cost(void* user, const assay_sized_layer_t* l, assay_kernel_t* k,
                           double* out_microseconds) {
  return assay_choice_cost(((device_run_t*)user)->shared->choice, l, k, out_microseconds);
}

static assay_status_t move_cost(void* user, const assay_reformat_t* m, double* out_microseconds) {
  return assay_choice_move_cost(((device_run_t*)user)->shared->choice, m, out_microseconds);
}

static bool can_move(void* user, const assay_reformat_t* m) {
  const assay_device_shared_t* s = ((device_run_t*)user)->shared;
  return s->kind->can_move(s->own, m);
}

static size_t move_scratch(void* user, const assay_reformat_t* m) {
  const assay_device_shared_t* s = ((device_run_t*)user)->shared;
  return s->kind->move_scratch(s->own, m);
}

typedef struct constant_move {
  const assay_device_shared_t* shared;
  const assay_reformat_t* move;
  const void* from;
} constant_move_t;

// The elements go to memory that is given back after the move, which lies on the device, too.
static assay_status_t fill_moved(void* user, assay_queue_t* q, assay_device_ptr_t to) {
  const constant_move_t* c = user;
  const assay_device_driver_t* driver = c->shared->kind->driver;
  const size_t bytes = assay_reformat_bytes(c->move, c->move->from.type);
  const size_t scratch_bytes = c->shared->kind->move_scratch(c->shared->own, c->move);
  assay_device_ptr_t from = 0, scratch = 0;
  if (assay_reformat_is_copy(c->move)) return driver->upload(q, c->from, to, bytes);
  assay_status_t st = driver->alloc(q, bytes, &from);
  if (!st && scratch_bytes) st = driver->alloc(q, scratch_bytes, &scratch);
  if (!st) st = driver->upload(q, c->from, from, bytes);
  if (!st) st = c->shared->kind->move(c->shared->own, c->move, q, from, to, scratch);
  driver->free(q, scratch);
  driver->free(q, from);
  return st;
}

static assay_status_t constant(void* user, const assay_value_t* v, const assay_reformat_t* m,
                               const void* from, uint64_t* out) {
  const device_run_t* d = user;
  constant_move_t c = {d->shared, m, from};
  assay_str_t key = {0};
  assay_str_printf_raw(&key, "%s as %s in layout %d through %s", v->name,
                       assay_type_name(m->to.type), (int)m->to.layout, assay_type_name(m->through));
  assay_status_t st = assay_str_status(&key);
  if (!st)
    st = assay_resident_get(d->shared->resident, assay_str_get(&key),
                            assay_reformat_bytes(m, m->to.type), fill_moved, &c, out);
  assay_str_deinit(&key);
  return st;
}

static const assay_target_t target = {.apart = true,
                                      .takes = takes,
                                      .choose = choose,
                                      .choose_pair = choose_pair,
                                      .may_join = may_join,
                                      .choose_joint = choose_joint,
                                      .are_siblings = are_siblings,
                                      .choose_siblings = choose_siblings,
                                      .rehearse = rehearse,
                                      .rehearsed = rehearsed,
                                      .cost = cost,
                                      .move_cost = move_cost,
                                      .can_move = can_move,
                                      .move_scratch = move_scratch,
                                      .constant = constant};

// ---- memory -------------------------------------------------------------------------------------

static assay_status_t reserve(device_run_t* d, assay_device_ptr_t* memory, size_t* have,
                              size_t bytes) {
  if (bytes <= *have) return NULL;
  d->busy = true;
  d->driver->free(d->queue, *memory);
  *memory = 0;
  *have = 0;
  ASSAY_TRY(d->driver->alloc(d->queue, bytes, memory));
  *have = bytes;
  return NULL;
}

static bool is_aligned(const device_run_t* d, assay_device_ptr_t at) {
  return at % d->shared->device->alignment == 0;
}

// Whether memory is that of an input, which kernels still read when the output is made.
static bool is_read(const device_run_t* d, assay_device_ptr_t at, size_t bytes) {
  const assay_graph_t* g = d->runner.layers->model->graph;
  for (size_t i = 0; i < g->n_inputs; i++) {
    const caller_memory_t* f = &d->inputs[g->inputs[i]->id];
    if (f->at && f->at < at + bytes && at < f->at + f->bytes) return true;
  }
  return false;
}

// Where the caller wants an output; 0: not on the device, or where kernels cannot write: it is
// copied there.
static assay_status_t output_at(const device_run_t* d, const assay_slot_t* slot,
                                assay_device_ptr_t* out) {
  const caller_memory_t* f = &d->outputs[slot->value->id];
  *out = 0;
  if (f->at && f->bytes < slot->block.bytes)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "output '%s' takes %zu bytes; %zu are bound on the device",
                       slot->value->name, slot->block.bytes, f->bytes);
  if (f->at && is_aligned(d, f->at) && !is_read(d, f->at, slot->block.bytes)) *out = f->at;
  return NULL;
}

static assay_status_t keep(const device_run_t* d, assay_segment_t* s) {
  assay_captures_t* c = NULL;
  ASSAY_TRY(assay_captures_create(d->driver, (size_t)(s->end - s->first), &c));
  s->kept = c;
  s->drop = assay_captures_destroy;
  return NULL;
}

static assay_status_t begin(assay_runner_t* r, assay_segment_t* s) {
  device_run_t* d = (device_run_t*)r;
  ASSAY_TRY(reserve(d, &d->arena, &d->arena_bytes, s->arena_bytes));
  ASSAY_TRY(reserve(d, &d->scratch, &d->scratch_bytes, s->scratch_bytes));
  ASSAY_TRY(assay_grow(&d->at, &d->cap_at, s->n_slots + 1, sizeof *d->at));
  if (!s->kept) ASSAY_TRY(keep(d, s));
  r->now = s;
  d->until = s->first;
  for (size_t i = 0; i < s->n_slots; i++) {
    const assay_slot_t* slot = &s->slots[i];
    d->at[i] = slot->kind == ASSAY_SLOT_CONSTANT ? slot->constant : d->arena + slot->block.offset;
    assay_device_ptr_t there = 0;
    if (slot->kind == ASSAY_SLOT_OUTPUT) ASSAY_TRY(output_at(d, slot, &there));
    if (slot->kind == ASSAY_SLOT_VALUE && !slot->held) there = d->inputs[slot->value->id].at;
    if (there && is_aligned(d, there)) d->at[i] = there;
  }
  d->at[s->n_slots] = d->scratch;
  return NULL;
}

// A tensor with what lies on the device; it has arrived when the queue has been waited for.
static assay_status_t fetch_tensor(device_run_t* d, assay_device_ptr_t from, assay_type_t type,
                                   int rank, const int64_t* dims, assay_tensor_t** out) {
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_tensor_create_packed(type, rank, dims, &t));
  assay_status_t st = download(d, from, t);
  if (st) return assay_tensor_release(t), st;
  *out = t;
  return NULL;
}

// From another layout by way of memory of its own.
static assay_status_t fetch_moved(device_run_t* d, const assay_reformat_t* m,
                                  assay_device_ptr_t from, assay_tensor_t** out) {
  const size_t bytes = assay_reformat_bytes(m, m->to.type);
  assay_device_ptr_t plain = 0;
  d->busy = true;
  ASSAY_TRY(d->driver->alloc(d->queue, bytes, &plain));
  assay_status_t st = d->shared->kind->move(d->shared->own, m, d->queue, from, plain, 0);
  if (!st) st = fetch_tensor(d, plain, m->to.type, m->rank, m->dims, out);
  d->driver->free(d->queue, plain);
  return st;
}

static assay_status_t read_place(assay_runner_t* r, const assay_place_t* p, assay_tensor_t** out) {
  device_run_t* d = (device_run_t*)r;
  const assay_storage_t form = p->forms[0].form;
  const assay_device_ptr_t from = d->at[p->forms[0].slot];
  assay_reformat_t m = {.rank = p->rank,
                        .size = p->size,
                        .from = form,
                        .to = {form.type, ASSAY_LAYOUT_PLAIN},
                        .through = form.type};
  assay_tensor_t* t = NULL;
  memcpy(m.dims, p->dims, sizeof m.dims);
  ASSAY_TRY(mark(d, COPYING_OUT, (int64_t)r->layer));
  assay_status_t st = assay_reformat_is_copy(&m) || !p->size
                          ? fetch_tensor(d, from, form.type, p->rank, p->dims, &t)
                          : fetch_moved(d, &m, from, &t);
  st = assay_status_join(st, wait(d));
  if (st) return assay_tensor_release(t), st;
  *out = t;
  return NULL;
}

// What is on its way has to arrive; what the caller has on the device comes here.
static assay_status_t reach(assay_runner_t* r, const assay_value_t* v) {
  device_run_t* d = (device_run_t*)r;
  caller_memory_t* f = &d->inputs[v->id];
  if (d->arriving[v->id]) ASSAY_TRY(wait(d));
  if (!f->at || !assay_value_slot_is_set(&r->values[v->id])) return NULL;
  const assay_tensor_t* shape = assay_value_slot_any(&r->values[v->id]);
  assay_tensor_t* t = NULL;
  ASSAY_TRY(mark(d, COPYING_OUT, (int64_t)r->layer));
  assay_status_t st = fetch_tensor(d, f->at, shape->type, shape->rank, shape->dims, &t);
  st = assay_status_join(st, wait(d));
  if (st) return assay_tensor_release(t), st;
  assay_value_slot_put(&r->values[v->id], t);
  f->at = 0;
  return NULL;
}

// ---- kernel spans ------------------------------------------------------------------------------

// Copies in what the moves of layers [from, to) fetch; *ok false: it has another shape.
static assay_status_t copy_in(device_run_t* d, int from, int to, bool* ok) {
  const assay_segment_t* s = d->runner.now;
  const size_t end = s->steps[to - 1 - s->first].end;
  ASSAY_TRY(mark(d, COPYING_IN, from));
  for (size_t i = s->steps[from - s->first].moves; i < end; i++) {
    const assay_segment_reformat_t* m = &s->moves[i];
    if (m->from >= 0) continue;
    const assay_slot_t* slot = &s->slots[m->to];
    const caller_memory_t* f = &d->inputs[slot->value->id];
    assay_tensor_t* t = NULL;
    if (f->at && !slot->held) {
      if (f->at != d->at[m->to] && slot->block.bytes)
        ASSAY_TRY(d->driver->copy(d->queue, f->at, d->at[m->to], slot->block.bytes));
      continue;
    }
    ASSAY_TRY(assay_runner_fetch(&d->runner, m, &t));
    if (!t) return *ok = false, NULL;
    ASSAY_TRY(upload(d, t, d->at[m->to]));
  }
  return NULL;
}

static assay_status_t enqueue_moves(device_run_t* d, size_t from, size_t to) {
  const assay_device_shared_t* s = d->shared;
  for (size_t i = from; i < to; i++) {
    const assay_segment_reformat_t* m = &d->runner.now->moves[i];
    if (m->from < 0 || !m->move.size) continue;
    const assay_device_ptr_t a = d->at[m->from], b = d->at[m->to];
    if (assay_reformat_is_copy(&m->move))
      ASSAY_TRY(d->driver->copy(d->queue, a, b, assay_reformat_bytes(&m->move, m->move.to.type)));
    else
      ASSAY_TRY(s->kind->move(s->own, &m->move, d->queue, a, b, d->scratch));
  }
  return NULL;
}

static assay_status_t enqueue_layer(device_run_t* d, int i) {
  const assay_step_t* s = assay_runner_step_of(&d->runner, (size_t)i);
  assay_device_ptr_t in[ASSAY_KERNEL_OPERANDS], out[ASSAY_KERNEL_OPERANDS];
  if (!s->kernel) return NULL;
  ASSAY_TRY(mark(d, RUNNING, i));
  ASSAY_TRY(enqueue_moves(d, s->moves, s->outputs));
  for (int k = 0; k < s->n_in; k++) in[k] = s->in[k] < 0 ? 0 : d->at[s->in[k]];
  for (int k = 0; k < s->n_out; k++) out[k] = s->out[k] < 0 ? 0 : d->at[s->out[k]];
  if (s->kernel->enqueue) ASSAY_TRY(s->kernel->enqueue(s->kernel, d->queue, in, out, d->scratch));
  return enqueue_moves(d, s->outputs, s->end);
}

// Layer i and the second one of its pair in one launch; nothing is moved for that.
static assay_status_t enqueue_pair(device_run_t* d, int i) {
  const assay_step_t* a = assay_runner_step_of(&d->runner, (size_t)i);
  const assay_step_t* b = assay_runner_step_of(&d->runner, (size_t)a->second);
  assay_device_ptr_t in[ASSAY_KERNEL_OPERANDS];
  const assay_device_ptr_t out[2] = {d->at[a->out[0]], d->at[b->out[0]]};
  ASSAY_TRY(mark(d, RUNNING, i));
  ASSAY_TRY(enqueue_moves(d, a->moves, a->outputs));
  for (int k = 0; k < a->n_in; k++) in[k] = a->in[k] < 0 ? 0 : d->at[a->in[k]];
  for (int k = 0; k < b->n_in; k++) in[a->n_in + k] = b->in[k] < 0 ? 0 : d->at[b->in[k]];
  ASSAY_TRY(a->pair->enqueue(a->pair, d->queue, in, out, d->scratch));
  ASSAY_TRY(enqueue_moves(d, a->outputs, a->end));
  return enqueue_moves(d, b->outputs, b->end);
}

// Layer i and those before it that it joins, for which what they read was moved where they stand.
static assay_status_t enqueue_joint(device_run_t* d, int i) {
  const assay_step_t* s = assay_runner_step_of(&d->runner, (size_t)i);
  assay_device_ptr_t in[ASSAY_KERNEL_OPERANDS];
  const assay_device_ptr_t out[1] = {d->at[s->out[0]]};
  int n = 0;
  ASSAY_TRY(mark(d, RUNNING, i));
  ASSAY_TRY(enqueue_moves(d, s->moves, s->outputs));
  for (int j = 0; j < s->n_joins; j++) {
    const assay_step_t* of = assay_runner_step_of(&d->runner, (size_t)s->joins[j]);
    for (int k = 0; k < of->n_in; k++) in[n++] = of->in[k] < 0 ? 0 : d->at[of->in[k]];
  }
  ASSAY_TRY(s->joint->enqueue(s->joint, d->queue, in, out, d->scratch));
  return enqueue_moves(d, s->outputs, s->end);
}

// Layer i and those after it that read the same; what is moved of their outputs is moved where they
// stand.
static assay_status_t enqueue_siblings(device_run_t* d, int i) {
  const assay_step_t* s = assay_runner_step_of(&d->runner, (size_t)i);
  assay_device_ptr_t in[ASSAY_KERNEL_OPERANDS], out[ASSAY_SIBLINGS];
  ASSAY_TRY(mark(d, RUNNING, i));
  ASSAY_TRY(enqueue_moves(d, s->moves, s->outputs));
  for (int k = 0; k < s->n_in; k++) in[k] = s->in[k] < 0 ? 0 : d->at[s->in[k]];
  for (int k = 0; k < s->n_with; k++)
    out[k] = d->at[assay_runner_step_of(&d->runner, (size_t)s->with[k])->out[0]];
  ASSAY_TRY(s->siblings->enqueue(s->siblings, d->queue, in, out, d->scratch));
  return enqueue_moves(d, s->outputs, s->end);
}

static assay_status_t enqueue_step(device_run_t* d, int i, int to, int* n) {
  const assay_step_t* s = assay_runner_step_of(&d->runner, (size_t)i);
  *n = 1;
  if (s->is_joined) return enqueue_moves(d, s->moves, s->outputs);
  if (s->joint) return enqueue_joint(d, i);
  if (s->is_sibling) return enqueue_moves(d, s->outputs, s->end);
  if (s->siblings) return enqueue_siblings(d, i);
  if (!s->pair || s->second >= to) return enqueue_layer(d, i);
  *n = s->second - i + 1;
  return enqueue_pair(d, i);
}

static assay_status_t enqueue(device_run_t* d, int from, int to) {
  for (int i = from, n; i < to; i += n)
    ASSAY_TRY(assay_status_note(enqueue_step(d, i, to, &n), "layer '%s'", layer_name(d, i)));
  return NULL;
}

static assay_status_t capture(device_run_t* d, int from, int to, assay_capture_t** out) {
  ASSAY_TRY(d->driver->capture_begin(d->queue));
  assay_status_t st = enqueue(d, from, to), ended = d->driver->capture_end(d->queue, out);
  if (!st) return ended;
  if (*out) d->driver->capture_destroy(*out);
  *out = NULL;
  assay_status_free(ended);
  return st;
}

static assay_status_t launch(device_run_t* d, const assay_captured_t* g, int from) {
  ASSAY_TRY(mark(d, LAUNCHING, from));
  d->counts.launches++;
  return d->driver->capture_launch(g->capture, d->queue);
}

// How many kernels a kernel span has, up to 2: one is not worth a capture.
static int count_kernels(const device_run_t* d, int from, int to) {
  int n = 0;
  for (int i = from; i < to && n < 2; i++)
    n += assay_runner_step_of(&d->runner, (size_t)i)->kernel != NULL;
  return n;
}

// The first run of a kernel span loads what kernels need, and may be the only one; the second one
// with the same addresses is captured.
static assay_status_t run_span(device_run_t* d, int from, int to) {
  const assay_segment_t* s = d->runner.now;
  assay_captures_t* captures = s->kept;
  const size_t layer = (size_t)(from - s->first);
  assay_captured_t* g = NULL;
  bool again = false;
  if (d->driver->capture_begin && !d->stepwise && !d->runner.tap &&
      !assay_captures_refused(captures, layer) && count_kernels(d, from, to) > 1)
    ASSAY_TRY(assay_captures_find(captures, layer, d->at, s->n_slots + 1, &g, &again));
  if (again && !g->capture) {
    assay_status_t st = capture(d, from, to, &g->capture);
    if (st && assay_status_code(st) != ASSAY_UNSUPPORTED) return st;
    if (st) assay_captures_refuse(captures, layer);
    assay_status_free(st);
    d->counts.captures += g->capture != NULL;
  }
  if (again && g->capture) return launch(d, g, from);
  d->counts.spans++;
  return enqueue(d, from, to);
}

// Copies graph outputs that layers [from, to) have made to where the caller wants them.
static assay_status_t copy_out(device_run_t* d, int from, int to) {
  assay_runner_t* r = &d->runner;
  ASSAY_TRY(mark(d, COPYING_OUT, to - 1));
  for (size_t i = 0; i < r->now->n_slots; i++) {
    const assay_slot_t* slot = &r->now->slots[i];
    const assay_value_t* v = slot->value;
    assay_tensor_t* t = NULL;
    if (slot->kind != ASSAY_SLOT_OUTPUT || slot->block.first < from || slot->block.first >= to)
      continue;
    const assay_device_ptr_t there = d->outputs[v->id].at;
    if (there) {
      if (there != d->at[i] && slot->block.bytes)
        ASSAY_TRY(d->driver->copy(d->queue, d->at[i], there, slot->block.bytes));
      d->delivered[v->id] = true;
      continue;
    }
    ASSAY_TRY(assay_runner_output(r, v, &t));
    ASSAY_TRY(download(d, d->at[i], t));
    assay_value_slot_put(&r->values[v->id], assay_tensor_retain(t));
    d->arriving[v->id] = d->arrives = true;
  }
  return NULL;
}

static assay_status_t run_layer(assay_runner_t* r, size_t i, bool* ok) {
  device_run_t* d = (device_run_t*)r;
  const int from = (int)i;
  if (from < d->until) return NULL;
  const bool alone = d->stepwise || r->tap;
  const int to = alone ? from + 1 : assay_segment_span_end(r->now, from);
  ASSAY_TRY(assay_run_clock_mark(&d->clock, d->queue, 0));
  ASSAY_TRY(copy_in(d, from, to, ok));
  if (!*ok) return NULL;
  d->until = to;
  ASSAY_TRY(assay_run_clock_mark(&d->clock, d->queue, 1));
  ASSAY_TRY(run_span(d, from, to));
  ASSAY_TRY(assay_run_clock_mark(&d->clock, d->queue, 2));
  ASSAY_TRY(copy_out(d, from, to));
  ASSAY_TRY(assay_run_clock_mark(&d->clock, d->queue, 3));
  return alone ? wait(d) : NULL;
}

static const assay_runner_memory_t memory = {
    .begin = begin, .layer = run_layer, .read = read_place, .reach = reach};

// ---- rows of backend.h --------------------------------------------------------------------------

assay_status_t assay_device_step(void* state, size_t i) {
  device_run_t* d = state;
  ASSAY_TRY(assay_runner_step(state, i));
  return i + 1 == d->runner.layers->n_layers ? wait(d) : NULL;
}

void assay_device_reset(void* state) {
  device_run_t* d = state;
  const size_t n = (size_t)d->runner.layers->model->n_values;
  // Of a run that has failed, or was given up, the rest is nobody's any more.
  assay_status_free(wait(d));
  assay_runner_reset(state);
  assay_run_clock_reset(&d->clock);
  for (size_t i = 0; i < n; i++) d->inputs[i].at = 0;
  if (n) memset(d->delivered, 0, n * sizeof *d->delivered);
}

void assay_device_stepwise(void* state, bool on) { ((device_run_t*)state)->stepwise = on; }

void assay_device_timed(void* state, bool on) { ((device_run_t*)state)->clock.on = on; }

assay_status_t assay_device_times(void* state, assay_run_times_t* out) {
  device_run_t* d = state;
  ASSAY_TRY(wait(d));
  ASSAY_TRY(assay_run_clock_read(&d->clock));
  *out = d->clock.sum;
  return NULL;
}

size_t assay_device_planned(void* state) {
  const device_run_t* d = state;
  return d->arena_bytes + d->scratch_bytes;
}

assay_device_counts_t assay_device_counts(const void* state) {
  return ((const device_run_t*)state)->counts;
}

assay_status_t assay_device_set(void* state, const assay_value_t* v,
                                const assay_device_view_t* view) {
  device_run_t* d = state;
  assay_tensor_t* t = NULL;
  if (!view->at) return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "input '%s' at no address", v->name);
  // It stands for its shape only: nobody reads the bytes (see `reach`).
  ASSAY_TRY(assay_tensor_wrap_packed(view->type, view->rank, view->dims,
                                     (const void*)(uintptr_t)view->at, (int64_t)view->bytes, NULL,
                                     NULL, &t));
  assay_status_t st = assay_runner_set(state, v, t);
  assay_tensor_release(t);
  if (!st) d->inputs[v->id] = (caller_memory_t){view->at, view->bytes};
  return st;
}

assay_status_t assay_device_bind(void* state, const assay_value_t* v, assay_device_ptr_t at,
                                 size_t bytes) {
  device_run_t* d = state;
  d->outputs[v->id] = (caller_memory_t){at, at ? bytes : 0};
  return NULL;
}

uint64_t assay_device_stream(void* state) {
  const device_run_t* d = state;
  return d->driver->queue_handle ? d->driver->queue_handle(d->queue) : 0;
}

// An output that no kernel made: an input, a constant, or what was emulated.
static assay_status_t deliver_held(device_run_t* d, const assay_value_t* v) {
  assay_tensor_t* t = NULL;
  const caller_memory_t* f = &d->outputs[v->id];
  ASSAY_TRY(assay_runner_packed(d, v, &t));
  if (!t)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "output '%s' is not a tensor of numbers and cannot be bound to memory",
                       v->name);
  if (assay_tensor_bytes(t) > f->bytes)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "output '%s' is %s%s and takes %zu bytes; %zu are bound on the device",
                       v->name, assay_type_name(t->type), ASSAY_DIMS_TEXT(t), assay_tensor_bytes(t),
                       f->bytes);
  assay_status_t st = upload(d, t, f->at);
  return assay_status_join(st, wait(d));
}

// The shape of an output that kernels made: of the last segment that made it.
static const assay_place_t* place_of(const device_run_t* d, const assay_value_t* v) {
  const assay_segment_t* found = NULL;
  for (size_t i = 0; i < d->runner.n_segments; i++) {
    const assay_segment_t* s = d->runner.segments[i];
    const assay_place_t* p = assay_segment_place(s, v);
    if (p && p->n_forms && (!found || s->used > found->used)) found = s;
  }
  return found ? assay_segment_place(found, v) : NULL;
}

assay_status_t assay_device_deliver(void* state, const assay_value_t* v, int* out_rank,
                                    int64_t* out_dims) {
  device_run_t* d = state;
  const assay_place_t* p = d->delivered[v->id] ? place_of(d, v) : NULL;
  if (!d->outputs[v->id].at)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "output '%s' is not bound on the device", v->name);
  if (!p) ASSAY_TRY(deliver_held(d, v));
  const assay_tensor_t* t = assay_value_slot_any(&d->runner.values[v->id]);
  *out_rank = p ? p->rank : t->rank;
  if (*out_rank) memcpy(out_dims, p ? p->dims : t->dims, (size_t)*out_rank * sizeof *out_dims);
  return NULL;
}

// ---- opening and closing ------------------------------------------------------------------------

void assay_device_close(void* state) {
  device_run_t* d = state;
  if (!d) return;
  if (d->queue) assay_status_free(wait(d));
  give_back(d);
  assay_runner_deinit(&d->runner);
  assay_run_clock_deinit(&d->clock);
  if (d->queue) {
    d->driver->free(d->queue, d->arena);
    d->driver->free(d->queue, d->scratch);
    d->driver->queue_destroy(d->queue);
  }
  assay_free(d->at);
  assay_free(d->lent);
  assay_free(d->arriving);
  assay_free(d->inputs);
  assay_free(d->outputs);
  assay_free(d->delivered);
  assay_device_unshare(d->own);
  assay_free(d);
}

static assay_status_t open_run(device_run_t* d, const assay_layers_t* layers,
                               const assay_tap_t* tap) {
  const size_t n = (size_t)layers->model->n_values;
  const assay_setting_t setting = {.store = d->shared->choice->store,
                                   .resident = d->shared->resident,
                                   .own = d->shared->own,
                                   .target = &target,
                                   .any_bits = d->shared->choice->any_bits,
                                   .apart = tap != NULL,
                                   .alignment = d->shared->device->alignment,
                                   .user = d};
  ASSAY_TRY(assay_runner_init(&d->runner, layers, tap, &memory, &setting));
  ASSAY_TRY(assay_new_array(n, sizeof *d->arriving, &d->arriving));
  ASSAY_TRY(assay_new_array(n, sizeof *d->inputs, &d->inputs));
  ASSAY_TRY(assay_new_array(n, sizeof *d->outputs, &d->outputs));
  ASSAY_TRY(assay_new_array(n, sizeof *d->delivered, &d->delivered));
  return d->driver->queue_create(d->shared->device, &d->queue);
}

// own: NULL: what is shared is somebody else's. It is the state's in any case.
static assay_status_t open_with(const assay_device_kind_t* kind, const assay_layers_t* layers,
                                assay_device_shared_t* shared, assay_device_shared_t* take_own,
                                const assay_tap_t* tap, void** out_state) {
  device_run_t* d = NULL;
  assay_status_t st = ASSAY_NEW(&d);
  if (st) return assay_device_unshare(take_own), st;
  d->driver = kind->driver;
  d->own = take_own;
  d->shared = shared;
  st = open_run(d, layers, tap);
  if (st) return assay_device_close(d), st;
  *out_state = d;
  return NULL;
}

assay_status_t assay_device_open_on(const assay_device_kind_t* kind, const assay_layers_t* layers,
                                    int device, const assay_tap_t* tap, void** out_state) {
  const assay_backend_options_t options = {.device = device};
  void* own = NULL;
  ASSAY_TRY(assay_device_share(kind, layers, &options, &own));
  return open_with(kind, layers, own, own, tap, out_state);
}

assay_status_t assay_device_open(const assay_device_kind_t* kind, const assay_layers_t* layers,
                                 void* shared, const assay_tap_t* tap, void** out_state) {
  if (!shared) return assay_device_open_on(kind, layers, 0, tap, out_state);
  return open_with(kind, layers, shared, NULL, tap, out_state);
}
