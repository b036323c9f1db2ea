#pragma once

/// Accessors can be called in kernels where the compiler knows kernels.
#if defined(__CUDACC__)
#define STOWAGE_HOST_DEVICE __host__ __device__
#else
#define STOWAGE_HOST_DEVICE
#endif
