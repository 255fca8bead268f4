# All but core: libdvbf, the command, its manual, and the benchmark.
pkg_check_modules(HDF5 REQUIRED IMPORTED_TARGET hdf5)
pkg_check_modules(LIBZIP REQUIRED IMPORTED_TARGET libzip)
pkg_check_modules(CAIRO REQUIRED IMPORTED_TARGET cairo)
find_library(LAPACKE_LIBRARY lapacke REQUIRED)
set(DVBF_LIBRARIES PkgConfig::HDF5 PkgConfig::LIBZIP PkgConfig::CAIRO ${LAPACKE_LIBRARY} ${DVBF_CORE_LIBRARIES})

# Script and style of the report become C arrays.
set(DVBF_PAGE_FILES ${PROJECT_SOURCE_DIR}/src/report/page.js ${PROJECT_SOURCE_DIR}/src/report/page.css)
set(DVBF_PAGE_SOURCE ${PROJECT_BINARY_DIR}/page_files.c)
add_custom_command(OUTPUT ${DVBF_PAGE_SOURCE} VERBATIM
  COMMAND ${CMAKE_COMMAND} -DOUTPUT=${DVBF_PAGE_SOURCE} "-DFILES=${DVBF_PAGE_FILES}"
    -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
  DEPENDS ${DVBF_PAGE_FILES} cmake/embed.cmake)
add_custom_target(dvbf_page_files DEPENDS ${DVBF_PAGE_SOURCE})

dvbf_objects(more_float "${DVBF_LIBRARIES}" ${DVBF_MORE_SOURCES} ${DVBF_PAGE_SOURCE})
dvbf_library(dvbf dvbf "${DVBF_LIBRARIES}" ${core_float_OBJECTS} $<TARGET_OBJECTS:more_float>)

file(GLOB CLI_SOURCES CONFIGURE_DEPENDS cli/*.c)
add_executable(dvbf_cli ${CLI_SOURCES})
target_link_libraries(dvbf_cli PRIVATE dvbf_static)
set_target_properties(dvbf_cli PROPERTIES OUTPUT_NAME dvbf RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})

# The program writes its manual pages and its completion itself, from the tables behind --help.
set(DVBF_MANUAL ${PROJECT_BINARY_DIR}/manual)
add_custom_command(OUTPUT ${DVBF_MANUAL}/dvbf.1 VERBATIM
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${DVBF_MANUAL}
  COMMAND dvbf_cli manual ${DVBF_MANUAL}
  DEPENDS dvbf_cli)
add_custom_target(dvbf_manual ALL DEPENDS ${DVBF_MANUAL}/dvbf.1)

add_subdirectory(bench)
