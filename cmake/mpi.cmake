# The plug-in for MPI, if MPI is installed; nothing else depends on it. -DMPI_C_COMPILER=mpicc.mpich selects an MPI other than
# the default. Sanitized programs load it as it is.
find_package(MPI COMPONENTS C QUIET)
if(NOT MPI_C_FOUND OR DVBF_FUZZ)
  return()
endif()
add_library(dvbf_mpi MODULE plugins/mpi.c)
target_include_directories(dvbf_mpi PRIVATE include src)
target_compile_definitions(dvbf_mpi PRIVATE _GNU_SOURCE)
target_compile_options(dvbf_mpi PRIVATE -Wall -Wextra -Wshadow $<$<BOOL:${DVBF_WERROR}>:-Werror>)
target_link_libraries(dvbf_mpi PRIVATE MPI::MPI_C)
set_target_properties(dvbf_mpi PROPERTIES OUTPUT_NAME dvbf-mpi C_VISIBILITY_PRESET hidden
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
install(TARGETS dvbf_mpi DESTINATION ${CMAKE_INSTALL_LIBDIR}/dvbf COMPONENT mpi)
