# Debian packages, by CPack (scripts/package), of the files of this build: nothing is compiled again.
#
#   assay          the program, its manual pages, completion for shells
#   libassay0      libassay.so.0; oneDNN and a link to the OpenMP build of OpenBLAS in a folder of its own
#   libassay-dev   headers, the static library, pkg-config, CMake, examples
#
# Their install components are part of no other `cmake --install`. Paths are those of a system (multiarch),
# whatever CMAKE_INSTALL_LIBDIR is.

if(ASSAY_SANITIZE OR CMAKE_CROSSCOMPILING OR SKBUILD OR NOT CMAKE_LIBRARY_ARCHITECTURE)
  return()
endif()
set(debian_sources "${PROJECT_SOURCE_DIR}/cmake/debian")
set(debian_made "${PROJECT_BINARY_DIR}/debian")
set(debian_libdir "lib/${CMAKE_LIBRARY_ARCHITECTURE}")
set(debian_private "${debian_libdir}/assay")
set(debian_release 0assay1)  # before any 0.2.0-1 that Debian itself may come to have
set(debian_version "${PROJECT_VERSION}-${debian_release}")
set(debian_program assay)
set(debian_library "libassay${PROJECT_VERSION_MAJOR}")
set(debian_development libassay-dev)

# What each package has to have beside its files, and what is compressed: manual pages, changelogs.
set(gzip gzip -9 -n -c)
set(commands)
foreach(package IN ITEMS ${debian_program} ${debian_library} ${debian_development})
  set(doc "${debian_made}/doc/${package}")
  list(APPEND commands
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${doc}"
    COMMAND ${gzip} "${debian_sources}/changelog" > "${doc}/changelog.Debian.gz"
    COMMAND ${gzip} "${PROJECT_SOURCE_DIR}/CHANGELOG.md" > "${doc}/changelog.gz"
    COMMAND "${CMAKE_COMMAND}" -E copy "${debian_sources}/copyright" "${doc}/copyright")
endforeach()
cmake_path(GET ASSAY_ONNX_DIR PARENT_PATH third_party)
cmake_path(SET third_party NORMALIZE "${third_party}/../../../share/doc/onednn/THIRD-PARTY-PROGRAMS")
set(bundled)
foreach(library IN LISTS ASSAY_BUNDLED_LIBRARIES)
  cmake_path(GET library FILENAME name)
  list(APPEND bundled "${debian_made}/${name}")
  list(APPEND commands COMMAND "${CMAKE_STRIP}" --strip-unneeded --remove-section=.comment -o "${debian_made}/${name}" "${library}"
       COMMAND ${gzip} "${third_party}" > "${debian_made}/doc/${debian_library}/oneDNN-THIRD-PARTY-PROGRAMS.gz")
endforeach()
add_custom_command(
  OUTPUT "${debian_made}/made"
  COMMAND "${CMAKE_COMMAND}" -E rm -rf "${debian_made}"
  ${commands}
  COMMAND "${CMAKE_COMMAND}" -E copy_directory "${ASSAY_SHARE}/man1" "${debian_made}/man1"
  COMMAND find "${debian_made}/man1" -name "*.1" -exec gzip -9 -n {} +
  COMMAND "${CMAKE_STRIP}" --strip-debug --remove-section=.comment --enable-deterministic-archives
          -o "${debian_made}/libassay.a" "${ASSAY_STATIC}"
  COMMAND sh "${debian_sources}/control.sh" "${debian_made}" $<TARGET_FILE:assay_lib_shared> ${debian_library} ${PROJECT_VERSION}
  COMMAND "${CMAKE_COMMAND}" -E touch "${debian_made}/made"
  DEPENDS assay_lib_shared "${ASSAY_SHARE}/made" "${ASSAY_STATIC}" "${PROJECT_SOURCE_DIR}/CHANGELOG.md"
          "${debian_sources}/changelog" "${debian_sources}/copyright" "${debian_sources}/control.sh"
  COMMENT "Files of Debian packages" VERBATIM)
set(all)
if(ASSAY_BUILD_TESTS)
  set(all ALL)
endif()
add_custom_target(assay_debian ${all} DEPENDS "${debian_made}/made")
add_dependencies(assay_debian assay_cli)

# debian_install(COMPONENT KIND_AND_FILES...): install() into a component of its own.
function(debian_install component)
  install(${ARGN} COMPONENT debian_${component} EXCLUDE_FROM_ALL)
endfunction()

foreach(component IN ITEMS program library development)
  debian_install(${component} DIRECTORY "${debian_made}/doc/${debian_${component}}" DESTINATION share/doc)
  if(EXISTS "${debian_sources}/${debian_${component}}.lintian-overrides")
    debian_install(${component} FILES "${debian_sources}/${debian_${component}}.lintian-overrides"
                   DESTINATION share/lintian/overrides RENAME "${debian_${component}}")
  endif()
endforeach()

# debian_run_path(COMPONENT FILE PATH): where an installed file looks for oneDNN and OpenBLAS.
function(debian_run_path component file path)
  debian_install(${component} CODE
    "file(RPATH_SET FILE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${file}\" NEW_RPATH [[${path}]])")
endfunction()

debian_install(program TARGETS assay_cli RUNTIME DESTINATION bin)
debian_run_path(program bin/assay "$ORIGIN/../${debian_private}")
debian_install(program DIRECTORY "${debian_made}/man1" DESTINATION share/man)
debian_install(program FILES "${ASSAY_SHARE}/assay" DESTINATION share/bash-completion/completions)
debian_install(program FILES "${ASSAY_SHARE}/_assay" DESTINATION share/zsh/vendor-completions)
debian_install(program FILES "${ASSAY_SHARE}/assay.fish" DESTINATION share/fish/vendor_completions.d)

install(TARGETS assay_lib_shared EXPORT assay_debian_targets LIBRARY DESTINATION "${debian_libdir}"
        COMPONENT debian_library NAMELINK_COMPONENT debian_development EXCLUDE_FROM_ALL)
debian_run_path(library "${debian_libdir}/libassay.so.${PROJECT_VERSION}" "$ORIGIN/assay")
if(bundled)
  debian_install(library FILES ${bundled} DESTINATION "${debian_private}")
endif()
# libopenblas.so.0 is an alternative of Debian's, which prefers the build with pthreads where both are installed.
debian_install(library CODE "file(MAKE_DIRECTORY \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${debian_private}\")
file(CREATE_LINK ../openblas-openmp/libopenblas.so.0
     \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${debian_private}/libopenblas.so.0\" SYMBOLIC)")

install(DIRECTORY include/assay DESTINATION include COMPONENT debian_development EXCLUDE_FROM_ALL FILES_MATCHING PATTERN "*.h")
debian_install(development FILES "${debian_made}/libassay.a" DESTINATION "${debian_libdir}")
install(DIRECTORY examples DESTINATION "share/doc/${debian_development}" COMPONENT debian_development EXCLUDE_FROM_ALL
        PATTERN arguments.txt EXCLUDE PATTERN __pycache__ EXCLUDE)
assay_package_files("${debian_made}_config" "${debian_libdir}" "${debian_private}" /usr)
debian_install(development FILES "${debian_made}_config/assay.pc" DESTINATION "${debian_libdir}/pkgconfig")
debian_install(development FILES "${debian_made}_config/assay-config.cmake"
               "${PROJECT_BINARY_DIR}/assay-config-version.cmake" DESTINATION "${debian_libdir}/cmake/assay")
debian_install(development EXPORT assay_debian_targets FILE assay_targets.cmake NAMESPACE assay::
               DESTINATION "${debian_libdir}/cmake/assay")

# What the packages say of themselves.
set(CPACK_GENERATOR DEB)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
    WORLD_EXECUTE)
set(CPACK_PACKAGE_CONTACT "Assay maintainers <maintainers@assay.example>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each has its own
set(CPACK_COMPONENTS_ALL debian_program debian_library debian_development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${debian_release})
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA "${debian_made}/symbols" "${debian_made}/shlibs" "${debian_made}/triggers")
set(CPACK_DEBIAN_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${debian_library} (= ${debian_version})")
set(CPACK_DEBIAN_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS
    "libjansson-dev, libjpeg-dev, libopenblas-openmp-dev, libopenjp2-7-dev, libpcre2-dev, libpng-dev, libprotobuf-c-dev, libtiff-dev, libwebp-dev, libxxhash-dev, zlib1g-dev")
set(about "Assay runs ONNX models on CPUs and NVIDIA GPUs. It evaluates a model in
float64, runs it in the format that it is to be deployed in (fp16, bf16, fp8,
int8), and shows for every layer its own error and the error that it
inherited. If an output is wrong, it names the node to blame and a fix that it
has verified.
.")
# debian_package(COMPONENT SECTION SYNOPSIS TEXT)
macro(debian_package component section synopsis text)
  string(TOUPPER "DEBIAN_${component}" upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME "${debian_${component}}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION "${section}")
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${synopsis}\n${about}\n${text}")
endmacro()
debian_package(program science "precision errors of ONNX models, layer by layer"
               "This package has the program.")
debian_package(library libs "ONNX inference engine that accounts for its numbers"
               "This package has the shared library.")
debian_package(development libdevel "ONNX inference engine that accounts for its numbers (development)"
"This package has headers, the static library, files for pkg-config and CMake,
and examples. Programs that are linked with the static library need the
suggested packages as well.")
# Dependencies that are read off the files, when the packages are made.
set(DEBIAN_PROGRAM_FILE "${PROJECT_BINARY_DIR}/src/cli/assay")
set(DEBIAN_LIBRARY_FILES "${PROJECT_BINARY_DIR}/libassay.so.${PROJECT_VERSION}" ${ASSAY_BUNDLED_LIBRARIES})
set(CPACK_PROJECT_CONFIG_FILE "${debian_made}_config/dependencies.cmake")
configure_file("${debian_sources}/dependencies.cmake.in" "${CPACK_PROJECT_CONFIG_FILE}" @ONLY)
include(CPack)
