// Fields and parts as DLPack tensors: what is described, what keeps the memory, what is refused.

#include "../support/messages.hpp"

#include <doctest/doctest.h>

#if !__has_include(<dlpack/dlpack.h>)

#include <cstdio>

TEST_CASE("dlpack: not tested") { std::puts("SKIPPED: dlpack: there is no dlpack/dlpack.h"); }

#else

#include <stowage/arena.hpp>
#include <stowage/dlpack.hpp>
#include <stowage/regions.hpp>
#include <stowage/traits/align.hpp>
#include <stowage/traits/at_least.hpp>
#include <stowage/traits/copies.hpp>
#include <stowage/traits/placeholder.hpp>
#include <stowage/traits/when.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using stowage::bf16;
using stowage::buffer;
using stowage::dlpack_host;
using stowage::part;
using stowage::shape;
using stowage::to_dlpack;
using stowage::tokens;
using test::message_of;
namespace zero = stowage::zero;

struct params {
  tokens batch{};
  std::size_t width = 0;
  bool extra = false;
};
inline constexpr stowage::dim<&params::batch> M{"M"};
inline constexpr stowage::dim<&params::width> width{};

struct metadata {
  part<std::uint8_t, shape<M>> flags;
  part<std::int64_t, shape<M, 2>> slots;
  part<float, shape<2>, stowage::when<&params::extra>> scales;
};
struct fields {
  buffer<bf16, shape<stowage::pad<16>(M), width, 2>, zero::rows> states;
  buffer<float, shape<>, zero::full> scale;
  buffer<std::int32_t, shape<width>, zero::never, stowage::copies<2>> indices;
  buffer<stowage::regions<metadata>, zero::full> meta;
  buffer<float, shape<M>, zero::rows, stowage::when<&params::extra>> extra;
  buffer<float, shape<M>, zero::rows, stowage::when<&params::extra>, stowage::placeholder<256>> kept;
  buffer<double, shape<>, zero::full, stowage::when<&params::extra>, stowage::placeholder<4>> scrap;
};

using arena_type = stowage::arena<fields, params, stowage::host_backend>;

std::shared_ptr<arena_type> make_arena(params values = {tokens{5}, 3}) {
  return std::make_shared<arena_type>(stowage::make_plan<fields>(values), stowage::host_backend{});
}

/// Calls the deleter, as whoever imported the tensor does.
struct call_deleter {
  template <class Managed> void operator()(Managed* managed) const { managed->deleter(managed); }
};
template <class Managed> using owner = std::unique_ptr<Managed, call_deleter>;
template <class Managed> owner<Managed> own(Managed* managed) { return owner<Managed>(managed); }

std::vector<std::int64_t> shape_of(const DLTensor& tensor) {
  return {tensor.shape, tensor.shape + tensor.ndim};
}
std::vector<std::int64_t> strides_of(const DLTensor& tensor) {
  return {tensor.strides, tensor.strides + tensor.ndim};
}
using extents = std::vector<std::int64_t>;

constexpr bool is_type(DLDataType type, DLDataTypeCode code, int bits) {
  return type.code == static_cast<unsigned>(code) && type.bits == bits && type.lanes == 1;
}

// Types of elements.

enum class small : std::uint16_t { a };
struct __half { // the name is what tells CUDA's types
  std::uint16_t bits;
};
struct slot {
  std::uint32_t block;
  std::uint32_t offset;
};
template <class Element> constexpr DLDataType type_of = stowage::detail::dlpack_type<Element>();

static_assert(is_type(type_of<float>, kDLFloat, 32));
static_assert(is_type(type_of<double>, kDLFloat, 64));
static_assert(is_type(type_of<stowage::f16>, kDLFloat, 16));
static_assert(is_type(type_of<__half>, kDLFloat, 16));
static_assert(is_type(type_of<bf16>, kDLBfloat, 16));
static_assert(is_type(type_of<std::int8_t>, kDLInt, 8));
static_assert(is_type(type_of<std::int16_t>, kDLInt, 16));
static_assert(is_type(type_of<std::int32_t>, kDLInt, 32));
static_assert(is_type(type_of<std::int64_t>, kDLInt, 64));
static_assert(is_type(type_of<std::uint8_t>, kDLUInt, 8));
static_assert(is_type(type_of<std::uint64_t>, kDLUInt, 64));
static_assert(is_type(type_of<std::byte>, kDLUInt, 8));
static_assert(is_type(type_of<small>, kDLUInt, 16));
#if defined(DLPACK_MAJOR_VERSION)
static_assert(is_type(type_of<bool>, kDLBool, 8));
#else
static_assert(is_type(type_of<bool>, kDLUInt, 8));
#endif
#if defined(DLPACK_MAJOR_VERSION) && (DLPACK_MAJOR_VERSION > 1 || DLPACK_MINOR_VERSION >= 1)
static_assert(is_type(type_of<stowage::fp8_e4m3>, kDLFloat8_e4m3fn, 8));
static_assert(is_type(type_of<stowage::fp8_e5m2>, kDLFloat8_e5m2, 8));
#else
static_assert(is_type(type_of<stowage::fp8_e4m3>, kDLUInt, 8));
static_assert(is_type(type_of<stowage::fp8_e5m2>, kDLUInt, 8));
#endif
static_assert(type_of<slot>.bits == 0);
static_assert(type_of<long double>.bits == 0);

// Devices: an enumerator is none.

template <class Device>
concept a_place = requires(const stowage::tensor_handle<float, 1, true>& handle, Device device) {
  to_dlpack(handle, device, nullptr);
};
static_assert(a_place<DLDevice>);
static_assert(a_place<int>);
static_assert(!a_place<DLDeviceType>);
static_assert(!a_place<bool>);
static_assert(!a_place<std::size_t>);

// Rows are for token-major fields.

template <class Handle>
concept has_rows = requires(const Handle& handle) { to_dlpack(handle, dlpack_host, nullptr, 1); };
static_assert(has_rows<stowage::tensor_handle<float, 2, true>>);
static_assert(!has_rows<stowage::tensor_handle<float, 2, false>>);

TEST_CASE("dlpack: the page's two lines") {
  const params values{tokens{5}, 3};
  // [page]
  const auto plan = stowage::make_plan<fields>(values);
  auto arena =
      std::make_shared<stowage::arena<fields, params, stowage::host_backend>>(plan, stowage::host_backend{});
  DLManagedTensor* tensor = stowage::to_dlpack((*arena)->states, stowage::dlpack_host, arena);
  // [page]
  CHECK(tensor->dl_tensor.data == (*arena)->states.data());
  CHECK(tensor->dl_tensor.ndim == 3);
  tensor->deleter(tensor);
}

TEST_CASE("dlpack: a field, with its extents, its type and its address") {
  const auto arena = make_arena();
  const auto tensor = own(to_dlpack((*arena)->states, dlpack_host, arena));
  const DLTensor& described = tensor->dl_tensor;
  CHECK(described.data == (*arena)->states.data());
  CHECK(described.byte_offset == 0);
  CHECK(reinterpret_cast<std::uintptr_t>(described.data) % 256 == 0);
  CHECK(described.device.device_type == kDLCPU);
  CHECK(described.device.device_id == 0);
  CHECK(shape_of(described) == extents{16, 3, 2});
  CHECK(strides_of(described) == extents{6, 2, 1});
  CHECK(is_type(described.dtype, kDLBfloat, 16));
}

TEST_CASE("dlpack: one element has no extents") {
  const auto arena = make_arena();
  const auto tensor = own(to_dlpack((*arena)->scale, dlpack_host, arena));
  CHECK(tensor->dl_tensor.data == (*arena)->scale.data());
  CHECK(tensor->dl_tensor.ndim == 0);
  CHECK(is_type(tensor->dl_tensor.dtype, kDLFloat, 32));
}

TEST_CASE("dlpack: a part lies behind its predecessor, data is its address") {
  const auto arena = make_arena();
  const auto& slots = (*arena)->meta.parts().slots;
  const auto tensor = own(to_dlpack(slots, dlpack_host, arena));
  const DLTensor& described = tensor->dl_tensor;
  CHECK(described.data == (*arena)->meta.data() + 8); // 5 flags, padded for the slots
  CHECK(described.byte_offset == 0);
  CHECK(shape_of(described) == extents{5, 2});
  CHECK(strides_of(described) == extents{2, 1});
  CHECK(is_type(described.dtype, kDLInt, 64));
}

TEST_CASE("dlpack: each copy of a field") {
  const auto arena = make_arena();
  const auto first = own(to_dlpack((*arena)->indices, dlpack_host, arena));
  const auto second = own(to_dlpack((*arena)->indices.copy(1), dlpack_host, arena));
  CHECK(first->dl_tensor.data == (*arena)->indices.data());
  CHECK(second->dl_tensor.data == (*arena)->indices.copy(1).data());
  CHECK(second->dl_tensor.data != first->dl_tensor.data);
  CHECK(shape_of(second->dl_tensor) == extents{3});
}

TEST_CASE("dlpack: the first rows") {
  const auto arena = make_arena();
  const auto some = own(to_dlpack((*arena)->states, dlpack_host, arena, 5));
  CHECK(shape_of(some->dl_tensor) == extents{5, 3, 2});
  CHECK(strides_of(some->dl_tensor) == extents{6, 2, 1});
  CHECK(some->dl_tensor.data == (*arena)->states.data());
  const auto all = own(to_dlpack((*arena)->states, 1, arena, 16));
  CHECK(shape_of(all->dl_tensor) == extents{16, 3, 2});
  CHECK(all->dl_tensor.device.device_type == kDLCUDA);
  const auto none = own(to_dlpack((*arena)->states, dlpack_host, arena, 0));
  CHECK(shape_of(none->dl_tensor) == extents{0, 3, 2});
  CHECK(none->dl_tensor.data == nullptr); // as the standard wants it

  const std::string refused =
      message_of<stowage::bounds_error>([&] { own(to_dlpack((*arena)->states, dlpack_host, arena, 17)); });
  CHECK(refused.find("'states'") != std::string::npos);
  CHECK(refused.find("rows [0, 17) wanted, 16 rows") != std::string::npos);
}

/// As cuda::backend tells it.
struct device_backend {
  enum class kind : unsigned char { device, pool, pinned, managed };
  kind of;
  [[nodiscard]] int device() const { return 3; }
  [[nodiscard]] kind memory() const { return of; }
};

TEST_CASE("dlpack: devices") {
  const auto arena = make_arena();
  const auto& field = (*arena)->states;
  const auto is_on = [](const owner<DLManagedTensor>& tensor, DLDeviceType type, int id) {
    return tensor->dl_tensor.device.device_type == type && tensor->dl_tensor.device.device_id == id;
  };
  CHECK(is_on(own(to_dlpack(field, 2, nullptr)), kDLCUDA, 2));
  CHECK(is_on(own(to_dlpack(field, {kDLROCM, 1}, nullptr)), kDLROCM, 1));
  CHECK(is_on(own(to_dlpack(field, DLDevice{kDLCUDAManaged, 0}, nullptr)), kDLCUDAManaged, 0));

  const auto deduced = [&](const auto& backend) {
    return own(to_dlpack(field, stowage::dlpack_device_of(backend), nullptr));
  };
  using kind = device_backend::kind;
  CHECK(is_on(deduced(arena->backend()), kDLCPU, 0));
  CHECK(is_on(deduced(device_backend{kind::device}), kDLCUDA, 3));
  CHECK(is_on(deduced(device_backend{kind::pool}), kDLCUDA, 3));
  CHECK(is_on(deduced(device_backend{kind::pinned}), kDLCUDAHost, 0));
  CHECK(is_on(deduced(device_backend{kind::managed}), kDLCUDAManaged, 0));
}

TEST_CASE("dlpack: the arena lives until the last deleter has run") {
  auto arena = make_arena();
  const std::weak_ptr<arena_type> alive = arena;
  auto first = own(to_dlpack((*arena)->states, dlpack_host, arena));
  auto second = own(to_dlpack((*arena)->meta->slots, dlpack_host, arena, 1));
  CHECK(arena.use_count() == 3);
  arena.reset();
  CHECK(alive.use_count() == 2);
  static_cast<bf16*>(first->dl_tensor.data)->bits = 0x3f80; // under a sanitizer: still there
  first.reset();
  CHECK(alive.use_count() == 1);
  *static_cast<std::int64_t*>(second->dl_tensor.data) = 7;
  second.reset();
  CHECK(alive.expired());
}

/// Counts itself; its moves throw when told to.
struct guard {
  static inline int alive = 0;
  bool throws = false;

  explicit guard(bool throws_on_move) : throws(throws_on_move) { ++alive; }
  guard(guard&& other) : throws(other.throws) {
    if (throws) throw std::runtime_error("moved");
    ++alive;
  }
  guard& operator=(guard&&) = delete;
  guard(const guard&) = delete;
  guard& operator=(const guard&) = delete;
  ~guard() { --alive; }
};

TEST_CASE("dlpack: what keeps the memory can be anything that moves") {
  const auto arena = make_arena();
  auto unique = own(to_dlpack((*arena)->states, dlpack_host, std::make_unique<guard>(false)));
  auto plain = own(to_dlpack((*arena)->states, dlpack_host, guard(false)));
  CHECK(guard::alive == 2);
  unique.reset();
  CHECK(guard::alive == 1);
  plain.reset();
  CHECK(guard::alive == 0);
}

TEST_CASE("dlpack: what is thrown leaves nothing behind") {
  const auto arena = make_arena();
  CHECK(message_of<std::runtime_error>([&] { own(to_dlpack((*arena)->states, dlpack_host, guard(true))); }) ==
        "moved");
  CHECK(guard::alive == 0);
  CHECK_FALSE(message_of<stowage::usage_error>([&] {
                own(to_dlpack((*arena)->extra, dlpack_host, guard(false)));
              }).empty());
  CHECK(guard::alive == 0);
  CHECK_FALSE(message_of<stowage::bounds_error>([&] {
                own(to_dlpack((*arena)->states, dlpack_host, guard(false), 17));
              }).empty());
  CHECK(guard::alive == 0);
}

TEST_CASE("dlpack: a field without elements is refused") {
  const auto refusal = [](const auto& field) {
    return message_of<stowage::usage_error>([&] { own(to_dlpack(field, dlpack_host, nullptr)); });
  };
  const auto arena = make_arena();
  CHECK(refusal((*arena)->states).empty());
  CHECK(refusal((*arena)->extra).find("field 'extra' cannot be exported") != std::string::npos);
  CHECK(refusal((*arena)->kept).find("'kept'") != std::string::npos); // has an address
  CHECK(refusal((*arena)->scrap).find("'scrap'") != std::string::npos);
  CHECK(refusal((*arena)->meta->scales).find("'scales'") != std::string::npos);
  CHECK_FALSE(message_of<stowage::usage_error>([&] {
                own(to_dlpack((*arena)->extra, dlpack_host, nullptr, 0));
              }).empty());

  const auto empty = make_arena({tokens{0}, 3});
  CHECK_FALSE(refusal((*empty)->states).empty());
  CHECK_FALSE(refusal(fields{}.states).empty());
  CHECK(arena->release().ok());
  CHECK_FALSE(refusal((*arena)->states).empty());
}

#if defined(DLPACK_MAJOR_VERSION)
TEST_CASE("dlpack: the versioned form") {
  auto arena = make_arena();
  const std::weak_ptr<arena_type> alive = arena;
  auto tensor = own(to_dlpack<DLManagedTensorVersioned>((*arena)->states, dlpack_host, arena, 5));
  CHECK(tensor->version.major == DLPACK_MAJOR_VERSION);
  CHECK(tensor->version.minor == DLPACK_MINOR_VERSION);
  CHECK(tensor->flags == 0);
  CHECK(tensor->dl_tensor.data == (*arena)->states.data());
  CHECK(shape_of(tensor->dl_tensor) == extents{5, 3, 2});
  CHECK(strides_of(tensor->dl_tensor) == extents{6, 2, 1});
  arena.reset();
  CHECK_FALSE(alive.expired());
  tensor.reset();
  CHECK(alive.expired());
}
#endif

} // namespace

#endif
