#pragma once

#include <stowage/detail/checked.hpp>
#include <stowage/detail/cold.hpp>
#include <stowage/error.hpp>
#include <stowage/plan.hpp>
#include <stowage/table.hpp>

#include <array>
#include <cstddef>
#include <string_view>

namespace stowage::inline v0_1 {

namespace detail {

[[noreturn]] STOWAGE_COLD inline void throw_no_room_for_field(std::string_view field, std::size_t wanted,
                                                              std::size_t room) {
  message text;
  text << "stowage: field '" << field << "' needs " << wanted << " bytes, its place in the reservation has "
       << room << "; reserve for the largest plan";
  throw bounds_error(text.c_str());
}
[[noreturn]] STOWAGE_COLD inline void throw_no_room_for_guards(std::size_t wanted, std::size_t room) {
  message text;
  text << "stowage: guard zones of " << wanted << " bytes wanted, the reservation has room for " << room
       << "; reserve for a plan with guards";
  throw bounds_error(text.c_str());
}
[[noreturn]] STOWAGE_COLD inline void throw_no_room_for_slab(std::size_t wanted, std::size_t room) {
  message text;
  text << "stowage: a slab of " << wanted << " bytes wanted, " << room
       << " are reserved; reserve for the largest plan";
  throw bounds_error(text.c_str());
}
[[noreturn]] STOWAGE_COLD inline void throw_reservation_overflow(std::string_view field) {
  message text;
  text << "stowage: field '" << field << "': its place in the reservation does not fit in 64 bits";
  throw size_error(text.c_str());
}

} // namespace detail

/// A place in a slab for every field at its largest size: what an elastic arena reserves addresses for. Made
/// from the largest plan, or from several where none is the largest in every field; constexpr.
template <class Plan> class reservation {
public:
  /// Every field has the place that it has in this plan.
  constexpr reservation(const Plan& largest) : guard_bytes_(largest.guard_bytes()) {
    for (std::size_t field = 0; field < Plan::field_count; ++field) bytes_[field] = largest.bytes(field);
    place();
  }

  /// Room for either: every field at the larger of its two sizes. Throws size_error where that does not fit
  /// in 64 bits.
  [[nodiscard]] constexpr reservation with(const reservation& other) const {
    reservation both = *this;
    if (other.guard_bytes_ > guard_bytes_) both.guard_bytes_ = other.guard_bytes_;
    for (std::size_t field = 0; field < Plan::field_count; ++field) {
      if (other.bytes_[field] > bytes_[field]) both.bytes_[field] = other.bytes_[field];
    }
    both.place();
    return both;
  }

  /// Bytes that an instance of a field can have at most; 0 where it has no place.
  [[nodiscard]] constexpr std::size_t bytes(std::size_t field) const { return bytes_[field]; }
  /// Bytes from the start of the slab to the field.
  [[nodiscard]] constexpr std::size_t offset(std::size_t field) const { return offsets_[field]; }
  /// Bytes from one instance of the field to the next.
  [[nodiscard]] constexpr std::size_t stride(std::size_t field) const { return strides_[field]; }
  /// Bytes of the guard zones that fit; 0 where none do.
  [[nodiscard]] constexpr std::size_t guard_bytes() const { return guard_bytes_; }
  /// Bytes of addresses.
  [[nodiscard]] constexpr std::size_t slab_bytes() const { return slab_bytes_; }
  /// Alignment of the first address, in bytes.
  [[nodiscard]] constexpr std::size_t slab_alignment() const { return slab_alignment_; }

  /// Throws bounds_error, with the numbers, for a plan with a field that is larger than its place.
  constexpr void require_room_for(const Plan& plan) const {
    for (std::size_t field = 0; field < Plan::field_count; ++field) {
      if (plan.bytes(field) > bytes_[field])
        detail::throw_no_room_for_field(Plan::name(field), plan.bytes(field), bytes_[field]);
    }
    if (plan.guard_bytes() > guard_bytes_) detail::throw_no_room_for_guards(plan.guard_bytes(), guard_bytes_);
  }

private:
  /// As a plan places its fields.
  constexpr void place() {
    std::size_t cursor = guard_bytes_;
    for (const std::size_t field :
         detail::slab_order<typename Plan::fields_type, typename Plan::params_type>) {
      if (bytes_[field] == 0) continue;
      const auto& entry = Plan::table()[field];
      const std::size_t alignment = entry.nodes->alignment;
      if (alignment > slab_alignment_) slab_alignment_ = alignment;
      std::size_t taken = 0;
      std::size_t before_last = 0;
      const bool fits = detail::checked_round_up(cursor, alignment, offsets_[field]) &&
                        detail::checked_add(bytes_[field], entry.tail_bytes, taken) &&
                        detail::checked_add(taken, guard_bytes_, taken) &&
                        detail::checked_round_up(taken, alignment, strides_[field]) &&
                        detail::checked_multiply(entry.copies - 1, strides_[field], before_last) &&
                        detail::checked_add(offsets_[field], before_last, cursor) &&
                        detail::checked_add(cursor, taken, cursor);
      if (!fits) detail::throw_reservation_overflow(Plan::name(field));
    }
    slab_bytes_ = cursor;
  }

  std::array<std::size_t, Plan::field_count> bytes_{};
  std::array<std::size_t, Plan::field_count> offsets_{};
  std::array<std::size_t, Plan::field_count> strides_{};
  std::size_t guard_bytes_ = 0;
  std::size_t slab_bytes_ = 0;
  std::size_t slab_alignment_ = 1;
};

} // namespace stowage::inline v0_1
