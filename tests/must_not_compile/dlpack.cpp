// What is no DLPack tensor. Where there is no dlpack.h, the cases fail for that reason, and say so.
//
// case 1: a block type
// expect: stowage: elements of a block type are no DLPack tensor|SKIPPED: there is no dlpack/dlpack\.h
// case 2: an engine's struct
// expect: stowage: DLPack has no type for this element|SKIPPED: there is no dlpack/dlpack\.h
// case 3: a pointer to what owns the memory
// expect: stowage: a pointer keeps nothing alive|SKIPPED: there is no dlpack/dlpack\.h
// case 4: the device of a backend that does not tell it
// expect: stowage: this backend does not tell where its memory is|SKIPPED: there is no dlpack/dlpack\.h

#if __has_include(<dlpack/dlpack.h>)

#include <stowage/backend/recording.hpp>
#include <stowage/dlpack.hpp>
#include <stowage/stowage.hpp>

#include <cstdint>
#include <memory>

using namespace stowage;

struct params {
  tokens batch{};
};
inline constexpr dim<&params::batch> M{};

struct slot {
  std::uint32_t block;
  std::uint32_t offset;
};
struct fields {
#if STOWAGE_MUST_NOT_COMPILE == 1
  buffer<u4, shape<M>, zero::rows> values;
#elif STOWAGE_MUST_NOT_COMPILE == 2
  buffer<slot, shape<M>, zero::rows> values;
#else
  buffer<float, shape<M>, zero::rows> values;
#endif
};

DLManagedTensor* use(const params& values) {
  const auto memory =
      std::make_shared<arena<fields, params, host_backend>>(make_plan<fields>(values), host_backend{});
#if STOWAGE_MUST_NOT_COMPILE == 3
  return to_dlpack((*memory)->values, dlpack_host, memory.get());
#elif STOWAGE_MUST_NOT_COMPILE == 4
  return to_dlpack((*memory)->values, dlpack_device_of(recording_backend{}), memory);
#else
  return to_dlpack((*memory)->values, dlpack_device_of(memory->backend()), memory);
#endif
}

#elif defined(STOWAGE_MUST_NOT_COMPILE)
#error SKIPPED: there is no dlpack/dlpack.h
#endif
