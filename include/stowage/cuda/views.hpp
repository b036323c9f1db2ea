#pragma once

#include <stowage/detail/host_device.hpp>
#include <stowage/handle.hpp>

#include <cuda/std/mdspan>

#include <cstddef>
#include <utility>

namespace stowage::inline v0_1::cuda {

namespace detail {

template <class Element, std::size_t Rank>
using view_type = ::cuda::std::mdspan<Element, ::cuda::std::dextents<std::size_t, Rank>>;

template <class Handle, std::size_t... Axes>
STOWAGE_HOST_DEVICE auto make_view(const Handle& handle, std::size_t rows, std::index_sequence<Axes...>) {
  using element = typename Handle::element_type;
  return view_type<element, sizeof...(Axes)>(handle.data(), (Axes == 0 ? rows : handle.extent(Axes))...);
}

} // namespace detail

/// A field or part as an mdspan with its extents, for host and device code. Only for elements that are not
/// blocks, whose elements cannot be pointed at. Empty extents where the field is absent.
template <class Element, std::size_t Rank, bool TokenMajor>
  requires(Rank > 0)
[[nodiscard]] STOWAGE_HOST_DEVICE auto view(const tensor_handle<Element, Rank, TokenMajor>& handle) {
  static_assert(elements_per_block<Element>() == 1,
                "stowage: elements of a block type have no addresses; view the blocks");
  return detail::make_view(handle, handle.extent(0), std::make_index_sequence<Rank>{});
}

/// The same with the rows of the first `rows` only, at most those that are there.
template <class Element, std::size_t Rank>
  requires(Rank > 0)
[[nodiscard]] STOWAGE_HOST_DEVICE auto view_rows(const tensor_handle<Element, Rank, true>& handle,
                                                 std::size_t rows) {
  static_assert(elements_per_block<Element>() == 1,
                "stowage: elements of a block type have no addresses; view the blocks");
  return detail::make_view(handle, rows < handle.extent(0) ? rows : handle.extent(0),
                           std::make_index_sequence<Rank>{});
}

} // namespace stowage::inline v0_1::cuda
