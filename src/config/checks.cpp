// SPDX-License-Identifier: Apache-2.0
#include "trireme/config/checks.hpp"

#include "trireme/base/format.hpp"
#include "trireme/config/arrangement.hpp"
#include "trireme/config/recompute.hpp"
#include "trireme/config/step_range.hpp"
#include "trireme/schema/layout_keys.hpp"

#include <algorithm>
#include <utility>

namespace trireme::config {
namespace {

using base::format;

/// Whether a start chooses a layout that fits, and with it what is computed again.
bool chooses_layout(const Config& config) {
  const auto settings = schema::layout_keys();
  return std::any_of(settings.begin(), settings.end(),
                     [&](const std::string& key) { return config.automatic(key); });
}

class Checker {
 public:
  explicit Checker(const Config& config) : config_(config), options_(config.options()) {}

  void arrangement();
  void lengths();
  void learning_rate();
  void matrices();
  void rope_scaling();
  void backends();
  void evaluation();
  void profile();
  void activation_checkpointing();
  void node_storage();
  void save_interval();
  void rounding();

  base::Status finish() const {
    if (mistakes_.empty()) return {};
    return base::usage_failure(format("{}", base::join(mistakes_, "\n")));
  }

 private:
  std::string cited(std::string_view key) const { return config_.cited(key); }
  template <typename... Arguments>
  void mistake(base::format_string<Arguments...> text, Arguments&&... arguments) {
    mistakes_.push_back(format(text, std::forward<Arguments>(arguments)...));
  }

  const Config& config_;
  const Options& options_;
  std::vector<std::string> mistakes_;
};

void Checker::arrangement() {
  const auto asked = config::arrangement(config_);
  const auto cited = citation(config_, asked);
  for (const auto& violation : layout::violations(asked)) {
    mistakes_.push_back(layout::text(violation, cited));
  }
}

void Checker::lengths() {
  const auto sequence = options_.train.sequence_length;
  // The default is exempt: generation has no training sequence, and training refuses a default that
  // is too long.
  if (config_.given("train.sequence_length") &&
      sequence > options_.model.max_position_embeddings.value_or(sequence)) {
    mistake(
        "{} is longer than {} (the model has no positions beyond); lower the first or raise "
        "the second",
        cited("train.sequence_length"), cited("model.max_position_embeddings"));
  }
}

void Checker::learning_rate() {
  const auto& optimizer = options_.optimizer;
  if (optimizer.min_learning_rate > optimizer.learning_rate) {
    mistake("{} is above {} (the curve falls from the second to the first); lower the first",
            cited("optimizer.min_learning_rate"), cited("optimizer.learning_rate"));
  }
  if (optimizer.decay_steps && optimizer.curve != LearningRateCurve::wsd) {
    mistake(
        "{} does not go with {} (only curve wsd has a fall of its own length); set "
        "optimizer.curve=wsd or optimizer.decay_steps=auto",
        cited("optimizer.decay_steps"), cited("optimizer.curve"));
  }
}

void Checker::matrices() {
  const auto& optimizer = options_.optimizer;
  if (optimizer.per_head && optimizer.name != UpdateRule::muon) {
    mistake(
        "{} does not go with {} (heads of q, k and v are matrices of their own to muon alone); set "
        "optimizer.name=muon or optimizer.per_head=false",
        cited("optimizer.per_head"), cited("optimizer.name"));
  }
  const bool whole = optimizer.name != UpdateRule::adamw && optimizer.name != UpdateRule::sgd;
  if (!optimizer.adamw_matrices.empty() && !whole) {
    mistake(
        "{} does not go with {} (it updates all parameters alike); set optimizer.name to muon, "
        "shampoo or soap, or leave optimizer.adamw_matrices empty",
        cited("optimizer.adamw_matrices"), cited("optimizer.name"));
  }
}

void Checker::rope_scaling() {
  const auto& rope = options_.model.rope_scaling;
  constexpr std::string_view type = "model.rope_scaling.rope_type";
  const std::pair<std::string_view, bool> parts[] = {
      {"model.rope_scaling.factor", rope.factor.has_value()},
      {"model.rope_scaling.low_freq_factor", rope.low_freq_factor.has_value()},
      {"model.rope_scaling.high_freq_factor", rope.high_freq_factor.has_value()},
      {"model.rope_scaling.original_max_position_embeddings",
       rope.original_max_position_embeddings.has_value()}};
  // `linear` needs the first part, `llama3` all of them; a config.json may hold the others.
  const std::size_t needed_count = rope.rope_type == RopeType::llama3   ? std::size(parts)
                                   : rope.rope_type == RopeType::linear ? 1
                                                                        : 0;
  const bool from_file = !options_.model.from.empty();
  for (std::size_t index = 0; index < std::size(parts); ++index) {
    const auto& [part, given] = parts[index];
    if (index < needed_count && !given && !from_file) {
      mistake("{} needs {} (the formula has no default for it); give it", cited(type), part);
    }
    if (index >= needed_count && given && (rope.rope_type || !from_file)) {
      mistake(
          "{} does not go with {} (its formula has no place for it); set {}=llama3 or remove it",
          cited(part), cited(type), type);
    }
  }
  if (rope.low_freq_factor && rope.high_freq_factor &&
      !can_blend(*rope.low_freq_factor, *rope.high_freq_factor)) {
    mistake("{} is not below {} (wavelengths between the two are blended); swap them",
            cited("model.rope_scaling.low_freq_factor"),
            cited("model.rope_scaling.high_freq_factor"));
  }
}

void Checker::backends() {
  const auto comm = options_.comm.backend;
  const auto kernels = options_.numerics.backend;
  const bool on_gpu = comm == CommBackend::nccl || comm == CommBackend::staged;
  if (on_gpu && (kernels == KernelBackend::cpu || kernels == KernelBackend::reference)) {
    mistake("{} does not go with {} (it moves GPU memory); set comm.backend=auto",
            cited("comm.backend"), cited("numerics.backend"));
  }
  if (!on_gpu && comm != CommBackend::automatic && kernels == KernelBackend::cuda) {
    mistake("{} does not go with {} (it moves host memory); set comm.backend=auto",
            cited("comm.backend"), cited("numerics.backend"));
  }
}

void Checker::evaluation() {
  if (options_.train.eval_every > 0 && options_.data.validation.empty()) {
    mistake(
        "{} needs data.validation (there is nothing to evaluate on); give the prefix of "
        "held-out tokens, or set train.eval_every=0",
        cited("train.eval_every"));
  }
  if (!options_.train.sample_prompts.empty() && options_.train.eval_every == 0) {
    mistake(
        "{} needs train.eval_every (prompts are continued after evaluations); set it, or leave the "
        "prompts out",
        cited("train.sample_prompts"));
  }
  if (options_.checkpoint.keep_best > 0 && options_.train.eval_every == 0) {
    mistake(
        "{} needs train.eval_every (checkpoints without an evaluation have no loss to be the best "
        "of); set it, or checkpoint.keep_best=0",
        cited("checkpoint.keep_best"));
  }
}

void Checker::profile() {
  const auto& text = options_.train.profile;
  if (text.empty()) return;
  const auto steps = parse_step_range(text);
  if (!steps) mistake("{} {}", cited("train.profile"), steps.failure().text);
}

void Checker::activation_checkpointing() {
  const auto& entries = options_.train.activation_checkpointing;
  if (!entries) {
    if (options_.train.memory_limit > 0 || chooses_layout(config_)) return;
    mistake(
        "{} needs train.memory_limit (it chooses what fits); give the memory that a rank's arrays "
        "may take, such as train.memory_limit=70GiB",
        cited("train.activation_checkpointing"));
    return;
  }
  const auto recompute = parse_recompute(*entries);
  if (!recompute) {
    mistake("{} {}", cited("train.activation_checkpointing"), recompute.failure().text);
  }
}

void Checker::node_storage() {
  const auto& checkpoint = options_.checkpoint;
  if (!checkpoint.local_directory.empty() && !checkpoint.asynchronous) {
    mistake(
        "{} needs checkpoint.asynchronous=true (nodes save while training goes on); set it, or "
        "leave the folder out",
        cited("checkpoint.local_directory"));
  }
  if (checkpoint.local_directory.empty() && checkpoint.local_every_steps > 0) {
    mistake(
        "{} needs checkpoint.local_directory (there is no place to save to); give a folder that "
        "each node has for itself, such as /dev/shm, or set checkpoint.local_every_steps=0",
        cited("checkpoint.local_every_steps"));
  }
}

void Checker::save_interval() {
  constexpr std::string_view key = "checkpoint.every_minutes";
  if (!config_.automatic(key) || !options_.plan.machine.empty()) return;
  mistake(
      "{} needs plan.machine (how often nodes fail is said in its file, site.mtbf_node_days); name "
      "the file, or give minutes",
      cited(key));
}

void Checker::rounding() {
  const auto& numerics = options_.numerics;
  if (numerics.stochastic_rounding && numerics.precision == Precision::fp32) {
    mistake(
        "{} does not go with {} (parameters are their own fp32 masters, and nothing is rounded); "
        "set numerics.precision=bf16 or fp8, or numerics.stochastic_rounding=false",
        cited("numerics.stochastic_rounding"), cited("numerics.precision"));
  }
}

}  // namespace

base::Status check(const Config& config) {
  Checker checker(config);
  checker.arrangement();
  checker.lengths();
  checker.learning_rate();
  checker.matrices();
  checker.rope_scaling();
  checker.backends();
  checker.evaluation();
  checker.profile();
  checker.activation_checkpointing();
  checker.node_storage();
  checker.save_interval();
  checker.rounding();
  return checker.finish();
}

std::vector<std::string> notes(const Config& config) {
  std::vector<std::string> found;
  const auto& optimizer = config.options().optimizer;
  const auto& train = config.options().train;
  const auto decay = optimizer.decay_steps.value_or(0);
  if (optimizer.warmup_steps > train.steps) {
    found.push_back(
        format("{} is more than {}: the learning rate rises all the time, to {:.2g} of its "
               "height",
               config.cited("optimizer.warmup_steps"), config.cited("train.steps"),
               static_cast<double>(train.steps) / static_cast<double>(optimizer.warmup_steps)));
  } else if (optimizer.warmup_steps + decay > train.steps) {
    found.push_back(
        format("{} and {} together are more than {}: the learning rate falls in the {} steps "
               "that are left",
               config.cited("optimizer.warmup_steps"), config.cited("optimizer.decay_steps"),
               config.cited("train.steps"), train.steps - optimizer.warmup_steps));
  }
  // A zb-h2 that does not fit is refused.
  const auto& parallel = config.options().parallel;
  const bool is_looked_at =
      parallel.schedule == layout::ScheduleKind::zero_bubble_h2 && parallel.pipeline != 1;
  if (train.memory_limit > 0 && train.activation_checkpointing && !is_looked_at) {
    found.push_back(format("{} has no effect beside {}; auto chooses what fits",
                           config.cited("train.memory_limit"),
                           config.cited("train.activation_checkpointing")));
  }
  return found;
}

}  // namespace trireme::config
