#include <planner/options.hpp>
#include <planner/quantities.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace {

template <class Call> std::string refusal_of(const Call& call) {
  try {
    call();
  } catch (const planner::option_error& error) {
    return error.what();
  }
  return "not refused";
}

TEST_CASE("bytes") {
  const auto bytes = [](const char* text) { return planner::parse_bytes("--budget", text); };
  CHECK(bytes("0") == 0);
  CHECK(bytes("1073741824") == 1073741824);
  CHECK(bytes("8GiB") == 8589934592);
  CHECK(bytes("8gib") == 8589934592);
  CHECK(bytes("8 GiB") == 8589934592);
  CHECK(bytes("512MiB") == 536870912);
  CHECK(bytes("1.5KiB") == 1536);
  CHECK(bytes("0.3KiB") == 307);
  CHECK(bytes("2TiB") == 2199023255552);
  CHECK(bytes("3kB") == 3000);
  CHECK(bytes("80GB") == 80000000000);
  CHECK(bytes("1e9") == 1000000000);
  CHECK(bytes("7B") == 7);
  CHECK(bytes("9223372036854775807") == 9223372036854775807);

  const auto refusal = [&bytes](const char* text) { return refusal_of([&] { bytes(text); }); };
  const std::string wanted = "; wanted bytes, such as 8GiB, 512MiB, 1.5GB, 1e9 or 1073741824";
  CHECK(refusal("") == "--budget: is ''" + wanted);
  CHECK(refusal("GiB") == "--budget: is 'GiB'" + wanted);
  CHECK(refusal("-1") == "--budget: is '-1' (negative)" + wanted);
  CHECK(refusal("nan") == "--budget: is 'nan'" + wanted);
  CHECK(refusal("inf") == "--budget: is 'inf'" + wanted);
  CHECK(refusal("8G") ==
        "--budget: is '8G' (no unit 'G'); wanted B, KiB, MiB, GiB, TiB, kB, MB, GB or TB behind the number");
  CHECK(refusal("8GiB!") == "--budget: is '8GiB!' (no unit 'GiB!'); wanted B, KiB, MiB, GiB, TiB, kB, MB, GB "
                            "or TB behind the number");
  for (const char* const text : {"9223372036854775808", "1e19", "1e99999", "8388608TiB"}) {
    CAPTURE(text);
    CHECK(refusal(text) ==
          "--budget: is '" + std::string{text} + "' (too large); wanted at most 9223372036854775807 bytes");
  }
}

TEST_CASE("percent") {
  const auto percent = [](const char* text) { return planner::parse_percent("--fail-above", text); };
  CHECK(percent("5%") == 5.0);
  CHECK(percent("5") == 5.0);
  CHECK(percent("0.5%") == 0.5);
  CHECK(percent("0") == 0.0);
  const auto refusal = [&percent](const char* text) { return refusal_of([&] { percent(text); }); };
  CHECK(refusal("1e400%") == "--fail-above: is '1e400%' (too large); wanted a share that a slab can grow by");
  CHECK(refusal("five") == "--fail-above: is 'five'; wanted a share such as 5% or 0.5%");
  CHECK(refusal("-5%") == "--fail-above: is '-5%' (negative); wanted a share such as 5% or 0.5%");
  CHECK(refusal("5 %") == "--fail-above: is '5 %'; wanted a share such as 5% or 0.5%");
}

TEST_CASE("ranges") {
  using values = std::vector<std::int64_t>;
  const auto range = [](const char* text) { return planner::parse_range("--tokens", text); };
  CHECK(range("1:16:x2") == values{1, 2, 4, 8, 16});
  CHECK(range("1:20:x2") == values{1, 2, 4, 8, 16});
  CHECK(range("3:3:x2") == values{3});
  CHECK(range("0:10:5") == values{0, 5, 10});
  CHECK(range("0:9:+5") == values{0, 5});
  CHECK(range("64,1,2,2") == values{1, 2, 64});
  CHECK(range("9223372036854775806:9223372036854775807:1") ==
        values{9223372036854775806, 9223372036854775807});
  CHECK(range("1:9223372036854775807:x3037000500") == values{1, 3037000500});

  const auto refusal = [&range](const char* text) { return refusal_of([&] { range(text); }); };
  const std::string wanted = "; wanted a range such as 1:16384:x2 or 0:4096:512, or a list such as 1,2,64";
  CHECK(refusal("1:2") == "--tokens: is '1:2'" + wanted);
  CHECK(refusal("1:2:3:4") == "--tokens: is '1:2:3:4'" + wanted);
  CHECK(refusal("5:4:1") == "--tokens: is '5:4:1' (the start is behind the end)" + wanted);
  CHECK(refusal("1:8:x1") ==
        "--tokens: is '1:8:x1' (multiplying never gets there); wanted a factor from 2 and a start from 1");
  CHECK(refusal("0:8:x2") ==
        "--tokens: is '0:8:x2' (multiplying never gets there); wanted a factor from 2 and a start from 1");
  CHECK(refusal("0:8:0") == "--tokens: is '0:8:0' (adding never gets there); wanted a step from 1");
  CHECK(refusal("0:1000:1") == "--tokens: is '0:1000:1' (too many values); wanted at most 1000");
  CHECK(refusal("1,,2") == "--tokens: is ''; wanted an integer from 0 to 9223372036854775807");
}

} // namespace
