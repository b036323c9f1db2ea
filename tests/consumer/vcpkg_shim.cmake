# Runs the vcpkg port without vcpkg: the functions of vcpkg that the port calls, as far as it needs them.
#   cmake -DPORT_FOLDER=... -DCURRENT_PACKAGES_DIR=... -DBUILD_FOLDER=... -P vcpkg_shim.cmake
# What vcpkg itself does is not tested: the dependencies of vcpkg.json are not installed (Boost is the machine's),
# nor does it check the package by its rules.
cmake_minimum_required(VERSION 3.25)
set(PORT stowage)

function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -S "${arg_SOURCE_PATH}" -B "${BUILD_FOLDER}" -DCMAKE_BUILD_TYPE=Release
      "-DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR}" ${arg_OPTIONS}
    COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(vcpkg_cmake_install)
  execute_process(COMMAND "${CMAKE_COMMAND}" --build "${BUILD_FOLDER}" --target install COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# Moves the package configuration to share/stowage; the paths back to the prefix become one folder shorter.
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "CONFIG_PATH" "")
  set(from "${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}")
  set(to "${CURRENT_PACKAGES_DIR}/share/${PORT}")
  file(GLOB files "${from}/*.cmake")
  if(NOT files)
    message(FATAL_ERROR "The port's CONFIG_PATH ${arg_CONFIG_PATH} has no package configuration")
  endif()
  file(COPY ${files} DESTINATION "${to}")
  file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/share/cmake")
  file(GLOB files "${to}/*.cmake")
  foreach(file IN LISTS files)
    file(READ "${file}" text)
    string(REPLACE "{CMAKE_CURRENT_LIST_DIR}/../../../" "{CMAKE_CURRENT_LIST_DIR}/../../" text "${text}")
    string(REGEX REPLACE
      "(get_filename_component\\(_IMPORT_PREFIX \"\\\${_IMPORT_PREFIX}\" PATH\\)\n)+"
      "get_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)\nget_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)\n"
      text "${text}")
    file(WRITE "${file}" "${text}")
  endforeach()
endfunction()

function(vcpkg_fixup_pkgconfig)
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  file(INSTALL ${arg_FILE_LIST} DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}" RENAME copyright)
endfunction()

file(READ "${PORT_FOLDER}/vcpkg.json" manifest)
string(JSON name GET "${manifest}" name)
string(JSON version GET "${manifest}" version-semver)
if(NOT name STREQUAL PORT)
  message(FATAL_ERROR "vcpkg.json names the port ${name}, not ${PORT}")
endif()

set(CMAKE_CURRENT_LIST_DIR "${PORT_FOLDER}") # as it is in a portfile
include("${PORT_FOLDER}/portfile.cmake")

# The package has what it should have, and the manifest the version of the sources.
foreach(file IN ITEMS
    include/stowage/stowage.hpp share/stowage/stowage-config.cmake share/stowage/copyright share/stowage/usage)
  if(NOT EXISTS "${CURRENT_PACKAGES_DIR}/${file}")
    message(FATAL_ERROR "The port's package has no ${file}")
  endif()
endforeach()
file(STRINGS "${CURRENT_PACKAGES_DIR}/share/stowage/stowage-config-version.cmake" line
  REGEX "^set\\(PACKAGE_VERSION \"")
if(NOT line STREQUAL "set(PACKAGE_VERSION \"${version}\")")
  message(FATAL_ERROR "vcpkg.json says version ${version}, the package says ${line}")
endif()
