#pragma once

// The driver's virtual memory management, played on host memory: as strict as the driver's manual, with physical memory
// that is really there once for each handle, whose amount is limited, and with calls that fail.

#include "../../unit/failing_calls.hpp"

#include <stowage/cuda/driver.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

namespace test {

class fake_driver {
public:
  static constexpr std::size_t granule = 65536;

  struct handle {
    int file = -1;
    std::size_t bytes = 0;
    bool released = false;
    std::size_t mappings = 0;
  };
  struct mapping {
    std::size_t bytes = 0;
    std::uint64_t handle = 0;
    bool accessible = false;
  };

  static inline std::map<std::uint64_t, handle> handles;
  static inline std::map<std::uintptr_t, mapping> mappings;
  static inline std::map<std::uintptr_t, std::size_t> reservations;
  static inline std::size_t host_blocks = 0;
  static inline std::size_t physical_bytes = 0;
  static inline std::size_t limit = static_cast<std::size_t>(-1);
  static inline std::string violations;

  static void reset() {
    limit = static_cast<std::size_t>(-1);
    violations.clear();
    call_counter::fail(0);
  }
  /// What was not given back.
  static std::size_t outstanding() {
    return handles.size() + mappings.size() + reservations.size() + host_blocks + physical_bytes;
  }
  static const stowage::cuda::driver_calls& calls() {
    static const stowage::cuda::driver_calls table = make();
    return table;
  }

private:
  static CUresult wrong(const char* what) {
    violations += std::string(what) + "; ";
    return CUDA_ERROR_INVALID_VALUE;
  }
  static void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

  static bool is_reserved(CUdeviceptr address, std::size_t bytes) {
    auto found = reservations.upper_bound(address);
    if (found == reservations.begin()) return false;
    --found;
    return address + bytes <= found->first + found->second;
  }
  static bool has_mapping(CUdeviceptr address, std::size_t bytes) {
    for (const auto& [begin, one] : mappings) {
      if (begin < address + bytes && address < begin + one.bytes) return true;
    }
    return false;
  }
  static void free_if_unused(std::uint64_t number) {
    const auto found = handles.find(number);
    if (!found->second.released || found->second.mappings != 0) return;
    ::close(found->second.file);
    physical_bytes -= found->second.bytes;
    handles.erase(found);
  }

  static CUresult error_name(CUresult code, const char** name) {
    *name = code == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_UNKNOWN";
    return CUDA_SUCCESS;
  }
  static CUresult granularity(std::size_t* bytes, const CUmemAllocationProp*,
                              CUmemAllocationGranularity_flags) {
    if (call_counter::fails()) return CUDA_ERROR_UNKNOWN;
    *bytes = granule;
    return CUDA_SUCCESS;
  }
  static CUresult reserve(CUdeviceptr* address, std::size_t bytes, std::size_t alignment, CUdeviceptr,
                          unsigned long long) {
    if (call_counter::fails()) return CUDA_ERROR_OUT_OF_MEMORY;
    if (bytes == 0 || bytes % granule != 0) return wrong("reserve: no whole granules");
    if (alignment == 0) alignment = granule;
    void* const start =
        ::mmap(nullptr, bytes + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    const auto begin = reinterpret_cast<std::uintptr_t>(start);
    const std::uintptr_t aligned = (begin + alignment - 1) / alignment * alignment;
    if (aligned != begin) ::munmap(start, aligned - begin);
    if (begin + alignment != aligned) ::munmap(pointer(aligned + bytes), begin + alignment - aligned);
    reservations[aligned] = bytes;
    *address = aligned;
    return CUDA_SUCCESS;
  }
  static CUresult unreserve(CUdeviceptr address, std::size_t bytes) {
    if (call_counter::fails()) return CUDA_ERROR_UNKNOWN;
    const auto found = reservations.find(address);
    if (found == reservations.end() || found->second != bytes)
      return wrong("unreserve: not what was reserved");
    if (has_mapping(address, bytes)) return wrong("unreserve: memory is mapped");
    ::munmap(pointer(address), bytes);
    reservations.erase(found);
    return CUDA_SUCCESS;
  }
  static CUresult create(CUmemGenericAllocationHandle* number, std::size_t bytes,
                         const CUmemAllocationProp* kind, unsigned long long) {
    if (call_counter::fails()) return CUDA_ERROR_OUT_OF_MEMORY;
    if (bytes == 0 || bytes % granule != 0) return wrong("create: no whole granules");
    if (kind->type != CU_MEM_ALLOCATION_TYPE_PINNED || kind->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
      return wrong("create: another kind of memory");
    if (bytes > limit || physical_bytes > limit - bytes) return CUDA_ERROR_OUT_OF_MEMORY;
    handle one;
    one.file = ::memfd_create("device memory", 0);
    one.bytes = bytes;
    if (one.file < 0 || ::ftruncate(one.file, static_cast<off_t>(bytes)) != 0) return CUDA_ERROR_UNKNOWN;
    // Fresh memory holds anything.
    void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, one.file, 0);
    std::memset(memory, 0xee, bytes);
    ::munmap(memory, bytes);
    physical_bytes += bytes;
    static std::uint64_t last = 0;
    *number = ++last;
    handles[last] = one;
    return CUDA_SUCCESS;
  }
  static CUresult release(CUmemGenericAllocationHandle number) {
    if (call_counter::fails()) return CUDA_ERROR_UNKNOWN;
    const auto found = handles.find(number);
    if (found == handles.end() || found->second.released) return wrong("release: no such handle");
    found->second.released = true;
    free_if_unused(number);
    return CUDA_SUCCESS;
  }
  static CUresult map(CUdeviceptr address, std::size_t bytes, std::size_t offset,
                      CUmemGenericAllocationHandle number, unsigned long long) {
    if (call_counter::fails()) return CUDA_ERROR_UNKNOWN;
    const auto found = handles.find(number);
    if (found == handles.end() || found->second.released) return wrong("map: no such handle");
    if (offset != 0 || bytes != found->second.bytes) return wrong("map: not the whole handle");
    if (address % granule != 0 || !is_reserved(address, bytes)) return wrong("map: not reserved");
    if (has_mapping(address, bytes)) return wrong("map: mapped already");
    ::mmap(pointer(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, found->second.file, 0);
    ++found->second.mappings;
    mappings[address] = {bytes, number, false};
    return CUDA_SUCCESS;
  }
  static CUresult unmap(CUdeviceptr address, std::size_t bytes) {
    if (call_counter::fails()) return CUDA_ERROR_UNKNOWN;
    const auto found = mappings.find(address);
    if (found == mappings.end() || found->second.bytes != bytes) return wrong("unmap: not what was mapped");
    ::mmap(pointer(address), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
           0);
    const std::uint64_t number = found->second.handle;
    mappings.erase(found);
    --handles[number].mappings;
    free_if_unused(number);
    return CUDA_SUCCESS;
  }
  static CUresult set_access(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc* access,
                             std::size_t count) {
    if (call_counter::fails()) return CUDA_ERROR_UNKNOWN;
    if (count != 1 || access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
      return wrong("set_access: another access");
    for (std::uintptr_t at = address; at < address + bytes;) {
      const auto found = mappings.find(at);
      if (found == mappings.end() || at + found->second.bytes > address + bytes)
        return wrong("set_access: not mapped");
      found->second.accessible = true;
      at += found->second.bytes;
    }
    return ::mprotect(pointer(address), bytes, PROT_READ | PROT_WRITE) == 0 ? CUDA_SUCCESS
                                                                            : CUDA_ERROR_UNKNOWN;
  }
  static CUresult memory_info(std::size_t* free_bytes, std::size_t* total) {
    *total = limit;
    *free_bytes = limit - physical_bytes;
    return CUDA_SUCCESS;
  }
  static CUresult allocate_host(void** address, std::size_t bytes, unsigned int) {
    if (call_counter::fails()) return CUDA_ERROR_OUT_OF_MEMORY;
    *address = std::malloc(bytes); // NOLINT(cppcoreguidelines-no-malloc)
    ++host_blocks;
    return CUDA_SUCCESS;
  }
  static CUresult free_host(void* address) {
    if (call_counter::fails()) return CUDA_ERROR_UNKNOWN;
    std::free(address); // NOLINT(cppcoreguidelines-no-malloc)
    --host_blocks;
    return CUDA_SUCCESS;
  }
  static CUresult copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream) {
    if (call_counter::fails()) return CUDA_ERROR_UNKNOWN;
    std::memcpy(pointer(to), pointer(from), bytes);
    return CUDA_SUCCESS;
  }
  static CUresult synchronize(CUstream) { return call_counter::fails() ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS; }

  static stowage::cuda::driver_calls make() {
    stowage::cuda::driver_calls table;
    table.error_name = error_name;
    table.granularity = granularity;
    table.reserve = reserve;
    table.unreserve = unreserve;
    table.create = create;
    table.release = release;
    table.map = map;
    table.unmap = unmap;
    table.set_access = set_access;
    table.memory_info = memory_info;
    table.allocate_host = allocate_host;
    table.free_host = free_host;
    table.copy = copy;
    table.synchronize = synchronize;
    return table;
  }
};

} // namespace test
