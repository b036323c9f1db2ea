// An arena in device memory, for dlpack_torch.py to export fields of: C functions, to be called through ctypes.

#include <stowage/arena.hpp>
#include <stowage/cuda/backend.hpp>
#include <stowage/dlpack.hpp>
#include <stowage/regions.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <vector>

namespace {

struct params {
  stowage::tokens batch{};
  std::size_t width = 0;
};
inline constexpr stowage::dim<&params::batch> M{"M"};
inline constexpr stowage::dim<&params::width> width{};

struct metadata {
  stowage::part<std::uint8_t, stowage::shape<M>> flags;
  stowage::part<std::int64_t, stowage::shape<M, 2>> slots;
};
struct fields {
  stowage::buffer<float, stowage::shape<M, width>, stowage::zero::rows> states;
  stowage::buffer<stowage::bf16, stowage::shape<stowage::pad<16>(M), width>, stowage::zero::rows> padded;
  stowage::buffer<stowage::regions<metadata>, stowage::zero::full> meta;
};

int living = 0;

struct counted_arena {
  explicit counted_arena(const params& values)
      : arena(stowage::make_plan<fields>(values), stowage::cuda::backend{}) {
    ++living;
    arena.zero_all();
  }
  counted_arena(const counted_arena&) = delete;
  counted_arena& operator=(const counted_arena&) = delete;
  ~counted_arena() { --living; }

  stowage::arena<fields, params, stowage::cuda::backend> arena;
};
using handle = std::shared_ptr<counted_arena>;

enum which : int { states, padded, slots, first_rows };

template <class Managed> Managed* export_as(const handle& owner, int field, std::size_t rows) {
  try {
    const fields& all = owner->arena.fields();
    const auto device = stowage::dlpack_device_of(owner->arena.backend());
    switch (field) {
      case states: return stowage::to_dlpack<Managed>(all.states, device, owner);
      case padded: return stowage::to_dlpack<Managed>(all.padded, device, owner);
    case slots: return stowage::to_dlpack<Managed>(all.meta->slots, device, owner);
      case first_rows: return stowage::to_dlpack<Managed>(all.states, device, owner, rows);
      default: break;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "refused: %s\n", error.what());
  }
  return nullptr;
}

} // namespace

extern "C" {

/// Null, and a line on standard error, where there is no device.
handle* open_arena(std::size_t batch, std::size_t columns) {
  try {
    return new handle(std::make_shared<counted_arena>(params{stowage::tokens{batch}, columns}));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return nullptr;
  }
}
void close_arena(handle* owner) { delete owner; }
int living_arenas() { return living; }

/// states[i] = i, slots[i] = -i, through the backend.
void fill(handle* owner) {
  auto& arena = (*owner)->arena;
  std::vector<float> values(arena->states.size());
  for (std::size_t index = 0; index < values.size(); ++index) values[index] = static_cast<float>(index);
  std::vector<std::int64_t> numbers(arena->meta->slots.size());
  for (std::size_t index = 0; index < numbers.size(); ++index)
    numbers[index] = -static_cast<std::int64_t>(index);
  auto& backend = arena.backend();
  backend.copy_from_host({}, arena->states.data(), values.data(), values.size() * sizeof(float));
  backend.copy_from_host({}, arena->meta->slots.data(), numbers.data(),
                         numbers.size() * sizeof(std::int64_t));
  backend.synchronize({});
}
void zero_rows(handle* owner, std::size_t count) {
  (*owner)->arena.zero_rows({}, stowage::tokens{count});
  (*owner)->arena.backend().synchronize({});
}
std::size_t address_of_states(handle* owner) {
  return reinterpret_cast<std::size_t>((*owner)->arena->states.data());
}

DLManagedTensor* export_tensor(handle* owner, int field, std::size_t rows) {
  return export_as<DLManagedTensor>(*owner, field, rows);
}

} // extern "C"
