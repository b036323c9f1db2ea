// Reports of a field list of one's own: table, JSON, CSV, a picture and a page, without a library for any of
// them. The calls are those of print_and_draw, below; the rest checks what they wrote.

#include <stowage/report.hpp>
#include <stowage/stowage.hpp>

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

namespace {

struct decoder_params {
  stowage::tokens max_tokens;
  std::size_t hidden;
  bool speculative;
};
inline constexpr stowage::dim<&decoder_params::max_tokens> M{"M"};
inline constexpr stowage::dim<&decoder_params::hidden> hidden{};

struct decoder_buffers {
  stowage::buffer<stowage::bf16, stowage::shape<M, hidden>, stowage::zero::rows> states;
  stowage::buffer<float, stowage::shape<stowage::pad<16>(M), 4 * hidden>, stowage::zero::rows> inner;
  stowage::buffer<stowage::bf16, stowage::shape<M, hidden>, stowage::zero::never,
                  stowage::when<&decoder_params::speculative>>
      draft;
};

struct reports {
  std::string table, json, csv, picture, page;
};

// [reports]
reports print_and_draw(const stowage::plan<decoder_buffers, decoder_params>& plan) {
  const stowage::plan_report report = stowage::make_report(plan, stowage::tokens{7});
  return {.table = stowage::to_table(report) + stowage::totals_table(report),
          .json = stowage::to_json(report),
          .csv = stowage::to_csv(report, {.order = stowage::report_order::bytes}),
          .picture = stowage::to_svg(report, "My decoder"),
          .page = stowage::to_html(report, stowage::make_live_rows(plan), "My decoder")};
}
// [reports]

int failures = 0;

void check(bool condition, std::string_view what) {
  if (condition) return;
  ++failures;
  std::printf("wrong: %.*s\n", static_cast<int>(what.size()), what.data());
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Writes a file into the folder that the program is given.
void save(std::string_view folder, std::string_view name, const std::string& text) {
  const std::string path = std::string{folder}.append("/").append(name);
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  check(file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size(), path);
  if (file != nullptr) check(std::fclose(file) == 0, path);
}

} // namespace

int main(int argc, char** argv) {
  const auto plan = stowage::make_plan<decoder_buffers>(decoder_params{stowage::tokens{100}, 64, false});
  const reports written = print_and_draw(plan);
  std::fputs(written.table.c_str(), stdout);

  check(contains(written.table, "draft") &&
            contains(written.table, "absent: needs speculative (speculative = false)"),
        "the table says why a buffer is absent");
  check(contains(written.json, "\"name\": \"states\",\n      \"bytes\": 12800,"), "the JSON has the bytes");
  check(
      contains(written.csv, "inner,114688,1,12800,256,f32,\"[ceil16(M), 4*hidden]\",rows,16384,present,,\n"),
      "the CSV has a line a buffer");
  check(contains(written.picture, "<title>states: 12800 bytes at 0, bf16 [M, hidden], zero rows</title>"),
        "the picture names a buffer");
  check(contains(written.page, "<title>My decoder</title>") && !contains(written.page, "https:"),
        "the page loads nothing");
  if (argc > 1) {
    save(argv[1], "decoder.json", written.json);
    save(argv[1], "decoder.csv", written.csv);
    save(argv[1], "decoder.svg", written.picture);
    save(argv[1], "decoder.html", written.page);
  }
  return failures == 0 ? 0 : 1;
}
