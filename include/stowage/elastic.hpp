#pragma once

#include <stowage/arena.hpp>
#include <stowage/backend/elastic.hpp>
#include <stowage/detail/address_sanitizer.hpp>
#include <stowage/detail/cold.hpp>
#include <stowage/detail/kept_rows.hpp>
#include <stowage/detail/mapped_ranges.hpp>
#include <stowage/reservation.hpp>

#include <concepts>
#include <cstddef>
#include <exception>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace stowage::inline v0_1 {

/// Where the fields of an elastic arena lie.
enum class elastic_placement : unsigned char {
  stable, ///< each at its place in the reservation: none ever moves
  compact ///< one behind the other, as in any slab: a resize moves them
};

/// How an elastic arena is made. `stream` orders what construction does on the device.
template <class Stream> struct elastic_options {
  /// Whether fields keep their places.
  elastic_placement where = elastic_placement::stable;
  /// Orders what construction does.
  Stream stream{};
};

/// For `sleep(keep_contents)`.
struct keep_contents_t {};
/// Tells `sleep` to keep what the fields hold.
inline constexpr keep_contents_t keep_contents{};

namespace detail {

[[noreturn]] STOWAGE_COLD inline void refuse_resize_with_contents() {
  throw usage_error(
      "stowage: resize was called on an arena that sleeps and keeps its contents; wake() it, or "
      "forget_contents(), first");
}

} // namespace detail

/// An arena that gives its memory back for a while, and grows and shrinks, at the same addresses. Made from the
/// plan in force, the largest that there will be (or a reservation), and a backend that maps memory:
///
///   stowage::elastic_arena arena(plan, largest, stowage::cuda::virtual_backend{});
///
/// It is an arena in all else. While it sleeps its handles are null, and passes, copies and views are refused
/// with usage_error. The calls below wait for the given stream; work of other streams in the arena's memory
/// must be over. None of them is possible while the stream captures (usage_error), or beside another call.
template <class Fields, class Params, class Backend>
class elastic_arena : public arena<Fields, Params, Backend> {
  using base = arena<Fields, Params, Backend>;
  static_assert(
      elastic_backend<typename base::backend_type>,
      "stowage: this backend cannot map memory at reserved addresses; backend/elastic.hpp says what "
      "it needs");

public:
  /// The plan that it is made from.
  using plan_type = typename base::plan_type;
  using stream_type = typename base::stream_type;
  /// Where the fields have their places.
  using reservation_type = reservation<plan_type>;
  /// The options of the constructor.
  using options_type = elastic_options<stream_type>;

  /// All or nothing, as an arena. Throws bounds_error where the plan is beyond the reservation, out_of_memory
  /// where there are not so many addresses or too little memory, and what the backend throws.
  template <class Given>
    requires std::constructible_from<detail::backend_holder<Backend>, Given>
  elastic_arena(const plan_type& plan, const reservation_type& room, Given&& backend,
                options_type options = {})
      : base(detail::without_memory{}, placed(plan, room, options.where), std::forward<Given>(backend),
             options.stream),
        room_(room), where_(options.where) {
    if (room_.slab_bytes() == 0) return;
    try {
      base::slab_ =
          static_cast<std::byte*>(base::backend().reserve(room_.slab_bytes(), room_.slab_alignment()));
      map(options.stream, ranges_of(base::plan_));
      base::point_into_slab();
      base::prepare(options.stream);
    } catch (...) {
      static_cast<void>(base::deallocate());
      throw;
    }
  }

  /// Gives all memory back. The contents are lost: after wake() the fields are as in a new arena. Does nothing
  /// for an arena that sleeps already. Throws what the backend throws where it cannot wait for the stream, and
  /// then nothing has changed; and where it cannot give memory back, and then the arena sleeps, and sleep()
  /// tries again.
  void sleep(stream_type stream = {}) { fall_asleep(stream, false); }

  /// The same, and what the fields hold is kept in host memory (pinned, for a device) until wake(). Throws
  /// out_of_memory where there is too little of that, and the arena stays awake. The host memory stays with
  /// the arena for the next time; forget_contents() gives it back.
  void sleep(keep_contents_t, stream_type stream = {}) { fall_asleep(stream, true); }

  /// Takes memory for the plan in force at the same addresses. Fields hold what they held where the contents
  /// were kept. Else they are as in a new arena: fields with zero_at_construction are cleared, those with
  /// pad_fill filled, guard zones too. Does nothing for an arena that is awake. Throws out_of_memory where
  /// there is too little, and what the backend throws; the arena then sleeps on, with what it kept, and can be
  /// woken later.
  void wake(stream_type stream = {}) {
    refuse_where_impossible("wake", stream);
    if (!asleep()) return;
    if (base::slab_ != nullptr) {
      map(stream, ranges_of(base::plan_));
      try {
        base::point_into_slab();
        if (keeps_contents_) {
          restore(stream);
          base::bind();
        } else {
          base::prepare(stream);
        }
      } catch (...) {
        give_everything_back(stream);
        throw;
      }
    }
    base::state_ = detail::arena_state::ready;
    keeps_contents_ = false;
  }

  /// Makes a plan for other params and takes or gives back what it needs more or less, inside the reservation.
  ///
  /// In stable placement every field stays where it is, and rows that exist before and after keep their
  /// contents, as long as their extents but the first are the same. What is new is as in a new arena. The
  /// generation changes only where a part of a field moves, since the parts in front of it grow, or where a
  /// field goes. In compact placement contents are lost, the arena is as a new one, and the generation
  /// changes. Guard zones are filled anew: scan them before.
  ///
  /// Throws bounds_error, with the numbers, for a plan beyond the reservation, and out_of_memory where there is
  /// too little for what grows; then nothing has changed. Throws what the backend throws where memory cannot be
  /// given back, and then the new plan is in force all the same, or, where contents are lost too, the arena
  /// sleeps. A sleeping arena only takes the plan; one that keeps contents refuses.
  void resize(const Params& params, stream_type stream = {}) {
    resize(plan_type(params).with_guards(base::plan_.guard_bytes()), stream);
  }
  /// The same for a plan that is already made, such as one with sizes that were passed in.
  void resize(const plan_type& wanted, stream_type stream = {}) {
    refuse_where_impossible("resize", stream);
    if (asleep() && keeps_contents_) detail::refuse_resize_with_contents();
    const plan_type next = placed(wanted, room_, where_);
    const bool same = next.hash() == base::plan_.hash();
    if (same || asleep() || base::slab_ == nullptr) {
      if (!same && addresses_change(next)) base::generation_ = detail::next_generation();
      base::plan_ = next;
      // What an earlier resize could not give back.
      if (!asleep() && mapped_bytes() != bytes_awake()) {
        base::backend().synchronize(stream);
        map(stream, ranges_of(base::plan_));
      }
      return;
    }
    base::backend().synchronize(stream);
    change_to(next, stream);
  }

  /// Whether it sleeps.
  [[nodiscard]] bool asleep() const { return base::state_ == detail::arena_state::asleep; }
  /// Whether it sleeps and keeps what its fields hold.
  [[nodiscard]] bool keeps_contents() const { return asleep() && keeps_contents_; }
  /// Gives the host memory back that sleep(keep_contents) took. A sleeping arena loses what it kept.
  status forget_contents() noexcept {
    if (base::slab_ == nullptr) return {};
    const status given_back = base::backend().forget(base::slab_);
    if (given_back.ok()) keeps_contents_ = false;
    return given_back;
  }

  /// Bytes of memory that are mapped now; whole granules.
  [[nodiscard]] std::size_t mapped_bytes() {
    return base::slab_ == nullptr ? 0 : base::backend().mapped_bytes(base::slab_);
  }
  /// Bytes of memory that the plan in force takes when the arena is awake; whole granules.
  [[nodiscard]] std::size_t bytes_awake() { return bytes_awake(base::plan_); }
  /// The same for another plan. Throws bounds_error for one beyond the reservation.
  [[nodiscard]] std::size_t bytes_awake(const plan_type& plan) {
    std::size_t bytes = 0;
    if (base::released()) return bytes;
    for (const mapped_range& range : ranges_of(placed(plan, room_, where_))) bytes += range.bytes;
    return bytes;
  }
  /// Bytes of host memory that kept contents take.
  [[nodiscard]] std::size_t saved_bytes() {
    return base::slab_ == nullptr ? 0 : base::backend().saved_bytes(base::slab_);
  }
  /// Where the fields have their places.
  [[nodiscard]] const reservation_type& room() const { return room_; }
  /// Whether fields keep their places.
  [[nodiscard]] elastic_placement where() const { return where_; }

  /// As an arena's, for a plan that any arena could be made from.
  void require(const plan_type& wanted) const { base::require(placed(wanted, room_, where_)); }

private:
  using kept = detail::kept_rows<plan_type>;

  static plan_type placed(const plan_type& plan, const reservation_type& room, elastic_placement where) {
    if (where == elastic_placement::stable) return plan.placed_in(room);
    // A plan that is placed in a reservation is made compact again.
    const plan_type compact = plan.with_guards(plan.guard_bytes());
    if (compact.slab_bytes() > room.slab_bytes())
      detail::throw_no_room_for_slab(compact.slab_bytes(), room.slab_bytes());
    return compact;
  }

  [[nodiscard]] std::vector<mapped_range> ranges_of(const plan_type& plan) {
    return detail::mapped_ranges_of(plan, base::backend().granularity());
  }
  void map(stream_type stream, std::span<const mapped_range> ranges) {
    base::backend().map(stream, base::slab_, ranges);
  }

  void refuse_where_impossible(std::string_view what, stream_type stream) {
    if (base::released()) detail::refuse_pass(what, base::state_);
    if constexpr (capturing_backend<typename base::backend_type>) {
      if (base::backend().is_capturing(stream)) detail::refuse_during_capture(what);
    }
  }

  void fall_asleep(stream_type stream, bool keep) {
    refuse_where_impossible("sleep", stream);
    if (!asleep()) {
      base::backend().synchronize(stream);
      if (keep && base::slab_ != nullptr) {
        [[maybe_unused]] const detail::padding_access access(static_cast<const base&>(*this));
        base::backend().save(stream, base::slab_);
      }
      lie_down();
      keeps_contents_ = keep && base::slab_ != nullptr;
    }
    if (mapped_bytes() != 0) map(stream, {});
  }

  void lie_down() noexcept {
    base::state_ = detail::arena_state::asleep;
    keeps_contents_ = false;
    leave_memory();
  }

  void leave_memory() noexcept {
    detail::permit_padding(static_cast<const base&>(*this)); // another plan can take its place
    base::addresses_ = {};
    base::bind(); // to nothing
  }

  void restore(stream_type stream) {
    [[maybe_unused]] const detail::padding_access access(static_cast<const base&>(*this));
    base::backend().restore(stream, base::slab_);
  }

  /// After a failure that is on its way: what cannot be given back is tried again by sleep() and wake().
  void give_everything_back(stream_type stream) noexcept {
    leave_memory();
    try {
      map(stream, {});
    } catch (...) { // NOLINT(bugprone-empty-catch): the first failure is the one to report
    }
  }

  /// After a failure that has cost the contents.
  void fall_down(stream_type stream) noexcept {
    lie_down();
    give_everything_back(stream);
  }

  [[nodiscard]] bool addresses_change(const plan_type& next) const {
    return where_ == elastic_placement::compact || kept(base::plan_, next).addresses_change();
  }

  void change_to(const plan_type& next, stream_type stream) {
    const plan_type last = base::plan_;
    const kept rows(last, next);
    const bool other_addresses = addresses_change(next);
    const std::vector<mapped_range> before = ranges_of(last);
    const std::vector<mapped_range> after = ranges_of(next);
    const bool stable = where_ == elastic_placement::stable;
    std::vector<std::byte> moving; // parts that move inside their fields wait on the host
    std::exception_ptr not_given_back;
    detail::permit_padding(static_cast<const base&>(*this));
    const auto stay = [&] { detail::forbid_padding(static_cast<const base&>(*this)); };
    try {
      if (stable) rows.take(base::backend(), stream, base::slab_, moving);
    } catch (...) {
      stay();
      throw;
    }
    try {
      map(stream, after);
    } catch (...) {
      if (!base::backend().maps(base::slab_, after)) {
        if (base::backend().maps(base::slab_, before)) {
          stay();
        } else { // lost on the way
          fall_down(stream);
        }
        throw;
      }
      not_given_back = std::current_exception();
    }
    try {
      base::plan_ = next;
      base::point_into_slab();
      if (stable) {
        rows.put(base::backend(), stream, base::slab_, moving);
        prepare_new(rows, stream);
      } else {
        base::prepare(stream);
      }
    } catch (...) {
      fall_down(stream);
      throw;
    }
    if (other_addresses) base::generation_ = detail::next_generation();
    if (not_given_back != nullptr) std::rethrow_exception(not_given_back);
  }

  /// As prepare(), for what a resize has added.
  void prepare_new(const kept& rows, stream_type stream) {
    std::vector<segment> cleared;
    for (std::size_t field = 0; field < plan_type::field_count; ++field) {
      const auto& entry = plan_type::table()[field];
      const field_layout& layout = base::plan_.layout(field);
      if (layout.bytes == 0 || (!entry.cleared_at_construction && entry.fill.size == 0)) continue;
      for (std::size_t copy = 0; copy < layout.copies; ++copy) {
        std::byte* const start = base::addresses_[field] + copy * layout.stride;
        rows.visit_new(field, [&](std::size_t begin, std::size_t end) {
          if (entry.cleared_at_construction) {
            cleared.push_back({start + begin, end - begin});
          } else {
            base::fill_memory(stream, start + begin, end - begin, entry.fill);
          }
        });
      }
    }
    if (!cleared.empty()) base::backend().zero(stream, cleared);
    base::bind();
    base::fill_guards(stream);
    if (!cleared.empty()) base::backend().synchronize(stream);
    detail::forbid_padding(static_cast<const base&>(*this));
  }

  reservation_type room_;
  elastic_placement where_;
  bool keeps_contents_ = false;
};

/// A backend given by name is referred to, a temporary one is taken over.
template <class Fields, class Params, class Backend>
elastic_arena(const plan<Fields, Params>&, const plan<Fields, Params>&, Backend&&,
              elastic_options<typename std::remove_reference_t<Backend>::stream_type> = {})
    -> elastic_arena<Fields, Params, Backend>;
/// The same with a reservation.
template <class Fields, class Params, class Backend>
elastic_arena(const plan<Fields, Params>&, const reservation<plan<Fields, Params>>&, Backend&&,
              elastic_options<typename std::remove_reference_t<Backend>::stream_type> = {})
    -> elastic_arena<Fields, Params, Backend>;

} // namespace stowage::inline v0_1
