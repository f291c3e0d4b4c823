// Each access of a kernel to memory: within bounds, and not in a race with another lane's.
//
// For every byte it is kept who wrote and who read last, and when: two accesses of which one
// writes race if different lanes made them with no barrier in between: of the block, or of the
// group of four warps or the warp where it is one; of different blocks, one of their cluster that
// orders memory.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "internal.h"

enum { LARGE = 1 << 16 };

// A cell, from the lowest bit: the epochs of the warp, of the group and of the block, the block's
// number, the thread's, how (below), and whether there was any access.
typedef _Atomic uint64_t cell_t;
enum { WARP_BITS = 13, GROUP_BITS = 11, BLOCK_BITS = 13, NUMBER_BITS = 13, THREAD_BITS = 10 };
enum {
  GROUP_AT = WARP_BITS,
  BLOCK_AT = GROUP_AT + GROUP_BITS,
  NUMBER_AT = BLOCK_AT + BLOCK_BITS,
  THREAD_AT = NUMBER_AT + NUMBER_BITS,
  HOW_AT = THREAD_AT + THREAD_BITS,
  ANY_AT = 63
};
_Static_assert(HOW_AT + 3 == ANY_AT, "a cell has 64 bits");
enum {
  BY_ONE,
  BY_LANES,
  BY_WARPS,
  BY_GROUPS,
  BY_BLOCKS,
  WAS_ASKED = BY_LANES,
  WAS_ATOMIC = BY_WARPS
};

struct history {
  size_t n, mapped;
  cell_t *written, *read;
  atomic_uint launch;           // of which the cells are
  atomic_uint last_written_by;  // a launch
};

static atomic_uint this_launch = 1;

// The last launches: by which stream's thread, and whether the host has waited for it since.
enum { NEAR = 2 };  // launches that a dependent one may run beside
static struct {
  pthread_mutex_t lock;
  struct {
    pthread_t by;
    unsigned number;
    bool waited_for;
  } at[NEAR + 1];
} recent = {.lock = PTHREAD_MUTEX_INITIALIZER};

void start_checks(void) {
  pthread_mutex_lock(&recent.lock);
  const unsigned now = atomic_fetch_add(&this_launch, 1) + 1;
  recent.at[now % (NEAR + 1)].by = pthread_self();
  recent.at[now % (NEAR + 1)].number = now;
  recent.at[now % (NEAR + 1)].waited_for = false;
  pthread_mutex_unlock(&recent.lock);
}

void checks_waited_for(pthread_t stream) {
  pthread_mutex_lock(&recent.lock);
  for (int i = 0; i <= NEAR; i++)
    if (pthread_equal(recent.at[i].by, stream)) recent.at[i].waited_for = true;
  pthread_mutex_unlock(&recent.lock);
}

// Whether what a launch wrote is there for all that comes now, or may yet be on its way.
static bool is_settled(unsigned launch, unsigned now) {
  if (!launch || now - launch > NEAR) return true;
  pthread_mutex_lock(&recent.lock);
  const bool yes =
      recent.at[launch % (NEAR + 1)].number != launch || recent.at[launch % (NEAR + 1)].waited_for;
  pthread_mutex_unlock(&recent.lock);
  return yes;
}

struct history* make_history(size_t bytes) {
  struct history* s = calloc(1, sizeof *s);
  if (!s) return NULL;
  s->n = bytes + 1;
  s->mapped = 2 * s->n * sizeof(cell_t);
  void* at = mmap(NULL, s->mapped, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return free(s), NULL;
  s->written = at;
  s->read = s->written + s->n;
  return s;
}

void free_history(struct history* s) {
  if (!s) return;
  munmap((void*)s->written, s->mapped);
  free(s);
}

void clear_history(struct history* s) {
  if (s->mapped > LARGE)
    madvise((void*)s->written, s->mapped, MADV_DONTNEED);
  else
    memset((void*)s->written, 0, s->mapped);
}

// ---- where --------------------------------------------------------------------------------------

typedef struct place {
  const char* low;
  size_t bytes;
  struct history* history;
  bool is_shared, is_constant;
} place_t;

// Memory of the device comes into being as the launch sees it for the first time.
static struct history* history_of(const range_t* range) {
  if (range->history) return range->history;
  return add_history(range->at);
}

static bool in_global(run_t* r, const char* p, place_t* out) {
  const uint64_t version = memory_version();
  if (r->seen_version != version) memset(r->seen, 0, sizeof r->seen);
  r->seen_version = version;
  for (int i = 0; i < 4; i++)
    if (p >= r->seen[i].low && p < r->seen[i].high) {
      *out = (place_t){r->seen[i].low, (size_t)(r->seen[i].high - r->seen[i].low),
                       r->seen[i].history, false, false};
      return true;
    }
  range_t range;
  if (!find_range(p, &range)) return false;
  struct history* s = history_of(&range);
  if (s) r->seen[r->next_seen++ % 4] = (seen_t){range.at, range.at + range.bytes, s};
  *out = (place_t){range.at, range.bytes, s, false, false};
  return true;
}

static bool find_place(run_t* r, const char* p, place_t* out) {
  const code_t* c = r->code;
  const size_t dynamic = (size_t)r->launch->dynamic_bytes;
  if (p >= c->shared && p < c->shared + c->shared_bytes)
    *out = (place_t){c->shared, c->shared_bytes, r->shared_history, true, false};
  else if (p >= r->dynamic && p < r->dynamic + dynamic)
    *out = (place_t){r->dynamic, dynamic, r->dynamic_history, true, false};
  else if (p >= c->image && p < c->image + c->image_bytes)
    *out = (place_t){c->image, c->image_bytes, NULL, false, true};
  else
    return in_global(r, p, out);
  return true;
}

// ---- what is said -------------------------------------------------------------------------------

// "rows.cu:31", as the compiler noted it.
static void print_line(const run_t* r, const void* at, int line, char* out, size_t bytes) {
  char command[700];
  snprintf(out, bytes, "line %d", line);
  if (!at) return;
  snprintf(command, sizeof command, "addr2line -s -e '%s' 0x%llx 2>/dev/null",
           module_path(r->launch->kernel->module),
           (unsigned long long)((uintptr_t)at - 1 - (uintptr_t)r->code->image));
  FILE* f = popen(command, "r");  // NOLINT(cert-env33-c)
  if (f) {
    if (fgets(out, (int)bytes, f)) out[strcspn(out, " \n")] = 0;
    pclose(f);
  }
}

typedef struct access {
  run_t* run;
  int thread;
  access_kind_t kind;
  const void* at;
  int line;
} access_t;

static uint64_t bits(uint64_t x, int at, int n) { return x >> at & (((uint64_t)1 << n) - 1); }

static const char* verb(const access_t* a) {
  return a->kind == IS_READ     ? "reads"
         : a->kind == IS_WRITE  ? "writes"
         : a->kind == IS_ATOMIC ? "changes"
                                : "has copied";
}

static void fail_race(const access_t* a, const place_t* p, size_t offset, uint64_t other,
                      const char* did) {
  char where[128];
  print_line(a->run, a->at, a->line, where, sizeof where);
  const unsigned thread = (unsigned)bits(other, THREAD_AT, THREAD_BITS);
  const unsigned block = (unsigned)bits(other, NUMBER_AT, NUMBER_BITS);
  char who[64];
  if (p->is_shared)
    snprintf(who, sizeof who, "thread %u", thread);
  else
    snprintf(who, sizeof who, "thread %u of block %u", thread, block);
  fail_lane(a->run, LAUNCH_FAILED,
            "%s: a race: thread %d %s byte %zu of %s, which %s %s with no barrier in between",
            where, a->thread, verb(a), offset, p->is_shared ? "shared memory" : "an allocation",
            who, did);
}

// ---- races --------------------------------------------------------------------------------------

static uint64_t cell_now(const run_t* r, int thread, bool shared) {
  return bits(r->warp_epochs[thread / FAKE_WARP], 0, WARP_BITS) |
         (r->group ? bits(r->group_epochs[thread / r->group], 0, GROUP_BITS) << GROUP_AT : 0) |
         bits(r->block_epoch, 0, BLOCK_BITS) << BLOCK_AT |
         (shared ? 0 : bits((uint64_t)r->block, 0, NUMBER_BITS) << NUMBER_AT) |
         (uint64_t)thread << THREAD_AT | (uint64_t)1 << ANY_AT;
}

static unsigned how(uint64_t c) { return (unsigned)bits(c, HOW_AT, 3); }
static bool same(uint64_t a, uint64_t b, int at, int n) { return !bits(a ^ b, at, n); }
static bool same_block(uint64_t a, uint64_t b) { return same(a, b, NUMBER_AT, NUMBER_BITS); }
static bool same_thread(uint64_t a, uint64_t b) {
  return same(a, b, NUMBER_AT, NUMBER_BITS + THREAD_BITS);
}
static bool same_warp(uint64_t a, uint64_t b) { return same(a, b, THREAD_AT + 5, THREAD_BITS - 5); }
static bool same_group(const run_t* r, uint64_t a, uint64_t b) {
  return r->group && bits(a, THREAD_AT, THREAD_BITS) / (unsigned)r->group ==
                         bits(b, THREAD_AT, THREAD_BITS) / (unsigned)r->group;
}
static bool same_block_epoch(uint64_t a, uint64_t b) { return same(a, b, BLOCK_AT, BLOCK_BITS); }
static bool same_group_epoch(uint64_t a, uint64_t b) { return same(a, b, GROUP_AT, GROUP_BITS); }
static bool same_warp_epoch(uint64_t a, uint64_t b) { return same(a, b, 0, WARP_BITS); }

// Whether a barrier of the cluster, which orders memory, lies behind what another of its blocks
// did.
static bool is_before_cluster(const run_t* r, uint64_t before) {
  for (int i = 0; i < r->n_cluster; i++) {
    const run_t* other = r->cluster[i];
    if (bits((uint64_t)other->block, 0, NUMBER_BITS) != bits(before, NUMBER_AT, NUMBER_BITS))
      continue;
    return !bits(other->memory_epoch - bits(before, BLOCK_AT, BLOCK_BITS) - 1, BLOCK_BITS - 1, 1);
  }
  return false;
}

// Whether nothing orders an earlier access and one of now.
static bool is_open(const run_t* r, uint64_t before, uint64_t now, unsigned by) {
  if (by == BY_BLOCKS) return true;
  if (!same_block(before, now)) return !is_before_cluster(r, before);
  if (!same_block_epoch(before, now)) return false;
  if (by == BY_GROUPS || (r->group && !same_group(r, before, now))) return true;
  if (!same_group_epoch(before, now)) return false;
  if (by == BY_WARPS || !same_warp(before, now)) return true;
  if (!same_warp_epoch(before, now)) return false;
  return by == BY_LANES || !same_thread(before, now);
}

// Who reads, with who has read before.
static uint64_t with_reader(const run_t* r, uint64_t before, uint64_t now) {
  unsigned by = how(before);
  if (!before) return now;
  if (!same_block(before, now))
    by = BY_BLOCKS;
  else if (by == BY_BLOCKS)
    ;
  else if (!same_block_epoch(before, now))
    return now;
  else if (r->group && !same_group(r, before, now))
    by = BY_GROUPS;
  else if (by == BY_GROUPS)
    ;
  else if (!same_group_epoch(before, now))
    return now;
  else if (!same_warp(before, now))
    by = BY_WARPS;
  else if (by == BY_WARPS)
    ;
  else if (!same_warp_epoch(before, now))
    return now;
  else if (!same_thread(before, now))
    by = BY_LANES;
  return now | (uint64_t)by << HOW_AT;
}

static void check_cell(const access_t* a, const place_t* p, size_t i) {
  struct history* s = p->history;
  const uint64_t now = cell_now(a->run, a->thread, p->is_shared);
  const uint64_t w = atomic_load_explicit(&s->written[i], memory_order_relaxed);
  const uint64_t rd = atomic_load_explicit(&s->read[i], memory_order_relaxed);
  const bool both_atomic = a->kind == IS_ATOMIC && how(w) == WAS_ATOMIC;
  if (w && !both_atomic && is_open(a->run, w, now, BY_ONE)) fail_race(a, p, i, w, "wrote");
  if (a->kind == IS_READ) {
    if (w && how(w) == WAS_ASKED) fail_race(a, p, i, w, "has not brought yet, or brought");
    atomic_store_explicit(&s->read[i], with_reader(a->run, rd, now), memory_order_relaxed);
    return;
  }
  if (rd && is_open(a->run, rd, now, how(rd))) fail_race(a, p, i, rd, "reads");
  uint64_t next = now;
  if (a->kind == IS_ASKED) next |= (uint64_t)WAS_ASKED << HOW_AT;
  if (a->kind == IS_ATOMIC) next |= (uint64_t)WAS_ATOMIC << HOW_AT;
  atomic_store_explicit(&s->written[i], next, memory_order_relaxed);
}

// What another launch did is of no interest.
static void refresh(struct history* s, bool shared) {
  const unsigned now = atomic_load_explicit(&this_launch, memory_order_relaxed);
  if (shared || atomic_load_explicit(&s->launch, memory_order_acquire) == now) return;
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&lock);
  if (atomic_load(&s->launch) != now) {
    clear_history(s);
    atomic_store_explicit(&s->launch, now, memory_order_release);
  }
  pthread_mutex_unlock(&lock);
}

static void check_order(const access_t* a, const place_t* p) {
  const run_t* r = a->run;
  struct history* s = p->history;
  const unsigned now = atomic_load_explicit(&this_launch, memory_order_relaxed);
  if (p->is_shared) return;
  if (!r->fibers[a->thread].waited) {
    const unsigned last = atomic_load_explicit(&s->last_written_by, memory_order_relaxed);
    char where[128];
    if (a->kind != IS_READ || !is_settled(last, now)) {
      print_line(r, a->at, a->line, where, sizeof where);
      fail_lane(a->run, LAUNCH_FAILED,
                "%s: thread %d %s memory that kernels before this one use, before "
                "WAIT_FOR_INPUTS",
                where, a->thread, verb(a));
    }
  }
  if (a->kind != IS_READ) atomic_store_explicit(&s->last_written_by, now, memory_order_relaxed);
}

// ---- accesses -----------------------------------------------------------------------------------

void check_access(run_t* r, int thread, const void* at, size_t bytes, access_kind_t kind,
                  const void* code, int line) {
  const access_t a = {r, thread, kind, code, line};
  const char* p = at;
  place_t place = {NULL, 0, NULL, false, false};
  char where[128];
  const bool found = find_place(r, p, &place);
  if (!found || bytes > place.bytes - (size_t)(p - place.low) ||
      (place.is_constant && kind != IS_READ)) {
    print_line(r, code, line, where, sizeof where);
    if (found)
      fail_lane(r, ILLEGAL_ADDRESS, "%s: thread %d %s %zu bytes at byte %zu of %s of %zu bytes",
                where, thread, verb(&a), bytes, (size_t)(p - place.low),
                place.is_constant
                    ? "the code's image, behind its shared memory or in its constants,"
                : place.is_shared ? "shared memory"
                                  : "an allocation",
                place.bytes);
    fail_lane(r, ILLEGAL_ADDRESS, "%s: thread %d %s %zu bytes out of all memory", where, thread,
              verb(&a), bytes);
  }
  if (kind == IS_WRITE && place.low == r->dynamic && r->dynamic) note_unfenced(r, thread, p, bytes);
  if (!place.history) return;
  refresh(place.history, place.is_shared);
  check_order(&a, &place);
  const size_t offset = (size_t)(p - place.low);
  for (size_t i = 0; i < bytes; i++) check_cell(&a, &place, offset + i);
}

void lane_access(fake_lane_t* lane, const void* p, size_t bytes, int is_write, const void* at) {
  if (is_write & FAKE_ALIGNED && (uintptr_t)p % bytes) {
    char where[128];
    print_line(lane->run, at, 0, where, sizeof where);
    fail_lane(lane->run, ILLEGAL_ADDRESS, "%s: thread %d: %zu bytes at no multiple of them", where,
              lane->thread, bytes);
  }
  check_access(lane->run, lane->thread, p, bytes, is_write & 1 ? IS_WRITE : IS_READ, at, 0);
}

// What is read was written before the last SYNC_CLUSTER_MEMORY, and is not written again before
// another barrier (of the block: whether it is the cluster's is not seen).
void check_read_of(run_t* r, fake_lane_t* lane, const char* p, size_t bytes, int line) {
  struct history* s = r->dynamic_history;
  const size_t offset = (size_t)(p - r->dynamic);
  if (p < r->dynamic || offset + bytes > (size_t)r->launch->dynamic_bytes || offset % bytes)
    fail_lane(lane->run, ILLEGAL_ADDRESS,
              "line %d: thread %d reads %zu bytes at byte %lld of another block's shared memory",
              line, lane->thread, bytes, (long long)(p - r->dynamic));
  for (size_t i = offset; i < offset + bytes; i++) {
    const uint64_t w = atomic_load_explicit(&s->written[i], memory_order_relaxed);
    const uint64_t now = cell_now(r, lane->thread, true);
    const uint64_t age = bits(r->block_epoch - bits(w, BLOCK_AT, BLOCK_BITS), 0, BLOCK_BITS);
    if (w && age <= r->block_epoch - r->memory_epoch)
      fail_lane(lane->run, LAUNCH_FAILED,
                "line %d: a race: thread %d reads shared memory of block %d of the cluster, which "
                "thread %u there wrote with no SYNC_CLUSTER_MEMORY in between",
                line, lane->thread, r->rank, (unsigned)bits(w, THREAD_AT, THREAD_BITS));
    atomic_store_explicit(&s->read[i], now | (uint64_t)BY_GROUPS << HOW_AT, memory_order_relaxed);
  }
}
