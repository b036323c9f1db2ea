// A fixed number of threads that do one piece of work together, many times a step.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace engine {

class workers {
public:
  /// `count` in all, the calling thread being one of them.
  explicit workers(std::size_t count) {
    for (std::size_t index = 1; index < count; ++index)
      threads_.emplace_back([this, index](const std::stop_token& stop) { serve(stop, index); });
  }
  ~workers() {
    for (std::jthread& each : threads_) each.request_stop();
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
  }
  workers(const workers&) = delete;
  workers& operator=(const workers&) = delete;

  [[nodiscard]] std::size_t count() const { return threads_.size() + 1; }

  /// Calls work(index) once on each thread and returns when all are done. Neither heap nor lock. The work throws
  /// nothing.
  template <class Work> void run(const Work& work) {
    if (!threads_.empty()) {
      work_ = &work;
      call_ = [](const void* target, std::size_t index) { (*static_cast<const Work*>(target))(index); };
      left_.store(threads_.size(), std::memory_order_relaxed);
      round_.fetch_add(1, std::memory_order_release);
      round_.notify_all();
    }
    work(std::size_t{0});
    wait_while(left_, [](std::size_t left) { return left != 0; });
  }

  /// Calls work(first, last) on each thread with its share of [0, size), in multiples of `grain`.
  template <class Work> void split(std::size_t size, std::size_t grain, const Work& work) {
    const std::size_t grains = (size + grain - 1) / grain;
    run([&](std::size_t index) {
      const std::size_t first = grains * index / count() * grain;
      const std::size_t last = std::min(size, grains * (index + 1) / count() * grain);
      if (first < last) work(first, last);
    });
  }

private:
  /// Looks for a moment before it sleeps: the next piece of work is usually microseconds away.
  template <class Condition> static void wait_while(std::atomic<std::size_t>& value, Condition condition) {
    for (int turn = 0; turn < 2000; ++turn) {
      if (!condition(value.load(std::memory_order_acquire))) return;
#ifdef __x86_64__
      __builtin_ia32_pause();
#endif
    }
    for (std::size_t seen = value.load(std::memory_order_acquire); condition(seen);
         seen = value.load(std::memory_order_acquire))
      value.wait(seen, std::memory_order_acquire);
  }

  void serve(const std::stop_token& stop, std::size_t index) {
    for (std::size_t seen = 0;; ++seen) {
      wait_while(round_, [seen](std::size_t round) { return round == seen; });
      if (stop.stop_requested()) return;
      call_(work_, index);
      if (left_.fetch_sub(1, std::memory_order_release) == 1) left_.notify_one();
    }
  }

  const void* work_ = nullptr;
  void (*call_)(const void*, std::size_t) = nullptr;
  std::atomic<std::size_t> round_{0};
  std::atomic<std::size_t> left_{0};
  std::vector<std::jthread> threads_; // last: the threads use what is above
};

} // namespace engine
