// Reads npy and npz files and writes them again, for against_numpy.py.
//
//     copy_arrays [--compress] < PAIRS
//
// PAIRS: lines of two paths with a tab between them. Prints one line per pair: "ok", or the error.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "io/npy.h"
#include "io/npz.h"

static assay_status_t copy(const char* from, const char* to, bool compress) {
  assay_status_t st;
  if (strstr(from, ".npz")) {
    assay_set_t set = {0};
    st = assay_npz_read(from, &set);
    if (!st) st = assay_npz_write(to, &set, compress);
    assay_set_deinit(&set);
  } else {
    assay_tensor_t* t = NULL;
    st = assay_npy_read(from, &t);
    if (!st) st = assay_npy_write(to, t);
    assay_tensor_release(t);
  }
  return st;
}

int main(int argc, char** argv) {
  bool compress = argc > 1 && strcmp(argv[1], "--compress") == 0;
  static char line[1 << 14];
  while (fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = 0;
    char* tab = strchr(line, '\t');
    if (!tab) return 2;
    *tab = 0;
    assay_status_t st = copy(line, tab + 1, compress);
    printf("%s\n", st ? assay_status_message(st) : "ok");
    assay_status_free(st);
    if (assay_alloc_live()) {
      fprintf(stderr, "%lld allocations are left of '%s'\n", (long long)assay_alloc_live(), line);
      return 1;
    }
  }
  return 0;
}
