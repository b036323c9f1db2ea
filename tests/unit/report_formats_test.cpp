#include "report_fields.hpp"

#include <stowage/regions.hpp>
#include <stowage/report.hpp>
#include <stowage/stowage.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using namespace reported;

stowage::plan_report small_report() {
  return stowage::make_report(stowage::make_plan<fields>(params{tokens{3}, 5, true}), tokens{1});
}

TEST_CASE("report: why a field is not what its shape says, with the values that decide") {
  const auto plan = stowage::make_plan<fields>(params{tokens{3}, 5, false});
  CHECK(report_field(plan, 0).reason().empty());
  CHECK(report_field(plan, 1).condition_values == "hidden = 5, mamba = false");
  CHECK(report_field(plan, 1).reason() == "absent: needs hidden > 4 && mamba (hidden = 5, mamba = false)");
  CHECK(report_field(plan, 3).reason() ==
        "absent: needs (mamba || mla) && hidden > 3 (mamba = false, mla = false, hidden = 5)");
  const auto empty = stowage::make_plan<fields>(params{tokens{0}, 0, true});
  CHECK(report_field(empty, 0).reason() == "empty: bf16 [ceil16(M), 2*hidden] has no bytes");
}

TEST_CASE("report: table") {
  CHECK(stowage::to_table(small_report()) == //
        R"--(buffer     bytes          share  offset  zero   row pass  element and shape
states       320  320 B  84.2 %       0  rows        320  bf16 [ceil16(M), 2*hidden]
carved        44   44 B  11.6 %     512  full         44  regions {keys bf16 [M, hidden], either (f32 [M] | bf16 [2*M])}
inner.one      4    4 B   1.1 %     768  never         0  i32 []
last          12   12 B   3.2 %    1024  never         0  f32 [M]
)--");
  CHECK(stowage::totals_table(small_report()) == "buffers  4 of 4 take memory\n"
                                                 "total    380 bytes\n"
                                                 "slab     1036 bytes (1.0 KiB)\n"
                                                 "hash     " +
                                                     small_report().hash_text() + "\n");
}

TEST_CASE("report: views select, order and group") {
  const stowage::plan_report report = small_report();
  using order = std::vector<std::size_t>;
  CHECK(stowage::select_fields(report, {}) == order{0, 1, 2, 3});
  CHECK(stowage::select_fields(report, {.order = stowage::report_order::bytes}) == order{0, 1, 3, 2});
  CHECK(stowage::select_fields(report, {.order = stowage::report_order::name}) == order{1, 2, 3, 0});
  CHECK(stowage::select_fields(report, {.only = stowage::report_filter::absent}) == order{});
  CHECK(stowage::select_fields(report, {.largest = 2}) == order{0, 1});
  CHECK(stowage::select_fields(report, {.order = stowage::report_order::name, .largest = 2}) == order{1, 0});
  CHECK(stowage::to_table(report, {.view = {.groups = stowage::report_groups::prefix, .largest = 3}}) == //
        R"--(buffer     bytes          share  offset  zero   row pass  element and shape
(top)        376  376 B  98.9 %          3 buffers
states       320  320 B  84.2 %       0  rows        320  bf16 [ceil16(M), 2*hidden]
carved        44   44 B  11.6 %     512  full         44  regions {keys bf16 [M, hidden], either (f32 [M] | bf16 [2*M])}
last          12   12 B   3.2 %    1024  never         0  f32 [M]
not shown      4    4 B   1.1 %          1 buffer
)--");
  const std::vector<stowage::report_group> groups =
      stowage::group_fields(report, {.groups = stowage::report_groups::policy});
  REQUIRE(groups.size() == 3);
  CHECK(groups[0].name == "rows");
  CHECK(groups[2].name == "never");
  CHECK(groups[2].bytes == 16);
}

TEST_CASE("report: colours only where they are wanted") {
  const stowage::plan_report report = small_report();
  CHECK(stowage::to_table(report).find('\x1b') == std::string::npos);
  const std::string coloured = stowage::to_table(report, {.colour = true});
  CHECK(coloured.find("\x1b[32mrows\x1b[0m") != std::string::npos);
  CHECK(stowage::styled("x", stowage::text_style::plain) == "x");
}

TEST_CASE("report: JSON") {
  const auto report = stowage::make_report(stowage::make_plan<fields>(params{tokens{3}, 5, false}));
  CHECK(stowage::to_json(report, {.only = stowage::report_filter::absent, .largest = 1}) == R"--({
  "buffers": [
    {
      "name": "carved",
      "bytes": 0,
      "present": false,
      "offset": null,
      "alignment": 256,
      "element": "regions",
      "shape": "{keys bf16 [M, hidden], either (f32 [M] | bf16 [2*M])}",
      "zero": "full",
      "reason": "absent: needs hidden > 4 && mamba (hidden = 5, mamba = false)"
    }
  ],
  "total_bytes": 320,
  "slab_bytes": 320,
  "hash": ")--" + report.hash_text() + "\"\n}\n");
  CHECK(stowage::detail::json_string("a\"b\\c\n\x7f") == R"--("a\"b\\c\u000a\u007f")--");
}

TEST_CASE("report: CSV") {
  CHECK(stowage::to_csv(small_report(), {.groups = stowage::report_groups::policy, .largest = 2}) ==
        R"--(name,bytes,copies,offset,alignment,element,shape,zero,zero_bytes,state,condition,values,group
states,320,1,0,256,bf16,"[ceil16(M), 2*hidden]",rows,320,present,,,rows
carved,44,1,512,256,regions,"{keys bf16 [M, hidden], either (f32 [M] | bf16 [2*M])}",full,44,present,hidden > 4 && mamba,"hidden = 5, mamba = true",full
)--");
  CHECK(stowage::detail::csv_cell("say \"x\"") == "\"say \"\"x\"\"\"");
}

TEST_CASE("report: SVG has a tooltip a buffer, and no markup of a name's own") {
  const std::string picture = stowage::to_svg(small_report(), "<b>&");
  CHECK(picture.find(">&lt;b&gt;&amp;</text>") != std::string::npos);
  CHECK(picture.find("<title>carved: 44 bytes at 512, regions {keys bf16 [M, hidden], either (f32 [M] | bf16 "
                     "[2*M])}, zero full</title>") != std::string::npos);
  // states: 320 of 1036 bytes on 1160 units
  CHECK(picture.find("<rect x=\"0.00\" y=\"0\" width=\"358.30\"") != std::string::npos);
}

TEST_CASE("report: live rows are those of the row passes") {
  const auto plan = stowage::make_plan<fields>(params{tokens{3}, 5, true});
  CHECK(stowage::token_capacity(plan) == 1); // ceil16(1) rows are all rows
  const stowage::live_rows live = stowage::make_live_rows(plan, 0);
  CHECK(live.tokens == std::vector<std::size_t>{0, 1});
  CHECK(live.chosen == 0);
  using ranges = std::vector<stowage::live_rows::range>;
  CHECK(live.ranges[0][0] == ranges{});
  CHECK(live.ranges[0][1] == ranges{{0, 44}}); // full: every pass clears it
  CHECK(live.ranges[1][0] == ranges{{0, 320}});
  CHECK(live.ranges[1][3] == ranges{});
  CHECK(stowage::detail::token_steps(100, 50) ==
        std::vector<std::size_t>{0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
                                 32, 36, 40, 44, 48, 50, 52, 56, 60, 64, 72, 80, 88, 96, 99, 100});
}

TEST_CASE("report: a page has its data, and nothing ends the script early") {
  const auto plan = stowage::make_plan<fields>(params{tokens{3}, 5, true});
  const std::string page =
      stowage::to_html(stowage::make_report(plan), stowage::make_live_rows(plan), "</script>");
  CHECK(page.find("<title>&lt;/script&gt;</title>") != std::string::npos);
  CHECK(page.find("\"title\": \"\\u003c/script>\"") != std::string::npos);
  CHECK(page.find("\"live\": [[0,44],null]") != std::string::npos);
  CHECK(page.find("http") == std::string::npos); // it loads nothing
}

TEST_CASE("report: numbers of bytes") {
  CHECK(stowage::human_bytes(1023) == "1023 B");
  CHECK(stowage::human_bytes(1048575) == "1.0 MiB");
  CHECK(stowage::human_bytes(2415919104) == "2.2 GiB"); // 2.25: a half to the even side
  CHECK(stowage::human_bytes(18446744073709551615U) == "16.0 EiB");
  CHECK(stowage::share_text(1, 3) == "33.3 %");
  CHECK(stowage::share_text(0, 0) == "-");
}

} // namespace
