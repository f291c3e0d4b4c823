// What libassay of the portable wheel needs beside the objects of the build
// (scripts/link_portable.py): the streams, by names of our own; functions that glibc 2.28 lacks;
// and JBIG, which is left out.
#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>

#define INSIDE __attribute__((visibility("hidden")))

// ---- the program --------------------------------------------------------------------------------

// main() of the program. It is part of the library, so that the wheel holds everything once.
INSIDE int assay_inside_main(int argc, char** argv);

// Not part of the API: what bin/assay of the same wheel calls.
int assay_program_main(int argc, char** argv);

int assay_program_main(int argc, char** argv) { return assay_inside_main(argc, argv); }

// ---- the streams --------------------------------------------------------------------------------

// Debian's static libraries are made for programs, which may have a copy of the C library's
// variables. A shared library may not: there their variables are these.
INSIDE FILE *assay_inside_stdin, *assay_inside_stdout, *assay_inside_stderr;

__attribute__((constructor)) static void take_streams(void) {
  assay_inside_stdin = stdin;
  assay_inside_stdout = stdout;
  assay_inside_stderr = stderr;
}

// ---- what came after glibc 2.28 -----------------------------------------------------------------

// Whether a process has a single thread, for libstdc++ to count without atomics. It may always be
// false.
INSIDE char __libc_single_threaded = 0;

// For std::random_device, which nothing here uses.
INSIDE uint32_t arc4random(void) {
  uint32_t drawn = 0;
  while (getrandom(&drawn, sizeof drawn, 0) != (ssize_t)sizeof drawn) continue;
  return drawn;
}

// ---- JBIG ---------------------------------------------------------------------------------------

// libtiff's decoder of JBIG is under the GPL, and cannot be part of this library: images that are
// compressed with it are refused. libtiff passes more arguments, which these do not read.
INSIDE void jbg_dec_init(void* state);
INSIDE int jbg_newlen(void* data);
INSIDE int jbg_dec_in(void* state);
INSIDE unsigned long jbg_dec_getsize(void* state);
INSIDE void* jbg_dec_getimage(void* state);
INSIDE const char* jbg_strerror(int code);
INSIDE void jbg_dec_free(void* state);
INSIDE void jbg_enc_init(void* state);
INSIDE void jbg_enc_out(void* state);
INSIDE void jbg_enc_free(void* state);

void jbg_dec_init(void* state) { (void)state; }
int jbg_newlen(void* data) { return (void)data, 0; }
int jbg_dec_in(void* state) { return (void)state, 0x40; }  // JBG_EINVAL
unsigned long jbg_dec_getsize(void* state) { return (void)state, 0; }
void* jbg_dec_getimage(void* state) { return (void)state, NULL; }
const char* jbg_strerror(int code) { return (void)code, "this build reads no JBIG"; }
void jbg_dec_free(void* state) { (void)state; }
void jbg_enc_init(void* state) { (void)state; }
void jbg_enc_out(void* state) { (void)state; }
void jbg_enc_free(void* state) { (void)state; }
