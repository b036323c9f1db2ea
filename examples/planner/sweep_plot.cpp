#include "sweep_command.hpp"

#include "text_table.hpp"

#include <stowage/report/svg.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>

// The plot of a sweep: an area for each of the largest buffers and one for all others, stacked.

namespace planner {
namespace {

constexpr std::array colours{"#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2",
                             "#b279a2", "#eeca3b", "#9d755d", "#bab0ac"};
constexpr double left = 90;
constexpr double top = 50;
constexpr double width = 760;
constexpr double height = 420;

struct layer {
  std::string name;
  std::vector<std::size_t> bytes; // by value
};

std::vector<layer> layers_of(const sweep_report& report) {
  const std::vector<std::size_t> largest = largest_buffers(report, colours.size() - 1);
  std::vector<layer> layers;
  layer others{"others", {}};
  for (const std::vector<std::size_t>& bytes : report.bytes)
    others.bytes.push_back(std::accumulate(bytes.begin(), bytes.end(), std::size_t{0}));
  for (const std::size_t buffer : largest) {
    layer& each = layers.emplace_back(layer{std::string{report.names[buffer]}, {}});
    for (std::size_t at = 0; at < report.values.size(); ++at) {
      each.bytes.push_back(report.bytes[at][buffer]);
      others.bytes[at] -= report.bytes[at][buffer];
    }
  }
  layers.push_back(std::move(others));
  return layers;
}

/// A size for a tick of the axis: 1, 2 or 5 times a power of two bytes' unit, at most six of them.
double tick_of(double largest) {
  double step = 1;
  while (largest / step > 6) step *= 2;
  return step;
}

class plot_writer {
public:
  plot_writer(const sweep_report& report, std::string_view title)
      : report_(report), layers_(layers_of(report)), title_(title) {
    // By factors where the values are far apart, which is where adding would press most of them together.
    const double first = static_cast<double>(report.values.front());
    const double last = static_cast<double>(report.values.back());
    by_factors_ = first > 0 && last / first >= 32;
    largest_ = 1;
    for (std::size_t at = 0; at < report.values.size(); ++at) {
      double sum = 0;
      for (const layer& each : layers_) sum += static_cast<double>(each.bytes[at]);
      largest_ = std::max(largest_, sum);
    }
  }

  std::string text() {
    text_ =
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1080\" height=\"540\" viewBox=\"0 0 1080 540\" "
        "font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n"
        "<rect width=\"1080\" height=\"540\" fill=\"#fff\"/>\n";
    write(left, 26, title_, "font-size=\"16\" font-weight=\"bold\"");
    const double tick = tick_of(largest_);
    for (double bytes = 0; bytes <= largest_; bytes += tick) {
      const std::string at = fixed_text(y(bytes), 1);
      text_.append("<path d=\"M90 ").append(at).append("H850\" stroke=\"#ddd\"/>\n");
      write(left - 8, y(bytes) + 4, human_bytes(static_cast<std::size_t>(bytes)), "text-anchor=\"end\"");
    }
    std::vector<double> below(report_.values.size(), 0);
    for (std::size_t number = 0; number < layers_.size(); ++number) add_layer(number, below);
    add_values();
    write(left + width / 2, top + height + 44, report_.number, "text-anchor=\"middle\"");
    return text_ + "</svg>\n";
  }

private:
  double x(std::size_t at) const {
    const double first = static_cast<double>(report_.values.front());
    const double last = static_cast<double>(report_.values.back());
    if (last <= first) return left + width / 2;
    const double value = static_cast<double>(report_.values[at]);
    return left + width * (by_factors_ ? std::log(value / first) / std::log(last / first)
                                       : (value - first) / (last - first));
  }
  double y(double bytes) const { return top + height - height * bytes / largest_; }

  void write(double at_x, double at_y, std::string_view text, std::string_view attributes) {
    text_.append("<text x=\"").append(fixed_text(at_x, 1)).append("\" y=\"").append(fixed_text(at_y, 1));
    text_.append("\" ")
        .append(attributes)
        .append(">")
        .append(stowage::detail::markup_text(text))
        .append("</text>\n");
  }

  void add_layer(std::size_t number, std::vector<double>& below) {
    const layer& each = layers_[number];
    const bool single = report_.values.size() == 1; // a bar then
    std::string path;
    const auto point = [&path](double at_x, double at_y) {
      path.append(path.empty() ? "M" : "L")
          .append(fixed_text(at_x, 1))
          .append(" ")
          .append(fixed_text(at_y, 1));
    };
    for (std::size_t at = 0; at < below.size(); ++at) {
      const double above = y(below[at] + static_cast<double>(each.bytes[at]));
      point(single ? x(at) - 40 : x(at), above);
      if (single) point(x(at) + 40, above);
    }
    for (std::size_t at = below.size(); at-- > 0;) {
      if (single) point(x(at) + 40, y(below[at]));
      point(single ? x(at) - 40 : x(at), y(below[at]));
      below[at] += static_cast<double>(each.bytes[at]);
    }
    const std::size_t last = each.bytes.back();
    text_.append("<path d=\"").append(path).append("Z\" fill=\"").append(colours[number % colours.size()]);
    text_.append("\" stroke=\"#fff\" stroke-width=\"0.5\"><title>")
        .append(stowage::detail::markup_text(each.name));
    text_.append(": ").append(std::to_string(last)).append(" bytes at the end</title></path>\n");
    // The list beside the plot has the top layer first.
    const double row = top + 16 * static_cast<double>(layers_.size() - number);
    text_.append("<rect x=\"868\" y=\"")
        .append(fixed_text(row - 10, 1))
        .append("\" width=\"11\" height=\"11\" fill=\"");
    text_.append(colours[number % colours.size()]).append("\"/>\n");
    write(886, row, each.name + " " + human_bytes(last), "");
  }

  /// Values below the axis, as many as there is room for.
  void add_values() {
    double free_from = 0;
    for (std::size_t at = 0; at < report_.values.size(); ++at) {
      const std::string text = std::to_string(report_.values[at]);
      const double half = 4 * static_cast<double>(text.size());
      if (x(at) - half < free_from) continue;
      write(x(at), top + height + 20, text, "text-anchor=\"middle\"");
      free_from = x(at) + half + 8;
    }
  }

  const sweep_report& report_;
  std::vector<layer> layers_;
  std::string_view title_;
  std::string text_;
  double largest_ = 1;
  bool by_factors_ = false;
};

} // namespace

std::string sweep_as_svg(const sweep_report& report, std::string_view title) {
  return plot_writer(report, title).text();
}

} // namespace planner
