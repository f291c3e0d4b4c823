// Blocks in one thread: a lane is a fiber.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "internal.h"
#include "switch.h"

static run_t* spare;  // under `lock`
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// ---- what a run has -----------------------------------------------------------------------------

static char* map_stacks(void) {
  const size_t all = FAKE_MAX_THREADS * FAKE_STACK, bytes = 2 * all;
  char* at =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return NULL;
  at += all - (uintptr_t)at % all;
  // What a lane writes past the end of its stack is not another's.
  for (int i = 0; i < FAKE_MAX_THREADS; i++)
    if (mprotect(at + (size_t)i * FAKE_STACK, 4096, PROT_NONE) != 0) return NULL;
  return at;
}

static run_t* make_run(void) {
  static int n;
  run_t* r = calloc(1, sizeof *r);
  if (!r) return NULL;
  r->fibers = calloc(FAKE_MAX_THREADS, sizeof *r->fibers);
  r->stacks = map_stacks();
  if (!r->fibers || !r->stacks) return free(r->fibers), free(r), NULL;
  r->number = n++;
  return r;
}

run_t* take_run(void) {
  pthread_mutex_lock(&lock);
  run_t* r = spare;
  if (r)
    spare = r->next;
  else
    r = make_run();
  pthread_mutex_unlock(&lock);
  if (!r) return NULL;
  r->failed = false;
  r->next_seen = 0;
  r->seen_version = 0;
  memset(r->seen, 0, sizeof r->seen);
  return r;
}

static void free_dynamic(run_t* r) {
  free(r->dynamic);
  r->dynamic = NULL;
  free(r->unfenced);
  r->unfenced = NULL;
  free_history(r->dynamic_history);
  free_history(r->shared_history);
  r->dynamic_history = r->shared_history = NULL;
}

void give_run(run_t* r) {
  free_dynamic(r);
  pthread_mutex_lock(&lock);
  r->next = spare;
  spare = r;
  pthread_mutex_unlock(&lock);
}

fake_lane_t* lane_of(const run_t* r, int thread) {
  return (fake_lane_t*)(void*)(r->stacks + (size_t)(thread + 1) * FAKE_STACK) - 1;
}

uint32_t run_draw(run_t* r, uint32_t n) {
  r->random = r->random * 1664525U + 1013904223U;
  return (r->random >> 8) % n;
}

// ---- lanes --------------------------------------------------------------------------------------

void rest(run_t* r, lane_state_t state, fake_warp_op_t op, int line) {
  fiber_t* f = &r->fibers[r->current];
  f->state = state;
  f->op = op;
  f->line = line;
  LEAVE(state == DONE ? NULL : &f->fake_stack, r->main_bottom, r->main_size);
  fake_switch(&f->sp, r->main_sp);
  ARRIVE(f->fake_stack, &r->main_bottom, &r->main_size);
}

static void start_lane(void) {
  fake_lane_t* lane =
      (fake_lane_t*)(((uintptr_t)__builtin_frame_address(0) | (FAKE_STACK - 1)) + 1) - 1;
  run_t* r = lane->run;
  ARRIVE(NULL, &r->main_bottom, &r->main_size);
  r->enter(r->launch->args);
  const fiber_t* f = &r->fibers[r->current];
  if (f->n_copies)
    fail_lane(r, LAUNCH_FAILED, "thread %d ends before its copies have arrived (WAIT_COPIES)",
              lane->thread);
  if (f->n_products)
    fail_lane(r, LAUNCH_FAILED, "thread %d ends before its products are done (WGMMA_WAIT)",
              lane->thread);
  rest(r, DONE, 0, 0);
}

static void resume(run_t* r, int thread) {
  r->current = thread;
  r->resumed++;
  LEAVE(&r->main_fake_stack, r->stacks + (size_t)thread * FAKE_STACK, FAKE_STACK);
  fake_switch(&r->main_sp, r->fibers[thread].sp);
  ARRIVE(r->main_fake_stack, NULL, NULL);
}

void fail_lane(run_t* r, int result, const char* format, ...) {
  va_list args;
  if (!r->failed) {
    va_start(args, format);
    vsnprintf(r->message, sizeof r->message, format, args);
    va_end(args);
    r->result = result;
  }
  r->failed = true;
  for (;;) rest(r, DONE, 0, 0);  // nobody resumes it
}

// Found by no lane: where lanes are.
static void fail_block(run_t* r, const char* format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(r->message, sizeof r->message, format, args);
  va_end(args);
  r->result = LAUNCH_FAILED;
  r->failed = true;
}

const char* op_name(fake_warp_op_t op) {
  static const char* const names[] = {"SYNC_WARP",
                                      "shuffle",
                                      "shuffle_xor",
                                      "shuffle_up",
                                      "shuffle_down",
                                      "ballot",
                                      "match_lanes",
                                      "mma_f16",
                                      "mma_bf16",
                                      "mma_tf32",
                                      "mma_s8",
                                      "mma_u8s8",
                                      "mma_s8u8",
                                      "mma_u8",
                                      "load_matrices",
                                      "load_matrices_transposed",
                                      "wgmma of f16",
                                      "wgmma of bf16",
                                      "wgmma of tf32",
                                      "wgmma of s8",
                                      "wgmma of u8 and s8",
                                      "wgmma of s8 and u8",
                                      "wgmma of u8",
                                      "WGMMA_FENCE",
                                      "WGMMA_COMMIT",
                                      "WGMMA_WAIT"};
  return names[op];
}

static void print_where(const fiber_t* f, char* out, size_t bytes) {
  if (f->state == DONE)
    snprintf(out, bytes, "has ended");
  else if (f->state == AT_CLUSTER)
    snprintf(out, bytes, "is at SYNC_CLUSTER of line %d", f->line);
  else if (f->state == AT_BLOCK)
    snprintf(out, bytes, "is at SYNC of line %d", f->line);
  else if (f->state == AT_GROUP)
    snprintf(out, bytes, "is at SYNC_GROUP of line %d", f->line);
  else
    snprintf(out, bytes, "is at %s of line %d", op_name(f->op), f->line);
}

// ---- warps --------------------------------------------------------------------------------------

// All lanes of the warp that have not ended are at the same operation.
static void check_meeting(run_t* r, int low, int high) {
  int first = low;
  while (r->fibers[first].state != AT_WARP) first++;
  const fiber_t* f = &r->fibers[first];
  for (int t = low; t < high; t++) {
    const fiber_t* g = &r->fibers[t];
    char where[96];
    if (g->state == DONE && f->op < FAKE_MMA_F16) continue;
    if (g->state == AT_WARP && g->op == f->op && g->line == f->line) continue;
    print_where(g, where, sizeof where);
    fail_block(r, "lanes of a warp diverge: thread %d is at %s of line %d, thread %d %s", first,
               op_name(f->op), f->line, t, where);
    return;
  }
  if (f->op >= FAKE_MMA_F16 && high - low < FAKE_WARP)
    fail_block(r, "%s of line %d in a warp of %d lanes", op_name(f->op), f->line, high - low);
}

static void meet(run_t* r, int low, int high) {
  check_meeting(r, low, high);
  if (r->failed) return;
  int first = low;
  while (r->fibers[first].state != AT_WARP) first++;
  const fiber_t* f = &r->fibers[first];
  if (f->op >= FAKE_MMA_F16 && f->op <= FAKE_MMA_U8)
    warp_mma(&r->fibers[low], (f->turn - 1) & 1, f->op);
  if (f->op == FAKE_SYNC_WARP) r->warp_epochs[low / FAKE_WARP]++;
  for (int t = low; t < high; t++)
    if (r->fibers[t].state == AT_WARP) r->fibers[t].state = RUNS;
}

static int count(const run_t* r, int low, int high, lane_state_t state) {
  int n = 0;
  for (int t = low; t < high; t++) n += r->fibers[t].state == state;
  return n;
}

// Until its lanes wait for the block, or for something that others do, or have ended.
static void run_warp(run_t* r, int low, int high) {
  while (!r->failed) {
    const unsigned start = run_draw(r, FAKE_WARP), step = 2 * run_draw(r, FAKE_WARP / 2) + 1;
    for (unsigned i = 0; i < FAKE_WARP && !r->failed; i++) {
      const int t = low + (int)((start + i * step) % FAKE_WARP);
      if (t < high && r->fibers[t].state == RUNS) resume(r, t);
    }
    if (r->failed || count(r, low, high, RELAXES) || !count(r, low, high, AT_WARP)) return;
    meet(r, low, high);
  }
}

// ---- blocks -------------------------------------------------------------------------------------

static bool prepare_shared(run_t* r) {
  const int bytes = r->launch->dynamic_bytes;
  void* at = NULL;
  if (!r->dynamic && bytes) {
    if (posix_memalign(&at, 128, (size_t)bytes) != 0) return false;
    r->dynamic = at;
    r->dynamic_history = make_history((size_t)bytes);
    r->unfenced = calloc((size_t)bytes / 16 + 1, sizeof *r->unfenced);
    if (!r->unfenced) return false;
  }
  if (r->code->shared_bytes && !r->shared_history)
    r->shared_history = make_history(r->code->shared_bytes);
  if (bytes) poison(r->dynamic, (size_t)bytes);
  if (bytes) memset(r->unfenced, 0, ((size_t)bytes / 16 + 1) * sizeof *r->unfenced);
  poison(r->code->shared, r->code->shared_bytes);
  return true;
}

static void prepare_lane(run_t* r, int thread) {
  const launch_t* l = r->launch;
  fiber_t* f = &r->fibers[thread];
  fake_lane_t* lane = lane_of(r, thread);
  if (r->torn) forgive(r->stacks + (size_t)thread * FAKE_STACK + 4096, FAKE_STACK - 4096);
  *lane = (fake_lane_t){.thread = thread,
                        .threads = l->threads,
                        .block = r->block_x,
                        .block_y = (int)r->block_y,
                        .block_z = (int)r->block_z,
                        .rank = r->rank,
                        .blocks = l->grid[0],
                        .dynamic = r->dynamic,
                        .run = r};
  // Stacks begin at different places: else all would have the same lines of the caches.
  f->sp = fake_prepare((char*)lane - 64 - 192 * (size_t)(thread % 16), start_lane);
  f->state = RUNS;
  f->fake_stack = NULL;
  f->turn = 0;
  f->waited = !l->dependent;
  forget_copies(f);
  forget_products(f);
}

// Groups of which all threads have come to one SYNC_GROUP go on; whether there was any.
static bool release_groups(run_t* r) {
  bool any = false;
  for (int low = 0; r->group && low + r->group <= r->n_threads; low += r->group) {
    const fiber_t* f = &r->fibers[low];
    bool all = true;
    for (int t = low; t < low + r->group; t++)
      all &= r->fibers[t].state == AT_GROUP && r->fibers[t].line == f->line;
    if (!all) continue;
    r->group_epochs[low / r->group]++;
    for (int t = low; t < low + r->group; t++) r->fibers[t].state = RUNS;
    any = true;
  }
  return any;
}

static void release_block(run_t* r) {
  for (int t = 0; t < r->n_threads; t++) r->fibers[t].state = RUNS;
}

// All threads are at the same barrier: the block's, or the cluster's, where others may be awaited.
static void check_barrier(run_t* r) {
  const fiber_t* f = &r->fibers[0];
  for (int t = 0; t < r->n_threads; t++) {
    const fiber_t* g = &r->fibers[t];
    char where[2][96];
    if (g->state == f->state && g->line == f->line) continue;
    print_where(f, where[0], sizeof where[0]);
    print_where(g, where[1], sizeof where[1]);
    fail_block(r, "a barrier is not reached by all threads: thread 0 %s, thread %d %s", where[0], t,
               where[1]);
    return;
  }
  r->at_cluster = f->state == AT_CLUSTER;
  if (r->at_cluster) return;
  r->block_epoch++;
  release_block(r);
}

// Each product was asked for by all threads of a group of four warps.
static void check_groups(run_t* r) {
  for (int t = 0; t < r->n_threads; t++)
    if (r->fibers[t].products_digest != r->fibers[t - t % FAKE_GROUP].products_digest) {
      fail_block(r, "threads %d and %d of a group did not ask for the same products (wgmma)",
                 t - t % FAKE_GROUP, t);
      return;
    }
}

static void run_warps(run_t* r) {
  const int warps = (r->n_threads + FAKE_WARP - 1) / FAKE_WARP;
  const int first = (int)run_draw(r, (uint32_t)warps);
  const bool backwards = run_draw(r, 2);
  for (int i = 0; i < warps && !r->failed; i++) {
    const int w = backwards ? (first + warps - i) % warps : (first + i) % warps;
    const int low = w * FAKE_WARP, high = low + FAKE_WARP;
    run_warp(r, low, high < r->n_threads ? high : r->n_threads);
  }
}

static void begin_block(run_t* r, int64_t block) {
  const launch_t* l = r->launch;
  r->block = block;
  r->block_x = block % l->grid[0];
  r->block_y = block / l->grid[0] % l->grid[1];
  r->block_z = block / l->grid[0] / l->grid[1];
  r->n_threads = l->threads;
  r->random = seed_of((uint32_t)block, (uint32_t)l->threads);
  r->block_epoch++;
  r->cluster_epoch = 0;
  r->memory_epoch = r->block_epoch;
  r->any_waited = r->ended = r->at_cluster = false;
  r->n_barriers = r->n_bulks = r->tries = r->group = 0;
  if (!prepare_shared(r)) {
    fail_block(r, "there is no memory for its shared memory");
    return;
  }
  for (int t = 0; t < l->threads; t++) prepare_lane(r, t);
  r->torn = false;
}

static void check_end(run_t* r) {
  check_groups(r);
  if (!r->failed && r->n_bulks)
    fail_block(r, "line %d: a tile that was asked for, and nobody waited for", r->bulks[0].line);
  if (!r->failed && r->launch->dependent && !r->any_waited)
    fail_block(r, "a dependent launch without WAIT_FOR_INPUTS");
  if (!r->failed && is_arrived_at(r))
    fail_block(r, "it ends where others of the cluster may yet arrive at its barriers");
}

// Once all warps as far as they come.
static void run_round(run_t* r) {
  r->resumed = 0;
  run_warps(r);
  if (r->failed) return;
  r->ended = count(r, 0, r->n_threads, DONE) == r->n_threads;
  if (r->ended) {
    check_end(r);
    return;
  }
  const bool went_on = release_groups(r);
  const int relaxing = count(r, 0, r->n_threads, RELAXES);
  r->idle = !went_on && relaxing == r->resumed;
  for (int t = 0; relaxing && t < r->n_threads; t++)
    if (r->fibers[t].state == RELAXES) r->fibers[t].state = RUNS;
  if (!relaxing && !went_on) check_barrier(r);
}

// A block until it waits for others, or for a while: so one may be far ahead of another.
static void run_for_a_while(run_t* r) {
  while (!r->failed && !r->ended && !r->at_cluster) {
    run_round(r);
    if (r->n_cluster > 1 && (r->idle || !run_draw(r, 16))) return;
  }
}

static bool has_failed(run_t* const* blocks, int n) {
  bool any = false;
  for (int i = 0; i < n; i++) any |= blocks[i]->failed;
  return any;
}

// What blocks of the cluster have done is done; arrivals at this one's barriers, too.
static void order_memory(run_t* r) {
  r->memory_epoch = ++r->block_epoch;
  for (int i = 0; i < r->n_barriers; i++) r->barriers[i].shared = false;
}

// Goes on where all blocks have come to the cluster's barrier.
static void release_cluster(run_t* const* blocks, int n) {
  int at = 0, ended = 0;
  for (int i = 0; i < n; i++) at += blocks[i]->at_cluster, ended += blocks[i]->ended;
  for (int i = 0; at && ended && i < n; i++)
    if (blocks[i]->at_cluster) {
      fail_block(blocks[i], "a cluster's barrier is not reached by all: line %d, and a block ended",
                 blocks[i]->fibers[0].line);
      return;
    }
  if (at < n) return;
  for (int i = 0; i < n; i++) {
    if (blocks[i]->fibers[0].line != blocks[0]->fibers[0].line) {
      fail_block(blocks[i], "a cluster's barrier of line %d, and of line %d",
                 blocks[i]->fibers[0].line, blocks[0]->fibers[0].line);
      return;
    }
  }
  for (int i = 0; i < n; i++) {
    blocks[i]->cluster_epoch++;
    if (blocks[i]->orders_memory) order_memory(blocks[i]);
    blocks[i]->at_cluster = false;
    release_block(blocks[i]);
  }
}

static bool have_ended(run_t* const* blocks, int n) {
  bool all = true;
  for (int i = 0; i < n; i++) all &= blocks[i]->ended;
  return all;
}

void run_cluster(run_t* const* blocks, int n, int64_t first) {
  for (int i = 0; i < n; i++) {
    blocks[i]->cluster = blocks;
    blocks[i]->n_cluster = n;
    blocks[i]->rank = i;
    begin_block(blocks[i], first + i);
  }
  while (!has_failed(blocks, n) && !have_ended(blocks, n)) {
    run_for_a_while(blocks[n > 1 ? (int)run_draw(blocks[0], (uint32_t)n) : 0]);
    release_cluster(blocks, n);
  }
  for (int i = 0; i < n; i++) blocks[i]->torn = has_failed(blocks, n);
}
