// An arena in host memory, for dlpack_numpy.py to export fields of: C functions, to be called through ctypes.

#include <stowage/arena.hpp>
#include <stowage/backend/host.hpp>
#include <stowage/dlpack.hpp>
#include <stowage/regions.hpp>
#include <stowage/traits/when.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>

namespace {

struct params {
  stowage::tokens batch{};
  std::size_t width = 0;
  bool extra = false;
};
inline constexpr stowage::dim<&params::batch> M{"M"};
inline constexpr stowage::dim<&params::width> width{};

struct metadata {
  stowage::part<std::uint8_t, stowage::shape<M>> flags;
  stowage::part<std::int64_t, stowage::shape<M, 2>> slots;
};
struct fields {
  stowage::buffer<float, stowage::shape<M, width>, stowage::zero::rows> states;
  stowage::buffer<stowage::f16, stowage::shape<width>, stowage::zero::full> scales;
  stowage::buffer<stowage::regions<metadata>, stowage::zero::full> meta;
  stowage::buffer<float, stowage::shape<M>, stowage::zero::rows, stowage::when<&params::extra>> extra;
};

int living = 0;

/// Counts the arenas whose memory has not been released.
struct counted_arena {
  explicit counted_arena(const params& values)
      : arena(stowage::make_plan<fields>(values), stowage::host_backend{}) {
    ++living;
  }
  counted_arena(const counted_arena&) = delete;
  counted_arena& operator=(const counted_arena&) = delete;
  ~counted_arena() { --living; }

  stowage::arena<fields, params, stowage::host_backend> arena;
};

/// What the test holds until it closes the arena; exported tensors hold a share of their own.
using handle = std::shared_ptr<counted_arena>;

enum which : int { states, scales, flags, slots, extra, first_rows };

/// Null, and a line on standard error, where it is refused.
template <class Managed> Managed* export_as(const handle& owner, int field, std::size_t rows) {
  using stowage::dlpack_host;
  try {
    const fields& all = owner->arena.fields();
    switch (field) {
      case states: return stowage::to_dlpack<Managed>(all.states, dlpack_host, owner);
      case scales: return stowage::to_dlpack<Managed>(all.scales, dlpack_host, owner);
      case flags: return stowage::to_dlpack<Managed>(all.meta->flags, dlpack_host, owner);
    case slots: return stowage::to_dlpack<Managed>(all.meta->slots, dlpack_host, owner);
      case extra: return stowage::to_dlpack<Managed>(all.extra, dlpack_host, owner);
      case first_rows: return stowage::to_dlpack<Managed>(all.states, dlpack_host, owner, rows);
      default: break;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "refused: %s\n", error.what());
  }
  return nullptr;
}

} // namespace

extern "C" {

handle* open_arena(std::size_t batch, std::size_t columns) {
  return new handle(std::make_shared<counted_arena>(params{stowage::tokens{batch}, columns}));
}
void close_arena(handle* owner) { delete owner; }
int living_arenas() { return living; }

void write_state(handle* owner, std::size_t index, float value) {
  (*owner)->arena->states.span()[index] = value;
}
float read_state(handle* owner, std::size_t index) { return (*owner)->arena->states.span()[index]; }
void write_slot(handle* owner, std::size_t index, std::int64_t value) {
  (*owner)->arena->meta->slots.span()[index] = value;
}
void write_scale_bits(handle* owner, std::size_t index, std::uint16_t bits) {
  (*owner)->arena->scales.span()[index].bits = bits;
}
std::size_t offset_of_slots(handle* owner) {
  const auto& meta = (*owner)->arena->meta;
  return static_cast<std::size_t>(reinterpret_cast<std::byte*>(meta->slots.data()) - meta.data());
}

DLManagedTensor* export_tensor(handle* owner, int field, std::size_t rows) {
  return export_as<DLManagedTensor>(*owner, field, rows);
}
void delete_tensor(DLManagedTensor* tensor) { tensor->deleter(tensor); }

#if defined(DLPACK_MAJOR_VERSION)
DLManagedTensorVersioned* export_versioned(handle* owner, int field, std::size_t rows) {
  return export_as<DLManagedTensorVersioned>(*owner, field, rows);
}
void delete_versioned(DLManagedTensorVersioned* tensor) { tensor->deleter(tensor); }
#endif

} // extern "C"
