// The verification of `stowage run` has to notice passes that do not keep their promise.

#include "../support/messages.hpp"

#include <planner/memory_check.hpp>
#include <planner/run_command.hpp>
#include <planner/text_table.hpp>

#include <stowage/backend/any.hpp>
#include <stowage/backend/failing.hpp>
#include <stowage/backend/host.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using planner::byte_range;
using planner::memory_state;
using planner::pass_kind;
using planner::pass_report;
using planner::poison;
using planner::run_report;
using test::contains;

TEST_CASE("counting bytes") {
  // Around the size of a block, where blocks meet.
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{65535},
                                 std::size_t{65536}, std::size_t{65537}, std::size_t{200000}}) {
    CAPTURE(size);
    std::vector<std::byte> bytes(size, poison);
    CHECK(planner::count_bytes(bytes, poison) == size);
    CHECK(planner::count_bytes(bytes, std::byte{0}) == 0);
    for (const std::size_t at : {std::size_t{0}, size / 2, size - 1}) {
      if (at >= size) continue;
      bytes[at] = std::byte{0};
      CHECK(planner::count_bytes(bytes, poison) == size - 1);
      CHECK(planner::count_bytes(bytes, std::byte{0}) == 1);
      bytes[at] = poison;
    }
  }
}

TEST_CASE("ranges") {
  CHECK(planner::well_formed({}, 0));
  CHECK(planner::well_formed({{0, 2}, {2, 3}, {5, 9}}, 9));
  CHECK_FALSE(planner::well_formed({{0, 2}, {5, 9}}, 8));
  CHECK_FALSE(planner::well_formed({{0, 0}}, 8));
  CHECK_FALSE(planner::well_formed({{2, 1}}, 8));
  CHECK_FALSE(planner::well_formed({{0, 3}, {2, 4}}, 8));
  CHECK_FALSE(planner::well_formed({{4, 5}, {0, 1}}, 8));

  CHECK(planner::size_of({{0, 2}, {5, 9}}) == 6);
  CHECK(planner::merged({{5, 9}, {0, 2}, {2, 3}, {6, 7}}) == std::vector<byte_range>{{0, 3}, {5, 9}});
  CHECK(planner::merged({}).empty());
}

TEST_CASE("memory: what was to be cleared and what was not") {
  std::array<std::byte, 10> memory{};
  planner::fill_with_poison(memory);
  const std::vector<byte_range> promised{{2, 4}, {6, 7}};
  const auto state = [&] { return planner::check_memory(memory, promised); };
  const auto expect = [](const memory_state& found, std::size_t cleared, std::size_t missed,
                         std::size_t touched) {
    CHECK(found.cleared == cleared);
    CHECK(found.missed == missed);
    CHECK(found.touched == touched);
  };
  expect(state(), 0, 3, 0);
  memory[2] = memory[3] = std::byte{0};
  expect(state(), 2, 1, 0);
  memory[6] = std::byte{1}; // neither
  expect(state(), 2, 1, 0);
  memory[6] = std::byte{0};
  expect(state(), 3, 0, 0);
  memory[0] = memory[4] = std::byte{0};
  memory[9] = std::byte{1};
  expect(state(), 3, 0, 3);
  planner::fill_with_poison({});
}

/// Host memory whose zero pass can be tampered with.
struct tampered_backend : stowage::host_backend {
  /// Is given the segments of each pass and says which to clear; `pass` counts from 1, the construction's.
  std::function<std::vector<stowage::segment>(int pass, std::vector<stowage::segment>)> tamper =
      [](int, std::vector<stowage::segment> segments) { return segments; };
  int passes = 0;

  void zero(stowage::host_stream stream, std::span<const stowage::segment> segments) {
    host_backend::zero(stream, tamper(++passes, {segments.begin(), segments.end()}));
  }
};

planner::options small_options() {
  planner::options wanted;
  wanted.config = "small.json";
  wanted.max_batch_tokens = 100;
  wanted.max_seq_len = 64;
  return wanted;
}

stowage::llm::forward_plan small_plan(const planner::options& wanted) {
  const stowage::llm::model_config model{.vocab_size = 50,
                                         .hidden_size = 16,
                                         .intermediate_size = 24,
                                         .num_attention_heads = 4,
                                         .num_key_value_heads = 2,
                                         .head_dim = 4};
  return stowage::llm::forward_plan{planner::forward_params_of(wanted, model)};
}

template <class Backend>
run_report verify(Backend& backend, const planner::options& wanted = small_options()) {
  return planner::verify_passes(wanted, small_plan(wanted), stowage::any_backend(backend));
}

std::vector<std::string> problems(const run_report& report) {
  std::vector<std::string> result;
  for (const pass_report& pass : report.passes) {
    if (!pass.ok()) result.push_back(pass.problem);
  }
  return result;
}

TEST_CASE("a backend that does as it is told passes") {
  tampered_backend backend;
  const run_report report = verify(backend);
  CHECK(report.ok());
  const std::array kinds{pass_kind::construction,   pass_kind::zero_all,          pass_kind::zero_rows,
                         pass_kind::zero_row_range, pass_kind::zero_rows,         pass_kind::zero_row_range,
                         pass_kind::zero_rows,      pass_kind::prefill_essentials};
  REQUIRE(report.passes.size() == kinds.size());
  for (std::size_t pass = 0; pass < kinds.size(); ++pass) {
    CHECK(report.passes[pass].kind == kinds[pass]);
    CHECK(report.passes[pass].promised_bytes > 0);
    CHECK(report.passes[pass].cleared_bytes == report.passes[pass].promised_bytes);
    CHECK(report.passes[pass].seconds.has_value() == (pass != 0));
  }
  CHECK(report.passes[0].promised_bytes == 2 * 16); // norm_unit_w
  CHECK(report.passes[2].last == 1);
  CHECK(report.passes[3].first == 1);
  CHECK(report.passes[3].last == 64);
  CHECK(report.passes[5].first == 17);
  CHECK(report.passes[5].last == 64);
  CHECK(report.passes[6].last == 100);
  CHECK(report.passes[6].promised_bytes == report.passes[1].promised_bytes);
}

TEST_CASE("--tokens: row passes for these only") {
  planner::options wanted = small_options();
  for (const std::int64_t tokens : {0, 3, 99, 100, 101}) {
    CAPTURE(tokens);
    wanted.tokens = tokens;
    tampered_backend backend;
    const run_report report = verify(backend, wanted);
    CHECK(report.ok());
    REQUIRE(report.passes.size() == (tokens < 100 ? 5 : 4));
    CHECK(report.passes[2].kind == pass_kind::zero_rows);
    CHECK(report.passes[2].last == static_cast<std::size_t>(tokens));
  }
}

TEST_CASE("a byte too few or too many is noticed in every pass") {
  tampered_backend honest;
  const int passes = static_cast<int>(verify(honest).passes.size());
  REQUIRE(honest.passes == passes);
  for (int tampered = 1; tampered <= passes; ++tampered) {
    CAPTURE(tampered);
    const auto run_with = [tampered](auto change) {
      tampered_backend backend;
      backend.tamper = [&](int pass, std::vector<stowage::segment> segments) {
        if (pass == tampered) change(segments);
        return segments;
      };
      return verify(backend);
    };
    const auto expect = [&](const run_report& report, std::string_view problem) {
      CHECK_FALSE(report.ok());
      REQUIRE(problems(report).size() == 1);
      CHECK(contains(problems(report)[0], problem));
      CHECK_FALSE(report.passes[static_cast<std::size_t>(tampered - 1)].ok());
    };
    expect(run_with([](auto& segments) { segments.front().bytes -= 1; }),
           ": 1 promised bytes are not cleared, 0");
    expect(run_with([](auto& segments) {
             segments.back().address += 1;
             segments.back().bytes -= 1;
           }),
           ": 1 promised bytes are not cleared, 0");
    expect(run_with([](auto& segments) { segments.clear(); }), " promised bytes are not cleared, 0 others");
    // Padding between buffers is less than 256 bytes.
    expect(run_with([](auto& segments) { segments.back().bytes += 512; }),
           ": 0 promised bytes are not cleared, ");
  }
}

TEST_CASE("touched rows of other tokens are noticed") {
  tampered_backend backend;
  backend.tamper = [](int pass, std::vector<stowage::segment> segments) {
    // Pass 3 clears row 0 of hidden_states, which is first in the slab; pass 4 rows 1 to 63.
    if (pass == 3) segments.front().bytes += 1;
    if (pass == 4) {
      segments.front().address -= 1;
      segments.front().bytes += 1;
    }
    return segments;
  };
  const run_report report = verify(backend);
  CHECK(problems(report) ==
        std::vector<std::string>{"hidden_states: 0 promised bytes are not cleared, 1 others are touched",
                                 "hidden_states: 0 promised bytes are not cleared, 1 others are touched"});
}

TEST_CASE("failures of the backend") {
  SUBCASE("a pass") {
    stowage::failing_backend<> backend;
    backend.fail(stowage::operation::zero, 3);
    const run_report report = verify(backend);
    CHECK_FALSE(report.ok());
    REQUIRE(problems(report).size() == 1);
    CHECK(contains(problems(report)[0], "made to fail"));
    CHECK(backend.outstanding() == 0);
  }
  SUBCASE("release") {
    stowage::failing_backend<> backend;
    backend.fail(stowage::operation::deallocate, 1);
    const run_report report = verify(backend);
    CHECK_FALSE(report.ok());
    CHECK(problems(report).empty());
    CHECK(contains(report.release_problem, "made to fail"));
    CHECK(backend.outstanding() == 0);
  }
  SUBCASE("no memory") {
    stowage::failing_backend<> backend;
    backend.fail(stowage::operation::allocate, 1);
    CHECK_THROWS_AS(verify(backend), stowage::out_of_memory);
  }
}

TEST_CASE("sizes for people") {
  CHECK(planner::human_bytes(0) == "0 B");
  CHECK(planner::human_bytes(1023) == "1023 B");
  CHECK(planner::human_bytes(1024) == "1.0 KiB");
  CHECK(planner::human_bytes(1536) == "1.5 KiB");
  CHECK(planner::human_bytes(1048575) == "1.0 MiB");
  CHECK(planner::human_bytes(1048576) == "1.0 MiB");
  CHECK(planner::human_bytes(2281152256) == "2.1 GiB");
  CHECK(planner::human_bytes(18446744073709551615u) == "16.0 EiB");
}

TEST_CASE("numbers as they are") {
  CHECK(planner::exact_text(0) == "0");
  CHECK(planner::exact_text(-4064) == "-4064");
  CHECK(planner::exact_text(591396858391) == "591396858391");
  CHECK(planner::exact_text(1e16) == "10000000000000000");
  CHECK(planner::exact_text(0.1) == "0.10000000000000001");
}

TEST_CASE("tables") {
  planner::text_table table({planner::alignment::left, planner::alignment::right, planner::alignment::left});
  table.add({"a", "bytes", "what"});
  table.add({"long", "7", "a thing"});
  table.add({"x", "a cell that is last pushes nothing aside"});
  CHECK(table.text() == "a     bytes  what\n"
                        "long      7  a thing\n"
                        "x     a cell that is last pushes nothing aside\n");

  using lines = std::vector<std::string>;
  CHECK(planner::wrap_shape("bf16 [M, hidden]", 4) == lines{"bf16 [M, hidden]"});
  CHECK(planner::wrap_shape("(bf16 [M, a] | f32 [M, b])", 80) == lines{"(bf16 [M, a] | f32 [M, b])"});
  CHECK(planner::wrap_shape("(bf16 [M, a] | f32 [M, b])", 15) == lines{"(bf16 [M, a]", "| f32 [M, b])"});
  CHECK(planner::wrap_shape("{a u8 [M, 2], b u8 [M], c u8 [1]}", 24) ==
        lines{"{a u8 [M, 2], b u8 [M],", "c u8 [1]}"});
  CHECK(planner::wrap_shape("", 8) == lines{""});
}

} // namespace
