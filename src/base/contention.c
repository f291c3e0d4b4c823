// How OpenMP's threads wait, while others use the machine's CPUs.
#include "base/contention.h"

#include <dirent.h>
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#include "base/clock.h"

// libgomp's threads spin for milliseconds before they sleep, but hardly at all while there are more
// OpenMP threads than CPUs (libgomp's manual, GOMP_SPINCOUNT). That is the one way to tell it so
// while it runs: a team besides, as large as that takes, whose threads sleep.
#if defined(_OPENMP) && defined(__GNUC__) && !defined(__clang__)
#define HAS_TEAM 1
#else
#define HAS_TEAM 0
#endif

enum { MAX_THREADS = 64 };

// A look every 20 ms. Threads that compute wait for a CPU half of the time or more, each, if every
// CPU is shared with another program; next to never if none is.
static const double EACH = 0.02, MUCH = 0.35;
// Spinning is tried again after a while; after longer ones where that goes wrong again.
static const double SHORTEST = 0.25, LONGEST = 8;

typedef struct watch {
  double sampled;  // when
  double waited;   // seconds until then
  double until;    // asleep until then, where contention is felt
  double hold;     // how long the next time
} watch_t;

static struct {
  pthread_mutex_t lock;  // of what follows
  pthread_cond_t changed;
  bool wanted, up;
  watch_t watch;
  _Atomic bool felt;
  _Atomic long next;  // look, in ms
} contention = {.lock = PTHREAD_MUTEX_INITIALIZER,
                .changed = PTHREAD_COND_INITIALIZER,
                .watch = {.hold = 0.25}};

// The seconds that all threads together were ready to run and had no CPU: the second number in each
// one's schedstat, in ns (Linux, Documentation/scheduler/sched-stats). 0: not known here.
static double waited(void) {
  double sum = 0;
  DIR* tasks = opendir("/proc/self/task");
  if (!tasks) return 0;
  for (struct dirent* e = readdir(tasks); e; e = readdir(tasks)) {
    char path[64 + sizeof e->d_name];
    unsigned long long ran, ready;
    if (e->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", e->d_name);
    FILE* f = fopen(path, "re");
    if (f && fscanf(f, "%llu %llu", &ran, &ready) == 2) sum += 1e-9 * (double)ready;
    if (f) fclose(f);
  }
  closedir(tasks);
  return sum;
}

// ---- the team -----------------------------------------------------------------------------------

#if HAS_TEAM
static void* keep_team(void* n) {
  const int threads = (int)(intptr_t)n;
#pragma omp parallel num_threads(threads)
  { (void)omp_get_thread_num(); }
  pthread_mutex_lock(&contention.lock);
  contention.up = true;
  pthread_cond_broadcast(&contention.changed);
  while (contention.wanted) pthread_cond_wait(&contention.changed, &contention.lock);
  contention.up = false;
  pthread_mutex_unlock(&contention.lock);
  return NULL;  // and the team ends
}

// One thread more than there are CPUs, with those of the team that computes. 0: too many.
static int team_size(void) {
  const int threads = omp_get_num_procs() - omp_get_max_threads() + 2;
  return threads > MAX_THREADS ? 0 : threads < 2 ? 2 : threads;
}

// Called with the lock.
static void change_team(bool wanted) {
  const int threads = team_size();
  pthread_t thread;
  pthread_attr_t detached;
  if (contention.wanted == wanted || !threads) return;
  contention.wanted = wanted;
  pthread_cond_broadcast(&contention.changed);
  // A team that has not ended yet goes on.
  if (!wanted || contention.up || pthread_attr_init(&detached)) return;
  pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  if (pthread_create(&thread, &detached, keep_team, (void*)(intptr_t)threads))
    contention.wanted = false;
  pthread_attr_destroy(&detached);
}
#else
static void change_team(bool wanted) { (void)wanted; }
#endif

static void feel(bool felt) {
  change_team(felt);
  contention.felt = felt;
}

// ---- looking ------------------------------------------------------------------------------------

// Called with the lock.
static void sample(double t) {
  watch_t* w = &contention.watch;
  const double sum = waited(), share = (sum - w->waited) / (t - w->sampled);
  const bool much = w->sampled > 0 && share > MUCH;
  w->sampled = t;
  w->waited = sum;
  if (contention.felt) {
    // Who sleeps waits less: that says nothing about the contention.
    if (t < w->until) return;
    feel(false);
    w->until = t + w->hold;
  } else if (much) {
    // So soon again: the contention stays.
    w->hold = t < w->until + w->hold ? w->hold * 2 : SHORTEST;
    if (w->hold > LONGEST) w->hold = LONGEST;
    w->until = t + w->hold;
    feel(true);
  }
}

void assay_contention_watch(void) {
  const double t = assay_clock_seconds();
  long next = contention.next;
  const long ms = (long)(t * 1e3);
  if (ms < next || pthread_mutex_trylock(&contention.lock)) return;
  contention.next = ms + (long)(EACH * 1e3);
  sample(t);
  pthread_mutex_unlock(&contention.lock);
}

bool assay_contention_is_felt(void) { return contention.felt; }

void assay_contention_set(bool felt) {
  pthread_mutex_lock(&contention.lock);
  feel(felt);
  pthread_mutex_unlock(&contention.lock);
}
