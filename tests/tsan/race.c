// Two threads change one number. Thread sanitizer has to see that, and nothing in the loops whose
// ends order what comes after them: else the other tests under it say nothing.
//
//     tsan_race race|order
#include <stdio.h>
#include <string.h>

enum { N = 10000 };

static int numbers[N];

int main(int argc, char** argv) {
  int sum = 0;
  const int places = argc == 2 && strcmp(argv[1], "race") == 0 ? 7 : N;
  for (int k = 0; k < 10; k++) {
#pragma omp parallel for schedule(static)
    for (int i = 0; i < N; i++) numbers[(k & 1 ? N - 1 - i : i) % places] += i;
  }
  for (int i = 0; i < N; i++) sum += numbers[i] & 1;
  printf("%d\n", sum);
  return 0;
}
