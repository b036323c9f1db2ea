#pragma once

#include <stowage/arena.hpp>
#include <stowage/backend/concept.hpp>
#include <stowage/error.hpp>

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtMem.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

// For tools: without one attached, each call is a test of a null function pointer.

namespace stowage::inline v0_1::cuda {

namespace detail {

inline nvtxDomainHandle_t nvtx_domain() {
  static const nvtxDomainHandle_t domain = nvtxDomainCreateA("stowage");
  return domain;
}

} // namespace detail

/// Tells tools of the buffers inside a slab: the slab is a heap, every field a region of it under its own
/// name. While it lives, `compute-sanitizer --tool memcheck --nvtx yes` reports an access that leaves its
/// field, into the next one or into padding. Make it after the arena, let it go before.
class nvtx_memory {
public:
  /// Throws usage_error for an arena without a slab: separate allocations need no telling.
  template <class Fields, class Params, class Backend>
  explicit nvtx_memory(const arena<Fields, Params, Backend>& arena) {
    using plan_type = typename stowage::arena<Fields, Params, Backend>::plan_type;
    if (arena.slab() == nullptr) throw usage_error("stowage: nvtx_memory needs an arena that has a slab");
    arena.require_memory("nvtx_memory");
    nvtxMemVirtualRangeDesc_t slab{};
    slab.size = arena.plan().slab_bytes();
    slab.ptr = arena.slab();
    nvtxMemHeapDesc_t heap{};
    heap.extCompatID = NVTX_EXT_COMPATID_MEM;
    heap.structSize = sizeof(heap);
    heap.usage = NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR;
    heap.type = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
    heap.typeSpecificDescSize = sizeof(slab);
    heap.typeSpecificDesc = &slab;
    heap.messageType = NVTX_MESSAGE_TYPE_ASCII;
    heap.message.ascii = "stowage arena";
    heap_ = nvtxMemHeapRegister(detail::nvtx_domain(), &heap);

    std::array<nvtxMemVirtualRangeDesc_t, plan_type::field_count> ranges{};
    std::array<nvtxMemRegionNameDesc_t, plan_type::field_count> names{};
    std::size_t count = 0;
    for (std::size_t field = 0; field < plan_type::field_count; ++field) {
      if (arena.address(field) == nullptr) continue;
      ranges[count].size = arena.plan().layout(field).extent();
      ranges[count].ptr = arena.address(field);
      names[count].regionRefType = NVTX_MEM_REGION_REF_TYPE_POINTER;
      names[count].nameType = NVTX_MESSAGE_TYPE_ASCII;
      names[count].region.pointer = arena.address(field);
      names[count].name.ascii = arena.plan().name(field).data(); // ends with a zero
      ++count;
    }
    nvtxMemRegionsRegisterBatch_t regions{};
    regions.extCompatID = NVTX_EXT_COMPATID_MEM;
    regions.structSize = sizeof(regions);
    regions.regionType = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
    regions.heap = heap_;
    regions.regionCount = count;
    regions.regionDescElementSize = sizeof(ranges[0]);
    regions.regionDescElements = ranges.data();
    nvtxMemRegionsRegister(detail::nvtx_domain(), &regions);
    nvtxMemRegionsNameBatch_t naming{};
    naming.extCompatID = NVTX_EXT_COMPATID_MEM;
    naming.structSize = sizeof(naming);
    naming.regionCount = count;
    naming.regionElementSize = sizeof(names[0]);
    naming.regionElements = names.data();
    nvtxMemRegionsName(detail::nvtx_domain(), &naming);
  }
  ~nvtx_memory() { nvtxMemHeapUnregister(detail::nvtx_domain(), heap_); }
  nvtx_memory(const nvtx_memory&) = delete;
  nvtx_memory& operator=(const nvtx_memory&) = delete;

private:
  nvtxMemHeapHandle_t heap_ = nullptr;
};

/// A backend whose calls are NVTX ranges ("zero", "copy_to_host", ...), for timelines. An engine that wants
/// none uses the inner backend and pays nothing.
template <stowage::backend Inner> class nvtx_backend {
public:
  using stream_type = typename Inner::stream_type;

  explicit nvtx_backend(Inner inner) : inner_(std::move(inner)) {}

  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    const range here("stowage: allocate");
    return inner_.allocate(bytes, alignment);
  }
  status deallocate(void* address, std::size_t bytes, std::size_t alignment) noexcept {
    const range here("stowage: deallocate");
    return inner_.deallocate(address, bytes, alignment);
  }
  void zero(stream_type stream, std::span<const segment> segments) {
    const range here("stowage: zero");
    inner_.zero(stream, segments);
  }
  void copy_to_host(stream_type stream, void* destination, const void* source, std::size_t bytes) {
    const range here("stowage: copy_to_host");
    inner_.copy_to_host(stream, destination, source, bytes);
  }
  void copy_from_host(stream_type stream, void* destination, const void* source, std::size_t bytes) {
    const range here("stowage: copy_from_host");
    inner_.copy_from_host(stream, destination, source, bytes);
  }
  void synchronize(stream_type stream) {
    const range here("stowage: synchronize");
    inner_.synchronize(stream);
  }
  [[nodiscard]] bool is_capturing(stream_type stream)
    requires capturing_backend<Inner>
  {
    return inner_.is_capturing(stream);
  }

private:
  class range {
  public:
    explicit range(const char* name) {
      nvtxEventAttributes_t event{};
      event.version = NVTX_VERSION;
      event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
      event.messageType = NVTX_MESSAGE_TYPE_ASCII;
      event.message.ascii = name;
      nvtxDomainRangePushEx(detail::nvtx_domain(), &event);
    }
    ~range() { nvtxDomainRangePop(detail::nvtx_domain()); }
    range(const range&) = delete;
    range& operator=(const range&) = delete;
  };

  Inner inner_;
};

} // namespace stowage::inline v0_1::cuda
