// SPDX-License-Identifier: Apache-2.0
// A model's graph as tables, JSON, SVG and DOT.
#include "trireme/base/counted.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/svg.hpp"
#include "trireme/plan/graph.hpp"

#include <algorithm>
#include <array>
#include <string_view>

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
  return graph.virtual_stages == 1 ? format("stage {}", chunk.stage)
                                   : format("stage {}.{}", chunk.stage, chunk.virtual_stage);
}

std::string flops_text(double flops) {
  if (flops < 1e6) return format("{:.1f} kFLOP", flops / 1e3);
  if (flops < 1e9) return format("{:.1f} MFLOP", flops / 1e6);
  return format("{:.1f} GFLOP", flops / 1e9);
}

/// Parameters of every layer are alike: "attention.q.weight"; others have their whole names.
std::string short_name(const GraphParameter& parameter) {
  constexpr std::string_view layers = "layers.";
  if (!parameter.name.starts_with(layers)) return parameter.name;
  return parameter.name.substr(parameter.name.find('.', layers.size()) + 1);
}

/// A row of the table of shapes; the first of a part of the model has its title alone.
struct ShapeRow {
  std::string name;
  std::string shape;
  std::string rank_shape;
  bool is_title = false;
};

std::vector<ShapeRow> shape_rows(const ModelGraph& graph) {
  std::vector<ShapeRow> rows;
  const auto add = [&rows](const char* title, const std::vector<GraphParameter>& parameters) {
    if (parameters.empty()) return;
    rows.push_back({title, "shape", "on a rank", true});
    for (const auto& parameter : parameters) {
      rows.push_back(
          {short_name(parameter), shape_text(parameter.shape), shape_text(parameter.rank_shape)});
    }
  };
  add("embedding", graph.embedding);
  add("a layer", graph.layer);
  add(graph.model.tie_word_embeddings ? "head, besides the tied table" : "head", graph.head);
  return rows;
}

std::string title_of(const ModelGraph& graph) {
  return format("{}, {} parameters, {} a token; {} on {}", model::name(graph.model.architecture),
                count_text(graph.parameters()), flops_text(graph.flops_per_token()),
                graph.mesh.text(), base::counted(graph.mesh.world_size(), "rank"));
}

bool crosses(const GraphChunk& from, const GraphChunk& to) {
  return from.stage != to.stage;
}

/// Tensors that go along the edge between two chunks.
std::string edge_text(const ModelGraph& graph) {
  return format("{} {}", shape_text(graph.message), base::bytes_text(graph.message_bytes));
}

}  // namespace

std::string graph_text(const ModelGraph& graph) {
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
        device::name(graph.dtype), edge_text(graph), graph.micro_batches);
  }
  for (const auto& row : shape_rows(graph)) {
    text += format("{}{:<44}{:>16}{:>16}\n", row.is_title ? "\n" : "", row.name, row.shape,
                   row.rank_shape);
  }
  return text;
}

base::Json graph_json(const ModelGraph& graph) {
  base::Json mesh;
  for (const auto& axis : graph.mesh.axes()) {
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
  const auto list = [](const std::vector<GraphParameter>& parameters) {
    base::Json json = base::Json::array();
    for (const auto& parameter : parameters) {
      json.push_back({{"name", parameter.name},
                      {"shape", parameter.shape},
                      {"rank_shape", parameter.rank_shape}});
    }
    return json;
  };
  return {{"architecture", model::name(graph.model.architecture)},
          {"mesh", mesh},
          {"parameters", graph.parameters()},
          {"flops_per_token", graph.flops_per_token()},
          {"message", {{"shape", graph.message}, {"bytes", graph.message_bytes}}},
          {"chunks", chunks},
          {"embedding", list(graph.embedding)},
          {"layer", list(graph.layer)},
          {"head", list(graph.head)}};
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

constexpr double least_box_width = 210;
constexpr double box_height = 104;
constexpr double padding = 10;
constexpr double row_height = 140;
constexpr double margin = 24;
constexpr double top = 64;
constexpr double line = 18;
/// Between columns of virtual stages: the labels of messages, and a bend right of them.
constexpr double least_gap = 40;

constexpr base::TextStyle title_style{"title", 15, base::TextAnchor::start, true};
constexpr base::TextStyle plain_style{"plain", 12};
constexpr base::TextStyle strong_style{"strong", 12, base::TextAnchor::start, true};
constexpr base::TextStyle edge_style{"edge", 11};

constexpr const char* head =
    "<style>.box{fill:#deebf7;stroke:#3182bd}.arrow{stroke:#555;fill:none;marker-end:url(#tip)}"
    "</style>\n<defs><marker id=\"tip\" markerWidth=\"8\" markerHeight=\"8\" refX=\"7\" refY=\"4\" "
    "orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#555\"/></marker></defs>\n";

std::array<std::string, 5> box_lines(const ModelGraph& graph, const GraphChunk& chunk) {
  return {place_text(graph, chunk), content_text(chunk),
          format("{} parameters", count_text(chunk.parameters)),
          format("{} on a rank", count_text(chunk.rank_parameters)),
          format("{} a token", flops_text(chunk.flops_per_token))};
}

/// Where the chunks stand: a stage below the one before, a virtual stage right of it.
struct Columns {
  double box_width = least_box_width;
  double distance = 0;

  double x(const GraphChunk& chunk) const { return margin + chunk.virtual_stage * distance; }
  static double y(const GraphChunk& chunk) { return top + chunk.stage * row_height; }
};

Columns columns_of(const ModelGraph& graph) {
  Columns columns;
  for (const auto& chunk : graph.chunks) {
    for (const auto& words : box_lines(graph, chunk)) {
      columns.box_width =
          std::max(columns.box_width, 2 * padding + base::text_width(words, strong_style.size));
    }
  }
  // Labels begin right of the middle of a box.
  const double label = 8 + base::text_width(edge_text(graph), edge_style.size);
  columns.distance =
      std::max(columns.box_width + least_gap, columns.box_width / 2 + label + least_gap);
  return columns;
}

void draw_box(base::SvgPicture& picture, const ModelGraph& graph, const GraphChunk& chunk,
              const Columns& columns) {
  const double x = columns.x(chunk);
  const double y = Columns::y(chunk);
  picture.add(
      format("<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\" rx=\"6\" "
             "class=\"box\"/>\n",
             x, y, columns.box_width, box_height));
  double baseline = y + 20;
  for (const auto& words : box_lines(graph, chunk)) {
    const bool is_first = baseline == y + 20;
    picture.text(x + padding, baseline, is_first ? strong_style : plain_style, words);
    baseline += line;
  }
}

void draw_edge(base::SvgPicture& picture, const ModelGraph& graph, std::size_t to,
               const Columns& columns) {
  const auto& before = graph.chunks[to - 1];
  const auto& chunk = graph.chunks[to];
  const bool wraps = before.virtual_stage != chunk.virtual_stage;
  const double from_x = columns.x(before) + columns.box_width / (wraps ? 1 : 2);
  const double to_x = columns.x(chunk) + (wraps ? 0 : columns.box_width / 2);
  // Down from the lower edge of the box before, or up from its upper one (zb-v).
  const bool rises = chunk.stage < before.stage;
  const double leaves = wraps ? box_height / 2 : rises ? 0 : box_height;
  const double from_y = Columns::y(before) + leaves;
  const double to_y = Columns::y(chunk) + box_height - leaves;
  // To the next column through the gap right of the labels.
  const auto bend = wraps ? format("H{:.0f}V{:.0f}H{:.0f}", to_x - 26, to_y, to_x)
                          : format("L{:.0f} {:.0f}", to_x, to_y);
  picture.add(format("<path d=\"M{:.0f} {:.0f}{}\" class=\"arrow\"/>\n", from_x, from_y, bend));
  if (!wraps) picture.text(to_x + 8, to_y + (rises ? 20 : -10), edge_style, edge_text(graph));
}

/// Returns where the table ends.
double draw_shapes(base::SvgPicture& picture, const ModelGraph& graph, double y) {
  const auto rows = shape_rows(graph);
  double names = 0;
  double shapes = 0;
  for (const auto& row : rows) {
    names = std::max(names, base::text_width(row.name, strong_style.size));
    shapes = std::max(shapes, base::text_width(row.shape, strong_style.size));
  }
  for (const auto& row : rows) {
    y += row.is_title ? 1.5 * line : line;
    const auto& style = row.is_title ? strong_style : plain_style;
    picture.text(margin, y, style, row.name);
    picture.text(margin + names + margin, y, style, row.shape);
    picture.text(margin + names + margin + shapes + margin, y, style, row.rank_shape);
  }
  return y;
}

}  // namespace

std::string graph_svg(const ModelGraph& graph) {
  const auto columns = columns_of(graph);
  const auto title = title_of(graph);
  base::SvgPicture picture;
  picture.text(margin, 32, title_style, title);
  for (std::size_t index = 0; index < graph.chunks.size(); ++index) {
    draw_box(picture, graph, graph.chunks[index], columns);
    if (index > 0) draw_edge(picture, graph, index, columns);
  }
  const auto stages = static_cast<double>(graph.mesh.degree(Axis::pipeline));
  const double bottom = draw_shapes(picture, graph, top + stages * row_height);
  const double width =
      2 * margin + (graph.virtual_stages - 1) * columns.distance + columns.box_width;
  return picture.document(title, width, bottom + margin, head);
}

}  // namespace trireme::plan
