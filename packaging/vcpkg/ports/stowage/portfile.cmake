# An overlay port: vcpkg install stowage --overlay-ports=<source tree>/packaging/vcpkg/ports. It packages the source
# tree that it lies in.
cmake_path(SET SOURCE_PATH NORMALIZE "${CMAKE_CURRENT_LIST_DIR}/../../../..")

set(VCPKG_BUILD_TYPE release) # header-only

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    -DSTOWAGE_BUILD_TESTS=OFF
    -DSTOWAGE_BUILD_EXAMPLES=OFF
    -DSTOWAGE_BUILD_BENCHMARKS=OFF
    -DSTOWAGE_CUDA=OFF # stowage::cuda appears in projects that find CUDA
    -DSTOWAGE_INSTALL=ON)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH share/cmake/stowage)
vcpkg_fixup_pkgconfig()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/lib" "${CURRENT_PACKAGES_DIR}/share/doc")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
