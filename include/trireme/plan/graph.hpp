// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/base/result.hpp"
#include "trireme/config/config.hpp"
#include "trireme/device/dtype.hpp"
#include "trireme/layout/box.hpp"
#include "trireme/layout/schedule.hpp"
#include "trireme/model/model_config.hpp"

#include <cstdint>
#include <string>
#include <vector>

/// The model as a graph of its parallel cut: pieces of layers, the messages between them, and the
/// matrices of a layer as tensor-parallel ranks cut them. Computed without any rank.
namespace trireme::plan {

/// Consecutive layers that one stage runs as one chunk.
struct GraphChunk {
  int stage = 0;
  int virtual_stage = 0;
  layout::LayerRange layers{};
  bool embeds = false;
  bool has_head = false;
  /// Parameters of the whole chunk; a tied table counts with the embedding alone.
  std::int64_t parameters = 0;
  /// Held by a rank at tensor-parallel coordinate 0, a copy of a tied table too.
  std::int64_t rank_parameters = 0;
  /// FLOPs a token in training, forward and backward of the whole chunk (model::flops_per_token).
  double flops_per_token = 0;
};

/// A parameter, and the part that a rank at tensor-parallel coordinate 0 holds.
struct GraphParameter {
  std::string name;
  layout::Shape shape;
  layout::Shape rank_shape;
};

struct ModelGraph {
  model::ModelConfig model;
  layout::Mesh mesh = layout::Mesh::of(1, 1, 1);
  int virtual_stages = 1;
  /// Micro-batches of a step on one data-parallel rank.
  int micro_batches = 1;
  /// Type of parameters and activations.
  device::DType dtype = device::DType::f32;
  /// In the model's order.
  std::vector<GraphChunk> chunks;
  /// Parameters of the first layer.
  std::vector<GraphParameter> layer;
  /// Outside of layers. A tied table stands with the embedding alone.
  std::vector<GraphParameter> embedding;
  std::vector<GraphParameter> head;
  /// Tensor between two chunks, of a micro-batch on a rank; its gradient is as large.
  layout::Shape message;
  std::size_t message_bytes = 0;

  std::int64_t parameters() const;
  double flops_per_token() const;
};

/// The failure is a user's mistake, as of plan_memory().
base::Result<ModelGraph> model_graph(const config::Config& config, const model::ModelConfig& model,
                                     int world_size);

/// A table of chunks, and one of the parameters of the embedding, of a layer and of the head.
std::string graph_text(const ModelGraph& graph);
/// {"architecture", "mesh", "parameters", "flops_per_token", "message": {"shape", "bytes"},
///  "chunks": [{"stage", "virtual_stage", "first_layer", "layers", "embedding", "head",
///  "parameters", "rank_parameters", "flops_per_token"}], "embedding": [{"name", "shape",
///  "rank_shape"}], "layer": [..], "head": [..]}.
base::Json graph_json(const ModelGraph& graph);
/// Chunks from left to right in the model's order, stages downwards; a self-contained document.
std::string graph_svg(const ModelGraph& graph);
/// For Graphviz.
std::string graph_dot(const ModelGraph& graph);

}  // namespace trireme::plan
