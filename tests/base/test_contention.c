// How threads wait changes while they compute: results do not, and teams come and go.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

// cmocka needs the four above before it
#include <pthread.h>

#include <cmocka.h>

#include "base/contention.h"

static long sum_of(long n) {
  long sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum) num_threads(2)
  for (long i = 0; i < n; i++) sum += i;
  return sum;
}

static void teams_come_and_go(void** state) {
  (void)state;
  for (int i = 0; i < 200; i++) {
    assay_contention_set(i % 3 != 2);
    assert_int_equal(assay_contention_is_felt(), i % 3 != 2);
    assert_int_equal(sum_of(1000 + i), (long)(1000 + i) * (999 + i) / 2);
    assay_contention_watch();
  }
  assay_contention_set(false);
  assert_false(assay_contention_is_felt());
}

static void* compute(void* wrong) {
  for (int i = 0; i < 500; i++) {
    assay_contention_watch();
    if (i % 50 == 0) assay_contention_set(i % 100 == 0);
    if (sum_of(i) != (long)i * (i - 1) / 2) *(int*)wrong = 1;
  }
  return NULL;
}

static void several_threads_look(void** state) {
  (void)state;
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  int wrong[THREADS] = {0};
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, compute, &wrong[i]), 0);
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    assert_int_equal(wrong[i], 0);
  }
  assay_contention_set(false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(teams_come_and_go),
      cmocka_unit_test(several_threads_look),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
