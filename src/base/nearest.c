// Names near to one that was given, for "did you mean": options, verbs, arrays, values, nodes.
#include "base/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { MAX_NAME = 200, MIN_PART = 3 };

static bool same(char a, char b) { return tolower((unsigned char)a) == tolower((unsigned char)b); }

// Of the first m characters of b.
static int distance(const char* a, int n, const char* b, int m, int limit) {
  int row[MAX_NAME + 1];
  if (n - m > limit || m - n > limit) return limit;
  for (int j = 0; j <= m; j++) row[j] = j;
  for (int i = 1; i <= n; i++) {
    int diagonal = row[0];
    row[0] = i;
    for (int j = 1; j <= m; j++) {
      const int kept = diagonal + !same(a[i - 1], b[j - 1]);
      diagonal = row[j];
      const int best = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
      row[j] = kept < best ? kept : best;
    }
  }
  return row[m] < limit ? row[m] : limit;
}

int assay_distance(const char* a, const char* b, int limit) {
  return distance(a, (int)strnlen(a, MAX_NAME), b, (int)strnlen(b, MAX_NAME), limit);
}

// -1: it is not near. A name that begins or ends with the wanted one is, whatever its length.
static int how_far(const char* wanted, const char* name) {
  const size_t whole = strlen(wanted), fixed = strcspn(wanted, "*?[");
  const bool pattern = fixed < whole;
  const int n = (int)(fixed < MAX_NAME ? fixed : MAX_NAME);
  int m = (int)strnlen(name, MAX_NAME);
  if (pattern && m > n) m = n;  // the rest of the name is for the pattern's rest
  if (!pattern && n >= MIN_PART && strstr(name, wanted)) return 1;
  const int third = n / 3 + 2, limit = third < n ? third : n;
  const int d = distance(wanted, n, name, m, limit);
  return d < limit ? d : -1;
}

void assay_nearest_offer(assay_nearest_t* near, const char* name) {
  const int d = name && *name ? how_far(near->wanted, name) : -1;
  if (d < 0) return;
  for (int i = 0; i < near->n; i++)
    if (strcmp(near->names[i], name) == 0) return;
  int at = near->n < ASSAY_NEAREST ? near->n++ : ASSAY_NEAREST;
  for (; at > 0 && near->distances[at - 1] > d; at--)
    if (at < ASSAY_NEAREST) {
      near->names[at] = near->names[at - 1];
      near->distances[at] = near->distances[at - 1];
    }
  if (at == ASSAY_NEAREST) return;
  near->names[at] = name;
  near->distances[at] = d;
}

const char* assay_nearest_best(const assay_nearest_t* near) {
  return near->n ? near->names[0] : NULL;
}

const char* assay_nearest_text(const assay_nearest_t* near, char* out, size_t size) {
  int n = 0;
  size_t at = 0;
  *out = 0;
  while (n < near->n && near->distances[n] <= near->distances[0] + 1) n++;
  for (int i = 0; i < n && at < size; i++) {
    const char* before = !i ? "; did you mean " : i + 1 < n ? ", " : " or ";
    at += (size_t)snprintf(out + at, size - at, "%s'%.100s'%s", before, near->names[i],
                           i + 1 < n ? "" : "?");
  }
  return out;
}
