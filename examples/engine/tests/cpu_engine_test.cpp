// Tests of the engine on the CPU, with the model that STOWAGE_ENGINE_MODEL names.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "cpu_engine.hpp"
#include "the_model.hpp"
#include "tokenizer.hpp"

#include <doctest/doctest.h>
#include <stowage/backend/recording.hpp>
#include <stowage/backend/withholding.hpp>
#include <stowage/zeroing_needs.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

namespace {

using test::prompt;
using test::the_model;
using test::tokens;

engine::engine_limits limits(std::size_t sequences) {
  return {.max_tokens = stowage::tokens{64},
          .max_sequences = stowage::sequences{sequences},
          .cache_pages = stowage::pages{128},
          .max_context = 600,
          .threads = 2};
}

/// What the engine goes on with, in a sequence of its own.
template <class Fields>
tokens answer(engine::cpu_engine<Fields>& engine, const tokens& request, std::size_t count) {
  const std::size_t sequence = engine.sequences().open();
  tokens result{engine.prefill(sequence, request)};
  while (result.size() < count) {
    std::uint32_t token = result.back();
    engine.decode({&sequence, 1}, {&token, 1});
    result.push_back(token);
  }
  engine.sequences().close(sequence);
  return result;
}

struct memory {
  stowage::host_backend host;
  operator stowage::any_backend() { return stowage::any_backend(host); }
};

} // namespace

TEST_CASE("one allocation at start-up, and none during 100 steps") {
  stowage::recording_backend<> backend;
  {
    engine::cpu_engine<> engine(the_model().model, limits(2), stowage::any_backend(backend));
    CHECK(backend.count(stowage::operation::allocate) == 1);
    CHECK(backend.calls().front().bytes == engine.arena().plan().slab_bytes());
    answer(engine, prompt("hello"), 101);
    CHECK(backend.count(stowage::operation::allocate) == 1);
    CHECK(backend.count(stowage::operation::deallocate) == 0);
    CHECK(backend.count(stowage::operation::zero) >= 101); // one call a step
  }
  CHECK(backend.count(stowage::operation::deallocate) == 1);
}

TEST_CASE("sequences in one batch give what each gives alone") {
  const std::vector<tokens> requests{prompt("hello"), prompt("Tell me about the Moon, 1969 and all that."),
                                     prompt("x")};
  std::vector<tokens> alone;
  for (const tokens& request : requests) {
    memory host;
    engine::cpu_engine<> engine(the_model().model, limits(1), host);
    alone.push_back(answer(engine, request, 40));
  }
  memory host;
  engine::cpu_engine<> engine(the_model().model, limits(3), host);
  for (int turn = 0; turn < 2; ++turn) { // the second time over what the first one left
    std::vector<std::size_t> open;
    tokens last;
    std::vector<tokens> together(requests.size());
    for (std::size_t index = 0; index < requests.size(); ++index) {
      open.push_back(engine.sequences().open());
      last.push_back(engine.prefill(open.back(), requests[index]));
    }
    for (int step = 0; step < 40; ++step) {
      for (std::size_t index = 0; index < requests.size(); ++index) together[index].push_back(last[index]);
      engine.decode(open, last);
    }
    for (std::size_t index = 0; index < requests.size(); ++index) CHECK(together[index] == alone[index]);
    for (const std::size_t sequence : open) engine.sequences().close(sequence);
  }
}

TEST_CASE("the same prompt gives the same text after a longer one") {
  memory host;
  engine::cpu_engine<> engine(the_model().model, limits(1), host);
  const tokens request = prompt("hello");
  const tokens first = answer(engine, request, 30);
  std::string long_text;
  while (prompt(long_text).size() < 400) long_text += "The quick brown fox jumps over the lazy dog. ";
  answer(engine, prompt(long_text), 100);
  CHECK(answer(engine, request, 30) == first);
}

TEST_CASE("a prompt in pieces, and token by token, gives the logits of one in a piece") {
  std::string text;
  while (prompt(text).size() < 300) text += "one two three ";
  const tokens request = prompt(text); // more than one page, one split and one piece of 64
  engine::engine_limits whole = limits(1);
  whole.max_tokens = stowage::tokens{512};
  memory host;
  engine::cpu_engine<> at_once(the_model().model, whole, host);
  engine::cpu_engine<> in_pieces(the_model().model, limits(1), host);
  engine::cpu_engine<> one_by_one(the_model().model, limits(1), host);
  at_once.prefill(at_once.sequences().open(), request);
  in_pieces.prefill(in_pieces.sequences().open(), request);
  const std::size_t sequence = one_by_one.sequences().open();
  one_by_one.prefill(sequence, std::span(request).first(1));
  for (std::size_t index = 1; index < request.size(); ++index) {
    std::uint32_t token = request[index];
    one_by_one.decode({&sequence, 1}, {&token, 1});
  }
  const auto error = [&](const engine::cpu_engine<>& other) {
    double difference = 0;
    double norm = 0;
    for (std::size_t at = 0; at < at_once.logits(0).size(); ++at) {
      difference += std::pow(double{other.logits(0)[at]} - at_once.logits(0)[at], 2);
      norm += std::pow(double{at_once.logits(0)[at]}, 2);
    }
    return std::sqrt(difference / norm);
  };
  CHECK(error(in_pieces) < 1e-4);
  CHECK(error(one_by_one) < 1e-3); // 16-bit activations
}

TEST_CASE("sampling chooses among the best tokens, the same ones from the same numbers") {
  memory host;
  engine::engine_limits some = limits(1);
  some.top_k = 5;
  engine::cpu_engine<> engine(the_model().model, some, host);
  const tokens request = prompt("hello");
  std::vector<std::uint32_t> chosen;
  for (int step = 0; step < 50; ++step) {
    const std::size_t sequence = engine.sequences().open();
    chosen.push_back(
        engine.prefill(sequence, request, {.temperature = 2.0F, .uniform = static_cast<float>(step) / 50}));
    engine.sequences().close(sequence);
  }
  std::vector<std::size_t> order(engine.logits(0).size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return engine.logits(0)[a] > engine.logits(0)[b]; });
  for (const std::uint32_t token : chosen)
    CHECK(std::find(order.begin(), order.begin() + 5, token) != order.begin() + 5);
  std::sort(chosen.begin(), chosen.end());
  CHECK(std::unique(chosen.begin(), chosen.end()) - chosen.begin() > 1);
  const std::size_t sequence = engine.sequences().open();
  CHECK(engine.prefill(sequence, request) == order[0]);
}

namespace {

/// The experiment on a decode step of three sequences, one of them with two pieces of attention.
template <class Fields> stowage::zeroing_needs examine() {
  stowage::host_backend host;
  stowage::withholding_backend withholding(host);
  engine::engine_limits some = limits(3);
  some.top_k = 4;
  engine::cpu_engine<Fields> engine(the_model().model, some, stowage::any_backend(withholding));
  std::string long_text;
  while (prompt(long_text).size() < 270) long_text += "one two three ";
  std::vector<std::size_t> open;
  tokens last;
  for (const std::string& text : {std::string("hello"), long_text, std::string("x")}) {
    open.push_back(engine.sequences().open());
    last.push_back(engine.prefill(open.back(), prompt(text)));
  }
  engine.decode(open, last);

  auto& arena = engine.arena();
  const auto& plan = arena.plan();
  // [experiment]
  const std::size_t batch = open.size();
  std::uint32_t chosen[3] = {};
  const auto step = [&](auto&) {
    engine.decode_step();
    for (std::size_t row = 0; row < batch; ++row)
      chosen[row] = engine::sample(arena->sampling, row, {.temperature = 1.0F, .uniform = 0.7F});
  };
  const auto needs = stowage::find_zeroing_needs(
      arena, withholding, step,
      {std::as_bytes(arena->sampling.logits.rows(0, batch)),
       std::as_bytes(arena->sampling.best.rows(0, batch)),
       std::as_bytes(arena->sampling.weights.rows(0, batch)), std::as_bytes(std::span(chosen))},
      {.keep = {plan.index_of("step"), plan.index_of("cache.keys"), plan.index_of("cache.values"),
                plan.index_of("rotations")}});
  // [experiment]
  MESSAGE(needs.text());
  return needs;
}

} // namespace

TEST_CASE("the zero policies are those that the experiment finds") {
  using verdict = stowage::zeroing_verdict;
  SUBCASE("everything by habit") {
    const auto needs = examine<engine::cpu_buffers<stowage::zero::rows>>();
    REQUIRE(needs.deterministic);
    CHECK(needs.clean());
    for (const char* name : {"hidden_states", "normalised", "attention.qkv", "attention.output",
                             "attention.split_outputs", "feed_forward.activated", "feed_forward.gate_up",
                             "sampling.logits", "sampling.candidates", "sampling.weights"})
      CHECK_MESSAGE(needs.find(name)->verdict == verdict::waste, name);
  }
  SUBCASE("the engine's own") {
    const auto needs = examine<engine::cpu_buffers<>>();
    REQUIRE(needs.deterministic);
    CHECK(needs.clean());
    CHECK(needs.wasted_bytes() == 0);
    for (const char* name : {"attention.split_weights", "sampling.best", "sampling.histogram"})
      CHECK_MESSAGE(needs.find(name)->verdict == verdict::needed, name);
  }
}

TEST_CASE("what does not fit is refused before anything changes") {
  memory host;
  engine::engine_limits few = limits(2);
  few.cache_pages = stowage::pages{4};
  engine::cpu_engine<> engine(the_model().model, few, host);
  const std::size_t sequence = engine.sequences().open();
  CHECK_THROWS_WITH(engine.prefill(sequence, tokens(64 + 1, 5)), doctest::Contains("pages wanted"));
  CHECK(engine.sequences().length(sequence) == 64);
  engine.sequences().close(sequence);
  const std::size_t again = engine.sequences().open();
  engine.prefill(again, tokens(64, 5)); // all pages came back
  CHECK(engine.sequences().open() != again);
  CHECK_THROWS_WITH(engine.sequences().open(), doctest::Contains("no more fit"));
}

TEST_CASE("tokens come back as the text they were made from") {
  const engine::tokenizer& words = the_model().words;
  for (const std::string text :
       {"Hello, world!", "  two  spaces", "it's 1969\n\n\tfine", "caf\u00e9 \u4e2d\u6587 \U0001f642"})
    CHECK(words.decode(words.encode(text)) == text);
  const tokens special = words.encode("<|im_start|>x<|im_end|>");
  CHECK(special.size() == 3);
  CHECK(special.back() == words.end());
  if (the_model().model.shape.vocabulary ==
      49152) { // SmolLM2; the numbers are those of Hugging Face's tokenizers
    CHECK(words.encode("The year 2024 had 366 days.") ==
          tokens{504, 713, 216, 34, 32, 34, 36, 761, 216, 35, 38, 38, 2009, 30});
    CHECK(words.encode("it's they're 'quoted'") == tokens{269, 506, 502, 2316, 637, 385, 5036, 23});
    CHECK(words.encode("   \n  \n x   5") == tokens{333, 11181, 198, 1792, 333, 37});
  } else { // the tiny model's: 3 special tokens, 256 bytes, then the merges
    CHECK(words.encode("hello he'll") == tokens{3 + 256 + 3, 3 + ' ', 3 + 256, 3 + '\'', 3 + 256 + 1});
    CHECK(words.encode("in 12") == tokens{3 + 256 + 5, 3 + ' ', 3 + '1', 3 + '2'});
  }
}

TEST_CASE("a file that is cut off is refused with its name") {
  const std::string path = std::getenv("STOWAGE_ENGINE_MODEL");
  const auto folder = std::filesystem::temp_directory_path() / "stowage_engine_test";
  std::filesystem::create_directories(folder);
  const std::string cut = (folder / "cut.gguf").string();
  std::string start(20000, '\0');
  std::ifstream(path, std::ios::binary).read(start.data(), static_cast<std::streamsize>(start.size()));
  for (const std::size_t bytes : {0, 3, 10, 100, 3000}) {
    std::ofstream(cut, std::ios::binary).write(start.data(), static_cast<std::streamsize>(bytes));
    CHECK_THROWS_WITH(engine::gguf_file{cut}, doctest::Contains("cut.gguf"));
  }
  CHECK_THROWS_WITH(engine::gguf_file{"/no/such.gguf"}, doctest::Contains("/no/such.gguf"));
  std::filesystem::remove_all(folder);
}
