// The public headers in a C++ program.
#include "test_headers.c"
