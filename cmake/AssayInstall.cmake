# `cmake --install`: a tree that can be moved as a whole and runs on any machine with the same system.
#
#   bin/assay
#   lib/libassay.so.*        exports assay_* only
#   lib/libassay.a           one object; its only global symbols are assay_* ones of the public API
#   include/assay/*.h
#   lib/pkgconfig/assay.pc   lib/cmake/assay/   find_package(assay) -> assay::assay, assay::static
#   share/man/man1/assay*.1  and completion for bash, zsh and fish

# Libraries that do not come from the system: files that lie beside libassay in the installed tree.
# (AssayOneDnn.cmake lists its own.)

# After the tree's own folder the one that OpenBLAS was linked from: of Debian's builds it has to be the
# one with OpenMP, whatever the machine's default is.
set_target_properties(assay_lib_shared assay_cli PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
set_target_properties(assay_lib_shared PROPERTIES INSTALL_RPATH "$ORIGIN" EXPORT_NAME assay)
set_target_properties(assay_cli PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")

# Tables of addresses are filled when a program starts, and are read-only from then on.
target_link_options(assay_lib_shared PRIVATE LINKER:-z,relro,-z,now)
target_link_options(assay_cli PRIVATE LINKER:-z,relro,-z,now)

install(TARGETS assay_cli RUNTIME)
install(TARGETS assay_lib_shared EXPORT assay_targets LIBRARY)
install(DIRECTORY include/assay DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
if(ASSAY_BUNDLED_LIBRARIES)
  install(PROGRAMS ${ASSAY_BUNDLED_LIBRARIES} DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()

# Manual pages and completion: the program writes them, from its tables of verbs and options.
if(NOT ASSAY_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  set(ASSAY_SHARE "${PROJECT_BINARY_DIR}/share")
  add_custom_command(
    OUTPUT "${ASSAY_SHARE}/made"
    COMMAND "${CMAKE_COMMAND}" -E rm -rf "${ASSAY_SHARE}"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${ASSAY_SHARE}/man1"
    COMMAND assay_cli man --output-folder "${ASSAY_SHARE}/man1"
    COMMAND assay_cli completion bash > "${ASSAY_SHARE}/assay"
    COMMAND assay_cli completion zsh > "${ASSAY_SHARE}/_assay"
    COMMAND assay_cli completion fish > "${ASSAY_SHARE}/assay.fish"
    COMMAND "${CMAKE_COMMAND}" -E touch "${ASSAY_SHARE}/made"
    DEPENDS assay_cli COMMENT "Manual pages and completion" VERBATIM)
  add_custom_target(assay_share ALL DEPENDS "${ASSAY_SHARE}/made")
  install(DIRECTORY "${ASSAY_SHARE}/man1" DESTINATION "${CMAKE_INSTALL_MANDIR}")
  install(FILES "${ASSAY_SHARE}/assay" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
  install(FILES "${ASSAY_SHARE}/_assay" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
  install(FILES "${ASSAY_SHARE}/assay.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
endif()

# The static library: all objects joined into one, then what is hidden becomes local, so that neither
# our own inner names nor the generated onnx__* ones meet those of a program. Sanitizer builds are for
# tests only and have none.
# -d: the locks of critical sections are common symbols, which can become local once they have a place;
# lld no longer knows it.
if(NOT ASSAY_SANITIZE)
  find_program(ASSAY_LD NAMES ld.bfd ld REQUIRED)
  set(ASSAY_STATIC "${PROJECT_BINARY_DIR}/libassay.a")
  add_custom_command(
    OUTPUT "${ASSAY_STATIC}"
    COMMAND "${CMAKE_COMMAND}" -E rm -f "${ASSAY_STATIC}"
    COMMAND "${ASSAY_LD}" -r -d -o assay.whole.o --whole-archive $<TARGET_FILE:assay_lib_static>
    COMMAND "${CMAKE_OBJCOPY}" --localize-hidden --wildcard "--keep-global-symbol=assay_*"
            assay.whole.o
    COMMAND "${CMAKE_AR}" qc "${ASSAY_STATIC}" assay.whole.o
    COMMAND "${CMAKE_RANLIB}" "${ASSAY_STATIC}"
    COMMAND "${CMAKE_COMMAND}" -E rm -f assay.whole.o
    DEPENDS assay_lib_static WORKING_DIRECTORY "${PROJECT_BINARY_DIR}"
    COMMENT "Static library" VERBATIM)
  add_custom_target(assay_static ALL DEPENDS "${ASSAY_STATIC}")
  install(FILES "${ASSAY_STATIC}" DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()

# What a program needs that is linked with the static library: the shared libraries that it uses, not
# what those in turn would need if they were static.
set(ASSAY_STATIC_LIBS
    ${XXHASH_LDFLAGS} ${JANSSON_LDFLAGS} ${OPENBLAS_LDFLAGS} ${PCRE2_LDFLAGS} ${WEBP_LDFLAGS}
    ${OPENJPEG_LDFLAGS} ${PROTOBUF_C_LDFLAGS} -ljpeg -lpng16 -ltiff -lz ${OpenMP_C_FLAGS} -lm)
list(REMOVE_DUPLICATES ASSAY_STATIC_LIBS)

# assay_package_files(FOLDER LIBDIR BUNDLED_DIR PREFIX): assay.pc and assay-config.cmake in FOLDER, for a tree with its libraries
# in LIBDIR and bundled ones in BUNDLED_DIR, both below PREFIX.
include(CMakePackageConfigHelpers)
function(assay_package_files folder libdir bundled_dir prefix)
  set(CMAKE_INSTALL_LIBDIR "${libdir}")
  list(JOIN ASSAY_STATIC_LIBS " " ASSAY_STATIC_FLAGS)
  file(RELATIVE_PATH bundled_relative "/${libdir}" "/${bundled_dir}")
  string(REGEX REPLACE "(.+)" "/\\1" bundled_relative "${bundled_relative}")
  # Bundled libraries: by file, and found where they are installed when the program starts.
  set(ASSAY_STATIC_BUNDLED "")
  foreach(library IN LISTS ASSAY_BUNDLED_LIBRARIES)
    cmake_path(GET library FILENAME name)
    string(PREPEND ASSAY_STATIC_FLAGS
           "-Wl,-rpath,\${libdir}${bundled_relative} -L\${libdir}${bundled_relative} -l:${name} ")
    list(APPEND ASSAY_STATIC_BUNDLED "\${assay_libdir}${bundled_relative}/${name}")
  endforeach()
  file(RELATIVE_PATH ASSAY_PC_PREFIX "/${libdir}/pkgconfig" "/")
  configure_file(cmake/assay.pc.in "${folder}/assay.pc" @ONLY)
  configure_package_config_file(cmake/assay-config.cmake.in "${folder}/assay-config.cmake"
                                INSTALL_DESTINATION "${libdir}/cmake/assay" INSTALL_PREFIX "${prefix}"
                                PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
endfunction()

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/assay")
assay_package_files("${PROJECT_BINARY_DIR}" "${CMAKE_INSTALL_LIBDIR}" "${CMAKE_INSTALL_LIBDIR}" "${CMAKE_INSTALL_PREFIX}")
install(FILES "${PROJECT_BINARY_DIR}/assay.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
write_basic_package_version_file(assay-config-version.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT assay_targets NAMESPACE assay:: DESTINATION "${package_dir}")
install(FILES "${PROJECT_BINARY_DIR}/assay-config.cmake"
              "${PROJECT_BINARY_DIR}/assay-config-version.cmake" DESTINATION "${package_dir}")
