# find_package(dvbf [COMPONENTS core | dvbf]) makes dvbf::core or dvbf::dvbf, of which a program links one; without
# components both.
if(NOT dvbf_FIND_COMPONENTS)
  set(dvbf_FIND_COMPONENTS core dvbf)
  set(dvbf_FIND_REQUIRED_dvbf TRUE)
endif()
foreach(part ${dvbf_FIND_COMPONENTS})
  include(${CMAKE_CURRENT_LIST_DIR}/targets-${part}.cmake OPTIONAL RESULT_VARIABLE dvbf_${part}_FOUND)
  if(NOT dvbf_${part}_FOUND AND dvbf_FIND_REQUIRED_${part})
    set(dvbf_FOUND FALSE)
    set(dvbf_NOT_FOUND_MESSAGE "dvbf is installed here without its part `${part}`; parts are core and dvbf")
  endif()
endforeach()
