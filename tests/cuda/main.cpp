#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cuda_runtime_api.h>

#include <cstdio>

namespace {

/// CTest takes this exit status for a skipped test.
constexpr int skipped = 77;

} // namespace

int main(int argc, char** argv) {
  int devices = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&devices); error != cudaSuccess || devices == 0) {
    std::printf("SKIPPED: no GPU (%s)\n", cudaGetErrorString(error));
    return skipped;
  }
  return doctest::Context(argc, argv).run();
}
