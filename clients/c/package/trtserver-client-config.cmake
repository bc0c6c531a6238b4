# SPDX-License-Identifier: Apache-2.0
# The client library for C and C++:
#
#   find_package(trtserver-client REQUIRED)                        # cmake -DCMAKE_PREFIX_PATH=PREFIX
#   target_link_libraries(program PRIVATE trtserver::client)       # C: #include "trtserver_client.h"
#   target_link_libraries(program PRIVATE trtserver::client-v1.11) # C++: #include "request_http.h", as in TRTIS 1.11
#   target_link_libraries(program PRIVATE trtserver::client-v0.12) # C++: #include "src/clients/c++/request.h", as in TRTIS 0.12

get_filename_component(_trtserver_client_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
foreach(_trtserver_client_file lib/libtrtserver_client.so include/trtserver_client.h)
  if(NOT EXISTS "${_trtserver_client_prefix}/${_trtserver_client_file}")
    set(trtserver-client_FOUND FALSE)
    set(trtserver-client_NOT_FOUND_MESSAGE
      "'${_trtserver_client_prefix}/${_trtserver_client_file}' does not exist: the install was copied in part")
    return()
  endif()
endforeach()

if(NOT TARGET trtserver::client)
  add_library(trtserver::client SHARED IMPORTED)
  set_target_properties(trtserver::client PROPERTIES
    IMPORTED_LOCATION "${_trtserver_client_prefix}/lib/libtrtserver_client.so"
    IMPORTED_SONAME libtrtserver_client.so
    INTERFACE_INCLUDE_DIRECTORIES "${_trtserver_client_prefix}/include")
  foreach(_trtserver_client_release v1.11 v0.12)
    add_library(trtserver::client-${_trtserver_client_release} INTERFACE IMPORTED)
    set_target_properties(trtserver::client-${_trtserver_client_release} PROPERTIES
      INTERFACE_INCLUDE_DIRECTORIES "${_trtserver_client_prefix}/include/${_trtserver_client_release}"
      INTERFACE_LINK_LIBRARIES trtserver::client)
  endforeach()
endif()
