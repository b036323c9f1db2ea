// A backend of one's own: memory from a block that the engine already holds, and work that waits in a queue
// until somebody synchronises, as a device's does.

#include <stowage/stowage.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <span>
#include <string_view>

/// Work that is not done yet, in order. What a stream is to a device.
class work_queue {
public:
  void add(const stowage::segment& range) {
    if (count_ == ranges_.size()) run(); // full: do the work now
    ranges_[count_++] = range;
  }
  void run() {
    for (const stowage::segment& range : std::span{ranges_}.first(count_))
      std::memset(range.address, 0, range.bytes);
    count_ = 0;
  }
  [[nodiscard]] std::size_t waiting() const { return count_; }

private:
  std::array<stowage::segment, 64> ranges_{};
  std::size_t count_ = 0;
};

// [backend]
/// Gives out a block of memory from its start on, and takes it back from its end.
class pool_backend {
public:
  using stream_type = work_queue*; // null: do it at once

  explicit pool_backend(std::span<std::byte> memory) : memory_(memory) {}

  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory_.data());
    const std::size_t start = (begin + used_ + alignment - 1) / alignment * alignment - begin;
    if (start > memory_.size() || bytes > memory_.size() - start)
      throw stowage::out_of_memory(bytes, "the pool has not so much left");
    used_ = start + bytes;
    return memory_.data() + start;
  }

  stowage::status deallocate(void* address, std::size_t bytes, std::size_t) noexcept {
    const auto start = static_cast<std::size_t>(static_cast<std::byte*>(address) - memory_.data());
    if (start + bytes != used_) return stowage::failure{"deallocate", {}, 0, "not the last block", bytes};
    used_ = start;
    return {};
  }

  /// A whole pass in one call. No segment is null or empty.
  void zero(stream_type stream, std::span<const stowage::segment> segments) {
    for (const stowage::segment& range : segments) {
      if (stream != nullptr) {
        stream->add(range);
      } else {
        std::memset(range.address, 0, range.bytes);
      }
    }
  }

  void copy_to_host(stream_type stream, void* destination, const void* source, std::size_t bytes) {
    synchronize(stream);
    std::memcpy(destination, source, bytes);
  }
  void copy_from_host(stream_type stream, void* destination, const void* source, std::size_t bytes) {
    synchronize(stream);
    std::memcpy(destination, source, bytes);
  }
  void synchronize(stream_type stream) {
    if (stream != nullptr) stream->run();
  }

  [[nodiscard]] std::size_t used() const { return used_; }

private:
  std::span<std::byte> memory_;
  std::size_t used_ = 0;
};
static_assert(stowage::backend<pool_backend>);
// [backend]

struct params {
  stowage::tokens max_tokens;
  std::size_t hidden;
};
inline constexpr stowage::dim<&params::max_tokens> M{"M"};
inline constexpr stowage::dim<&params::hidden> hidden{};

struct buffers {
  stowage::buffer<float, stowage::shape<M, hidden>, stowage::zero::rows> states;
  stowage::buffer<std::uint32_t, stowage::shape<M>, stowage::zero::rows> token_ids;
};

namespace {

bool check(bool right, std::string_view what) {
  if (!right) std::printf("WRONG: %.*s\n", static_cast<int>(what.size()), what.data());
  return right;
}

alignas(256) std::array<std::byte, 65536> memory;

} // namespace

int main() {
  constexpr auto plan = stowage::make_plan<buffers>(params{stowage::tokens{32}, 256});
  static_assert(plan.slab_bytes() == sizeof(float) * 32 * 256 + sizeof(std::uint32_t) * 32);

  // [use]
  pool_backend pool(memory);
  stowage::arena arena(plan, pool); // refers to the pool, which must outlive it
  // [use]
  bool right = check(pool.used() == plan.slab_bytes(), "one allocation of the slab");
  right &= check(reinterpret_cast<std::byte*>(arena->states.data()) == memory.data(), "from the block");

  // [stream]
  work_queue queue;
  arena.zero_rows(&queue, stowage::tokens{8}); // waits in the queue
  arena.backend().synchronize(&queue);         // is done
  // [stream]

  const auto is_zero = [](float value) { return value == 0.0F; };
  std::ranges::fill(arena->states.span(), 1.0F);
  arena.zero_rows(&queue, stowage::tokens{8});
  right &= check(queue.waiting() == 2 && arena->states.data()[0] == 1.0F, "a pass waits in its stream");
  arena.backend().synchronize(&queue);
  const auto cleared = arena->states.rows(0, 8);
  right &= check(std::all_of(cleared.begin(), cleared.end(), is_zero), "8 rows are cleared");
  right &= check(arena->states.rows(8, 9)[0] == 1.0F, "row 8 stays");

  // Twice the rows do not fit behind the first arena. Nothing is left behind by the attempt.
  try {
    const stowage::arena second(stowage::make_plan<buffers>(params{stowage::tokens{64}, 256}), pool);
    right &= check(false, "the second arena does not fit");
  } catch (const stowage::out_of_memory& error) {
    std::puts(error.what());
    right &= check(pool.used() == plan.slab_bytes(), "a failed construction takes nothing");
  }

  // Release reports by value and goes on: here the arena is not the last block of the pool.
  {
    void* later = pool.allocate(1, 1);
    const stowage::status released = arena.release();
    std::puts(released.message().c_str());
    right &= check(!released && released.error().subject == "slab", "a failed release says what it was for");
    right &= check(pool.deallocate(later, 1, 1).ok(), "the last block is taken back");
  }

  std::puts(right ? "right" : "wrong");
  return right ? 0 : 1;
}
