#include "options.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <thread>

namespace engine {

namespace {

template <class Number> Number number(std::string_view option, const char* text) {
  Number value{};
  const std::string_view written = text == nullptr ? "" : text;
  const auto [end, error] = std::from_chars(written.data(), written.data() + written.size(), value);
  if (error != std::errc() || end != written.data() + written.size())
    throw std::runtime_error(std::string(option) + " wants a number, got '" + std::string(written) + "'");
  return value;
}

} // namespace

options read_options(int count, char** arguments) {
  options result;
  result.limits.threads = std::max(1U, std::thread::hardware_concurrency());
  if (const char* model = std::getenv("STOWAGE_ENGINE_MODEL")) result.model = model;
  bool has_prompt = false;
  for (int index = 1; index < count; ++index) {
    const std::string_view option = arguments[index];
    const auto next = [&] { return index + 1 < count ? arguments[++index] : nullptr; };
    if (option == "--raw")
      result.raw = true;
    else if (option == "--help")
      result.help = true;
    else if (option == "--report")
      result.report = true;
    else if (option == "--tokens")
      result.tokens = number<std::size_t>(option, next());
    else if (option == "--threads")
      result.limits.threads = std::max<std::size_t>(1, number<std::size_t>(option, next()));
    else if (option == "--context")
      result.limits.max_context = number<std::size_t>(option, next());
    else if (option == "--temperature")
      result.temperature = number<float>(option, next());
    else if (option == "--top-k")
      result.limits.top_k = number<std::size_t>(option, next());
    else if (option == "--seed")
      result.seed = number<std::uint32_t>(option, next());
    else if (const bool model = option == "--model"; model || option == "--dump") {
      const char* text = next();
      if (text == nullptr) throw std::runtime_error(std::string(option) + " wants a file");
      (model ? result.model : result.dump) = text;
    } else if (option.substr(0, 2) == "--") {
      throw std::runtime_error(usage);
    } else {
      result.prompt = option;
      has_prompt = true;
    }
  }
  if (!result.help && (result.model.empty() || (!has_prompt && !result.report)))
    throw std::runtime_error(usage);
  if (result.temperature > 0.0F && result.limits.top_k == 0) result.limits.top_k = 40;
  result.limits.cache_pages = stowage::pages{result.limits.max_sequences.value *
                                             ((result.limits.max_context + page_tokens - 1) / page_tokens)};
  return result;
}

} // namespace engine
