// A device of its own address space in host memory, whose faults are on purpose.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mock.h"

// On x86-64 no address of a process has bit 47 unlike those above it, on others none is that high:
// to follow one of these is a fault.
#define TAG 0x00d0000000000000ull
enum {
  ALIGNMENT = MOCK_ALIGNMENT,
  BYTE_FREE = 0xff
};  // NaN in all float formats of 16 bits and more

typedef struct block {
  assay_device_ptr_t at;
  size_t bytes;
  char* host;
  struct block* next;
} block_t;

// One device, however often it is opened.
static struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;  // an event has come
  block_t* blocks;
  uint64_t next;  // the address of the next allocation: none is given twice
  size_t used, limit;
  int opened;
  bool lost;
  mock_fault_t fault;
  int countdown;
  unsigned seed;
  int delay;
  bool no_captures;
  int64_t live;
} device = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, .next = TAG + (1 << 20)};

static void lock(void) { pthread_mutex_lock(&device.lock); }
static void unlock(void) { pthread_mutex_unlock(&device.lock); }

static void count(int n) {
  lock();
  device.live += n;
  unlock();
}

// ---- faults -------------------------------------------------------------------------------------

void mock_fail(mock_fault_t what, int nth) {
  lock();
  device.fault = nth ? what : MOCK_NO_FAULT;
  device.countdown = nth;
  unlock();
}

// Whether this one fails.
static bool is_due(mock_fault_t what) {
  lock();
  bool due = device.fault == what && device.countdown > 0 && --device.countdown == 0;
  if (due && what == MOCK_FAULT_LOST) device.lost = true;
  unlock();
  return due;
}

static bool is_lost(void) {
  lock();
  const bool lost = device.lost;
  unlock();
  return lost;
}

static assay_status_t lost(void) {
  return ASSAY_ERROR(ASSAY_DEVICE, "the device is lost; a new process has to open it again");
}

void mock_delay(unsigned seed, int microseconds) {
  lock();
  device.seed = seed;
  device.delay = microseconds;
  unlock();
}

void mock_captures(bool on) {
  lock();
  device.no_captures = !on;
  unlock();
}

void mock_memory(size_t bytes) {
  lock();
  device.limit = bytes;
  unlock();
}

int64_t mock_live(void) {
  lock();
  const int64_t n = device.live;
  unlock();
  return n;
}

// ---- memory -------------------------------------------------------------------------------------

assay_status_t mock_alloc(size_t bytes, assay_device_ptr_t* out) {
  if (is_due(MOCK_FAULT_ALLOC))
    return ASSAY_ERROR(ASSAY_NO_MEMORY, "the device has no room for %zu bytes", bytes);
  block_t* b = malloc(sizeof *b);
  // To the byte, so that address sanitizer sees what lies behind.
  void* host = NULL;
  if (posix_memalign(&host, ALIGNMENT, bytes ? bytes : 1) != 0) host = NULL;
  lock();
  const bool fits = b && host && (!device.limit || bytes <= device.limit - device.used);
  if (fits) {
    *b = (block_t){device.next, bytes, host, device.blocks};
    device.blocks = b;
    device.next += (bytes / ALIGNMENT + 2) * ALIGNMENT;
    device.used += bytes;
    device.live++;
    *out = b->at;
  }
  const size_t used = device.used;
  unlock();
  if (fits) {
    memset(host, BYTE_FREE, bytes);
    return NULL;
  }
  free(b);
  free(host);
  return ASSAY_ERROR(ASSAY_NO_MEMORY, "the device has no room for %zu bytes; %zu are taken", bytes,
                     used);
}

void mock_free(assay_device_ptr_t p) {
  lock();
  block_t** at = &device.blocks;
  while (*at && (*at)->at != p) at = &(*at)->next;
  block_t* b = *at;
  if (b) {
    *at = b->next;
    device.used -= b->bytes;
    device.live--;
  }
  unlock();
  if (!b && p) abort();  // freed twice, or never allocated: our mistake
  if (b) free(b->host);
  free(b);
}

assay_status_t mock_at(assay_device_ptr_t p, size_t bytes, void** out) {
  lock();
  const block_t* b = device.blocks;
  while (b && !(p >= b->at && p - b->at <= b->bytes && bytes <= b->bytes - (p - b->at)))
    b = b->next;
  if (b) *out = b->host + (p - b->at);
  unlock();
  if (b) return NULL;
  return ASSAY_ERROR(ASSAY_DEVICE, "illegal address: %zu bytes at %#llx", bytes,
                     (unsigned long long)p);
}

assay_status_t mock_write(assay_device_ptr_t p, const void* from, size_t bytes) {
  void* to;
  ASSAY_TRY(mock_at(p, bytes, &to));
  if (bytes) memcpy(to, from, bytes);
  return NULL;
}

assay_status_t mock_read(assay_device_ptr_t p, void* to, size_t bytes) {
  void* from;
  ASSAY_TRY(mock_at(p, bytes, &from));
  if (bytes) memcpy(to, from, bytes);
  return NULL;
}

// ---- queues -------------------------------------------------------------------------------------

typedef struct mock_event {
  assay_event_t base;
  uint64_t recorded, come;  // how often; under the device's lock
  struct timespec when;
} mock_event_t;

typedef struct mock_capture mock_capture_t;

typedef enum op_kind {
  OP_WORK,
  OP_UPLOAD,
  OP_DOWNLOAD,
  OP_COPY,
  OP_FILL,
  OP_FREE,
  OP_MARK,
  OP_RECORD,
  OP_ORDER,
  OP_LAUNCH,
} op_kind_t;

typedef struct op {
  op_kind_t kind;
  assay_device_ptr_t from, to;
  const void* host_from;
  void* host_to;
  size_t bytes;
  uint8_t byte;
  int64_t mark;
  uint64_t turn;  // of an event
  mock_event_t* event;
  mock_capture_t* capture;
  mock_work_t work;
  struct op* next;
} op_t;

typedef struct list {
  op_t *first, **end;
} list_t;

struct mock_capture {
  assay_capture_t base;
  list_t ops;
  int under_way;  // launches that have not ended; under the device's lock
};

typedef struct mock_queue {
  assay_queue_t base;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  list_t ops;
  bool working, stop;
  assay_status_t failed;  // the first failure; what follows is not done
  int64_t mark;           // of what is done now, or has failed
  list_t* capture;        // NULL: none is under way
  list_t captured;
  assay_status_t capture_failed;
  uint32_t random;
} mock_queue_t;

static void list_clear(list_t* l) {
  for (op_t *o = l->first, *next; o; o = next) {
    next = o->next;
    if (o->work.forget) o->work.forget(o->work.user);
    free(o);
  }
  *l = (list_t){0};
}

static void list_add(list_t* l, op_t* o) {
  o->next = NULL;
  *(l->first ? l->end : &l->first) = o;
  l->end = &o->next;
}

static void pause_by_chance(mock_queue_t* q) {
  lock();
  const int delay = device.delay;
  unlock();
  q->random = q->random * 1664525u + 1013904223u;
  if (delay && q->random >> 29 == 0) usleep((q->random >> 8) % (unsigned)delay);
}

static assay_status_t copy(const op_t* o) {
  void *from = NULL, *to = NULL;
  ASSAY_TRY(mock_at(o->from, o->bytes, &from));
  ASSAY_TRY(mock_at(o->to, o->bytes, &to));
  memmove(to, from, o->bytes);
  return NULL;
}

static assay_status_t fill(const op_t* o) {
  void* to = NULL;
  ASSAY_TRY(mock_at(o->to, o->bytes, &to));
  memset(to, o->byte, o->bytes);
  return NULL;
}

static void come(mock_event_t* e, uint64_t turn) {
  lock();
  e->come = turn;
  clock_gettime(CLOCK_MONOTONIC, &e->when);
  pthread_cond_broadcast(&device.changed);
  unlock();
}

static void await(mock_event_t* e, uint64_t turn) {
  lock();
  while (e->come < turn) pthread_cond_wait(&device.changed, &device.lock);
  unlock();
}

static assay_status_t work(const op_t* o) {
  if (is_due(MOCK_FAULT_LOST)) return ASSAY_ERROR(ASSAY_DEVICE, "the device fell off the bus");
  if (is_due(MOCK_FAULT_KERNEL)) return ASSAY_ERROR(ASSAY_DEVICE, "the kernel failed");
  return o->work.work(o->work.user);
}

static assay_status_t do_op(mock_queue_t* q, const op_t* o);

static assay_status_t do_all(mock_queue_t* q, const mock_capture_t* c) {
  if (is_due(MOCK_FAULT_LAUNCH)) return ASSAY_ERROR(ASSAY_DEVICE, "the launch failed");
  for (const op_t* o = c->ops.first; o; o = o->next) ASSAY_TRY(do_op(q, o));
  return NULL;
}

static assay_status_t do_op(mock_queue_t* q, const op_t* o) {
  pause_by_chance(q);
  if (is_lost() && o->kind != OP_FREE && o->kind != OP_MARK) return lost();
  switch (o->kind) {
    case OP_WORK:
      return work(o);
    case OP_UPLOAD:
      if (is_due(MOCK_FAULT_UPLOAD)) return ASSAY_ERROR(ASSAY_DEVICE, "the copy failed");
      return mock_write(o->to, o->host_from, o->bytes);
    case OP_DOWNLOAD:
      if (is_due(MOCK_FAULT_DOWNLOAD)) return ASSAY_ERROR(ASSAY_DEVICE, "the copy failed");
      return mock_read(o->from, o->host_to, o->bytes);
    case OP_COPY:
      return copy(o);
    case OP_FILL:
      return fill(o);
    case OP_MARK:
      q->mark = o->mark;
      return NULL;
    case OP_ORDER:
      return await(o->event, o->turn), NULL;
    case OP_LAUNCH:
      return do_all(q, o->capture);
    default:
      return NULL;
  }
}

// What has to happen whether the queue has failed or not.
static void conclude(const op_t* o) {
  if (o->kind == OP_FREE) mock_free(o->from);
  if (o->kind == OP_RECORD) come(o->event, o->turn);
  if (o->kind != OP_LAUNCH) return;
  lock();
  o->capture->under_way--;
  pthread_cond_broadcast(&device.changed);
  unlock();
}

static void* serve(void* p) {
  mock_queue_t* q = p;
  pthread_mutex_lock(&q->lock);
  for (;;) {
    while (!q->ops.first && !q->stop) pthread_cond_wait(&q->changed, &q->lock);
    op_t* o = q->ops.first;
    if (!o) break;
    q->ops.first = o->next;
    q->working = true;
    const bool skip = q->failed != NULL;
    pthread_mutex_unlock(&q->lock);
    assay_status_t st = skip ? NULL : do_op(q, o);
    conclude(o);
    if (o->work.forget) o->work.forget(o->work.user);
    free(o);
    pthread_mutex_lock(&q->lock);
    if (st) q->failed = st;
    q->working = false;
    pthread_cond_broadcast(&q->changed);
  }
  pthread_mutex_unlock(&q->lock);
  return NULL;
}

static bool is_allowed_in_captures(op_kind_t kind) {
  return kind == OP_WORK || kind == OP_COPY || kind == OP_FILL || kind == OP_MARK;
}

static assay_status_t put(assay_queue_t* base, const op_t* op) {
  mock_queue_t* q = (mock_queue_t*)base;
  op_t* o = malloc(sizeof *o);
  if (!o) {
    if (op->work.forget) op->work.forget(op->work.user);
    return assay_status_no_memory();
  }
  *o = *op;
  if (q->capture) {
    list_add(q->capture, o);
    if (is_allowed_in_captures(o->kind)) return NULL;
    assay_status_t st =
        ASSAY_ERROR(ASSAY_INTERNAL, "operation %d is none for a capture", (int)o->kind);
    q->capture_failed = assay_status_join(q->capture_failed, st);
    return NULL;
  }
  pthread_mutex_lock(&q->lock);
  list_add(&q->ops, o);
  pthread_cond_broadcast(&q->changed);
  pthread_mutex_unlock(&q->lock);
  return NULL;
}

static assay_status_t queue_create(assay_device_t* d, assay_queue_t** out) {
  mock_queue_t* q = is_due(MOCK_FAULT_QUEUE) ? NULL : calloc(1, sizeof *q);
  if (!q) return ASSAY_ERROR(ASSAY_DEVICE, "the device gives no queue");
  q->base.device = d;
  q->mark = -1;
  lock();
  q->random = device.seed++ * 2654435761u;
  unlock();
  if (pthread_mutex_init(&q->lock, NULL) != 0) return free(q), assay_status_no_memory();
  if (pthread_cond_init(&q->changed, NULL) != 0) return free(q), assay_status_no_memory();
  if (pthread_create(&q->thread, NULL, serve, q) != 0)
    return free(q), ASSAY_ERROR(ASSAY_DEVICE, "no thread for a queue");
  count(1);
  *out = &q->base;
  return NULL;
}

static void queue_destroy(assay_queue_t* base) {
  mock_queue_t* q = (mock_queue_t*)base;
  if (!q) return;
  pthread_mutex_lock(&q->lock);
  q->stop = true;
  pthread_cond_broadcast(&q->changed);
  pthread_mutex_unlock(&q->lock);
  pthread_join(q->thread, NULL);
  list_clear(&q->captured);
  assay_status_free(q->failed);
  assay_status_free(q->capture_failed);
  pthread_cond_destroy(&q->changed);
  pthread_mutex_destroy(&q->lock);
  free(q);
  count(-1);
}

static assay_status_t queue_wait(assay_queue_t* base, int64_t* out_mark) {
  mock_queue_t* q = (mock_queue_t*)base;
  if (q->capture) return ASSAY_ERROR(ASSAY_INTERNAL, "a queue that is captured is waited for");
  pthread_mutex_lock(&q->lock);
  while (q->ops.first || q->working) pthread_cond_wait(&q->changed, &q->lock);
  assay_status_t st = q->failed;
  q->failed = NULL;
  if (out_mark) *out_mark = q->mark;
  pthread_mutex_unlock(&q->lock);
  return st;
}

static uint64_t queue_handle(assay_queue_t* q) { return (uint64_t)(uintptr_t)q; }

static assay_status_t mark(assay_queue_t* q, int64_t mark) {
  return put(q, &(op_t){.kind = OP_MARK, .mark = mark});
}

static assay_status_t alloc(assay_queue_t* q, size_t bytes, assay_device_ptr_t* out) {
  if (((mock_queue_t*)q)->capture)
    return ASSAY_ERROR(ASSAY_INTERNAL, "memory is allocated in a capture");
  return mock_alloc(bytes, out);
}

static void free_behind(assay_queue_t* q, assay_device_ptr_t p) {
  if (!p) return;
  assay_status_t st = put(q, &(op_t){.kind = OP_FREE, .from = p});
  if (st) abort();
}

static assay_status_t upload(assay_queue_t* q, const void* from, assay_device_ptr_t to,
                             size_t bytes) {
  return put(q, &(op_t){.kind = OP_UPLOAD, .host_from = from, .to = to, .bytes = bytes});
}

static assay_status_t download(assay_queue_t* q, assay_device_ptr_t from, void* to, size_t bytes) {
  return put(q, &(op_t){.kind = OP_DOWNLOAD, .from = from, .host_to = to, .bytes = bytes});
}

static assay_status_t copy_within(assay_queue_t* q, assay_device_ptr_t from, assay_device_ptr_t to,
                                  size_t bytes) {
  return put(q, &(op_t){.kind = OP_COPY, .from = from, .to = to, .bytes = bytes});
}

static assay_status_t fill_with(assay_queue_t* q, assay_device_ptr_t p, uint8_t byte,
                                size_t bytes) {
  return put(q, &(op_t){.kind = OP_FILL, .to = p, .byte = byte, .bytes = bytes});
}

assay_status_t mock_enqueue(assay_queue_t* q, const mock_work_t* take_work) {
  return put(q, &(op_t){.kind = OP_WORK, .work = *take_work});
}

static assay_status_t host_alloc(assay_device_t* d, size_t bytes, void** out) {
  (void)d;
  *out = malloc(bytes ? bytes : 1);
  return *out ? NULL : assay_status_no_memory();
}

static void host_free(assay_device_t* d, void* p) {
  (void)d;
  free(p);
}

// ---- events -------------------------------------------------------------------------------------

static assay_status_t event_create(assay_device_t* d, assay_event_t** out) {
  mock_event_t* e = calloc(1, sizeof *e);
  if (!e) return assay_status_no_memory();
  e->base.device = d;
  count(1);
  *out = &e->base;
  return NULL;
}

static void event_destroy(assay_event_t* base) {
  if (base) count(-1);
  free(base);
}

static assay_status_t event_record(assay_event_t* base, assay_queue_t* q) {
  mock_event_t* e = (mock_event_t*)base;
  lock();
  const uint64_t turn = ++e->recorded;
  unlock();
  return put(q, &(op_t){.kind = OP_RECORD, .event = e, .turn = turn});
}

static uint64_t recorded(mock_event_t* e) {
  lock();
  const uint64_t turn = e->recorded;
  unlock();
  return turn;
}

static assay_status_t event_order(assay_event_t* base, assay_queue_t* q) {
  mock_event_t* e = (mock_event_t*)base;
  return put(q, &(op_t){.kind = OP_ORDER, .event = e, .turn = recorded(e)});
}

static assay_status_t event_wait(assay_event_t* base) {
  mock_event_t* e = (mock_event_t*)base;
  await(e, recorded(e));
  return NULL;
}

static assay_status_t event_elapsed(assay_event_t* from, assay_event_t* to,
                                    double* out_microseconds) {
  const mock_event_t *a = (mock_event_t*)from, *b = (mock_event_t*)to;
  lock();
  *out_microseconds = 1e6 * (double)(b->when.tv_sec - a->when.tv_sec) +
                      1e-3 * (double)(b->when.tv_nsec - a->when.tv_nsec);
  unlock();
  return NULL;
}

// ---- captures -----------------------------------------------------------------------------------

static assay_status_t capture_begin(assay_queue_t* base) {
  mock_queue_t* q = (mock_queue_t*)base;
  if (q->capture) return ASSAY_ERROR(ASSAY_INTERNAL, "a capture within a capture");
  q->captured = (list_t){0};
  q->capture = &q->captured;
  return NULL;
}

static assay_status_t capture_end(assay_queue_t* base, assay_capture_t** out) {
  mock_queue_t* q = (mock_queue_t*)base;
  assay_status_t st = q->capture_failed;
  q->capture_failed = NULL;
  q->capture = NULL;
  lock();
  const bool none = device.no_captures;
  unlock();
  if (!st && none) st = ASSAY_ERROR(ASSAY_UNSUPPORTED, "no captures");
  if (!st && is_due(MOCK_FAULT_CAPTURE))
    st = ASSAY_ERROR(ASSAY_DEVICE, "the capture cannot be made");
  mock_capture_t* c = st ? NULL : calloc(1, sizeof *c);
  if (!st && !c) st = assay_status_no_memory();
  if (st) return list_clear(&q->captured), st;
  c->base.device = q->base.device;
  c->ops = q->captured;
  q->captured = (list_t){0};
  count(1);
  *out = &c->base;
  return NULL;
}

static assay_status_t capture_launch(assay_capture_t* base, assay_queue_t* q) {
  mock_capture_t* c = (mock_capture_t*)base;
  lock();
  c->under_way++;
  unlock();
  return put(q, &(op_t){.kind = OP_LAUNCH, .capture = c});
}

static void capture_destroy(assay_capture_t* base) {
  mock_capture_t* c = (mock_capture_t*)base;
  if (!c) return;
  lock();
  while (c->under_way) pthread_cond_wait(&device.changed, &device.lock);
  unlock();
  list_clear(&c->ops);
  free(c);
  count(-1);
}

// ---- the device ---------------------------------------------------------------------------------

static assay_status_t want_device(int number) {
  if (!number) return NULL;
  return ASSAY_ERROR(ASSAY_DEVICE, "there is no device %d; there is one, 0", number);
}

static assay_status_t open_device(int number, assay_device_t** out) {
  static assay_device_t the_device = {&mock_driver, ALIGNMENT};
  ASSAY_TRY(want_device(number));
  lock();
  if (!device.opened++) device.lost = false;
  unlock();
  *out = &the_device;
  return NULL;
}

static void close_device(assay_device_t* d) {
  (void)d;
  lock();
  device.opened--;
  unlock();
}

static assay_status_t count_devices(int* out) {
  *out = 1;
  return NULL;
}

static assay_status_t describe_need(int number, assay_str_t* out) {
  ASSAY_TRY(want_device(number));
  assay_str_append(out, "a device for tests");
  return NULL;
}

static void describe(assay_device_t* d, assay_str_t* out) {
  (void)d;
  assay_str_append(out, "a device for tests");
}

static assay_status_t memory(assay_device_t* d, size_t* out_free, size_t* out_total) {
  (void)d;
  lock();
  *out_total = device.limit ? device.limit : SIZE_MAX;
  *out_free = *out_total - device.used;
  unlock();
  return NULL;
}

const assay_device_driver_t mock_driver = {.name = "mock",
                                           .open = open_device,
                                           .close = close_device,
                                           .count = count_devices,
                                           .want = want_device,
                                           .describe = describe,
                                           .describe_need = describe_need,
                                           .memory = memory,
                                           .queue_create = queue_create,
                                           .queue_destroy = queue_destroy,
                                           .queue_wait = queue_wait,
                                           .queue_handle = queue_handle,
                                           .mark = mark,
                                           .alloc = alloc,
                                           .free = free_behind,
                                           .upload = upload,
                                           .download = download,
                                           .copy = copy_within,
                                           .fill = fill_with,
                                           .host_alloc = host_alloc,
                                           .host_free = host_free,
                                           .event_create = event_create,
                                           .event_destroy = event_destroy,
                                           .event_record = event_record,
                                           .event_order = event_order,
                                           .event_wait = event_wait,
                                           .event_elapsed = event_elapsed,
                                           .capture_begin = capture_begin,
                                           .capture_end = capture_end,
                                           .capture_launch = capture_launch,
                                           .capture_destroy = capture_destroy};
