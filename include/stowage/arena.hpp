#pragma once

#include <stowage/backend/concept.hpp>
#include <stowage/detail/address_sanitizer.hpp>
#include <stowage/detail/cold.hpp>
#include <stowage/plan.hpp>
#include <stowage/segments.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

namespace stowage::inline v0_1 {

/// Where the fields of an arena lie.
enum class placement : unsigned char {
  slab,    ///< all in one allocation, in slab order
  separate ///< each in an allocation of its own
};

/// How an arena is made. `stream` orders what construction does on the device.
template <class Stream> struct arena_options {
  /// Whether the fields share one allocation.
  placement where = placement::slab;
  /// Orders what construction does on the device.
  Stream stream{};
};

namespace detail {

/// Whether an arena can be used. Only elastic arenas sleep.
enum class arena_state : unsigned char { ready, asleep, released };

/// For arenas whose memory comes later than they do.
struct without_memory {};

/// What guard zones are filled with: no common fill value, no zero.
inline constexpr unsigned char guard_pattern = 0xa7;

[[noreturn]] STOWAGE_COLD inline void refuse_guards_without_slab() {
  throw usage_error("stowage: guard zones are in the slab; a plan with guards needs placement::slab");
}
[[noreturn]] STOWAGE_COLD inline void refuse_pass(std::string_view pass, arena_state state) {
  message text;
  text << "stowage: " << pass << " was called on an arena that is "
       << (state == arena_state::asleep ? "asleep; wake() it first" : "released or moved from");
  throw usage_error(text.c_str());
}
[[noreturn]] STOWAGE_COLD inline void refuse_during_capture(std::string_view what) {
  message text;
  text << "stowage: " << what
       << " is not possible while the stream captures; do it before the capture begins";
  throw usage_error(text.c_str());
}

[[noreturn]] STOWAGE_COLD inline void refuse_generation(std::uint64_t captured, std::uint64_t current) {
  const std::size_t then = captured;
  const std::size_t now = current;
  message text;
  text << "stowage: captured for generation " << then << ", the arena is at " << now << "; capture again";
  throw usage_error(text.c_str());
}
template <class Plan> [[noreturn]] STOWAGE_COLD void refuse_plan(const Plan& here, const Plan& wanted) {
  message text;
  text << "stowage: the plan is another than the arena was made from";
  // A field that has another size moves all behind it: look for the cause before the consequences.
  std::size_t differs = Plan::field_count;
  for (std::size_t field = Plan::field_count; field-- != 0;) {
    if (here.layout(field).bytes != wanted.layout(field).bytes) differs = field;
  }
  for (std::size_t field = 0; differs == Plan::field_count && field < Plan::field_count; ++field) {
    if (here.hash_of_field(field) != wanted.hash_of_field(field)) differs = field;
  }
  if (differs != Plan::field_count) {
    const field_layout& mine = here.layout(differs);
    const field_layout& other = wanted.layout(differs);
    text << ": field '" << Plan::name(differs) << "' has " << mine.bytes << " bytes at " << mine.offset
         << " here, the plan wants " << other.bytes << " bytes at " << other.offset;
    if (mine == other) text << ", with other extents or parts in it";
  }
  text << "; make plan and arena from the same params";
  throw usage_error(text.c_str());
}

/// A number that no other call in the process got. The builtin, because <atomic> costs more to compile than
/// an arena.
inline std::uint64_t next_generation() noexcept {
  static std::uint64_t last = 0;
  return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

/// Keeps a backend: a temporary by value, an lvalue by reference. Movable either way.
template <class Backend> class backend_holder {
public:
  explicit backend_holder(Backend&& backend) : backend_(std::move(backend)) {}
  explicit backend_holder(const Backend& backend) : backend_(backend) {}
  [[nodiscard]] Backend& get() { return backend_; }

private:
  Backend backend_;
};
template <class Backend> class backend_holder<Backend&> {
public:
  explicit backend_holder(Backend& backend) : backend_(&backend) {}
  [[nodiscard]] Backend& get() { return *backend_; }

private:
  Backend* backend_;
};

} // namespace detail

template <class Fields, class Params, class Backend> class elastic_arena;

/// A plan with its memory: the field list, bound. `arena->field` is the handle of a field; addresses stay the
/// same until release(), also when the arena is moved. Made from a plan and a backend, with the types
/// deduced: `stowage::arena arena(plan, backend);`. An lvalue backend is referred to and must outlive the
/// arena; a temporary is taken over. Accessors may be called from any thread while passes run; nothing beside
/// a move or release() (docs/how-to/threads.md).
///
/// Passes are one backend call each, use no heap, and throw usage_error on a released arena.
template <class Fields, class Params, class Backend> class arena {
  static_assert(
      stowage::backend<std::remove_reference_t<Backend>>,
      "stowage: this type is no backend; backend/concept.hpp says what it needs (deallocate is noexcept)");

public:
  /// The plan that it is made from.
  using plan_type = stowage::plan<Fields, Params>;
  /// The backend, owned or referred to.
  using backend_type = std::remove_reference_t<Backend>;
  using stream_type = typename backend_type::stream_type;
  /// The options of the constructor.
  using options_type = arena_options<stream_type>;

  /// All or nothing: when an allocation or the first clearing fails, what was allocated is given back before
  /// the error leaves. Throws what the backend throws, and usage_error while the stream captures.
  template <class Given>
    requires std::constructible_from<detail::backend_holder<Backend>, Given>
  arena(const plan_type& plan, Given&& backend, options_type options = {})
      : plan_(plan), backend_(std::forward<Given>(backend)), placement_(options.where) {
    require_possible(options.stream);
    try {
      allocate();
      prepare(options.stream);
    } catch (...) {
      static_cast<void>(deallocate());
      throw;
    }
  }

  /// Addresses stay as they are; the other arena is released.
  arena(arena&& other) noexcept
      : plan_(other.plan_), backend_(std::move(other.backend_)), placement_(other.placement_),
        fields_(std::exchange(other.fields_, Fields{})), slab_(std::exchange(other.slab_, nullptr)),
        addresses_(std::exchange(other.addresses_, {})),
        state_(std::exchange(other.state_, detail::arena_state::released)),
        generation_(std::exchange(other.generation_, detail::next_generation())) {}

  /// Releases what this arena holds, then takes over the other one.
  arena& operator=(arena&& other) noexcept {
    if (this != &other) {
      static_cast<void>(release());
      plan_ = other.plan_;
      backend_ = std::move(other.backend_);
      placement_ = other.placement_;
      fields_ = std::exchange(other.fields_, Fields{});
      slab_ = std::exchange(other.slab_, nullptr);
      addresses_ = std::exchange(other.addresses_, {});
      state_ = std::exchange(other.state_, detail::arena_state::released);
      generation_ = std::exchange(other.generation_, detail::next_generation());
    }
    return *this;
  }
  arena(const arena&) = delete;
  arena& operator=(const arena&) = delete;

  ~arena() { static_cast<void>(release()); }

  /// The field list. After release every handle in it is null.
  [[nodiscard]] Fields* operator->() { return &fields_; }
  /// The same, unchangeable.
  [[nodiscard]] const Fields* operator->() const { return &fields_; }
  /// The field list as a reference.
  [[nodiscard]] Fields& fields() { return fields_; }
  /// The same, unchangeable.
  [[nodiscard]] const Fields& fields() const { return fields_; }

  /// Sizes, offsets and conditions; stays after release.
  [[nodiscard]] const plan_type& plan() const { return plan_; }
  /// The params that the plan was made from.
  [[nodiscard]] const Params& params() const { return plan_.params(); }
  /// Where the memory is.
  [[nodiscard]] backend_type& backend() { return backend_.get(); }
  /// Start of the slab; null for separate placement, for an arena without bytes, and after release.
  [[nodiscard]] std::byte* slab() const { return slab_; }
  /// Whether release() was called, or the arena was moved from.
  [[nodiscard]] bool released() const { return state_ == detail::arena_state::released; }
  /// Changes when addresses could have changed: every arena has a number of its own, and release() gives a
  /// new one. A captured graph keeps the number and asserts it before each replay.
  [[nodiscard]] std::uint64_t generation() const { return generation_; }
  /// Throws usage_error where the addresses may not be those of that generation any more, or hold no memory.
  void require_generation(std::uint64_t captured) const {
    if (captured != generation_) detail::refuse_generation(captured, generation_);
    if (state_ == detail::arena_state::asleep) detail::refuse_pass("require_generation", state_);
  }

  /// For passes of one's own: throws usage_error with the name of the pass where the arena is released, moved
  /// from, or asleep.
  void require_memory(std::string_view pass) const {
    if (state_ != detail::arena_state::ready) detail::refuse_pass(pass, state_);
  }

  /// Refuses a plan that lays the fields out otherwise than this arena, such as one made after a switch was
  /// flipped between estimate and allocation. Throws usage_error that names the first field that differs.
  void require(const plan_type& wanted) const {
    if (wanted.hash() != plan_.hash()) detail::refuse_plan(plan_, wanted);
  }

  /// Address of a field by its number in declaration order; null where it takes no memory.
  [[nodiscard]] std::byte* address(std::size_t field) const {
    if (field >= plan_type::field_count) detail::field_index_out_of_range(field, plan_type::field_count);
    return addresses_[field];
  }

  /// Clears every field with a row or full policy, whole.
  void zero_all(stream_type stream = {}) {
    require_memory("zero_all");
    segments<plan_type::most_row_segments> pass;
    if (placement_ == placement::slab && plan_.is_contiguous()) {
      // Slab order puts them first: one range.
      pass.add(slab_, plan_.zeroed_slab_bytes(), 0, true, true, true);
    } else {
      add_fields(pass, [](std::size_t field) { return plan_type::table()[field].cleared_by_zero_all; });
    }
    run(stream, pass);
  }

  /// Clears the row fields as far as `count` tokens reach (ceil16 rows as far as ceil16(count)), and the full
  /// fields whole. Counts above the capacity clear everything; zero tokens clear only the full fields.
  void zero_rows(stream_type stream, tokens count) {
    require_memory("zero_rows");
    segments<plan_type::most_row_segments> pass;
    add_rows(pass, 0, count.value, true, may_bridge());
    run(stream, pass);
  }

  /// Clears what the tokens [first, last) reach of the row fields: the tail between the tokens of a batch and
  /// its bucket. Rows that the first tokens own stay (with alternatives: what they own in any of them), so
  /// clearing [0, first) and [first, last) clears [0, last). Full fields are left alone.
  void zero_rows(stream_type stream, tokens first, tokens last) {
    require_memory("zero_rows");
    segments<plan_type::most_row_segments> pass;
    add_rows(pass, first.value, last.value, false, may_bridge());
    run(stream, pass);
  }

  /// Clears every field that carries tag<Tag>, whole, whatever its policy.
  template <class Tag> void zero_tagged(stream_type stream = {}) {
    require_memory("zero_tagged");
    segments<plan_type::field_instances> pass;
    add_fields(pass, [](std::size_t field) { return detail::fields_with_tag<Fields, Tag>[field]; });
    run(stream, pass);
  }

  /// The segments that zero_rows(stream, count) clears, without clearing them: for graph nodes that an engine
  /// updates.
  /// `.view()` is a span of them.
  [[nodiscard]] auto row_segments(tokens count) const {
    require_memory("row_segments");
    segments<plan_type::most_row_segments> pass;
    add_rows(pass, 0, count.value, true, may_bridge() && detail::may_touch_padding<arena>);
    return pass;
  }

  /// The field list by value, for kernels: trivially copyable handles with device addresses, null where a
  /// field is absent. Only for field lists without members that are not owned and not trivially copyable.
  [[nodiscard]] Fields device_view() const {
    static_assert(std::is_trivially_copyable_v<Fields>,
                  "stowage: a field list that is passed to a kernel holds trivially copyable members only");
    require_memory("device_view");
    return fields_;
  }

  /// Gives all memory back. Never throws; goes on after a failure and returns the first one, with the field's
  /// name ("slab" for the one allocation). A second call does nothing and reports success. Where the backend
  /// refuses, since the stream captures, the arena stays as it is and can be released later.
  STOWAGE_NOINLINE status release() noexcept {
    if (released()) return {};
    const status first_failure = deallocate();
    if (first_failure.error().refused) return first_failure;
    state_ = detail::arena_state::released;
    generation_ = detail::next_generation();
    bind(); // to nothing
    return first_failure;
  }

private:
  friend class elastic_arena<Fields, Params, Backend>;
  template <std::size_t Capacity> using segments = detail::segment_list<Capacity>;

  template <class Given>
  arena(detail::without_memory, const plan_type& plan, Given&& backend, stream_type stream)
      : plan_(plan), backend_(std::forward<Given>(backend)), placement_(placement::slab) {
    require_possible(stream);
  }

  void require_possible(stream_type stream) {
    if constexpr (capturing_backend<backend_type>) {
      if (backend_.get().is_capturing(stream)) detail::refuse_during_capture("making an arena");
    }
    if (plan_.guard_bytes() != 0 && placement_ != placement::slab) detail::refuse_guards_without_slab();
  }

  /// What construction does once there is memory.
  void prepare(stream_type stream) {
    const bool clearing = zero_at_construction(stream);
    bind(); // while a device clears
    fill_at_construction(stream);
    fill_guards(stream);
    if (clearing) backend_.get().synchronize(stream);
    detail::forbid_padding(*this);
  }

  STOWAGE_NOINLINE void allocate() {
    if (placement_ == placement::slab) {
      if (plan_.slab_bytes() == 0) return;
      slab_ = static_cast<std::byte*>(backend_.get().allocate(plan_.slab_bytes(), plan_.slab_alignment()));
      point_into_slab();
    } else {
      for (std::size_t field = 0; field < plan_type::field_count; ++field) {
        const field_layout& layout = plan_.layout(field);
        if (layout.bytes == 0) continue;
        addresses_[field] =
            static_cast<std::byte*>(backend_.get().allocate(layout.allocated(), layout.alignment));
      }
    }
  }

  void point_into_slab() noexcept {
    for (std::size_t field = 0; field < plan_type::field_count; ++field)
      addresses_[field] = plan_.bytes(field) == 0 ? nullptr : slab_ + plan_.offset(field);
  }

  STOWAGE_NOINLINE status deallocate() noexcept {
    detail::permit_padding(*this); // the memory is used for other things now
    status first_failure;
    if (slab_ != nullptr) {
      first_failure.merge(backend_.get().deallocate(slab_, plan_.slab_bytes(), plan_.slab_alignment()),
                          "slab");
    } else if (placement_ == placement::separate) {
      for (std::size_t field = plan_type::field_count; field-- != 0;) {
        if (addresses_[field] == nullptr) continue;
        const field_layout& layout = plan_.layout(field);
        first_failure.merge(
            backend_.get().deallocate(addresses_[field], layout.allocated(), layout.alignment),
            plan_type::name(field));
        if (first_failure.error().refused) break; // as it refused the first one
      }
    }
    if (first_failure.error().refused) {
      if (state_ == detail::arena_state::ready) detail::forbid_padding(*this);
      return first_failure;
    }
    slab_ = nullptr;
    addresses_ = {};
    return first_failure;
  }

  STOWAGE_NOINLINE void bind() noexcept {
    detail::visit_leaves(fields_, 0,
                         [this](std::size_t field, std::byte* handle) { bind_field(field, handle); });
  }

  /// Points a handle at its field, or at nothing where the field has no address.
  STOWAGE_NOINLINE void bind_field(std::size_t field, std::byte* handle) noexcept {
    std::array<detail::placed_node, plan_type::most_nodes> placed;
    const auto& entry = plan_type::table()[field];
    std::byte* const address = addresses_[field];
    if (address != nullptr) plan_.place_field(field, placed.data());
    for (std::size_t copy = 0; copy < entry.copies; ++copy) {
      std::byte* const of_copy = handle + copy * entry.handle_bytes;
      if (address != nullptr) {
        detail::bind_handles(entry.nodes, placed.data(), of_copy, address + copy * plan_.layout(field).stride,
                             plan_type::name(field));
      } else {
        detail::unbind_handles(entry.nodes, of_copy, plan_type::name(field));
      }
    }
  }

  /// Whether there is something to wait for.
  STOWAGE_NOINLINE bool zero_at_construction(stream_type stream) {
    segments<plan_type::field_instances> pass;
    add_fields(pass, [](std::size_t field) { return plan_type::table()[field].cleared_at_construction; });
    run(stream, pass);
    return !pass.view().empty();
  }

  /// Sets the fields that carry pad_fill.
  STOWAGE_NOINLINE void fill_at_construction(stream_type stream) {
    for (std::size_t field = 0; field < plan_type::field_count; ++field) {
      const detail::fill_pattern& fill = plan_type::table()[field].fill;
      if (fill.size == 0 || addresses_[field] == nullptr) continue;
      const field_layout& layout = plan_.layout(field);
      const std::size_t ranges =
          plan_.has_holes() ? layout.copies : 1; // else copies and their padding at once
      for (std::size_t range = 0; range < ranges; ++range)
        fill_memory(stream, addresses_[field] + range * layout.stride,
                    ranges == 1 ? layout.extent() : layout.bytes, fill);
    }
  }

  STOWAGE_NOINLINE void fill_guards(stream_type stream) {
    if (plan_.guard_bytes() == 0 || slab_ == nullptr) return;
    plan_.visit_guards([&](std::size_t, std::size_t begin, std::size_t end) {
      fill_memory(stream, slab_ + begin, end - begin, detail::fill_pattern{{detail::guard_pattern}, 1});
    });
  }

  STOWAGE_NOINLINE void fill_memory(stream_type stream, std::byte* address, std::size_t bytes,
                                    const detail::fill_pattern& fill) {
    [[maybe_unused]] const detail::padding_access access(*this);
    std::array<unsigned char, 4096> chunk;
    for (std::size_t index = 0; index < chunk.size(); ++index) chunk[index] = fill.bytes[index % fill.size];
    for (std::size_t done = 0; done < bytes; done += chunk.size()) {
      const std::size_t part = bytes - done < chunk.size() ? bytes - done : chunk.size();
      backend_.get().copy_from_host(stream, address + done, chunk.data(), part);
    }
    backend_.get().synchronize(stream); // before the chunk goes
  }

  /// Adds whole fields, those that take(number) says, in slab order.
  template <class Pass, class Take> STOWAGE_NOINLINE void add_fields(Pass& pass, const Take& take) const {
    const bool contiguous = slab_ != nullptr && plan_.is_contiguous();
    for (const std::size_t field : detail::slab_order<Fields, Params>) {
      if (addresses_[field] == nullptr || !take(field)) continue;
      const field_layout& layout = plan_.layout(field);
      if (contiguous) { // copies and the padding between them at once
        pass.add(addresses_[field], layout.extent(), layout.position, true, true, true);
        continue;
      }
      const bool bridge =
          layout.copies == 1 && may_bridge(); // into a neighbour, where there are holes elsewhere
      for (std::size_t copy = 0; copy < layout.copies; ++copy) {
        pass.add(addresses_[field] + copy * layout.stride, layout.bytes, layout.position, bridge, bridge,
                 bridge);
      }
    }
  }

  template <class Pass>
  void add_rows(Pass& pass, std::size_t first, std::size_t last, bool with_full, bool bridge) const {
    plan_.visit_row_pass(first, last, with_full, [&](std::size_t field, std::size_t begin, std::size_t end) {
      const field_layout& layout = plan_.layout(field);
      pass.add(addresses_[field] + begin, end - begin, layout.position, begin == 0, end == layout.extent(),
               bridge);
    });
  }

  /// Segments may run through the padding between fields.
  [[nodiscard]] bool may_bridge() const { return slab_ != nullptr && plan_.guard_bytes() == 0; }

  template <class Pass> void run(stream_type stream, const Pass& pass) {
    if (pass.view().empty()) return;
    [[maybe_unused]] const detail::padding_access access(*this);
    backend_.get().zero(stream, pass.view());
  }

  plan_type plan_;
  detail::backend_holder<Backend> backend_;
  placement placement_;
  Fields fields_{};
  std::byte* slab_ = nullptr;
  std::array<std::byte*, plan_type::field_count> addresses_{};
  detail::arena_state state_ = detail::arena_state::ready;
  std::uint64_t generation_ = detail::next_generation();
};

/// A backend given by name is referred to, a temporary one is taken over.
template <class Fields, class Params, class Backend>
arena(const plan<Fields, Params>&, Backend&&,
      arena_options<typename std::remove_reference_t<Backend>::stream_type> = {})
    -> arena<Fields, Params, Backend>;

} // namespace stowage::inline v0_1
