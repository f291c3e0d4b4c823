// Names near to one that was given, for "did you mean": options, verbs, arrays, values, nodes.
#ifndef ASSAY_BASE_NEAREST_H_
#define ASSAY_BASE_NEAREST_H_

#include <stddef.h>

enum { ASSAY_NEAREST = 3 };

// Starts as {.wanted = name}, of which what stands before '*', '?' or '[' counts. Names that are
// offered are borrowed.
typedef struct assay_nearest {
  const char* wanted;
  const char* names[ASSAY_NEAREST];  // the nearest first
  int distances[ASSAY_NEAREST];
  int n;
} assay_nearest_t;

void assay_nearest_offer(assay_nearest_t* near, const char* name);
// The nearest of all that were offered; NULL: none is near.
const char* assay_nearest_best(const assay_nearest_t* near);
// "; did you mean 'image'?", or several; "" if none is near. Gives `out` back.
const char* assay_nearest_text(const assay_nearest_t* near, char* out, size_t size);
#define ASSAY_NEAREST_TEXT(near) assay_nearest_text(near, (char[512]){0}, 512)

// How many letters have to be changed, put in or taken away to make b of a, whatever their case; at
// most `limit`.
int assay_distance(const char* a, const char* b, int limit);

#endif  // ASSAY_BASE_NEAREST_H_
