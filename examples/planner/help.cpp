#include "help.hpp"

#include "config_reader.hpp"

#include <stowage/report/text_table.hpp>
#include <stowage/version.hpp>

#include <algorithm>
#include <string>
#include <string_view>

namespace planner {

std::string version_text() {
  const auto [major, minor, patch] = stowage::version;
  return "stowage " + std::to_string(major) + '.' + std::to_string(minor) + '.' + std::to_string(patch) +
         '\n';
}

std::string config_help_text() {
  stowage::text_table table({stowage::alignment::left, stowage::alignment::left, stowage::alignment::left});
  table.add({"key", "other names", "where it is not there"});
  for (const config_key& key : config_keys()) {
    std::string others;
    for (const std::string_view spelling : key.spellings) {
      if (spelling.empty() || spelling == key.spellings[0]) continue;
      others.append(others.empty() ? "" : ", ").append(spelling);
    }
    table.add({std::string{key.spellings[0]}, others, std::string{key.note}});
  }
  return "Keys of a config.json that are read; all others are ignored. Where several names of one key are "
         "there,\n"
         "the first one counts. The keys of a nested text_config replace those around it, whatever their "
         "name. --set\n"
         "KEY=VALUE replaces either.\n\n" +
         table.text();
}

std::string general_footer() {
  return "Commands have a help text and an example each: stowage COMMAND --help\n"
         "How many tokens fit, and what takes the most:\n"
         "  stowage fit config.json --budget 4GiB\n"
         "  stowage plan config.json --max-batch-tokens N --largest 5\n"
         "\n"
         "Exit status: 0 success; 1 a pass or operation broke its promise, there is not enough memory, "
         "nothing\n"
         "fits (fit), or it grew too much (diff --fail-above); 2 bad input: the command line, the config or\n"
         "the output file.";
}

} // namespace planner
