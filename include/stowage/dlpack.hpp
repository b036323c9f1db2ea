#pragma once

// Fields and parts as DLPack tensors, which numpy, PyTorch, JAX and CuPy import without a copy. Needs
// DLPack's header, 0.6 or later, on the include path; not part of stowage.hpp.

#include <stowage/backend/host.hpp>
#include <stowage/detail/cold.hpp>
#include <stowage/element.hpp>
#include <stowage/error.hpp>
#include <stowage/handle.hpp>

#include <dlpack/dlpack.h>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

namespace stowage::inline v0_1 {

/// What to_dlpack can make: DLManagedTensor and, with DLPack's header of 1.0 or later,
/// DLManagedTensorVersioned.
template <class Type>
concept dlpack_managed = std::same_as<Type, DLManagedTensor>
#if defined(DLPACK_MAJOR_VERSION)
                         || std::same_as<Type, DLManagedTensorVersioned>
#endif
    ;

/// Where memory is: a DLDevice, or the number of a CUDA device. Nothing that merely converts, for kDLCPU
/// would be CUDA's device 1.
template <class Type>
concept dlpack_place = std::same_as<Type, DLDevice> || std::same_as<Type, int>;

/// Host memory.
inline constexpr DLDevice dlpack_host{kDLCPU, 0};

namespace detail {

constexpr DLDevice dlpack_device(DLDevice device) { return device; }
constexpr DLDevice dlpack_device(int cuda_device) { return {kDLCUDA, cuda_device}; }

template <class> inline constexpr bool backend_tells_its_device = false;

} // namespace detail

/// Where a backend's memory is, for host_backend and cuda::backend: pinned and managed memory have device
/// types of their own. Other backends do not tell; name the device yourself.
template <class Backend> [[nodiscard]] constexpr DLDevice dlpack_device_of(const Backend& backend) {
  if constexpr (std::same_as<Backend, host_backend>) {
    return dlpack_host;
  } else if constexpr (requires {
                         { backend.device() } -> std::same_as<int>;
                         decltype(backend.memory())::managed;
                       }) {
    using kind = decltype(backend.memory());
    if (backend.memory() == kind::pinned) return {kDLCUDAHost, 0};
    if (backend.memory() == kind::managed) return {kDLCUDAManaged, 0};
    return {kDLCUDA, backend.device()};
  } else {
    static_assert(detail::backend_tells_its_device<Backend>,
                  "stowage: this backend does not tell where its memory is; give to_dlpack a DLDevice");
    return {};
  }
}

namespace detail {

constexpr DLDataType make_dlpack_type(DLDataTypeCode code, std::size_t bytes) {
  return {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(8 * bytes), 1};
}

// Headers before 1.0 may have no code for bool, those before 1.1 have none for 8-bit floats, and who was
// built with them refuses the codes: there the bits travel as 8-bit unsigned integers.
#if defined(DLPACK_MAJOR_VERSION)
inline constexpr DLDataTypeCode dlpack_bool_code = kDLBool;
#else
inline constexpr DLDataTypeCode dlpack_bool_code = kDLUInt;
#endif
#if defined(DLPACK_MAJOR_VERSION) &&                                                                         \
    (DLPACK_MAJOR_VERSION > 1 || (DLPACK_MAJOR_VERSION == 1 && DLPACK_MINOR_VERSION >= 1))
inline constexpr DLDataTypeCode dlpack_e4m3_code = kDLFloat8_e4m3fn; // OCP's E4M3, which has no infinities
inline constexpr DLDataTypeCode dlpack_e5m2_code = kDLFloat8_e5m2;
#else
inline constexpr DLDataTypeCode dlpack_e4m3_code = kDLUInt;
inline constexpr DLDataTypeCode dlpack_e5m2_code = kDLUInt;
#endif

/// DLPack's type of an element, CUDA's own number types included; 0 bits where it has none.
template <element Element> constexpr DLDataType dlpack_type() {
  if constexpr (std::same_as<Element, bool>) {
    return make_dlpack_type(dlpack_bool_code, sizeof(Element));
  } else if constexpr (std::is_enum_v<Element>) { // std::byte too
    return dlpack_type<std::underlying_type_t<Element>>();
  } else if constexpr (std::is_integral_v<Element>) {
    return make_dlpack_type(std::is_signed_v<Element> ? kDLInt : kDLUInt, sizeof(Element));
  } else if constexpr (std::same_as<Element, float> || std::same_as<Element, double>) {
    return make_dlpack_type(kDLFloat, sizeof(Element));
  } else if constexpr (std::is_class_v<Element>) {
    constexpr std::string_view name = element_name<Element>();
    if (name == "bf16" && sizeof(Element) == 2) return make_dlpack_type(kDLBfloat, 2);
    if (name == "f16" && sizeof(Element) == 2) return make_dlpack_type(kDLFloat, 2);
    if (name == "fp8_e4m3" && sizeof(Element) == 1) return make_dlpack_type(dlpack_e4m3_code, 1);
    if (name == "fp8_e5m2" && sizeof(Element) == 1) return make_dlpack_type(dlpack_e5m2_code, 1);
  }
  return {};
}

[[noreturn]] STOWAGE_COLD inline void throw_nothing_to_export(std::string_view field) {
  message text;
  text << "stowage: field '" << field
       << "' cannot be exported: it has no elements, for it is absent, empty, released, asleep or not bound "
          "to an arena";
  throw usage_error(text.c_str());
}

/// What a managed tensor points to, and what keeps its memory: one allocation, in manager_ctx until the
/// deleter runs.
template <class Managed, std::size_t Rank, class KeepAlive> struct dlpack_export {
  KeepAlive keep_alive;
  Managed managed;
  std::array<std::int64_t, Rank> shape;
  std::array<std::int64_t, Rank> strides;

  static void destroy(Managed* managed) { delete static_cast<dlpack_export*>(managed->manager_ctx); }
};

template <class Managed, class Element, std::size_t Rank, bool TokenMajor, class KeepAlive>
Managed* export_rows(const tensor_handle<Element, Rank, TokenMajor>& handle, std::size_t rows,
                     DLDevice device, KeepAlive& keep_alive) {
  static_assert(elements_per_block<Element>() == 1,
                "stowage: elements of a block type are no DLPack tensor; export a part of bytes");
  static_assert(elements_per_block<Element>() != 1 || dlpack_type<Element>().bits != 0,
                "stowage: DLPack has no type for this element; export a part of bytes");
  static_assert(!std::is_pointer_v<KeepAlive>,
                "stowage: a pointer keeps nothing alive; pass what owns the memory, such as a shared_ptr, or "
                "nullptr for memory that is never released");

  // A placeholder has an address and no elements.
  const std::size_t elements = handle.size();
  if (elements == 0 || handle.bytes() / sizeof(Element) < elements) throw_nothing_to_export(handle.name());
  if (rows > handle.row_count()) throw_rows_out_of_range(handle.name(), 0, rows, handle.row_count());

  using exported = dlpack_export<Managed, Rank, KeepAlive>;
  auto* result = new exported{std::move(keep_alive), {}, {}, {}}; // nothing throws behind this
  std::int64_t stride = 1;
  for (std::size_t axis = Rank; axis-- != 0;) {
    result->shape[axis] = static_cast<std::int64_t>(axis == 0 ? rows : handle.extent(axis));
    result->strides[axis] = stride;
    stride *= result->shape[axis];
  }

  DLTensor& tensor = result->managed.dl_tensor;
  tensor.data = rows == 0 ? nullptr : handle.data();
  tensor.device = device;
  tensor.ndim = static_cast<decltype(tensor.ndim)>(Rank);
  tensor.dtype = dlpack_type<Element>();
  tensor.shape = Rank == 0 ? nullptr : result->shape.data();
  tensor.strides = Rank == 0 ? nullptr : result->strides.data();
  tensor.byte_offset = 0;
#if defined(DLPACK_MAJOR_VERSION)
  if constexpr (std::same_as<Managed, DLManagedTensorVersioned>)
    result->managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
#endif
  result->managed.manager_ctx = result;
  result->managed.deleter = exported::destroy;
  return &result->managed;
}

} // namespace detail

/// A field or part as a DLPack tensor that shares its memory: its extents, compact strides (from DLPack 1.2
/// on they may not be null), the type of its elements. Release it by its deleter, which whoever imports it
/// calls.
///
/// `device` is a DLDevice, such as dlpack_host or dlpack_device_of(backend), or the number of a CUDA device.
/// `keep_alive` is any object that can be moved; it lives until the deleter has run and has to own the
/// memory: a shared_ptr to the arena, say. release() of an arena does not wait for its tensors.
///
/// `data` is the address itself, `byte_offset` 0. DLPack's header asks for `data` at a multiple of 256 and
/// the rest in byte_offset, but numpy and others write no offset and PyTorch ignored it for years, so
/// rounding down would show them other memory. Fields start at a multiple of 256 unless they say otherwise,
/// parts at one of their element's alignment.
///
/// `to_dlpack<DLManagedTensorVersioned>(...)` makes the form of DLPack 1.0 and later. Throws usage_error
/// where there are no elements: an absent, empty or released field. What is thrown leaves nothing behind.
template <dlpack_managed Managed = DLManagedTensor, dlpack_place Device = DLDevice, element Element,
          std::size_t Rank, bool TokenMajor, std::move_constructible KeepAlive>
[[nodiscard]] Managed* to_dlpack(const tensor_handle<Element, Rank, TokenMajor>& handle, Device device,
                                 KeepAlive keep_alive) {
  return detail::export_rows<Managed>(handle, handle.row_count(), detail::dlpack_device(device), keep_alive);
}

/// The first `rows` rows of a token-major field. Throws bounds_error where there are fewer.
template <dlpack_managed Managed = DLManagedTensor, dlpack_place Device = DLDevice, element Element,
          std::size_t Rank, std::move_constructible KeepAlive>
[[nodiscard]] Managed* to_dlpack(const tensor_handle<Element, Rank, true>& handle, Device device,
                                 KeepAlive keep_alive, std::size_t rows) {
  return detail::export_rows<Managed>(handle, rows, detail::dlpack_device(device), keep_alive);
}

} // namespace stowage::inline v0_1
