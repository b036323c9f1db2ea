// The report of the zeroing experiment: its text, and what it says in sum.

#include <stowage/zeroing_report.hpp>

#include <cstddef>
#include <doctest/doctest.h>
#include <string>

namespace {

using verdict = stowage::zeroing_verdict;

stowage::zeroing_need need(const char* name, const char* policy, verdict what, std::size_t bytes,
                           std::size_t cleared) {
  stowage::zeroing_need field;
  field.name = name;
  field.policy = policy;
  field.verdict = what;
  field.bytes = bytes;
  field.cleared_bytes = cleared;
  return field;
}

TEST_CASE("zeroing report: a line a field, in columns") {
  stowage::zeroing_needs needs;
  needs.runs = 30;
  needs.patterns = 4;
  needs.output_bytes = 112;
  needs.fields = {need("attention.sums", "rows", verdict::needed, 1024, 224),
                  need("scores", "full", verdict::waste, 64, 64),
                  need("queries", "rows", verdict::waste, 64, 0),
                  need("keys", "rows", verdict::too_little, 256, 128),
                  need("load", "never", verdict::lie, 8, 0),
                  need("flags", "never", verdict::lie, 8, 0),
                  need("logits", "never", verdict::not_needed, 512, 0),
                  need("ids", "never", verdict::kept, 32, 0),
                  need("trace", "never", verdict::absent, 0, 0)};
  stowage::zeroing_need& keys = needs.fields[3];
  keys.leaks = keys.located = true;
  keys.first_byte = 7 * 32;
  keys.last_byte = 8 * 32 - 1;
  keys.row_bytes = 32;
  needs.fields[4].leaks = needs.fields[4].located = true;
  needs.fields[4].last_byte = 7;
  needs.fields[5].leaks = needs.fields[5].jointly = true;
  CHECK(
      needs.text() ==
      "30 runs of the step, 4 patterns, 112 bytes of outputs\n"
      "attention.sums  rows   needed      the step clears 224 of 1024 bytes, and the outputs are others when "
      "it does not\n"
      "scores          full   waste       the step clears 64 of 64 bytes, and the outputs are the same when "
      "it does not\n"
      "queries         rows   waste       the step does not clear it, and nothing of it reaches the outputs\n"
      "keys            rows   too little  the step clears 128 of 256 bytes, and old content reaches the "
      "outputs all the same: bytes 224 to 255 (rows 7 to 7)\n"
      "load            never  lie         old content reaches the outputs: bytes 0 to 7\n"
      "flags           never  lie         old content reaches the outputs, but only together with that of "
      "other fields\n"
      "logits          never  not needed  old content does not reach the outputs\n"
      "ids             never  kept        not tested: its content is an input\n"
      "trace           never  absent      takes no memory\n");
  CHECK_FALSE(needs.clean());
  CHECK(needs.wasted_bytes() == 64);
  CHECK(needs.find("load") == &needs.fields[4]);
  CHECK(needs.find("loads") == nullptr);
}

TEST_CASE("zeroing report: without determinism there are no verdicts") {
  stowage::zeroing_needs needs;
  needs.deterministic = false;
  needs.fields = {need("scores", "full", verdict::unknown, 64, 64),
                  need("trace", "never", verdict::absent, 0, 0)};
  CHECK_FALSE(needs.clean());
  CHECK(needs.text() ==
        "0 runs of the step, 0 patterns, 0 bytes of outputs\n"
        "the step is not deterministic: two runs from the same memory gave different outputs\n"
        "scores  full   unknown\n"
        "trace   never  absent      takes no memory\n");
}

} // namespace
