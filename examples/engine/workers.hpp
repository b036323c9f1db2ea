// A fixed number of threads that do one piece of work together, many times a step.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace engine {

class workers {
public:
  /// `count` in all, the calling thread being one of them.
  explicit workers(std::size_t count) {
    for (std::size_t index = 1; index < count; ++index)
      threads_.emplace_back([this](const std::stop_token& stop) { serve(stop); });
  }
  ~workers() {
    for (std::jthread& each : threads_) each.request_stop();
    publish(0);
  }
  workers(const workers&) = delete;
  workers& operator=(const workers&) = delete;

  [[nodiscard]] std::size_t count() const { return threads_.size() + 1; }

  /// Calls work(share) once for each share in [0, shares) and returns when all are done. Threads take share after
  /// share, so one that the system does not run holds nobody up. Neither heap nor lock. The work throws nothing;
  /// fewer than 2^24 shares.
  template <class Work> void run(std::size_t shares, const Work& work) {
    if (threads_.empty() || shares == 1) {
      for (std::size_t share = 0; share < shares; ++share) work(share);
      return;
    }
    work_.store(&work, std::memory_order_relaxed);
    call_.store([](const void* target, std::size_t share) { (*static_cast<const Work*>(target))(share); },
                std::memory_order_relaxed);
    done_.store(0, std::memory_order_relaxed);
    publish(shares);
    take_shares();
    for (std::size_t done = look(done_, [shares](std::size_t now) { return now == shares; }); done != shares;
         done = done_.load(std::memory_order_acquire))
      done_.wait(done, std::memory_order_acquire);
  }

  /// Calls work(first, last) for pieces of [0, size), in multiples of `grain`; which pieces depends on the number of
  /// threads alone.
  template <class Work> void split(std::size_t size, std::size_t grain, const Work& work) {
    const std::size_t grains = (size + grain - 1) / grain;
    const std::size_t shares = std::min(grains, count() == 1 ? 1 : 4 * count());
    run(shares, [&](std::size_t share) {
      work(grains * share / shares * grain, std::min(size, grains * (share + 1) / shares * grain));
    });
  }

private:
  // What is to be done is one number: the round, how many shares it has, and the next one to take. Whoever adds 1 to it
  // has taken a share of just that round, and the round does not end before that share is done.
  static constexpr std::uint64_t share_bits = 24, share_mask = (std::uint64_t{1} << share_bits) - 1;
  static std::size_t next_of(std::uint64_t ticket) { return ticket & share_mask; }
  static std::size_t shares_of(std::uint64_t ticket) { return ticket >> share_bits & share_mask; }

  void publish(std::size_t shares) {
    const std::uint64_t round = (ticket_.load(std::memory_order_relaxed) >> 2 * share_bits) + 1;
    ticket_.store(round << 2 * share_bits | std::uint64_t{shares} << share_bits, std::memory_order_release);
    ticket_.notify_all();
  }

  /// Takes shares until there are none. Returns the ticket that had none.
  std::uint64_t take_shares() {
    std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
    while (next_of(ticket) < shares_of(ticket)) {
      const void* work = work_.load(std::memory_order_relaxed);
      void (*call)(const void*, std::size_t) = call_.load(std::memory_order_relaxed);
      // What was read belongs to the round of the ticket, or this fails.
      if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel,
                                         std::memory_order_acquire))
        continue;
      call(work, next_of(ticket));
      if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == shares_of(ticket)) done_.notify_one();
      ticket = ticket_.load(std::memory_order_acquire);
    }
    return ticket;
  }

  /// Looks for a moment before the caller sleeps: the next piece of work is usually microseconds away.
  template <class Number, class Condition>
  static Number look(std::atomic<Number>& value, Condition condition) {
    Number seen = value.load(std::memory_order_acquire);
    for (int turn = 0; turn < 2000 && !condition(seen); ++turn) {
#ifdef __x86_64__
      __builtin_ia32_pause();
#endif
      seen = value.load(std::memory_order_acquire);
    }
    return seen;
  }

  void serve(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const std::uint64_t empty = take_shares();
      if (stop.stop_requested()) return;
      if (look(ticket_, [empty](std::uint64_t now) { return now != empty; }) == empty)
        ticket_.wait(empty, std::memory_order_acquire);
    }
  }

  std::atomic<const void*> work_{nullptr};
  std::atomic<void (*)(const void*, std::size_t)> call_{nullptr};
  std::atomic<std::uint64_t> ticket_{0};
  std::atomic<std::size_t> done_{0};
  std::vector<std::jthread> threads_; // last: the threads use what is above
};

} // namespace engine
