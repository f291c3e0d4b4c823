# What the Python wheel has of the build (pyproject.toml): the library and what is bundled with it in assay/lib, the program
# in assay/bin. The install component "wheel" has nothing else.
#
# ASSAY_PREBUILT: a folder with bin/ and lib/ that are put into the wheel as they are, in place of compiling (scripts/wheel).
#
# objects.txt in the build: what scripts/link_portable.py links again.

add_custom_target(assay_wheel)
if(ASSAY_PREBUILT)
  install(DIRECTORY "${ASSAY_PREBUILT}/" DESTINATION assay COMPONENT wheel USE_SOURCE_PERMISSIONS)
  return()
endif()

add_dependencies(assay_wheel assay_lib_shared assay_cli)
# A wheel holds no links: the library is the file that its name for the loader says.
if(SKBUILD)
  set_target_properties(assay_lib_shared PROPERTIES VERSION ${PROJECT_VERSION_MAJOR})
endif()
install(TARGETS assay_lib_shared LIBRARY DESTINATION assay/lib COMPONENT wheel EXCLUDE_FROM_ALL NAMELINK_SKIP)
install(TARGETS assay_cli RUNTIME DESTINATION assay/bin COMPONENT wheel EXCLUDE_FROM_ALL)
if(ASSAY_BUNDLED_LIBRARIES)
  install(PROGRAMS ${ASSAY_BUNDLED_LIBRARIES} DESTINATION assay/lib COMPONENT wheel EXCLUDE_FROM_ALL)
endif()

get_property(folders GLOBAL PROPERTY ASSAY_FOLDERS)
set(objects "$<TARGET_OBJECTS:assay_cli>" "$<TARGET_OBJECTS:assay_cli_parts>")
foreach(folder IN LISTS folders)
  list(APPEND objects "$<TARGET_OBJECTS:assay_${folder}>")
endforeach()
file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/objects.txt" CONTENT "$<JOIN:${objects},\n>\n")
