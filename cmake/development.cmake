# What Stowage's own tests, examples and benchmarks are built with. Nothing here reaches a user of the library.

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CUDA_EXTENSIONS OFF)

# CMake 3.25 does not know yet that nvcc takes C++20.
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
# One runtime library in a program: what stowage::cuda links.
if(NOT DEFINED CMAKE_CUDA_RUNTIME_LIBRARY)
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
endif()

# Warnings and sanitizers; link it PRIVATE.
add_library(stowage_strict INTERFACE)

set(host_warnings -Wall -Wextra -Wconversion -Wshadow)
list(JOIN host_warnings "," nvcc_host_warnings)
target_compile_options(stowage_strict INTERFACE
  "$<$<COMPILE_LANG_AND_ID:CXX,GNU,Clang,AppleClang>:${host_warnings};-Wpedantic>"
  "$<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:-Xcompiler=${nvcc_host_warnings}>")
# g++ 12 takes some concatenations of strings for overlapping copies, in the standard library's own header.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(stowage_strict INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>"
    "$<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:-Xcompiler=-Wno-restrict>")
endif()
if(STOWAGE_WARNINGS_AS_ERRORS)
  target_compile_options(stowage_strict INTERFACE
    "$<$<COMPILE_LANG_AND_ID:CXX,GNU,Clang,AppleClang>:-Werror>"
    "$<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:SHELL:-Werror all-warnings -Xcompiler=-Werror>")
endif()

if(NOT STOWAGE_SANITIZE STREQUAL "")
  set(sanitizer_options "-fsanitize=${STOWAGE_SANITIZE}" -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_compile_options(stowage_strict INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${sanitizer_options}>")
  target_link_options(stowage_strict INTERFACE "-fsanitize=${STOWAGE_SANITIZE}")
endif()
