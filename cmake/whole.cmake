# Everything except core: libdvbf, the command, its manual pages and the benchmark.
pkg_check_modules(HDF5 REQUIRED IMPORTED_TARGET hdf5)
pkg_check_modules(LIBZIP REQUIRED IMPORTED_TARGET libzip)
pkg_check_modules(CAIRO REQUIRED IMPORTED_TARGET cairo)
set(DVBF_LIBRARIES PkgConfig::HDF5 PkgConfig::LIBZIP PkgConfig::CAIRO ${DVBF_CORE_LIBRARIES})

# MATLAB files up to version 7 need libmatio; without it a message says what to do.
pkg_check_modules(MATIO IMPORTED_TARGET matio)
if(MATIO_FOUND)
  list(APPEND DVBF_LIBRARIES PkgConfig::MATIO)
  set(DVBF_MATIO_PACKAGE " matio")
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/io/matlab.c PROPERTIES COMPILE_DEFINITIONS DV_MATIO)
endif()

# dvbf_embed(NAME FILES...): the files become C arrays in ${NAME}.c of the build.
function(dvbf_embed name)
  set(source ${PROJECT_BINARY_DIR}/${name}.c)
  add_custom_command(OUTPUT ${source} VERBATIM
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${source} "-DFILES=${ARGN}" -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${ARGN} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake)
  add_custom_target(dvbf_${name} DEPENDS ${source})
endfunction()

# Script and style of the report, and the templates of exported code.
set(page_parts page.js page_plot.js page_signals.js page_space.js page_video.js page.css)
list(TRANSFORM page_parts PREPEND ${PROJECT_SOURCE_DIR}/src/report/)
dvbf_embed(page_files ${page_parts})
file(GLOB templates CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/export/templates/*.in)
dvbf_embed(export_files ${templates})

dvbf_objects(more_float "${DVBF_LIBRARIES}" ${DVBF_MORE_SOURCES} ${PROJECT_BINARY_DIR}/page_files.c
  ${PROJECT_BINARY_DIR}/export_files.c)
dvbf_library(dvbf dvbf "${DVBF_LIBRARIES}" ${core_float_OBJECTS} $<TARGET_OBJECTS:more_float>)

file(GLOB CLI_SOURCES CONFIGURE_DEPENDS cli/*.c)
add_executable(dvbf_cli ${CLI_SOURCES})
target_link_libraries(dvbf_cli PRIVATE dvbf_static)
set_target_properties(dvbf_cli PROPERTIES OUTPUT_NAME dvbf RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
# CMake ends the search path of its targets with a colon, which means the working directory: a library placed among the
# data would be loaded. The system's own search path is enough.
set_target_properties(dvbf_cli dvbf_shared PROPERTIES SKIP_BUILD_RPATH ON)

# The program writes its manual pages and its completion itself, from the tables behind --help.
set(DVBF_MANUAL ${PROJECT_BINARY_DIR}/manual)
add_custom_command(OUTPUT ${DVBF_MANUAL}/dvbf.1 VERBATIM
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${DVBF_MANUAL}
  COMMAND dvbf_cli manual ${DVBF_MANUAL}
  DEPENDS dvbf_cli)
add_custom_target(dvbf_manual ALL DEPENDS ${DVBF_MANUAL}/dvbf.1)

add_subdirectory(bench)
