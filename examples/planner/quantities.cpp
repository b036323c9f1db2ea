#include "quantities.hpp"

#include "options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <system_error>

namespace planner {
namespace {

bool all_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char each) { return each >= '0' && each <= '9'; });
}

std::string lower_case(std::string_view text) {
  std::string result{text};
  for (char& each : result) each = each >= 'A' && each <= 'Z' ? static_cast<char>(each - 'A' + 'a') : each;
  return result;
}

/// A decimal number at the front of a text, which loses it; not a number where there is none.
long double take_decimal(std::string_view& text) {
  const bool starts_well = !text.empty() && (all_digits(text.substr(0, 1)) || text.front() == '.');
  if (!starts_well) return std::numeric_limits<long double>::quiet_NaN();
  long double number = 0;
  const std::from_chars_result result =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::general);
  if (result.ec == std::errc::result_out_of_range) number = std::numeric_limits<long double>::infinity();
  if (result.ec == std::errc::invalid_argument) return std::numeric_limits<long double>::quiet_NaN();
  text.remove_prefix(static_cast<std::size_t>(result.ptr - text.data()));
  return number;
}

struct unit {
  std::string_view name;
  long double bytes;
};

constexpr unit units[] = {
    {"", 1},          {"b", 1},     {"kib", 0x1p10L}, {"mib", 0x1p20L}, {"gib", 0x1p30L},
    {"tib", 0x1p40L}, {"kb", 1e3L}, {"mb", 1e6L},     {"gb", 1e9L},     {"tb", 1e12L},
};

} // namespace

std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 40;
  std::string result{"'"};
  result.append(text.substr(0, longest)).append(text.size() > longest ? "...'" : "'");
  return result;
}

void refuse_value(std::string_view option, std::string_view text, std::string_view why,
                  std::string_view wanted) {
  throw option_error(std::string{option}
                         .append(": is ")
                         .append(in_quotes(text))
                         .append(why)
                         .append("; wanted ")
                         .append(wanted));
}

std::int64_t parse_number(std::string_view option, std::string_view text) {
  constexpr std::string_view wanted = "an integer from 0 to 9223372036854775807";
  static_assert(std::numeric_limits<std::int64_t>::max() == 9223372036854775807);
  if (!all_digits(text)) {
    const bool negative = text.starts_with('-') && all_digits(text.substr(1));
    refuse_value(option, text, negative ? " (negative)" : "", wanted);
  }
  std::int64_t number = 0;
  const std::from_chars_result result = std::from_chars(text.data(), text.data() + text.size(), number);
  if (result.ec != std::errc{}) refuse_value(option, text, " (too large)", wanted);
  return number;
}

std::uint64_t parse_bytes(std::string_view option, std::string_view text) {
  constexpr std::string_view wanted = "bytes, such as 8GiB, 512MiB, 1.5GB, 1e9 or 1073741824";
  std::string_view rest = text;
  const long double number = take_decimal(rest);
  if (std::isnan(number)) refuse_value(option, text, text.starts_with('-') ? " (negative)" : "", wanted);
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  const std::string name = lower_case(rest);
  const auto* const found = std::find_if(std::begin(units), std::end(units),
                                         [&name](const unit& each) { return each.name == name; });
  if (found == std::end(units)) {
    const std::string why = " (no unit " + in_quotes(rest) + ")";
    refuse_value(option, text, why, "B, KiB, MiB, GiB, TiB, kB, MB, GB or TB behind the number");
  }
  const long double bytes = std::floor(number * found->bytes);
  if (!(bytes < 0x1p63L)) refuse_value(option, text, " (too large)", "at most 9223372036854775807 bytes");
  return static_cast<std::uint64_t>(bytes);
}

long double parse_percent(std::string_view option, std::string_view text) {
  std::string_view rest = text;
  const long double number = take_decimal(rest);
  if (std::isnan(number) || std::isinf(number) || (!rest.empty() && rest != "%")) {
    refuse_value(option, text, text.starts_with('-') ? " (negative)" : "", "a share such as 5% or 0.5%");
  }
  if (number > 1e18L) refuse_value(option, text, " (too large)", "a share that a slab can grow by");
  return number;
}

std::vector<std::int64_t> parse_range(std::string_view option, std::string_view text) {
  constexpr std::string_view wanted = "a range such as 1:16384:x2 or 0:4096:512, or a list such as 1,2,64";
  std::vector<std::string_view> pieces;
  const char separator = text.find(':') != std::string_view::npos ? ':' : ',';
  std::string_view rest = text;
  for (std::size_t at = rest.find(separator); at != std::string_view::npos; at = rest.find(separator)) {
    pieces.push_back(rest.substr(0, at));
    rest.remove_prefix(at + 1);
    if (pieces.size() > most_range_values) break;
  }
  pieces.push_back(rest);

  std::vector<std::int64_t> values;
  const auto refuse_long = [&] {
    refuse_value(option, text, " (too many values)", "at most " + std::to_string(most_range_values));
  };
  if (separator == ',') {
    if (pieces.size() > most_range_values) refuse_long();
    for (const std::string_view piece : pieces) values.push_back(parse_number(option, piece));
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return values;
  }
  if (pieces.size() != 3) refuse_value(option, text, "", wanted);
  const std::int64_t first = parse_number(option, pieces[0]);
  const std::int64_t last = parse_number(option, pieces[1]);
  std::string_view step_text = pieces[2];
  const bool multiplies = step_text.starts_with('x');
  if (multiplies || step_text.starts_with('+')) step_text.remove_prefix(1);
  const std::int64_t step = parse_number(option, step_text);
  if (first > last) refuse_value(option, text, " (the start is behind the end)", wanted);
  if (multiplies && (step < 2 || first == 0))
    refuse_value(option, text, " (multiplying never gets there)", "a factor from 2 and a start from 1");
  if (!multiplies && step < 1) refuse_value(option, text, " (adding never gets there)", "a step from 1");
  for (std::int64_t value = first;;) {
    values.push_back(value);
    if (values.size() > most_range_values) refuse_long();
    if (multiplies ? value > last / step : value > last - step) break;
    value = multiplies ? value * step : value + step;
  }
  return values;
}

} // namespace planner
