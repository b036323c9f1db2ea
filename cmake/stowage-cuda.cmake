# stowage_use_cuda(TARGET): makes an interface target the library's CUDA part. CUDAToolkit has been found. Used in the
# source tree and in an installation. The runtime library is the shared one, or the static one where
# CMAKE_CUDA_RUNTIME_LIBRARY says Static.
function(stowage_use_cuda target)
  set(runtime CUDA::cudart)
  if("${CMAKE_CUDA_RUNTIME_LIBRARY}" STREQUAL "Static")
    set(runtime CUDA::cudart_static)
  endif()
  target_link_libraries(${target} INTERFACE stowage::stowage ${runtime})
  # CUDA 13 keeps <cuda/std/...> in a folder of its own, which only nvcc adds by itself.
  foreach(folder IN LISTS CUDAToolkit_INCLUDE_DIRS)
    if(EXISTS "${folder}/cccl")
      target_include_directories(${target} SYSTEM INTERFACE "${folder}/cccl")
    endif()
  endforeach()
endfunction()
