// SPDX-License-Identifier: Apache-2.0
#include "trireme/inference/probe.hpp"

#include "trireme/base/counted.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/checkpoint/signature.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/engine/from_config.hpp"
#include "trireme/engine/measure.hpp"
#include "trireme/huggingface/spread_tensors.hpp"
#include "trireme/huggingface/stored_tensor.hpp"
#include "trireme/huggingface/weights.hpp"
#include "trireme/model/parameters.hpp"
#include "trireme/model/positions.hpp"

#include <algorithm>
#include <map>

namespace trireme::inference {

using layout::Axis;

namespace {

/// Tokens of a micro-batch at most, unless one sequence has more.
constexpr std::int64_t rows_at_once = 4096;

/// Division of the sequences: each data-parallel rank gets equally many, the last ones perhaps
/// padding.
struct Shares {
  std::int64_t per_rank = 1;
  std::int64_t micro_batch = 1;
};

Shares share_out(const TokenLists& tokens, const config::Config& config, const layout::Mesh& mesh) {
  const std::int64_t data = mesh.degree(Axis::data);
  // Interleaving requires a multiple of the number of stages.
  const bool interleaved = config.options().parallel.schedule == layout::ScheduleKind::interleaved;
  const std::int64_t unit = interleaved ? mesh.degree(Axis::pipeline) : 1;
  const auto least = (tokens.batch + data - 1) / data;
  Shares shares;
  shares.per_rank = (least + unit - 1) / unit * unit;
  const auto most = std::max<std::int64_t>(1, rows_at_once / tokens.sequence_length);
  for (std::int64_t size = 1; size <= std::min(shares.per_rank / unit, most); ++size) {
    if (shares.per_rank / unit % size == 0) shares.micro_batch = size;
  }
  return shares;
}

base::Result<engine::EngineOptions> probe_options(const config::Config& config,
                                                  const model::ModelConfig& model,
                                                  const TokenLists& tokens, bool with_gradients,
                                                  const runtime::Cluster& cluster) {
  if (const int context = cluster.mesh.degree(Axis::context); context > 1) {
    return base::usage_failure(base::format(
        "parallel.context = {} does not go with logits (ranks would have those of some of a "
        "sequence's tokens); set parallel.context=1",
        context));
  }
  auto probed = model;
  // Positions beyond the model's limit are allowed: numbers for comparison are needed wherever
  // other software computes them.
  if (model.has_rotary()) {
    probed.max_position_embeddings =
        std::max(probed.max_position_embeddings, tokens.sequence_length);
  }
  if (auto status = model::check_positions(
          probed, base::format("a sequence of {} tokens", tokens.sequence_length),
          tokens.sequence_length);
      !status.ok()) {
    return status.failure();
  }
  const auto shares = share_out(tokens, config, cluster.mesh);
  auto shaped = config;
  const auto batch = shares.per_rank * cluster.mesh.degree(Axis::data);
  // Nothing is divided where nothing is updated, and lists of tokens have no documents.
  const std::pair<const char*, std::string> settings[] = {
      {"parallel.zero_level", "0"},
      {"train.document_mask", "false"},
      {"train.sequence_length", base::format("{}", tokens.sequence_length)},
      {"train.micro_batch", base::format("{}", shares.micro_batch)},
      {"train.global_batch", base::format("{}", batch)}};
  for (const auto& [key, value] : settings) {
    auto with = shaped.with(key, value, config::Origin::program("--tokens"));
    if (!with) return with.failure();
    shaped = std::move(with).value();
  }
  auto options = engine::options_from(shaped, probed, cluster.mesh, cluster.rank);
  if (!options) return options.failure();
  options->memory.keep_logits = engine::KeepLogits::yes;
  options->use = with_gradients ? engine::Use::training : engine::Use::evaluation;
  return options;
}

/// Engine with its tokens, and the collected results.
class Prober {
 public:
  Prober(const engine::EngineOptions& options, const TokenLists& tokens, runtime::Session& session)
      : options_(options),
        tokens_(tokens),
        world_(*session.cluster.world),
        memory_(engine::Memory::on(session.kernels->device(), engine::measure(options))),
        engine_(options, session.cluster.groups.views(), *session.kernels, memory_),
        gradients_(engine_.device()) {
    per_rank_ = options.schedule.sequences();
    data_rank_ = session.cluster.mesh.coordinate(Axis::data, session.cluster.rank);
    for (int index = 0; index < options.schedule.micro_batches; ++index) fill(index);
  }

  engine::Engine& engine() { return engine_; }

  /// Collective over all ranks.
  void forward() {
    const auto outcome = engine_.evaluate([this](int index) { keep_logits(index); });
    loss_ = outcome.loss_sum / static_cast<double>(outcome.tokens);
  }
  /// Collective over all ranks.
  void backward() {
    engine_.run_schedule();
    engine_.reduce_gradients();
  }

  std::vector<huggingface::SpreadTensor> results() {
    std::vector<huggingface::SpreadTensor> results;
    results.push_back({"logits",
                       {tokens_.batch, tokens_.sequence_length, options_.model.vocab_size},
                       [this](std::int64_t begin, std::int64_t end, float* zeros) {
                         put_logits(begin, end, zeros);
                       }});
    results.push_back({"loss", {1}, [this](std::int64_t, std::int64_t, float* zeros) {
                         if (world_.rank() == 0) *zeros = static_cast<float>(loss_);
                       }});
    if (engine_.trains()) add_gradients(results);
    return results;
  }

 private:
  void fill(int index) {
    const auto seq = tokens_.sequence_length;
    auto& batch = engine_.batch(index);
    batch.first_sequence = data_rank_ * per_rank_ + index * options_.schedule.micro_batch;
    for (std::int64_t row = 0; row < options_.schedule.micro_batch * seq; ++row) {
      const auto sequence = batch.first_sequence + row / seq;
      const auto place = sequence * seq + row % seq;
      const bool there = sequence < tokens_.batch;
      const bool last = row % seq == seq - 1;
      batch.tokens.i32()[row] = there ? tokens_.ids[static_cast<std::size_t>(place)] : 0;
      batch.targets.i32()[row] =
          there && !last ? tokens_.ids[static_cast<std::size_t>(place + 1)] : -1;
    }
  }

  void keep_logits(int index) {
    device::HostMirror mirror(engine_.device());
    const auto logits = mirror.of(engine_.logits());
    mirror.fetch();
    const auto rows = logits.dim(0);
    const auto columns = logits.dim(1);
    logits_.resize(static_cast<std::size_t>(options_.schedule.micro_batches * rows * columns));
    for (std::int64_t at = 0; at < rows * columns; ++at) {
      logits_[static_cast<std::size_t>(index * rows * columns + at)] =
          logits.dtype() == device::DType::f32 ? logits.f32()[at]
                                               : device::to_float(logits.bf16()[at]);
    }
  }

  void put_logits(std::int64_t begin, std::int64_t end, float* zeros) const {
    if (!engine_.is_last_stage()) return;
    const auto vocabulary = options_.model.vocab_size;
    const auto first = engine_.first_token();
    const auto columns = engine_.local_vocabulary();
    const auto first_row = data_rank_ * per_rank_ * tokens_.sequence_length;
    const auto rows = per_rank_ * tokens_.sequence_length;
    for (std::int64_t at = begin; at < end; ++at) {
      const auto row = at / vocabulary - first_row;
      const auto column = at % vocabulary - first;
      if (row < 0 || row >= rows || column < 0 || column >= columns) continue;
      zeros[at - begin] = logits_[static_cast<std::size_t>(row * columns + column)];
    }
  }

  void add_gradients(std::vector<huggingface::SpreadTensor>& results);

  const engine::EngineOptions options_;
  const TokenLists& tokens_;
  comm::ProcessGroup& world_;
  engine::Memory memory_;
  engine::Engine engine_;
  device::HostMirror gradients_;
  std::int64_t per_rank_ = 0;
  std::int64_t data_rank_ = 0;
  double loss_ = 0;
  /// Logits on the last stage: [sequences of this rank, seq, local vocabulary].
  std::vector<float> logits_;
};

/// A gradient's box and where it stands in a tensor of Hugging Face's.
struct GradientPart {
  huggingface::StoredTensor place;
  layout::Box box;
  device::Tensor values;

  void put(std::int64_t begin, std::int64_t end, float* zeros) const {
    const auto width = place.shape.back();
    const bool matrix = place.shape.size() == 2;
    const auto columns = matrix ? box.length[1] : 1;
    for (std::int64_t at = begin; at < end; ++at) {
      auto row = matrix ? at / width : at;
      auto column = matrix ? at % width : 0;
      if (place.transposed) std::swap(row, column);
      row -= place.first_row + box.offset[0];
      if (matrix) column -= box.offset[1];
      if (row < 0 || row >= box.length[0] || column < 0 || column >= columns) continue;
      zeros[at - begin] = values.f32()[row * columns + column];
    }
  }
};

void Prober::add_gradients(std::vector<huggingface::SpreadTensor>& results) {
  std::map<std::string, huggingface::StoredTensor> places;
  std::map<std::string, layout::Shape> shapes;
  for (const auto& parameter : model::parameters(options_.model)) {
    const auto place = huggingface::stored_tensor(options_.model, parameter);
    places.emplace(parameter.tensor.name, place);
    shapes.emplace(place.name, place.shape);
  }
  std::map<std::string, std::vector<GradientPart>> parts;
  for (const auto& part : engine_.parameter_parts()) {
    // Only one of all replicas writes.
    if (data_rank_ != 0 || !part.primary) continue;
    const auto& place = places.at(part.name);
    parts[place.name].push_back({place, part.box, gradients_.of(part.gradient)});
  }
  gradients_.fetch();
  for (const auto& [name, shape] : shapes) {
    results.push_back({"grad/" + name, shape,
                       [mine = parts[name]](std::int64_t begin, std::int64_t end, float* zeros) {
                         for (const auto& part : mine) part.put(begin, end, zeros);
                       }});
  }
}

}  // namespace

void probe(const ProbeRequest& request, const config::Config& config, runtime::Session& session) {
  auto& cluster = session.cluster;
  auto& world = *cluster.world;
  const auto key = checkpoint::read_key_on_first_rank(config.options().checkpoint.key_file, world);
  auto model = comm::agree(world, huggingface::model_of_weights(request.weights));
  model.dropout = 0.0F;
  const auto json = comm::agree(world, base::read_json_file(request.tokens));
  const auto tokens =
      comm::agree(world, token_lists(json, model.vocab_size, request.tokens.string()));
  const auto options =
      comm::agree(world, probe_options(config, model, tokens, request.with_gradients, cluster));
  Prober prober(options, tokens, session);
  huggingface::load_parameters(request.weights, prober.engine(), world, key);
  prober.forward();
  if (request.with_gradients) prober.backward();
  const auto results = prober.results();
  huggingface::write_spread_tensors(request.out, results, world);
  base::log::info("probe", "{} of {} tokens through {} parameters; {} tensors in '{}'",
                  base::counted(tokens.batch, "sequence"), tokens.sequence_length,
                  model::parameter_count(model), results.size(), request.out.string());
}

}  // namespace trireme::inference
