#pragma once

#include "options.hpp"
#include "reports.hpp"

#include <stowage/backend/any.hpp>
#include <stowage/llm/forward_buffers.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace planner {

/// Is told what is done next, and how many of how many steps are behind.
using progress_callback = std::function<void(std::string_view what, std::size_t done, std::size_t steps)>;

/// Makes an arena in memory that the host reaches, does every pass on poisoned memory, and reads back what each one
/// cleared: exactly the promised bytes of the buffers; padding between them does not count. Then it does the other
/// operations, see operations.hpp, and releases the arena. Throws stowage::out_of_memory.
run_report verify_passes(const options& wanted, const stowage::llm::forward_plan& plan,
                         stowage::any_backend memory, const progress_callback& progress = {});

/// What `stowage run` has to say, in the wanted format.
struct run_result {
  std::string text;
  bool ok = false;
};
run_result run_command(const options& wanted, const progress_callback& progress = {});

} // namespace planner
