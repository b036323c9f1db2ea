#pragma once

#include <stowage/arena.hpp>
#include <stowage/detail/address_sanitizer.hpp>
#include <stowage/detail/cold.hpp>
#include <stowage/error.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

namespace stowage::inline v0_1 {

/// A guard zone that something wrote into. The writer ran over the end of the field in front of the zone, or
/// began before the start of the one behind it.
struct guard_damage {
  /// The field in front of the zone; empty for the zone at the start of the slab.
  std::string_view field_in_front;
  /// The field behind it; empty for the zone at the end.
  std::string_view field_behind;
  /// The first and the last damaged byte, counted from the start of the zone, which is the end of the field
  /// in front (and of its tail).
  std::size_t first = 0;
  /// The last damaged byte, counted in the same way.
  std::size_t last = 0;
  /// Bytes of the zone.
  std::size_t zone_bytes = 0;
};

/// Looks at every guard zone of an arena whose plan has them (plan.with_guards()) and calls sink(const
/// guard_damage&) for each one that is damaged, in slab order. Waits for the stream. Returns the number of
/// damaged zones. Throws usage_error without guard zones, after release and while the stream captures, and
/// what the backend throws.
template <class Fields, class Params, class Backend, class Sink>
std::size_t scan_guards(arena<Fields, Params, Backend>& arena,
                        typename std::remove_reference_t<Backend>::stream_type stream, const Sink& sink) {
  using arena_type = stowage::arena<Fields, Params, Backend>;
  using plan_type = typename arena_type::plan_type;
  arena.require_memory("scan_guards");
  auto& backend = arena.backend();
  if constexpr (capturing_backend<typename arena_type::backend_type>) {
    if (backend.is_capturing(stream))
      detail::refuse_during_capture("scanning guard zones, which waits for the stream,");
  }
  if (arena.plan().guard_bytes() == 0) {
    throw usage_error("stowage: this arena has no guard zones; make it from plan.with_guards()");
  }
  [[maybe_unused]] const detail::padding_access access(arena);
  backend.synchronize(stream);
  std::array<unsigned char, 4096> chunk;
  guard_damage damage;
  bool damaged = false;
  std::size_t count = 0;
  const auto name = [](std::size_t field) {
    return field < plan_type::field_count ? plan_type::name(field) : std::string_view{};
  };
  // A zone is reported when the next one tells which field is behind it.
  const auto report = [&](std::size_t behind) {
    if (!damaged) return;
    damage.field_behind = name(behind);
    ++count;
    sink(static_cast<const guard_damage&>(damage));
    damaged = false;
  };
  arena.plan().visit_guards([&](std::size_t in_front, std::size_t begin, std::size_t end) {
    report(in_front);
    damage = guard_damage{};
    damage.field_in_front = name(in_front);
    damage.zone_bytes = end - begin;
    for (std::size_t done = 0; begin + done < end; done += chunk.size()) {
      const std::size_t bytes = end - begin - done < chunk.size() ? end - begin - done : chunk.size();
      backend.copy_to_host(stream, chunk.data(), arena.slab() + begin + done, bytes);
      backend.synchronize(stream);
      for (std::size_t index = 0; index < bytes; ++index) {
        if (chunk[index] == detail::guard_pattern) continue;
        if (!damaged) damage.first = done + index;
        damage.last = done + index;
        damaged = true;
      }
    }
  });
  report(plan_type::field_count);
  return count;
}

/// A line for a log: "guard zone behind 'keys' (before 'values'): bytes 0 to 63 of 256 overwritten".
[[nodiscard]] STOWAGE_NOINLINE inline std::string format(const guard_damage& damage) {
  detail::message text;
  text << "guard zone ";
  if (damage.field_in_front.empty()) {
    text << "at the start of the slab";
  } else {
    text << "behind '" << damage.field_in_front << '\'';
  }
  if (!damage.field_behind.empty()) text << " (before '" << damage.field_behind << "')";
  text << ": bytes " << damage.first << " to " << damage.last << " of " << damage.zone_bytes
       << " overwritten";
  return text.c_str();
}

} // namespace stowage::inline v0_1
