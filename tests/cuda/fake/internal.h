// What the files of the CUDA platform without a GPU have in common.
#ifndef TESTS_CUDA_FAKE_INTERNAL_H_
#define TESTS_CUDA_FAKE_INTERNAL_H_

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "backends/cuda/api.h"
#include "fake.h"
#include "kernel/engine.h"

#define EXPORT __attribute__((visibility("default")))

// Numbers of cuda.h.
enum {
  INVALID_VALUE = 1,
  INVALID_DEVICE = 101,
  INVALID_CONTEXT = 201,
  NO_BINARY_FOR_GPU = 209,
  INVALID_IMAGE = 200,
  NOT_FOUND = 500,
  NOT_READY = 600,
  ILLEGAL_ADDRESS = 700,
  OUT_OF_RESOURCES = 701,
  LAUNCH_FAILED = 719,
  NOT_PERMITTED = 800,
  CAPTURE_UNSUPPORTED = 900
};

// The driver's functions.
#define CUDA_FUNCTION(name, parameters) cuda_result_t name parameters;
#include "backends/cuda/api.inc"
#undef CUDA_FUNCTION

// ---- state.c: what goes wrong, and what is there ------------------------------------------------

typedef struct fake {
  pthread_mutex_t lock;  // of all that streams, events and memory are
  pthread_cond_t changed;
  fake_state_t state;
  uint64_t host;  // the host's clock, as fake_times_t tells it
} fake_t;
extern fake_t fake;
extern _Thread_local int context_stack;  // contexts that are current

// What a call gives before it does anything.
cuda_result_t called(const char* name, bool in_context);
#define CALLED(in_context)                                    \
  do {                                                        \
    const cuda_result_t early = called(__func__, in_context); \
    if (early) return early;                                  \
  } while (0)

void live(int n);
// Zeroed; NULL: no memory. Freed by gone(), or with all others by fake_end().
void* made(size_t bytes);
void gone(void* p);
// Random numbers by ASSAY_FAKE_SEED.
uint32_t draw(void);
uint32_t seed_of(uint32_t a, uint32_t b);
// Breaks the context, as a kernel that failed does.
void break_context(int result, const char* message);

// ---- memory.c -----------------------------------------------------------------------------------

#define TOTAL_DRY ((uint64_t)1 << 36)
enum { TOTAL = 1 << 28, ALIGNMENT = 256 };
// Device addresses are the host's with bits that no pointer has.
#define DEVICE_BITS ((cuda_pointer_t)1 << 60)

typedef struct range {
  char* at;  // the host's address
  size_t bytes;
  bool is_pinned;
  struct history* history;  // of checks; NULL: none yet
} range_t;

// The host's address of bytes that lie within one allocation; NULL: they do not.
char* device_memory(cuda_pointer_t p, size_t bytes);
bool is_pinned(const void* p);
// The allocation around a host address that a kernel has.
bool find_range(const void* p, range_t* out);
uint64_t memory_version(void);  // another one where allocations came or went
// The history of the allocation that begins at `at`, made now if need be; NULL: no memory.
struct history* add_history(const void* at);
bool release_memory(cuda_pointer_t p);  // false: there is no such allocation
void memory_end(void);

// ---- streams.c ----------------------------------------------------------------------------------

typedef enum work_kind {
  COPY,
  FILL,
  UPLOAD,
  DOWNLOAD,
  WRITE_VALUE,
  FREE,
  RECORD,
  AWAIT,
  CALL,
  LAUNCH
} work_kind_t;

typedef struct work {
  work_kind_t kind;
  cuda_pointer_t to, from;
  void* host;      // to or from which it is copied; what a function is called with
  bool owns_host;  // it is a copy of the caller's
  unsigned value;  // a byte, or a number that is written
  size_t bytes;
  cuda_event_t event;
  uint64_t moment;  // of the event
  void (*function)(void*);
  struct launch* launch;
  bool in_graph;   // the host puts it into the stream with others
  uint64_t ready;  // when the host has: it begins no earlier
  struct work* next;
} work_t;

struct cuda_event {
  uint64_t recorded, reached;  // moments
  struct timespec at;
  int users;
};
struct cuda_graph {
  work_t *first, **last;
  int users;
};
struct cuda_exec {
  cuda_graph_t graph;
};

// Done by the stream, or noted in what it captures. Takes over what the work owns.
cuda_result_t put(cuda_stream_t stream, const work_t* w);
void release_streams(void);  // they begin what they hold
bool is_capturing(cuda_stream_t stream);
void wait_for_stream(cuda_stream_t stream);
void release_graph(cuda_graph_t graph);
void work_deinit(work_t* w);
void streams_end(void);
// What the host does takes so long. Locked: it has waited until then.
void host_takes(int nanoseconds);
void host_waits(uint64_t until);

// ---- modules.c ----------------------------------------------------------------------------------

enum { MAX_SHARED = 227 << 10, SHARED_OF_ALL = 48 << 10, MAX_COPIES = 64, MAX_CLUSTER = 16 };

// One copy of compiled kernels: their shared memory is its own.
typedef struct code {
  void* library;
  char *image, *shared;  // where it is loaded; shared memory of a fixed size
  size_t image_bytes, shared_bytes;
} code_t;

struct cuda_kernel {
  cuda_module_t module;
  char name[128];
  fake_kernel_t kernel;
  int max_dynamic;
  bool asked_for;  // it: else there is no more for all of the kernel's shared memory
  size_t shared_bytes;
  struct cuda_kernel* next;
};

// The copy that belongs to a run; NULL: it could not be loaded.
const code_t* module_code(cuda_module_t m, int copy);
const fake_kernel_t* code_kernel(const code_t* c, const char* name);
const char* module_path(cuda_module_t m);

// ---- launches.c ---------------------------------------------------------------------------------

typedef struct launch {
  cuda_kernel_t kernel;
  int64_t grid[3], blocks;
  int threads, dynamic_bytes, cluster;
  bool dependent;
  int users;
  _Alignas(16) char args[];
} launch_t;

void use_launch(launch_t* l);
void release_launch(launch_t* l);
// Runs all blocks; 0, or what the context breaks by, with a message.
int run_launch(const launch_t* l, char* message, size_t bytes);

// ---- runs.c: blocks, of lanes as fibers ---------------------------------------------------------

typedef enum lane_state {
  RUNS,
  AT_CLUSTER,
  AT_BLOCK,
  AT_GROUP,
  AT_WARP,
  RELAXES,
  DONE
} lane_state_t;
enum { MAX_ASYNC = 256, MAX_PRODUCTS = 64, SLOT_WORDS = 12, MAX_SUMS = 128, MAX_TILES = 4 };

// A copy behind the thread's back (cp.async).
typedef struct late_copy {
  char* to;
  const char* from;
  int bytes, valid, line;
} late_copy_t;

// A product that the tensor cores do behind the thread's back (wgmma).
typedef struct late_product {
  fake_warp_op_t op;
  struct late_sums* sums;
  uint64_t x, w;  // descriptors
  // Instead of x: this lane's two rows; its registers, and what was in them.
  uint32_t left[2][8];
  const uint32_t* registers;
  uint32_t words[4];
  bool turned, adds;
  int line;
} late_product_t;

// Sums of products under way, which the lane does not see.
typedef struct late_sums {
  uint32_t* at;  // the lane's, of floats or integers; NULL: free
  int n, products;
  uint32_t sums[MAX_SUMS];
} late_sums_t;

typedef struct fiber {
  void* sp;
  void* fake_stack;  // of the address sanitizer
  lane_state_t state;
  fake_warp_op_t op;
  int line;
  unsigned turn;                  // which of the slots is the next operation's
  uint64_t slots[2][SLOT_WORDS];  // what the lane gives to the others of its warp
  late_copy_t copies[MAX_ASYNC];  // that were asked for
  int groups[MAX_ASYNC];          // copies of each group that was committed
  int n_copies, n_groups, open;   // open: copies that no group has yet
  bool waited;                    // for inputs
  late_product_t products[MAX_PRODUCTS];
  int product_groups[MAX_PRODUCTS];  // products of each group that was committed
  int n_products, n_product_groups, open_products;
  late_sums_t sums[MAX_TILES];
  bool fenced;               // registers, for products to come
  uint32_t fences;           // of shared memory
  uint64_t products_digest;  // of all so far: the same in a group of four warps
} fiber_t;

// A barrier in shared memory (mbarrier), by its place there.
enum { MAX_BARRIERS = 64, MAX_BULKS = 128, MAX_TRIES = 200000 };
typedef struct barrier {
  const char* at;
  int count, pending, made_by;
  int64_t bytes;  // that are expected and have not come
  unsigned phase;
  uint32_t epoch, cluster_epoch;  // of the block when it was made
  bool fenced;
  bool shared;  // another block of the cluster has arrived there, or asked for a tile
  unsigned shared_phase, seen_phase;  // when it last did; phases below that were waited for
} barrier_t;

// A tile that the copy engine was asked for: done when somebody waits for its barrier.
typedef struct late_bulk {
  char* to;
  const void* map;
  int coordinates[6], n;
  barrier_t* barrier;
  int line;
} late_bulk_t;

typedef struct seen {  // where an address was found
  const char *low, *high;
  struct history* history;
} seen_t;

typedef struct fake_run {
  int number;
  const launch_t* launch;
  const code_t* code;
  void (*enter)(const void* args);
  char* stacks;
  fiber_t* fibers;
  int n_threads, current;
  int64_t block, block_x, block_y, block_z;
  struct fake_run* const* cluster;  // the blocks that run together, this one among them
  int n_cluster, rank;
  uint32_t cluster_epoch;
  uint32_t memory_epoch;         // the block's behind the last barrier that orders memory
  bool orders_memory;            // the cluster's barrier that it is at
  bool ended, at_cluster, idle;  // idle: all that its lanes did was to look at barriers
  int resumed;                   // lanes, in this round
  char* dynamic;
  void* main_sp;
  void* main_fake_stack;
  const void* main_bottom;
  size_t main_size;
  uint32_t random;
  uint32_t* unfenced;  // for each 16 bytes of `dynamic` who wrote, and when (wgmma.c); 0: nobody
  barrier_t barriers[MAX_BARRIERS];
  late_bulk_t bulks[MAX_BULKS];
  int n_barriers, n_bulks, tries;  // tries: of barriers, since anything last happened to one
  bool any_waited, failed, torn;   // torn: lanes were left in the middle
  int result;
  char message[512];
  // Of checks.
  int group;  // threads of a group that has a barrier of its own; 0: none had one yet
  uint32_t block_epoch, group_epochs[FAKE_MAX_THREADS / FAKE_GROUP];
  uint32_t warp_epochs[FAKE_MAX_THREADS / FAKE_WARP];
  struct history *shared_history, *dynamic_history;
  seen_t seen[4];
  uint64_t seen_version;
  unsigned next_seen;
  struct fake_run* next;
} run_t;

run_t* take_run(void);  // NULL: no memory
void give_run(run_t* r);
// A cluster, of which this is the first block; one has failed where it goes wrong.
void run_cluster(run_t* const* blocks, int n, int64_t first);
uint32_t run_draw(run_t* r, uint32_t n);
// What a lane gives to its warp at its next operation, and what others gave at the last one.
uint64_t* next_slot(fake_lane_t* lane);
const uint64_t* given(const fake_lane_t* lane, int other);
// Called by a lane: notes what is wrong; the block goes no further.
void fail_lane(run_t* r, int result, const char* format, ...) __attribute__((format(printf, 3, 4)));
// The lane that runs hands over until all have come to the same.
void rest(run_t* r, lane_state_t state, fake_warp_op_t op, int line);
const char* op_name(fake_warp_op_t op);
fake_lane_t* lane_of(const run_t* r, int thread);

extern const fake_engine_t fake_engine_of_lanes;

// ---- copying.c, tensor.c ------------------------------------------------------------------------

void lane_copy(fake_lane_t* lane, void* shared, const void* global, int bytes, int valid, int line);
void lane_commit_copies(fake_lane_t* lane);
void lane_wait_copies(fake_lane_t* lane, int left, int line);
void forget_copies(fiber_t* f);

// ---- exp2.c -------------------------------------------------------------------------------------

float lane_power_of_steps(fake_lane_t* lane, float x, int line);

// ---- wgmma.c ------------------------------------------------------------------------------------

void lane_wgmma(fake_lane_t* lane, fake_warp_op_t op, void* d, int n, uint64_t x, uint64_t w,
                int turned, int adds, int line);
void lane_wgmma_left(fake_lane_t* lane, fake_warp_op_t op, float* d, int n, const uint32_t* x,
                     uint64_t w, int turned, int adds, int line);
void lane_wgmma_fence(fake_lane_t* lane, int line);
void lane_wgmma_commit(fake_lane_t* lane, int line);
void lane_wgmma_wait(fake_lane_t* lane, int left, int line);
void lane_fence_async(fake_lane_t* lane);
uint32_t lane_shared_address(fake_lane_t* lane, const void* p, int line);
void* lane_shared_place(fake_lane_t* lane, uint32_t at, int line);
void forget_products(fiber_t* f);
// A write into dynamic shared memory.
void note_unfenced(run_t* r, int thread, const char* at, size_t bytes);

// ---- bulk.c -------------------------------------------------------------------------------------

void lane_make_barrier(fake_lane_t* lane, void* barrier, int arrivals, int line);
void lane_barriers_made(fake_lane_t* lane);
void lane_arrive(fake_lane_t* lane, void* barrier, int bytes, int line);
void lane_arrive_in(fake_lane_t* lane, void* barrier, int rank, int line);
int lane_try_barrier(fake_lane_t* lane, void* barrier, int parity, int line);
void lane_bulk(fake_lane_t* lane, void* shared, const void* map, const int* coordinates, int n,
               unsigned blocks, void* barrier, int line);
void lane_read_of(fake_lane_t* lane, int rank, const void* p, uint32_t* words, int n, int line);
// The block ends: whether another one of its cluster may yet arrive at a barrier of its.
bool is_arrived_at(const run_t* r);

// d + x w of n terms, as tensor cores compute it; elements of 16 bits as `op` says.
float tensor_sum(fake_warp_op_t op, const uint16_t* x, const uint16_t* w, int n, float d);
float tensor_sum_tf32(const uint32_t* x, const uint32_t* w, int n, float d);
// The same of bytes, modulo 2^32.
uint32_t tensor_integer_sum(fake_warp_op_t op, const uint8_t* x, const uint8_t* w, int n,
                            uint32_t d);

// All of a warp's d += a b: slots of its 32 lanes hold d, a and b; d is replaced.
void warp_mma(fiber_t* warp, unsigned slot, fake_warp_op_t op);

// ---- checks.c -----------------------------------------------------------------------------------

typedef enum access_kind { IS_READ, IS_WRITE, IS_ATOMIC, IS_ASKED } access_kind_t;

struct history* make_history(size_t bytes);
void free_history(struct history* s);
void clear_history(struct history* s);
// An access by a lane, at `at` in its code, or by an operation at a line (at: NULL).
void lane_access(fake_lane_t* lane, const void* p, size_t bytes, int is_write, const void* at);
void check_access(run_t* r, int thread, const void* p, size_t bytes, access_kind_t kind,
                  const void* at, int line);
// The same where a lane of another block of the cluster reads a run's shared memory.
void check_read_of(run_t* r, fake_lane_t* lane, const char* p, size_t bytes, int line);
void start_checks(void);  // of a launch, by the thread of its stream
// The host has waited for all launches of a stream so far.
void checks_waited_for(pthread_t stream);

#endif  // TESTS_CUDA_FAKE_INTERNAL_H_
