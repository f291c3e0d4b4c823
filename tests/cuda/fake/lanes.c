// What lanes do with each other and with memory: the table that kernels reach (kernel/engine.h).
#include <stdio.h>
#include <string.h>

#include "internal.h"

static fiber_t* fiber_of(const fake_lane_t* lane) { return &lane->run->fibers[lane->thread]; }

static void* lane_global(fake_lane_t* lane, uint64_t address, int line) {
  if (!address) return NULL;
  void* p = device_memory(address, 0);
  if (!p)
    fail_lane(lane->run, ILLEGAL_ADDRESS, "line %d: GLOBAL of 0x%llx, where no memory is", line,
              (unsigned long long)address);
  return p;
}

static void lane_sync(fake_lane_t* lane, int line) { rest(lane->run, AT_BLOCK, 0, line); }

static void lane_sync_cluster(fake_lane_t* lane, int memory, int line) {
  lane->run->orders_memory = memory != 0;
  rest(lane->run, AT_CLUSTER, 0, line);
}

static void lane_sync_group(fake_lane_t* lane, int threads, int line) {
  run_t* r = lane->run;
  const int first = lane->thread - lane->thread % threads;
  if (threads % FAKE_GROUP || (r->group && r->group != threads) || first + threads > lane->threads)
    fail_lane(r, LAUNCH_FAILED, "line %d: SYNC_GROUP of %d threads from thread %d on of %d", line,
              threads, first, lane->threads);
  r->group = threads;
  rest(r, AT_GROUP, 0, line);
}

static void lane_sync_warp(fake_lane_t* lane, int line) {
  rest(lane->run, AT_WARP, FAKE_SYNC_WARP, line);
}

static void lane_atomic(fake_lane_t* lane, const void* p, size_t bytes, int line) {
  check_access(lane->run, lane->thread, p, bytes, IS_ATOMIC, NULL, line);
}

static void lane_relax(fake_lane_t* lane) { rest(lane->run, RELAXES, 0, 0); }

static void lane_fail(fake_lane_t* lane, const char* what, int line) {
  fail_lane(lane->run, LAUNCH_FAILED, "line %d: %s", line, what);
}

static void lane_wait_for_inputs(fake_lane_t* lane) {
  fiber_of(lane)->waited = true;
  lane->run->any_waited = true;
}

// ---- a warp -------------------------------------------------------------------------------------

// Two slots in turn: nobody gives for the operation after the next before all have come to the
// next, and so have read what was given for this one.
uint64_t* next_slot(fake_lane_t* lane) {
  fiber_t* f = fiber_of(lane);
  return f->slots[f->turn++ & 1];
}

static fiber_t* warp_of(const fake_lane_t* lane) {
  return fiber_of(lane) - lane->thread % FAKE_WARP;
}

// The slots of the operation that was last.
const uint64_t* given(const fake_lane_t* lane, int other) {
  return warp_of(lane)[other].slots[(fiber_of(lane)->turn - 1) & 1];
}

static bool takes_part(const fake_lane_t* lane, int other) {
  const int thread = lane->thread - lane->thread % FAKE_WARP + other;
  if (thread >= lane->threads) return false;
  const fiber_t* f = &lane->run->fibers[thread];
  // One that has ended behind this operation took part.
  return f->state != DONE || f->turn == fiber_of(lane)->turn;
}

// Of a lane that does not take part comes what nobody can use.
static uint64_t lane_shuffle(fake_lane_t* lane, fake_warp_op_t op, uint64_t x, int other,
                             int line) {
  const int own = lane->thread % FAKE_WARP;
  *next_slot(lane) = x;
  rest(lane->run, AT_WARP, op, line);
  int from = op == FAKE_SHUFFLE       ? other & (FAKE_WARP - 1)
             : op == FAKE_SHUFFLE_XOR ? own ^ other
             : op == FAKE_SHUFFLE_UP  ? own - other
                                      : own + other;
  if (from < 0 || from >= FAKE_WARP) from = own;
  return takes_part(lane, from) ? *given(lane, from) : ~(uint64_t)0;
}

static uint32_t lane_vote(fake_lane_t* lane, fake_warp_op_t op, uint64_t x, int line) {
  uint32_t mask = 0;
  *next_slot(lane) = x;
  rest(lane->run, AT_WARP, op, line);
  for (int i = 0; i < FAKE_WARP; i++)
    if (takes_part(lane, i) && (op == FAKE_BALLOT ? *given(lane, i) != 0 : *given(lane, i) == x))
      mask |= (uint32_t)1 << i;
  return mask;
}

static void lane_mma(fake_lane_t* lane, fake_warp_op_t op, void* d, const uint32_t* a,
                     const uint32_t* b, int line) {
  uint32_t* slot = (uint32_t*)(void*)next_slot(lane);
  memcpy(slot, d, 16);
  memcpy(slot + 4, a, 16);
  memcpy(slot + 8, b, 8);
  rest(lane->run, AT_WARP, op, line);
  memcpy(d, slot, 16);
}

// Row l % 8 of matrix l / 8 comes from lane l. Lane l gets, of each matrix, elements 2 (l % 4) and
// the next of row l / 4; transposed: of column l / 4.
static void lane_load_matrices(fake_lane_t* lane, fake_warp_op_t op, uint32_t* d, const void* row,
                               int line) {
  const int own = lane->thread % FAKE_WARP;
  if ((uintptr_t)row % 16)
    fail_lane(lane->run, LAUNCH_FAILED, "line %d: load_matrices of a row not at a multiple of 16",
              line);
  check_access(lane->run, lane->thread, row, 16, IS_READ, NULL, line);
  memcpy(next_slot(lane), row, 16);
  rest(lane->run, AT_WARP, op, line);
  for (int m = 0; m < 4; m++) {
    uint16_t pair[2];
    for (int i = 0; i < 2; i++) {
      const int at = 2 * (own % 4) + i;
      const bool turned = op == FAKE_LOAD_MATRICES_TRANSPOSED;
      const int r = turned ? at : own / 4, c = turned ? own / 4 : at;
      memcpy(&pair[i], (const char*)given(lane, 8 * m + r) + 2 * c, 2);
    }
    d[m] = pair[0] | (uint32_t)pair[1] << 16;
  }
}

const fake_engine_t fake_engine_of_lanes = {.global = lane_global,
                                            .sync = lane_sync,
                                            .sync_cluster = lane_sync_cluster,
                                            .sync_group = lane_sync_group,
                                            .sync_warp = lane_sync_warp,
                                            .shuffle = lane_shuffle,
                                            .vote = lane_vote,
                                            .mma = lane_mma,
                                            .matrices = lane_load_matrices,
                                            .power_of_steps = lane_power_of_steps,
                                            .copy = lane_copy,
                                            .commit_copies = lane_commit_copies,
                                            .wait_copies = lane_wait_copies,
                                            .wgmma = lane_wgmma,
                                            .wgmma_left = lane_wgmma_left,
                                            .wgmma_fence = lane_wgmma_fence,
                                            .wgmma_commit = lane_wgmma_commit,
                                            .wgmma_wait = lane_wgmma_wait,
                                            .fence_async = lane_fence_async,
                                            .shared_address = lane_shared_address,
                                            .shared_place = lane_shared_place,
                                            .make_barrier = lane_make_barrier,
                                            .barriers_made = lane_barriers_made,
                                            .arrive = lane_arrive,
                                            .arrive_in = lane_arrive_in,
                                            .try_barrier = lane_try_barrier,
                                            .read_of = lane_read_of,
                                            .bulk = lane_bulk,
                                            .wait_for_inputs = lane_wait_for_inputs,
                                            .access = lane_access,
                                            .atomic = lane_atomic,
                                            .relax = lane_relax,
                                            .fail = lane_fail};
