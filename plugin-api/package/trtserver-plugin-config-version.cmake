# SPDX-License-Identifier: Apache-2.0
# The version of the plugin interface. A backend built with MAJOR.MINOR runs on servers of the same major version and at
# least that minor version, so a project asks for the oldest minor version whose headers it can use.
set(PACKAGE_VERSION "@VERSION@")
string(REGEX MATCH "^[0-9]+" _trtserver_plugin_major "${PACKAGE_VERSION}")
if(PACKAGE_FIND_VERSION_MAJOR STREQUAL _trtserver_plugin_major AND NOT PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
else()
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
endif()
