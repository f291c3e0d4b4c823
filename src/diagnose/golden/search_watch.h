// What a repair search says while it runs: what is wrong, the best suspect so far, what it tries.
#ifndef ASSAY_DIAGNOSE_GOLDEN_SEARCH_WATCH_H_
#define ASSAY_DIAGNOSE_GOLDEN_SEARCH_WATCH_H_

#include "ir/ir.h"

typedef struct assay_search_watch {
  void (*progress)(void* user, const char* what, double fraction);  // NULL: nobody watches
  void* user;
  double start, end;           // of the time that all searches may take
  const assay_value_t* value;  // that misses golden
  double off;                  // by so much: RMS
  double told;                 // when something was said last
} assay_search_watch_t;

// The best suspect so far.
typedef struct assay_search_suspect {
  const assay_node_t* node;  // NULL: there is none yet
  double left;               // of the difference, with its best repair; NAN: none was tried
} assay_search_suspect_t;

// Whether it is time to say something again: ten times a second. w NULL: never.
bool assay_search_watch_is_due(const assay_search_watch_t* w);
//   doing  "trying", "listing repairs"
//   cause  what is tried, a row of the table; "": nothing in particular
//   at     the node that it is tried at; NULL: none in particular
void assay_search_watch_tell(assay_search_watch_t* w, const assay_search_suspect_t* suspect,
                             const char* doing, const char* cause, const assay_node_t* at);

#endif  // ASSAY_DIAGNOSE_GOLDEN_SEARCH_WATCH_H_
