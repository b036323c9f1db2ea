# stowage_use_cuda(TARGET): makes an interface target the library's CUDA part. CUDAToolkit has been found. Used in the
# source tree and in an installation.
function(stowage_use_cuda target)
  target_link_libraries(${target} INTERFACE stowage::stowage CUDA::cudart)
  # CUDA 13 keeps <cuda/std/...> in a folder of its own, which only nvcc adds by itself.
  foreach(folder IN LISTS CUDAToolkit_INCLUDE_DIRS)
    if(EXISTS "${folder}/cccl")
      target_include_directories(${target} SYSTEM INTERFACE "${folder}/cccl")
    endif()
  endforeach()
endfunction()
