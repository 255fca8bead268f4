# Installs everything, or the components core and dvbf (cmake --install BUILD --component core).
include(CMakePackageConfigHelpers)
set(DVBF_PACKAGE ${CMAKE_INSTALL_LIBDIR}/cmake/dvbf)
# pkg-config files use paths relative to themselves, so they are valid under any prefix.
file(RELATIVE_PATH PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
file(RELATIVE_PATH PC_INCLUDE ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_FULL_INCLUDEDIR})

# dvbf_install(PART TARGET DESCRIPTION REQUIRES LIBS): its libraries, NAME.pc and the target dvbf::PART.
function(dvbf_install part target description requires libs)
  get_target_property(name ${target}_shared OUTPUT_NAME)
  set_target_properties(${target}_shared PROPERTIES EXPORT_NAME ${part})
  install(TARGETS ${target}_static COMPONENT ${part})
  install(TARGETS ${target}_shared EXPORT ${name} COMPONENT ${part})
  install(EXPORT ${name} FILE targets-${part}.cmake NAMESPACE dvbf:: DESTINATION ${DVBF_PACKAGE} COMPONENT ${part})
  configure_file(cmake/dvbf.pc.in ${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT ${part})
endfunction()

set(headers core.h control.h graph.h)
list(TRANSFORM headers PREPEND include/dvbf/)
dvbf_install(core dvbf_core "filtering with a trained model" jansson "-lpthread -lm")
install(FILES ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/dvbf COMPONENT core)
write_basic_package_version_file(dvbf-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES cmake/dvbf-config.cmake ${PROJECT_BINARY_DIR}/dvbf-config-version.cmake
  DESTINATION ${DVBF_PACKAGE} COMPONENT core)
if(DVBF_CORE_ONLY)
  return()
endif()

dvbf_install(dvbf dvbf "training, data files and reports too" "jansson hdf5 libzip cairo${DVBF_MATIO_PACKAGE}" "-lpthread -lm")
file(GLOB others CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} include/dvbf/*.h)
list(REMOVE_ITEM others ${headers})
install(FILES ${others} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/dvbf COMPONENT dvbf)
install(TARGETS dvbf_cli COMPONENT dvbf)
install(DIRECTORY ${DVBF_MANUAL}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT dvbf FILES_MATCHING PATTERN "*.1")
install(FILES ${DVBF_MANUAL}/dvbf.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
  RENAME dvbf COMPONENT dvbf)

# pip install: the library is inside the package, as one file, because a wheel has no links.
if(DVBF_WHEEL)
  install(FILES $<TARGET_FILE:dvbf_shared> DESTINATION dvbf/_lib RENAME libdvbf.so COMPONENT python)
endif()
