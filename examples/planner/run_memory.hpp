#pragma once

#include "options.hpp"
#include "reports.hpp"

#include <stowage/backend/any.hpp>

#include <cstddef>
#include <functional>
#include <optional>

namespace planner {

/// Bytes of memory that this process can still get: the system's, and those its control group leaves. Nothing where the
/// system does not say.
std::optional<std::size_t> available_host_memory();

/// Calls `use` with memory of a kind that the host reaches, once there is enough for a slab of `bytes`. Throws
/// stowage::out_of_memory with the bytes that are available, and option_error where the program was built without that
/// kind.
run_report with_memory(backend_kind kind, std::size_t bytes,
                       const std::function<run_report(stowage::any_backend)>& use);

} // namespace planner
