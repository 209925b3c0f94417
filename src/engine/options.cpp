#include "trireme/engine/options.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

namespace trireme::engine {

using layout::Axis;

layout::Degrees degrees_from(const config::Config& config) {
  layout::Degrees degrees{config.count("parallel.tensor"), config.count("parallel.pipeline")};
  if (!config.automatic("parallel.data")) degrees.data = config.count("parallel.data");
  return degrees;
}

layout::Suits suits(const config::Config& config, const model::ModelConfig& model) {
  return [config, model](const layout::Mesh& mesh) {
    return options_from(config, model, mesh, base::Rank{0}).ok();
  };
}

base::Result<layout::Mesh> mesh_from(const config::Config& config, const model::ModelConfig& model,
                                     int world_size) {
  return layout::arrange(degrees_from(config), world_size, suits(config, model));
}

namespace {

/// Micro-batches of one data-parallel rank in a step.
base::Result<int> micro_batches(const config::Config& config, int data) {
  const auto micro = config.integer("train.micro_batch");
  const auto global = config.integer_or("train.global_batch", micro * data);
  if (global % (micro * data) != 0) {
    return base::usage_failure(base::format(
        "{} is not a multiple of {} x parallel.data = {} (every data-parallel rank runs whole "
        "micro-batches); try train.global_batch = {}",
        config.cited("train.global_batch"), config.cited("train.micro_batch"), data,
        (global / (micro * data) + 1) * micro * data));
  }
  return static_cast<int>(global / (micro * data));
}

layout::ScheduleKind schedule_of(const config::Config& config) {
  return base::value_or_throw(layout::schedule_kind(config.text("parallel.schedule")));
}

model::Recompute recompute_of(const config::Config& config) {
  const auto& name = config.text("train.activation_checkpointing");
  if (name == "full") return model::Recompute::layer;
  return name == "selective" ? model::Recompute::attention : model::Recompute::none;
}

/// Where a step reads weights more than once, copies of them are worth their memory.
model::WeightCopies weight_copies_of(const EngineOptions& options) {
  const bool once = options.micro_batches == 1 && options.recompute != model::Recompute::layer;
  return once ? model::WeightCopies::for_each_use : model::WeightCopies::kept;
}

/// A chunk of rows reads and writes the whole gradient of the head, 8 bytes an element, for 2 *
/// rows operations an element. A core does 10 operations in the time of a byte, a card (H200) 200.
std::int64_t loss_rows_of(const config::Config& config) {
  return config.text("numerics.backend") == "cuda" ? 8192 : 1024;
}

}  // namespace

device::DType compute_type(const config::Config& config) {
  return config.text("numerics.precision") == "fp32" ? device::DType::f32 : device::DType::bf16;
}

std::optional<device::AttentionChoice> card_attention(const config::Config& config) {
  if (config.text("numerics.backend") != "cuda") return std::nullopt;
  device::AttentionChoice choice;
  const auto& by = config.text("numerics.attention");
  if (by == "own") choice.by = device::AttentionBy::own;
  if (by == "cudnn") choice.by = device::AttentionBy::cudnn;
  if (config.flag("numerics.deterministic")) choice.bits = device::AttentionBits::repeatable;
  return choice;
}

base::Status check_attention(const config::Config& config, const model::ModelConfig& model) {
  const auto choice = card_attention(config);
  if (!choice) return {};
  EngineOptions options;
  options.model = model;
  options.dtype = compute_type(config);
  options.micro_batch = config.integer("train.micro_batch");
  options.sequence_length = config.integer("train.sequence_length");
  return device::check_attention(attention_of(options), *choice);
}

base::Result<EngineOptions> options_from(const config::Config& config,
                                         const model::ModelConfig& model, const layout::Mesh& mesh,
                                         base::Rank rank) {
  auto count = micro_batches(config, mesh.degree(Axis::data));
  if (!count) return count.failure();
  EngineOptions options;
  options.model = model;
  options.mesh = mesh;
  options.rank = rank;
  options.schedule = schedule_of(config);
  options.virtual_stages = config.count("parallel.virtual_stages");
  for (const auto layers : config.integers("parallel.stage_layers")) {
    options.stage_layers.push_back(static_cast<int>(layers));
  }
  options.micro_batch = config.integer("train.micro_batch");
  options.micro_batches = *count;
  options.sequence_length = config.integer("train.sequence_length");
  options.dtype = compute_type(config);
  options.linear_forward = config.text("numerics.precision") == "fp8" ? model::LinearForward::e4m3
                                                                      : model::LinearForward::plain;
  options.sequence_parallel = config.flag("parallel.sequence") && mesh.degree(Axis::tensor) > 1
                                  ? model::SequenceParallel::on
                                  : model::SequenceParallel::off;
  options.recompute = recompute_of(config);
  options.weight_copies = weight_copies_of(options);
  options.loss_rows = loss_rows_of(config);
  options.zero_level = config.count("parallel.zero_level");
  options.bucket_bytes = config.bytes("parallel.bucket_bytes");
  options.rule = optim::rule_from(config);
  options.clip_norm = config.real("optimizer.clip_norm");
  options.seed = static_cast<std::uint64_t>(config.integer("train.seed"));
  options.card_attention = card_attention(config);
  options.record = config.flag("numerics.cuda_graphs") ? RecordSteps::yes : RecordSteps::no;
  if (auto status = check(options); !status.ok()) return status.failure();
  return options;
}

}  // namespace trireme::engine
