# SPDX-License-Identifier: Apache-2.0
# Headers for backends of trtserver in C and C++, and a function that builds one:
#
#   find_package(trtserver-plugin 1.0 REQUIRED)           # cmake -DCMAKE_PREFIX_PATH=PREFIX
#   trtserver_add_plugin(hello hello.cpp)                 # libtrtserver_hello.so, for models with backend: "hello"
#   target_link_libraries(trtserver_hello PRIVATE ...)    # the target is an ordinary one
#
# A project that has its own way to build a shared library links trtserver::plugin for the headers.

get_filename_component(_trtserver_plugin_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT EXISTS "${_trtserver_plugin_prefix}/include/trtserver/trtserver.h")
  set(trtserver-plugin_FOUND FALSE)
  set(trtserver-plugin_NOT_FOUND_MESSAGE
    "'${_trtserver_plugin_prefix}/include/trtserver/trtserver.h' does not exist: the install was copied in part")
  return()
endif()

if(NOT TARGET trtserver::plugin)
  add_library(trtserver::plugin INTERFACE IMPORTED)
  set_target_properties(trtserver::plugin PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${_trtserver_plugin_prefix}/include")
endif()

# trtserver_add_plugin(NAME SOURCE...): the target trtserver_NAME, which builds libtrtserver_NAME.so. It exports the entry
# symbol alone and finds further libraries beside itself.
function(trtserver_add_plugin name)
  if(NOT name MATCHES "^[A-Za-z][A-Za-z0-9_]*$")
    message(FATAL_ERROR "trtserver_add_plugin: '${name}' is not a valid name for a backend: expected letters, digits and _, "
      "beginning with a letter")
  endif()
  if(NOT ARGN)
    message(FATAL_ERROR "trtserver_add_plugin(${name}): expected source files after the name")
  endif()
  set(target trtserver_${name})
  add_library(${target} MODULE ${ARGN})
  target_link_libraries(${target} PRIVATE trtserver::plugin)
  set_target_properties(${target} PROPERTIES
    PREFIX lib
    SUFFIX .so
    C_VISIBILITY_PRESET hidden
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    BUILD_RPATH "$ORIGIN"
    INSTALL_RPATH "$ORIGIN")
  if(CMAKE_CXX_COMPILER_LOADED)
    target_compile_features(${target} PRIVATE cxx_std_17)
  endif()
  # Visibility does not reach the templates and inline functions of other headers, such as those of the standard library.
  set(exports "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/exports.map")
  target_link_options(${target} PRIVATE "LINKER:--version-script=${exports}")
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${exports}")
endfunction()
