#pragma once

#include <stowage/error.hpp>

#include <concepts>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace stowage::inline v0_1 {

/// Resources with a label for people, released in reverse order of registration. One failure does not stop
/// the rest, and the first one names its label. Releases what is left when it is destroyed.
class teardown {
public:
  teardown() = default;
  teardown(const teardown&) = delete;
  teardown& operator=(const teardown&) = delete;
  ~teardown() { static_cast<void>(release()); }

  /// Registers an arena, or anything with a release() that returns a status and does not throw. It must
  /// outlive the teardown's release and stay where it is.
  template <class Resource>
    requires requires(Resource& resource) {
      { resource.release() } -> std::same_as<status>;
    }
  void add(std::string label, Resource& resource) {
    add(std::move(label), [&resource]() -> status { return resource.release(); });
  }

  /// Registers an action: a callable that returns a status, or nothing. An exception that leaves it counts as
  /// a failure.
  template <class Action>
    requires std::same_as<std::invoke_result_t<Action&>, status> ||
             std::same_as<std::invoke_result_t<Action&>, void>
  void add(std::string label, Action action) {
    entries_.push_back(
        {labels_.emplace_back(std::move(label)), std::make_unique<action_of<Action>>(std::move(action))});
  }

  /// Releases everything, the last one first; what an action adds meanwhile is released too. Returns the
  /// first failure, with the label of its resource, which stays valid as long as the teardown. A second call
  /// does nothing and reports success.
  status release() noexcept {
    status first_failure;
    while (!entries_.empty()) {
      const entry last = std::move(entries_.back()); // an action may add others
      entries_.pop_back();
      first_failure.merge(last.action->run().labelled(last.label), {});
    }
    return first_failure;
  }

  /// Resources that are not released yet.
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

private:
  struct action_base {
    action_base() = default;
    action_base(const action_base&) = delete;
    action_base& operator=(const action_base&) = delete;
    virtual ~action_base() = default;
    virtual status run() noexcept = 0;
  };
  template <class Action> struct action_of final : action_base {
    explicit action_of(Action given) : action(std::move(given)) {}
    status run() noexcept override {
      try {
        if constexpr (std::same_as<std::invoke_result_t<Action&>, status>) {
          return action();
        } else {
          action();
          return {};
        }
      } catch (...) {
        return failure{"teardown", {}, 0, "the action threw", 0};
      }
    }
    Action action;
  };
  struct entry {
    std::string_view label;
    std::unique_ptr<action_base> action;
  };

  std::deque<std::string> labels_; // of all that were ever added: failures refer to them
  std::vector<entry> entries_;
};

} // namespace stowage::inline v0_1
