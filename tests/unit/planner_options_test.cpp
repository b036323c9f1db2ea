#include "../support/messages.hpp"

#include <planner/options.hpp>

#include <stowage/llm/levers.hpp>
#include <stowage/llm/model_config.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

using planner::command;
using planner::command_line;
using planner::option_error;
using planner::options;
using planner::output_format;
using stowage::llm::levers;
using stowage::llm::splitk_kind;
using stowage::llm::splitk_policy;
using test::contains;

using arguments = std::vector<const char*>;

command_line parse(const arguments& given, const levers& environment = {}) {
  return planner::parse_command_line(given, environment);
}

/// What a command line asks for.
options accepted(const arguments& given, const levers& environment = {}) {
  const command_line line = parse(given, environment);
  if (!line.wanted) throw std::logic_error("there is only a help text");
  return *line.wanted;
}

/// What "plan x.json" asks for with these options.
options plan_with(std::initializer_list<const char*> more, const levers& environment = {}) {
  arguments all{"plan", "x.json"};
  all.insert(all.end(), more);
  return accepted(all, environment);
}

std::string refusal_of(const arguments& given) {
  try {
    parse(given);
  } catch (const option_error& error) {
    return error.what();
  }
  return "not refused";
}

std::string refusal(std::initializer_list<const char*> more) {
  arguments all{"plan", "x.json"};
  all.insert(all.end(), more);
  return refusal_of(all);
}

constexpr levers all_levers{.gguf_native_q2 = true,
                            .gguf_native_q2_mmq = true,
                            .fp8_rowwise = true,
                            .splitk = {splitk_kind::pinned, 7}};

TEST_CASE("defaults") {
  const options wanted = plan_with({});
  CHECK(wanted.what == command::plan);
  CHECK(wanted.config == "x.json");
  CHECK(wanted.max_batch_tokens == 8192);
  CHECK(wanted.max_seq_len == 32768);
  CHECK(wanted.kv_block_size == 16);
  CHECK(wanted.max_batch_size == 32);
  CHECK(wanted.sm_count == 132);
  CHECK(wanted.adapter_max_rank == 0);
  CHECK(wanted.switches == levers{});
  CHECK_FALSE(wanted.tokens.has_value());
  CHECK(wanted.format == output_format::table);
  CHECK(wanted.output.empty());
}

TEST_CASE("every option, in either form and any place") {
  const options wanted = accepted({"run",
                                   "--max-batch-tokens",
                                   "1",
                                   "--max-seq-len=2",
                                   "--kv-block-size",
                                   "3",
                                   "--max-batch-size=4",
                                   "m.json",
                                   "--sm-count",
                                   "5",
                                   "--adapter-max-rank=6",
                                   "--lever",
                                   "q2",
                                   "--lever=rowwise",
                                   "--splitk",
                                   "auto",
                                   "--tokens",
                                   "7",
                                   "--format",
                                   "json",
                                   "--output=out.json"});
  CHECK(wanted.what == command::run);
  CHECK(wanted.config == "m.json");
  CHECK(wanted.max_batch_tokens == 1);
  CHECK(wanted.max_seq_len == 2);
  CHECK(wanted.kv_block_size == 3);
  CHECK(wanted.max_batch_size == 4);
  CHECK(wanted.sm_count == 5);
  CHECK(wanted.adapter_max_rank == 6);
  CHECK(wanted.switches ==
        levers{.gguf_native_q2 = true, .fp8_rowwise = true, .splitk = {splitk_kind::automatic, 0}});
  CHECK(wanted.tokens == 7);
  CHECK(wanted.format == output_format::json);
  CHECK(wanted.output == "out.json");
}

TEST_CASE("numbers") {
  CHECK(plan_with({"--max-batch-tokens", "0"}).max_batch_tokens == 0);
  CHECK(plan_with({"--max-batch-tokens", "007"}).max_batch_tokens == 7);
  CHECK(plan_with({"--max-batch-tokens", "9223372036854775807"}).max_batch_tokens == 9223372036854775807);
  CHECK(plan_with({"--tokens", "0"}).tokens == 0);

  for (const char* const option : {"--max-batch-tokens", "--max-seq-len", "--kv-block-size",
                                   "--max-batch-size", "--sm-count", "--adapter-max-rank", "--tokens"}) {
    CAPTURE(option);
    const std::string name = option;
    const auto expected = [&name](std::string_view text, std::string_view why = "") {
      return std::string{name}.append(": is '").append(text).append("'").append(why).append(
          "; wanted an integer from 0 to 9223372036854775807");
    };
    CHECK(refusal({option, "-1"}) == expected("-1", " (negative)"));
    CHECK(refusal({option, "9223372036854775808"}) == expected("9223372036854775808", " (too large)"));
    CHECK(refusal({option, "18446744073709551617"}) == expected("18446744073709551617", " (too large)"));
    for (const char* const text : {"", "x", "1x", "x1", "1 ", " 1", "+1", "-", "--1", "-x", "1.0", "1e3",
                                   "0x10", "1,000", "{}", "[1]", "\xC2\xB2"}) {
      CAPTURE(text);
      CHECK(refusal({option, text}) == expected(text));
    }
    const std::string digits(1000, '9'); // a long value is cut
    CHECK(refusal({option, digits.c_str()}) == expected(digits.substr(0, 40) + "...", " (too large)"));
    CHECK(contains(refusal({option}), name + ": 1 required"));
    CHECK(refusal({option, "1", option, "1"}) == name + ": is given more than once");
  }
}

TEST_CASE("levers: the option's, or else the environment's") {
  CHECK(plan_with({}, all_levers).switches == all_levers);
  CHECK(plan_with({"--lever", "q2_mmq"}, all_levers).switches ==
        levers{.gguf_native_q2_mmq = true, .splitk = {splitk_kind::pinned, 7}});
  CHECK(plan_with({"--lever", "q2"}).switches == levers{.gguf_native_q2 = true});
  CHECK(plan_with({"--lever", "rowwise", "--lever", "rowwise"}).switches == levers{.fp8_rowwise = true});
  CHECK(plan_with({"--lever", "rowwise", "--lever", "q2_mmq", "--lever", "q2"}).switches ==
        levers{.gguf_native_q2 = true, .gguf_native_q2_mmq = true, .fp8_rowwise = true});

  // A lever takes one name: what follows is the config.
  CHECK(accepted({"plan", "--lever", "q2", "x.json"}).config == "x.json");

  for (const char* const text : {"", "Q2", "q2,rowwise", "[q2,rowwise]", "{}", "all", "none", " q2"}) {
    CAPTURE(text);
    CHECK(refusal({"--lever", text}) ==
          "--lever: is '" + std::string{text} + "'; wanted q2, q2_mmq or rowwise");
  }
}

TEST_CASE("split-K: the option's, or else the environment's") {
  const auto policy = [](const char* text) {
    return plan_with({"--splitk", text}, all_levers).switches.splitk;
  };
  CHECK(plan_with({}, all_levers).switches.splitk == splitk_policy{splitk_kind::pinned, 7});
  CHECK(policy("legacy") == splitk_policy{splitk_kind::legacy, 0});
  CHECK(policy(" AUTO ") == splitk_policy{splitk_kind::automatic, 0});
  for (const char* const off : {"0", "off", "False", "no"})
    CHECK(policy(off) == splitk_policy{splitk_kind::pinned, 1});
  CHECK(policy("12") == splitk_policy{splitk_kind::pinned, 12});
  CHECK(policy("99") == splitk_policy{splitk_kind::pinned, 99});
  // The switches stay those of the environment.
  CHECK(plan_with({"--splitk", "auto"}, all_levers).switches.fp8_rowwise);

  for (const char* const text : {"", " ", "yes", "-3", "4x", "legacy auto"}) {
    CAPTURE(text);
    CHECK(refusal({"--splitk", text}) ==
          "--splitk: is '" + std::string{text} + "'; wanted legacy, auto, off or a count of splits");
  }
}

TEST_CASE("format and output") {
  CHECK(plan_with({"--format", "table"}).format == output_format::table);
  CHECK(plan_with({"--format", "json"}).format == output_format::json);
  for (const char* const text : {"", "JSON", "xml"}) {
    CHECK(refusal({"--format", text}) ==
          "--format: is '" + std::string{text} + "'; wanted table, json, csv, svg or html");
  }
  CHECK(refusal_of({"run", "x.json", "--format", "csv"}) == "--format: is 'csv'; wanted table or json");
  CHECK(plan_with({"--format", "html"}).format == output_format::html);
  CHECK(plan_with({"--output", "-"}).output == "-");
  CHECK(refusal({"--output", ""}) == "--output: is ''; wanted the path of a file");
}

TEST_CASE("help is no error; a missing command is one") {
  for (const arguments& given :
       {arguments{"--help"}, {"-h"}, {"plan", "--help"}, {"run", "x.json", "--help"}}) {
    const command_line line = parse(given);
    CHECK_FALSE(line.wanted.has_value());
    CHECK(line.help_wanted);
    CHECK(contains(line.help, "Usage: stowage"));
  }
  CHECK(contains(parse({"run", "--help"}).help, "--max-batch-tokens N=8192"));
  for (const arguments& given : {arguments{}, {"--"}}) {
    const command_line line = parse(given);
    CHECK_FALSE(line.wanted.has_value());
    CHECK_FALSE(line.help_wanted);
    CHECK(contains(line.help, "Usage: stowage"));
  }
}

TEST_CASE("what does not belong there") {
  CHECK(refusal_of({"frob"}) ==
        "COMMAND: is 'frob'; wanted plan, fit, explain, diff, sweep, run or completion");
  CHECK(refusal_of({"--frob", "plan", "x.json"}) == "'--frob': unknown option; see stowage --help");
  CHECK(refusal_of({"--format", "json", "plan", "x.json"}) ==
        "'--format': unknown option; see stowage --help");
  CHECK(refusal_of({"x.json", "plan", "x.json"}) == "'x.json': one argument too many; see stowage --help");
  CHECK(refusal({"--frob"}) == "'--frob': unknown option; see stowage plan --help");
  CHECK(refusal({"--frob", "3"}) == "'--frob': unknown option; see stowage plan --help");
  CHECK(refusal({"--frob=3"}) == "'--frob=3': unknown option; see stowage plan --help");
  CHECK(refusal({"-x"}) == "'-x': unknown option; see stowage plan --help");
  CHECK(refusal({"--max-batch-token", "3"}) ==
        "'--max-batch-token': unknown option; see stowage plan --help");
  CHECK(refusal({"y.json"}) == "'y.json': one argument too many; see stowage plan --help");
  CHECK(contains(refusal_of({"plan"}), "CONFIG.json is required"));
  CHECK(contains(refusal_of({"run", "--tokens", "3"}), "CONFIG.json is required"));
}

TEST_CASE("behind -- everything is a path") {
  CHECK(accepted({"plan", "--tokens", "3", "--", "--odd.json"}).config == "--odd.json");
}

TEST_CASE("names of levers and policies read back as what they are") {
  CHECK(planner::lever_names_of({}).empty());
  CHECK(planner::lever_names_of(all_levers) == std::vector<std::string_view>{"q2", "q2_mmq", "rowwise"});
  for (const splitk_policy policy :
       {splitk_policy{splitk_kind::legacy, 0}, splitk_policy{splitk_kind::automatic, 0},
        splitk_policy{splitk_kind::pinned, 1}, splitk_policy{splitk_kind::pinned, 99}}) {
    const std::string spelling = planner::splitk_spelling_of(policy);
    CHECK(plan_with({"--splitk", spelling.c_str()}).switches.splitk == policy);
  }
}

TEST_CASE("params: the model, then what the options say") {
  options wanted;
  wanted.max_batch_tokens = 1;
  wanted.max_seq_len = 2;
  wanted.kv_block_size = 3;
  wanted.max_batch_size = 4;
  wanted.sm_count = 5;
  wanted.adapter_max_rank = 6;
  wanted.switches = all_levers;
  const stowage::llm::model_config model{.vocab_size = 100, .hidden_size = 64, .attn_gated = true};
  const stowage::llm::forward_params params = planner::forward_params_of(wanted, model);
  CHECK(static_cast<const stowage::llm::model_config&>(params) == model);
  CHECK(params.max_batch_tokens.value == 1);
  CHECK(params.max_seq_len == 2);
  CHECK(params.kv_block_size == 3);
  CHECK(params.max_batch_size == 4);
  CHECK(params.sm_count == 5);
  CHECK(params.adapter_max_rank == 6);
  CHECK(params.switches == all_levers);
}

} // namespace
