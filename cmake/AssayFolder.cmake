# One target a folder of src/, linking only the folders before it; then libassay out of them all.

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
# Optimized builds are -O2 -g. assert() stays on: it guards against our own mistakes only.
set(ASSAY_OPTIMIZE "-O2 -g" CACHE STRING "How RelWithDebInfo optimizes, and its debug information")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "${ASSAY_OPTIMIZE}")

find_program(ASSAY_CCACHE ccache)
if(ASSAY_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER "${ASSAY_CCACHE}")
endif()

find_package(PkgConfig REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS C)
find_package(ZLIB REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_package(TIFF REQUIRED)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(OPENBLAS REQUIRED IMPORTED_TARGET openblas)
pkg_check_modules(PROTOBUF_C REQUIRED IMPORTED_TARGET libprotobuf-c)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(WEBP REQUIRED IMPORTED_TARGET libwebp)
pkg_check_modules(OPENJPEG REQUIRED IMPORTED_TARGET libopenjp2)
pkg_check_modules(MICROHTTPD REQUIRED IMPORTED_TARGET libmicrohttpd)

add_library(assay_flags INTERFACE)
if(CMAKE_C_COMPILER_ID MATCHES "Clang")
  # clang's OpenMP is libomp, and OpenBLAS brings gcc's: two runtimes in a process know nothing of each
  # other's threads. libomp has all entry points of libgomp, so it stands in for it. RPATH, not
  # RUNPATH: it has to hold for what OpenBLAS needs, too.
  file(REAL_PATH "${OpenMP_omp_LIBRARY}" libomp)
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/openmp")
  file(CREATE_LINK "${libomp}" "${PROJECT_BINARY_DIR}/openmp/libgomp.so.1" SYMBOLIC)
  target_link_options(assay_flags INTERFACE
    "-Wl,--disable-new-dtags,-rpath,${PROJECT_BINARY_DIR}/openmp")
  # Tells thread sanitizer what OpenMP orders; comes with libomp.
  cmake_path(REPLACE_FILENAME libomp libarcher.so OUTPUT_VARIABLE ASSAY_ARCHER)
endif()
target_compile_definitions(assay_flags INTERFACE _GNU_SOURCE
                           ASSAY_VERSION="${PROJECT_VERSION}")
target_compile_options(assay_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes
  # Sums and products are what this program accounts for: no contraction, no reordering.
  -ffp-contract=off -fno-math-errno -fno-trapping-math
  # gcc 12 takes (double)(float)x for x where two neighbours in memory are rounded so:
  # tests/base/test_compiler.c
  $<$<C_COMPILER_ID:GNU>:-fno-tree-slp-vectorize>
  # What assert() says names a source file, and not the folder that somebody built in.
  "-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/="
  # clang tells of every simd loop that it leaves scalar, which depends on the preset.
  $<$<C_COMPILER_ID:Clang>:-Wno-pass-failed>)
if(ASSAY_WERROR)
  target_compile_options(assay_flags INTERFACE -Werror)
endif()
if(ASSAY_SANITIZE)
  # With its checks in between and at -O1, gcc no longer sees that a value fits or is set: the release build
  # warns of that.
  target_compile_options(assay_flags INTERFACE $<$<C_COMPILER_ID:GNU>:-Wno-conversion> $<$<C_COMPILER_ID:GNU>:-Wno-format-truncation>
                         $<$<C_COMPILER_ID:GNU>:-Wno-maybe-uninitialized> -fsanitize=${ASSAY_SANITIZE} -fno-omit-frame-pointer
                         -fno-sanitize-recover=all)
  target_link_options(assay_flags INTERFACE -fsanitize=${ASSAY_SANITIZE})
endif()
target_include_directories(assay_flags INTERFACE "${PROJECT_SOURCE_DIR}/src"
                           "${PROJECT_SOURCE_DIR}/include")

set_property(GLOBAL PROPERTY ASSAY_FOLDERS "")

# assay_folder(NAME [LIBRARIES ...]): src/NAME/**.c as an object library.
function(assay_folder name)
  cmake_parse_arguments(arg "" "" "LIBRARIES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${name}/*.c")
  if(NOT sources)
    return()
  endif()
  get_property(lower GLOBAL PROPERTY ASSAY_FOLDERS)
  add_library(assay_${name} OBJECT ${sources})
  target_link_libraries(assay_${name} PUBLIC assay_flags ${arg_LIBRARIES})
  foreach(folder IN LISTS lower)
    get_target_property(libraries assay_${folder} ASSAY_LIBRARIES)
    if(libraries)
      target_link_libraries(assay_${name} PUBLIC ${libraries})
    endif()
  endforeach()
  set_target_properties(assay_${name} PROPERTIES ASSAY_LIBRARIES "${arg_LIBRARIES}")
  if(COMMAND assay_generate_${name})
    cmake_language(CALL assay_generate_${name} assay_${name})
  endif()
  set_property(GLOBAL APPEND PROPERTY ASSAY_FOLDERS ${name})
endfunction()

# libassay from all folders: assay_lib_shared, and assay_lib_static for what is built here and may use
# everything inside (the program, the tests). The static library for others is in AssayInstall.cmake.
function(assay_libraries)
  get_property(folders GLOBAL PROPERTY ASSAY_FOLDERS)
  foreach(kind IN ITEMS SHARED STATIC)
    string(TOLOWER ${kind} suffix)
    set(target assay_lib_${suffix})
    add_library(${target} ${kind})
    foreach(folder IN LISTS folders)
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:assay_${folder}>)
      get_target_property(libraries assay_${folder} ASSAY_LIBRARIES)
      if(libraries)
        target_link_libraries(${target} PRIVATE ${libraries})
      endif()
    endforeach()
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:assay_flags>)
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C)
    target_include_directories(${target} PUBLIC
      $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
      $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  endforeach()
  set_target_properties(assay_lib_static PROPERTIES OUTPUT_NAME assay_inside)
  set_target_properties(assay_lib_shared PROPERTIES OUTPUT_NAME assay VERSION ${PROJECT_VERSION}
                        SOVERSION ${PROJECT_VERSION_MAJOR}
                        LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/libassay.map")
  if(NOT ASSAY_SANITIZE)  # a sanitizer's functions come with the program
    target_link_options(assay_lib_shared PRIVATE -Wl,--no-undefined
                        "-Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/libassay.map")
  endif()
  add_library(assay::assay ALIAS assay_lib_shared)
endfunction()
