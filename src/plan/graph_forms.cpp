// SPDX-License-Identifier: Apache-2.0
// A model's graph as tables, JSON, SVG and DOT.
#include "trireme/base/counted.hpp"
#include "trireme/base/format.hpp"
#include "trireme/plan/graph.hpp"

#include <algorithm>

namespace trireme::plan {
namespace {

using base::format;
using layout::Axis;

std::string shape_text(const layout::Shape& shape) {
  return format("[{}]", base::join(shape, ", "));
}

std::string count_text(std::int64_t count) {
  return base::count_text(static_cast<double>(count));
}

/// "embedding, layers 0-7", "layers 8-15, head".
std::string content_text(const GraphChunk& chunk) {
  std::vector<std::string> parts;
  if (chunk.embeds) parts.emplace_back("embedding");
  const int count = chunk.layers.end - chunk.layers.begin;
  if (count == 1) parts.push_back(format("layer {}", chunk.layers.begin));
  if (count > 1) parts.push_back(format("layers {}-{}", chunk.layers.begin, chunk.layers.end - 1));
  if (chunk.has_head) parts.emplace_back("head");
  return format("{}", base::join(parts, ", "));
}

std::string place_text(const ModelGraph& graph, const GraphChunk& chunk) {
  return graph.options.virtual_stages == 1
             ? format("stage {}", chunk.stage)
             : format("stage {}.{}", chunk.stage, chunk.virtual_stage);
}

std::string flops_text(double flops) {
  if (flops < 1e6) return format("{:.1f} kFLOP", flops / 1e3);
  if (flops < 1e9) return format("{:.1f} MFLOP", flops / 1e6);
  return format("{:.1f} GFLOP", flops / 1e9);
}

/// Parameters of every layer are alike: "attention.q.weight".
std::string name_in_layer(const GraphParameter& parameter) {
  const auto prefix = parameter.name.find('.', parameter.name.find('.') + 1);
  return prefix == std::string::npos ? parameter.name : parameter.name.substr(prefix + 1);
}

std::string title_of(const ModelGraph& graph) {
  const auto& options = graph.options;
  return format("{}, {} parameters, {} a token; {} on {}", model::name(options.model.architecture),
                count_text(graph.parameters()), flops_text(graph.flops_per_token()),
                options.mesh.text(), base::counted(options.mesh.world_size(), "rank"));
}

bool crosses(const GraphChunk& from, const GraphChunk& to) {
  return from.stage != to.stage;
}

/// What goes along the edge between two chunks.
std::string edge_text(const ModelGraph& graph) {
  return format("{} {}", shape_text(graph.message), base::bytes_text(graph.message_bytes));
}

}  // namespace

std::string graph_text(const ModelGraph& graph) {
  const auto& options = graph.options;
  auto text = title_of(graph) + "\n\n";
  text += format("{:<12}{:<28}{:>16}{:>16}{:>16}\n", "chunk", "holds", "parameters", "on a rank",
                 "a token");
  for (const auto& chunk : graph.chunks) {
    text += format("{:<12}{:<28}{:>16}{:>16}{:>16}\n", place_text(graph, chunk),
                   content_text(chunk), count_text(chunk.parameters),
                   count_text(chunk.rank_parameters), flops_text(chunk.flops_per_token));
  }
  if (graph.chunks.size() > 1) {
    text += format(
        "\nbetween chunks: {} {} a micro-batch and rank, and its gradient back; {} "
        "micro-batches a step\n",
        device::name(options.dtype), edge_text(graph), options.micro_batches);
  }
  text += format("\n{:<44}{:>16}{:>16}\n", "a layer", "shape", "on a rank");
  for (const auto& parameter : graph.layer) {
    text += format("{:<44}{:>16}{:>16}\n", name_in_layer(parameter), shape_text(parameter.shape),
                   shape_text(parameter.rank_shape));
  }
  return text;
}

base::Json graph_json(const ModelGraph& graph) {
  base::Json mesh;
  for (const auto& axis : graph.options.mesh.axes()) {
    mesh[layout::short_name(axis.axis)] = axis.degree;
  }
  base::Json chunks = base::Json::array();
  for (const auto& chunk : graph.chunks) {
    chunks.push_back({{"stage", chunk.stage},
                      {"virtual_stage", chunk.virtual_stage},
                      {"first_layer", chunk.layers.begin},
                      {"layers", chunk.layers.end - chunk.layers.begin},
                      {"embedding", chunk.embeds},
                      {"head", chunk.has_head},
                      {"parameters", chunk.parameters},
                      {"rank_parameters", chunk.rank_parameters},
                      {"flops_per_token", chunk.flops_per_token}});
  }
  base::Json layer = base::Json::array();
  for (const auto& parameter : graph.layer) {
    layer.push_back({{"name", parameter.name},
                     {"shape", parameter.shape},
                     {"rank_shape", parameter.rank_shape}});
  }
  return {{"architecture", model::name(graph.options.model.architecture)},
          {"mesh", mesh},
          {"parameters", graph.parameters()},
          {"flops_per_token", graph.flops_per_token()},
          {"message", {{"shape", graph.message}, {"bytes", graph.message_bytes}}},
          {"chunks", chunks},
          {"layer", layer}};
}

std::string graph_dot(const ModelGraph& graph) {
  auto text = format("digraph model {{\n  label=\"{}\";\n  rankdir=LR;\n  node [shape=box];\n",
                     title_of(graph));
  for (std::size_t index = 0; index < graph.chunks.size(); ++index) {
    const auto& chunk = graph.chunks[index];
    text +=
        format("  chunk{} [label=\"{}\\n{}\\n{} parameters, {} on a rank\\n{} a token\"];\n", index,
               place_text(graph, chunk), content_text(chunk), count_text(chunk.parameters),
               count_text(chunk.rank_parameters), flops_text(chunk.flops_per_token));
    if (index == 0) continue;
    text += format("  chunk{} -> chunk{} [label=\"{}\"{}];\n", index - 1, index, edge_text(graph),
                   crosses(graph.chunks[index - 1], chunk) ? "" : ", style=dashed");
  }
  return text + "}\n";
}

namespace {

constexpr double box_width = 210;
constexpr double box_height = 104;
constexpr double column = 330;
constexpr double row = 140;
constexpr double margin = 24;
constexpr double top = 64;
constexpr double line = 18;

constexpr const char* style =
    "<style>text{font-family:\"DejaVu Sans\",Verdana,sans-serif;font-size:12px;fill:#222}"
    ".title{font-size:15px;font-weight:bold}.strong{font-weight:bold}.edge{font-size:11px}"
    ".box{fill:#deebf7;stroke:#3182bd}.arrow{stroke:#555;fill:none;marker-end:url(#tip)}</style>\n"
    "<defs><marker id=\"tip\" markerWidth=\"8\" markerHeight=\"8\" refX=\"7\" refY=\"4\" "
    "orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#555\"/></marker></defs>\n";

std::string words(double x, double y, const char* kind, const std::string& text) {
  return format("<text x=\"{:.0f}\" y=\"{:.0f}\" class=\"{}\">{}</text>\n", x, y, kind, text);
}

std::string box(const ModelGraph& graph, const GraphChunk& chunk, double x, double y) {
  auto svg = format(
      "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\" rx=\"6\" "
      "class=\"box\"/>\n",
      x, y, box_width, box_height);
  svg += words(x + 10, y + 20, "strong", place_text(graph, chunk));
  svg += words(x + 10, y + 20 + line, "plain", content_text(chunk));
  svg += words(x + 10, y + 20 + 2 * line, "plain",
               format("{} parameters", count_text(chunk.parameters)));
  svg += words(x + 10, y + 20 + 3 * line, "plain",
               format("{} on a rank", count_text(chunk.rank_parameters)));
  return svg + words(x + 10, y + 20 + 4 * line, "plain",
                     format("{} a token", flops_text(chunk.flops_per_token)));
}

std::string layer_table(const ModelGraph& graph, double y) {
  auto svg = words(margin, y, "strong", "A layer") + words(margin + 240, y, "strong", "shape") +
             words(margin + 380, y, "strong", "on a rank");
  for (const auto& parameter : graph.layer) {
    y += line;
    svg += words(margin, y, "plain", name_in_layer(parameter));
    svg += words(margin + 240, y, "plain", shape_text(parameter.shape));
    svg += words(margin + 380, y, "plain", shape_text(parameter.rank_shape));
  }
  return svg;
}

}  // namespace

std::string graph_svg(const ModelGraph& graph) {
  const auto stages = static_cast<double>(graph.options.mesh.degree(Axis::pipeline));
  const auto virtual_stages = static_cast<double>(graph.options.virtual_stages);
  // A stage below the one before, a virtual stage right of it.
  const auto x_of = [](const GraphChunk& chunk) { return margin + chunk.virtual_stage * column; };
  const auto y_of = [](const GraphChunk& chunk) { return top + chunk.stage * row; };
  std::string body;
  for (std::size_t index = 0; index < graph.chunks.size(); ++index) {
    const auto& chunk = graph.chunks[index];
    body += box(graph, chunk, x_of(chunk), y_of(chunk));
    if (index == 0) continue;
    const auto& before = graph.chunks[index - 1];
    const bool wraps = before.virtual_stage != chunk.virtual_stage;
    const double from_x = wraps ? x_of(before) + box_width : x_of(before) + box_width / 2;
    const double from_y = wraps ? y_of(before) + box_height / 2 : y_of(before) + box_height;
    const double to_x = wraps ? x_of(chunk) : x_of(chunk) + box_width / 2;
    const double to_y = wraps ? y_of(chunk) + box_height / 2 : y_of(chunk);
    // To the next column through the gap right of the labels.
    const auto bend = wraps ? format("H{:.0f}V{:.0f}H{:.0f}", to_x - 26, to_y, to_x)
                            : format("L{:.0f} {:.0f}", to_x, to_y);
    body += format("<path d=\"M{:.0f} {:.0f}{}\" class=\"arrow\"/>\n", from_x, from_y, bend);
    if (!wraps) body += words(to_x + 8, to_y - 10, "edge", edge_text(graph));
  }
  const double table_top = top + stages * row + 16;
  const double height = table_top + line * static_cast<double>(graph.layer.size() + 1) + margin;
  const double width =
      std::max(2 * margin + (virtual_stages - 1) * column + box_width + 140, 720.0);
  const auto title = title_of(graph);
  return format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" role=\"img\">\n<title>{2}</title>\n{3}<rect "
      "width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{4}{5}{6}</svg>\n",
      width, height, title, style, words(margin, 32, "title", title), body,
      layer_table(graph, table_top));
}

}  // namespace trireme::plan
