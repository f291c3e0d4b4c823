// Copies behind a lane's back (cp.async): done at the wait and not before, so that reading too
// early shows.
#include <stdlib.h>
#include <string.h>

#include "internal.h"

void forget_copies(fiber_t* f) {
  f->n_copies = f->n_groups = 0;
  f->open = 0;
}

void lane_copy(fake_lane_t* lane, void* shared, const void* global, int bytes, int valid,
               int line) {
  run_t* r = lane->run;
  fiber_t* f = &r->fibers[lane->thread];
  if ((uintptr_t)shared % (unsigned)bytes || (valid > 0 && (uintptr_t)global % (unsigned)bytes))
    fail_lane(r, LAUNCH_FAILED, "line %d: copy_%d at an address off its own size", line, bytes);
  if (valid < 0 || valid > bytes)
    fail_lane(r, LAUNCH_FAILED, "line %d: copy_%d of %d valid bytes", line, bytes, valid);
  if (f->n_copies == MAX_ASYNC)
    fail_lane(r, LAUNCH_FAILED, "line %d: more than %d copies that nobody waits for", line,
              MAX_ASYNC);
  check_access(r, lane->thread, shared, (size_t)bytes, IS_ASKED, NULL, line);
  if (valid > 0) check_access(r, lane->thread, global, (size_t)valid, IS_READ, NULL, line);
  f->copies[f->n_copies++] = (late_copy_t){shared, global, bytes, valid, line};
  f->open++;
}

void lane_commit_copies(fake_lane_t* lane) {
  fiber_t* f = &lane->run->fibers[lane->thread];
  if (f->n_groups == MAX_ASYNC) {  // the two oldest are waited for together
    f->groups[1] += f->groups[0];
    memmove(f->groups, f->groups + 1, (MAX_ASYNC - 1) * sizeof *f->groups);
    f->n_groups--;
  }
  f->groups[f->n_groups++] = f->open;
  f->open = 0;
}

static void arrive(fake_lane_t* lane, const late_copy_t* c) {
  char bytes[16] = {0};
  check_access(lane->run, lane->thread, c->to, (size_t)c->bytes, IS_WRITE, NULL, c->line);
  if (c->valid) memcpy(bytes, c->from, (size_t)c->valid);
  memcpy(c->to, bytes, (size_t)c->bytes);
}

void lane_wait_copies(fake_lane_t* lane, int left, int line) {
  fiber_t* f = &lane->run->fibers[lane->thread];
  int copies = 0;
  const int groups = f->n_groups - left;
  if (left < 0) fail_lane(lane->run, LAUNCH_FAILED, "line %d: WAIT_COPIES(%d)", line, left);
  if (groups <= 0) return;
  for (int i = 0; i < groups; i++) copies += f->groups[i];
  for (int i = 0; i < copies; i++) arrive(lane, &f->copies[i]);
  f->n_copies -= copies;
  f->n_groups -= groups;
  memmove(f->copies, f->copies + copies, (size_t)f->n_copies * sizeof *f->copies);
  memmove(f->groups, f->groups + groups, (size_t)f->n_groups * sizeof *f->groups);
}
