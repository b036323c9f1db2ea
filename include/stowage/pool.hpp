#pragma once

#include <stowage/detail/cold.hpp>
#include <stowage/elastic.hpp>
#include <stowage/error.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace stowage::inline v0_1 {

/// What becomes of an arena's contents when a pool puts it to sleep.
enum class pool_contents : unsigned char {
  keep, ///< in host memory, until it is woken
  lose  ///< it wakes as a new arena
};

namespace detail {

[[noreturn]] STOWAGE_COLD inline void throw_no_room_in_pool(std::size_t wanted, std::size_t budget,
                                                            std::size_t mapped) {
  message text;
  text << "the pool's budget is " << budget << " bytes, and " << mapped
       << " of them are mapped by arenas that it cannot put to sleep for this";
  throw out_of_memory(wanted, text.c_str());
}
[[noreturn]] STOWAGE_COLD inline void refuse_stranger(const char* what) {
  message text;
  text << "stowage: " << what << " was called for an arena that is no member of the pool; add() it first";
  throw usage_error(text.c_str());
}

} // namespace detail

/// Elastic arenas that share a budget of mapped memory, such as those of several models on one GPU. To make
/// room it puts the arena to sleep that was used least recently. Members stay where they are: remove() one
/// before it is moved or destroyed. For one thread at a time; none of a pool's streams captures meanwhile, and
/// an arena that is put to sleep has no work but on its stream.
class pool {
public:
  /// `budget`: bytes that may be mapped by all members together.
  explicit pool(std::size_t budget) : budget_(budget) {}
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;
  ~pool() = default;

  /// Makes an arena a member, as used just now. `stream` is where its work is done: sleep and wake wait for
  /// it. An arena that is awake needs room: others are put to sleep for it. Throws out_of_memory where it
  /// alone is beyond the budget, and it is no member then.
  template <class Arena>
  void add(Arena& arena, typename Arena::stream_type stream = {},
           pool_contents contents = pool_contents::keep) {
    if (arena.released()) detail::refuse_pass("add", detail::arena_state::released);
    remove(arena);
    members_.push_back(std::make_unique<member_of<Arena>>(arena, stream, contents));
    members_.back()->last_used = ++clock_;
    try {
      make_room_beside(members_.back().get(), 0);
    } catch (...) {
      members_.pop_back();
      throw;
    }
  }
  /// Nothing for an arena that is no member. The arena stays as it is.
  template <class Arena> void remove(const Arena& arena) {
    for (auto& each : members_) {
      if (each->arena != &arena) continue;
      std::swap(each, members_.back());
      members_.pop_back();
      return;
    }
  }

  /// Wakes a member, if it sleeps, and notes that it is used. Puts others to sleep where the budget needs it,
  /// and where the device has too little memory though the budget has enough. Throws out_of_memory where that
  /// does not help; the arena sleeps on.
  template <class Arena> void wake(Arena& arena) {
    member& self = find(arena, "wake");
    if (self.is_asleep()) {
      make_room_beside(&self, self.bytes_awake());
      with_more_room(self, [&] { self.wake(); });
    }
    self.last_used = ++clock_;
  }
  /// Resizes a member and notes that it is used; makes room for what it grows by. One that sleeps and keeps its
  /// contents is woken first. Throws bounds_error for a plan beyond the reservation, and out_of_memory for one
  /// beyond the budget, also where it sleeps; then nothing has changed, for the others neither.
  template <class Arena> void resize(Arena& arena, const typename Arena::plan_type::params_type& params) {
    member& self = find(arena, "resize");
    const typename Arena::plan_type wanted =
        typename Arena::plan_type(params).with_guards(arena.plan().guard_bytes());
    const std::size_t awake = arena.bytes_awake(wanted);
    if (awake > budget_) detail::throw_no_room_in_pool(awake, budget_, 0);
    if (arena.keeps_contents()) wake(arena);
    const std::size_t bytes = arena.asleep() ? 0 : awake;
    const std::size_t mapped = arena.mapped_bytes();
    make_room_beside(&self, bytes > mapped ? bytes - mapped : 0);
    with_more_room(self, [&] { arena.resize(wanted, static_cast<member_of<Arena>&>(self).stream); });
    self.last_used = ++clock_;
  }
  /// Notes that a member is used, so that others go to sleep before it.
  template <class Arena> void use(const Arena& arena) { find(arena, "use").last_used = ++clock_; }

  /// Puts members to sleep, the least recently used first, until so many bytes of the budget are free: for
  /// memory of one's own that counts too. Throws out_of_memory where there are not so many.
  void make_room(std::size_t bytes) { make_room_beside(nullptr, bytes); }

  /// Bytes that may be mapped by all members together.
  [[nodiscard]] std::size_t budget() const { return budget_; }
  /// Bytes that the members have mapped now.
  [[nodiscard]] std::size_t mapped_bytes() const {
    std::size_t bytes = 0;
    for (const auto& each : members_) bytes += each->mapped_bytes();
    return bytes;
  }
  /// How many arenas are members.
  [[nodiscard]] std::size_t members() const { return members_.size(); }

private:
  struct member {
    explicit member(const void* of) : arena(of) {}
    virtual ~member() = default;
    member(const member&) = delete;
    member& operator=(const member&) = delete;
    [[nodiscard]] virtual bool is_asleep() const = 0;
    [[nodiscard]] virtual std::size_t mapped_bytes() = 0;
    [[nodiscard]] virtual std::size_t bytes_awake() = 0;
    virtual void wake() = 0;
    virtual void sleep() = 0;

    const void* arena;
    std::uint64_t last_used = 0;
  };
  template <class Arena> struct member_of final : member {
    member_of(Arena& of, typename Arena::stream_type on, pool_contents what)
        : member(&of), self(of), stream(on), contents(what) {}
    [[nodiscard]] bool is_asleep() const override { return self.asleep(); }
    [[nodiscard]] std::size_t mapped_bytes() override { return self.mapped_bytes(); }
    [[nodiscard]] std::size_t bytes_awake() override { return self.bytes_awake(); }
    void wake() override { self.wake(stream); }
    void sleep() override {
      if (contents == pool_contents::keep) {
        self.sleep(keep_contents, stream);
      } else {
        self.sleep(stream);
      }
    }

    Arena& self;
    typename Arena::stream_type stream;
    pool_contents contents;
  };

  template <class Arena> member& find(const Arena& arena, const char* what) {
    if (arena.released()) detail::refuse_pass(what, detail::arena_state::released);
    for (const auto& each : members_) {
      if (each->arena == &arena) return *each;
    }
    detail::refuse_stranger(what);
  }

  /// The one to put to sleep next; null where none is left.
  [[nodiscard]] member* oldest_beside(const member* spared) const {
    member* oldest = nullptr;
    for (const auto& each : members_) {
      if (each.get() == spared || each->mapped_bytes() == 0) continue;
      if (oldest == nullptr || each->last_used < oldest->last_used) oldest = each.get();
    }
    return oldest;
  }

  void make_room_beside(member* spared, std::size_t bytes) {
    const std::size_t stays = spared == nullptr ? 0 : spared->mapped_bytes();
    if (bytes > budget_ || stays > budget_ - bytes) detail::throw_no_room_in_pool(bytes, budget_, stays);
    for (;;) {
      const std::size_t mapped = mapped_bytes();
      if (mapped <= budget_ && bytes <= budget_ - mapped) return;
      member* const oldest = oldest_beside(spared);
      if (oldest == nullptr) detail::throw_no_room_in_pool(bytes, budget_, mapped);
      oldest->sleep();
    }
  }

  /// Somebody else can have the memory that the budget promises.
  template <class Action> void with_more_room(const member& self, const Action& action) {
    for (;;) {
      try {
        action();
        return;
      } catch (const out_of_memory&) {
        member* const oldest = oldest_beside(&self);
        if (oldest == nullptr) throw;
        oldest->sleep();
      }
    }
  }

  std::size_t budget_;
  std::uint64_t clock_ = 0;
  std::vector<std::unique_ptr<member>> members_;
};

} // namespace stowage::inline v0_1
