// How much memory there is: the machine's, and what a control group leaves of it; how it is had.
#ifndef ASSAY_BASE_MEMORY_H_
#define ASSAY_BASE_MEMORY_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Bytes of memory that this process may have at most: the machine's, or its control group's limit.
uint64_t assay_memory_total(void);
// Bytes that can be had now without swapping; files in the page cache count as free.
uint64_t assay_memory_available(void);

// While on, memory that is freed stays with the process: for work that takes and frees the same
// large blocks over and over, which the kernel would clear each time. Process-wide: on until each
// that called for it has called with false; where the system's allocator knows no such thing,
// nothing.
void assay_memory_keep(bool on);

// Asks for large pages for the whole ones among these bytes, which are the caller's and about to be
// written: kernels read many places of a block at once. Where the system has none, nothing.
void assay_memory_use_large_pages(void* memory, size_t bytes);

// "17.2 GB" (powers of 1000); returns buffer.
const char* assay_bytes_text(uint64_t bytes, char* buffer, size_t n);
#define ASSAY_BYTES_TEXT(bytes) assay_bytes_text((bytes), (char[32]){0}, 32)
// "500M", "16G", "16GB", "1.5 GiB", "1e9": false if it is not such a number of bytes. Letters
// without i are powers of 1000.
bool assay_bytes_parse(const char* text, uint64_t* out);

#endif  // ASSAY_BASE_MEMORY_H_
