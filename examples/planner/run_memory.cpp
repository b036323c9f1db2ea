#include "run_memory.hpp"

#include <stowage/backend/host.hpp>
#include <stowage/error.hpp>
#include <stowage/report/text_table.hpp>

#ifdef STOWAGE_PLANNER_CUDA
#include <stowage/cuda/backend.hpp>
#endif

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>
#include <string_view>

namespace planner {
namespace {

/// A number at the front of a text; nothing where there is none, as in "max".
std::optional<std::size_t> leading_number(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return std::nullopt;
  text.remove_prefix(first);
  std::size_t number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc{}) return std::nullopt;
  return number;
}

std::optional<std::size_t> number_in_file(const char* path) {
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) ? leading_number(line) : std::nullopt;
}

/// Refuses a slab that there is no memory for, before the system ends the process over it.
void check_memory_for(std::size_t bytes, std::optional<std::size_t> available, std::string_view where) {
  if (!available || bytes <= *available) return;
  const std::string reason = std::to_string(*available) + " bytes (" + stowage::human_bytes(*available) +
                             ") of " + std::string{where} +
                             " memory are available; fewer tokens, or see stowage fit";
  throw stowage::out_of_memory(bytes, reason);
}

} // namespace

std::optional<std::size_t> available_host_memory() {
  std::optional<std::size_t> available;
  std::ifstream file("/proc/meminfo");
  constexpr std::string_view key = "MemAvailable:";
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    if (const auto kibibytes = leading_number(std::string_view{line}.substr(key.size())))
      available = *kibibytes * 1024;
  }
  const auto limit = number_in_file("/sys/fs/cgroup/memory.max");
  const auto used = number_in_file("/sys/fs/cgroup/memory.current");
  if (limit && used) {
    const std::size_t left = *limit - std::min(*limit, *used);
    available = std::min(available.value_or(left), left);
  }
  return available;
}

run_report with_memory(backend_kind kind, std::size_t bytes,
                       const std::function<run_report(stowage::any_backend)>& use) {
  if (kind == backend_kind::host) {
    check_memory_for(bytes, available_host_memory(), "host");
    stowage::host_backend host;
    return use(stowage::any_backend(host));
  }
#ifdef STOWAGE_PLANNER_CUDA
  std::size_t free_bytes = 0;
  std::size_t all_bytes = 0;
  if (const cudaError_t code = cudaMemGetInfo(&free_bytes, &all_bytes); code != cudaSuccess)
    throw option_error(std::string{"--backend: is 'cuda', and CUDA says: "} + cudaGetErrorString(code) +
                       "; wanted a machine with a GPU, or --backend host");
  check_memory_for(bytes, free_bytes, "device");
  // Managed memory, which both sides reach: the passes run on the device, and the host looks at every byte.
  stowage::cuda::backend device({.memory = stowage::cuda::memory_kind::managed});
  return use(stowage::any_backend(device));
#else
  throw option_error(
      "--backend: is 'cuda', and this program was built without CUDA; wanted host, or a build with "
      "STOWAGE_CUDA=ON");
#endif
}

} // namespace planner
