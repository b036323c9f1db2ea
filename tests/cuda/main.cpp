#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

/// CTest takes this exit status for a skipped test.
constexpr int skipped = 77;

/// `--allocate BYTES`: the other process of a test. Whether the device has so much memory.
int allocate(const char* bytes) {
  void* address = nullptr;
  return cudaMalloc(&address, std::strtoull(bytes, nullptr, 10)) == cudaSuccess ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
  int devices = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&devices); error != cudaSuccess || devices == 0) {
    std::printf("SKIPPED: no GPU (%s)\n", cudaGetErrorString(error));
    return skipped;
  }
  if (argc == 3 && std::string_view(argv[1]) == "--allocate") return allocate(argv[2]);
  return doctest::Context(argc, argv).run();
}
