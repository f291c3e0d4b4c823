// The head of a plan file and its checksum: what the reader, the writer and the programs that forge
// plans agree on. plan_file.c says what the parts are.
#ifndef ASSAY_RUNTIME_PLAN_HEAD_H_
#define ASSAY_RUNTIME_PLAN_HEAD_H_

#include <stdint.h>

#define ASSAY_PLAN_MAGIC "ASSAYPLN"  // eight bytes, without the NUL

enum {
  ASSAY_PLAN_VERSION = 8,
  ASSAY_PLAN_PAGE = 4096,      // parts, and what lies in them, begin at multiples of this
  ASSAY_PLAN_BLOCK = 1 << 20,  // the checksum goes block by block, each seeded with the last one's
};

typedef struct assay_plan_part {
  uint64_t offset, bytes;
} assay_plan_part_t;

typedef struct assay_plan_head {
  char magic[8];
  uint32_t version, head_bytes;
  uint64_t file_bytes;
  assay_plan_part_t text, message, source, data, saved;
  char assay[32], backend[16], machine[256];
} assay_plan_head_t;

#endif  // ASSAY_RUNTIME_PLAN_HEAD_H_
