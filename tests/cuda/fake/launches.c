// Launches: what the driver checks before, and blocks over the cores.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

// ---- launches as work ---------------------------------------------------------------------------

void use_launch(launch_t* l) {
  pthread_mutex_lock(&fake.lock);
  l->users++;
  pthread_mutex_unlock(&fake.lock);
}

void release_launch(launch_t* l) {
  pthread_mutex_lock(&fake.lock);
  const bool is_last = --l->users == 0;
  pthread_mutex_unlock(&fake.lock);
  if (is_last) free(l);
}

// Limits of the CUDA C Programming Guide, "Technical Specifications per Compute Capability".
static bool is_possible(const cuda_launch_config_t* c, const struct cuda_kernel* k) {
  const uint64_t threads = (uint64_t)c->threads[0] * c->threads[1] * c->threads[2];
  return c->blocks[0] && c->blocks[0] <= INT32_MAX && c->blocks[1] && c->blocks[1] <= 65535 &&
         c->blocks[2] && c->blocks[2] <= 65535 && threads &&
         threads <= (uint64_t)k->kernel.max_threads && c->threads[0] == threads &&
         c->shared_bytes <= (unsigned)k->max_dynamic &&
         c->shared_bytes + k->shared_bytes <=
             (k->asked_for || !c->shared_bytes ? MAX_SHARED : SHARED_OF_ALL);
}

static bool read_attributes(const cuda_launch_config_t* c, launch_t* l) {
  l->cluster = 1;
  for (unsigned i = 0; i < c->n_attributes; i++) {
    const cuda_launch_attribute_t* a = &c->attributes[i];
    if (a->id == CUDA_LAUNCH_DEPENDENT) {
      l->dependent = a->value.on != 0;
    } else if (a->id == CUDA_LAUNCH_CLUSTER) {
      l->cluster = (int)a->value.cluster.x;
      if (l->cluster < 1 || l->cluster > MAX_CLUSTER || a->value.cluster.y != 1 ||
          a->value.cluster.z != 1 || l->grid[0] % l->cluster != 0)
        return false;
    } else {
      return false;
    }
  }
  return fake.state.capability >= 90 || (!l->dependent && l->cluster == 1);
}

cuda_result_t cuLaunchKernelEx(const cuda_launch_config_t* config, cuda_kernel_t kernel,
                               void** parameters, void** extra) {
  CALLED(true);
  if (!kernel || !parameters || extra || !is_possible(config, kernel)) return INVALID_VALUE;
  launch_t* l = calloc(1, sizeof *l + kernel->kernel.args_bytes);
  if (!l) return CUDA_OUT_OF_MEMORY;
  l->kernel = kernel;
  l->users = 1;
  l->blocks = 1;
  for (int i = 0; i < 3; i++) l->blocks *= l->grid[i] = config->blocks[i];
  l->threads = (int)config->threads[0];
  l->dynamic_bytes = (int)config->shared_bytes;
  memcpy(l->args, parameters[0], kernel->kernel.args_bytes);
  if (!read_attributes(config, l)) return free(l), INVALID_VALUE;
  return put(config->stream, &(work_t){.kind = LAUNCH, .launch = l});
}

// ---- blocks over the cores ----------------------------------------------------------------------

// One launch at a time: what it did to memory is looked at as a whole (checks.c).
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

typedef struct job {
  const launch_t* launch;
  atomic_llong next;
  atomic_bool stopped;
  int64_t n, step, start;  // n clusters in the order start + i * step, modulo n
  pthread_mutex_t lock;
  int result;
  char* message;
  size_t bytes;
} job_t;

static int64_t common_divisor(int64_t a, int64_t b) {
  while (b) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

static void draw_order(job_t* j) {
  const int64_t n = j->n;
  j->start = draw() % n;
  j->step = 1 + draw() % n;
  while (common_divisor(j->step, n) != 1) j->step = j->step % n + 1;
}

static void note_failure(job_t* j, const run_t* r) {
  pthread_mutex_lock(&j->lock);
  if (!j->result) {
    j->result = r->result;
    snprintf(j->message, j->bytes, "kernel %s, block %lld of %lld: %s", j->launch->kernel->name,
             (long long)r->block, (long long)j->launch->blocks, r->message);
  }
  atomic_store(&j->stopped, true);
  pthread_mutex_unlock(&j->lock);
}

// Whether the block of a run, and its copy of the code, are there.
static bool prepare(job_t* j, run_t* r) {
  r->launch = j->launch;
  r->code = module_code(j->launch->kernel->module, r->number);
  const fake_kernel_t* k = r->code ? code_kernel(r->code, j->launch->kernel->name) : NULL;
  r->failed = !k;
  if (k) {
    r->enter = k->enter;
  } else {
    r->result = INVALID_IMAGE;
    snprintf(r->message, sizeof r->message, "its code cannot be loaded again");
    note_failure(j, r);
  }
  return k != NULL;
}

static void run_clusters(job_t* j, run_t* const* runs, int n) {
  bool failed = false;
  while (!failed && !atomic_load(&j->stopped)) {
    const int64_t i = atomic_fetch_add(&j->next, 1);
    if (i >= j->n) break;
    run_cluster(runs, n, (j->start + i * j->step) % j->n * n);
    for (int k = 0; k < n; k++) {
      failed |= runs[k]->failed;
      if (runs[k]->failed) note_failure(j, runs[k]);
    }
  }
}

static void run_blocks(job_t* j) {
  run_t* runs[MAX_CLUSTER];
  int n = 0;
  bool ready = true;
  while (ready && n < j->launch->cluster) {
    runs[n] = take_run();
    ready = runs[n] && prepare(j, runs[n]);
    n += runs[n] != NULL;
  }
  if (ready) run_clusters(j, runs, n);
  while (n) give_run(runs[--n]);
}

static void* help(void* job) {
  run_blocks(job);
  return NULL;
}

int run_launch(const launch_t* l, char* message, size_t bytes) {
  job_t j = {.launch = l, .n = l->blocks / l->cluster, .message = message, .bytes = bytes};
  pthread_t helpers[8];
  int n = 0;
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  pthread_mutex_lock(&turn);
  pthread_mutex_init(&j.lock, NULL);
  draw_order(&j);
  start_checks();
  // A thread costs as much as some blocks.
  const int wanted = l->blocks * l->threads < 2048 ? 0 : (int)cores - 1;
  while (n < wanted && n < 8 && n + 1 < j.n && pthread_create(&helpers[n], NULL, help, &j) == 0)
    n++;
  run_blocks(&j);
  while (n) pthread_join(helpers[--n], NULL);
  pthread_mutex_destroy(&j.lock);
  pthread_mutex_unlock(&turn);
  if (!j.result && atomic_load(&j.next) < j.n) {
    snprintf(message, bytes, "there is no memory to run blocks in");
    return OUT_OF_RESOURCES;
  }
  return j.result;
}
