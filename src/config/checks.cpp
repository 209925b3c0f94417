#include "trireme/config/checks.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/suggest.hpp"

#include <numeric>

namespace trireme::config {
namespace {

using base::format;

/// The next multiples of `unit` around `number`: "try 8 or 12".
std::string nearest_multiples(std::int64_t number, std::int64_t unit) {
  const auto below = number / unit * unit;
  if (below == 0) return format("try {}", unit);
  return format("try {} or {}", below, below + unit);
}

class Checker {
 public:
  explicit Checker(const Config& config) : config_(config) {}

  void batches();
  void lengths();
  void schedule();
  void stage_layers();
  void learning_rate();
  void rope_scaling();
  void backends();
  void evaluation();
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
  std::vector<std::string> mistakes_;
};

void Checker::batches() {
  if (config_.automatic("train.global_batch")) return;
  const auto global = config_.integer("train.global_batch");
  const auto micro = config_.integer("train.micro_batch");
  if (global % micro != 0) {
    mistake("{} is not a multiple of {} (a step is whole micro-batches); {}",
            cited("train.global_batch"), cited("train.micro_batch"),
            nearest_multiples(global, micro));
    return;
  }
  if (config_.automatic("parallel.data")) return;
  const auto unit = micro * config_.integer("parallel.data");
  if (global % unit != 0) {
    mistake("{} is not a multiple of {} times {} (each replica takes whole micro-batches); {}",
            cited("train.global_batch"), cited("train.micro_batch"), cited("parallel.data"),
            nearest_multiples(global, unit));
    return;
  }
  const auto pipeline = config_.integer("parallel.pipeline");
  if (config_.text("parallel.schedule") == "interleaved" && global / unit % pipeline != 0) {
    mistake(
        "{} gives each replica {} micro-batches, not a multiple of {} (schedule interleaved "
        "hands them around in rounds of one a stage); {}",
        cited("train.global_batch"), global / unit, cited("parallel.pipeline"),
        nearest_multiples(global, unit * pipeline));
  }
}

void Checker::lengths() {
  const auto sequence = config_.integer("train.sequence_length");
  const auto longest = config_.integer_or("model.max_position_embeddings", sequence);
  // A default is nobody's wish: who asks a model for answers has no sequence; training refuses it.
  if (config_.given("train.sequence_length") && sequence > longest) {
    mistake(
        "{} is longer than {} (the model has no positions beyond); lower the first or raise "
        "the second",
        cited("train.sequence_length"), cited("model.max_position_embeddings"));
  }
  const auto tensor = config_.integer("parallel.tensor");
  const auto rows = config_.integer("train.micro_batch") * sequence;
  if (config_.flag("parallel.sequence") && rows % tensor != 0) {
    mistake(
        "{} times {} is not a multiple of {} (with parallel.sequence each rank holds an equal part "
        "of a micro-batch's tokens); change the first, or for the second {}",
        cited("train.micro_batch"), cited("train.sequence_length"), cited("parallel.tensor"),
        nearest_multiples(sequence, tensor));
  }
}

void Checker::schedule() {
  const bool interleaved = config_.text("parallel.schedule") == "interleaved";
  const auto virtual_stages = config_.integer("parallel.virtual_stages");
  if (!interleaved && virtual_stages > 1) {
    mistake(
        "{} does not go with {} (only schedule interleaved gives a stage more than one piece "
        "of the model); set parallel.schedule=interleaved or parallel.virtual_stages=1",
        cited("parallel.virtual_stages"), cited("parallel.schedule"));
  }
  if (interleaved && virtual_stages < 2) {
    mistake(
        "{} needs more than {} (with one piece a stage there is nothing to interleave); set "
        "parallel.virtual_stages=2 or parallel.schedule=1f1b",
        cited("parallel.schedule"), cited("parallel.virtual_stages"));
  }
  if (interleaved && config_.integer("parallel.pipeline") < 2) {
    mistake(
        "{} needs more than {} (there is one stage); raise parallel.pipeline or set "
        "parallel.schedule=1f1b",
        cited("parallel.schedule"), cited("parallel.pipeline"));
  }
  const auto pieces = config_.integer("parallel.pipeline") * virtual_stages;
  if (pieces > config_.integer_or("model.num_hidden_layers", pieces)) {
    mistake(
        "{} times {} is more than {} (each piece of the pipeline holds at least one layer); "
        "lower the degree",
        cited("parallel.pipeline"), cited("parallel.virtual_stages"),
        cited("model.num_hidden_layers"));
  }
}

void Checker::stage_layers() {
  const auto& given = config_.integers("parallel.stage_layers");
  if (given.empty()) return;
  const auto pieces =
      config_.integer("parallel.pipeline") * config_.integer("parallel.virtual_stages");
  if (static_cast<std::int64_t>(given.size()) != pieces) {
    mistake("{} has {} entries, and the pipeline has {} pieces ({}, {}); give one entry a piece",
            cited("parallel.stage_layers"), given.size(), pieces, cited("parallel.pipeline"),
            cited("parallel.virtual_stages"));
  }
  const auto sum = std::accumulate(given.begin(), given.end(), std::int64_t{0});
  if (sum != config_.integer_or("model.num_hidden_layers", sum)) {
    mistake("{} sums to {}, not to {} (each layer stands on one stage); correct the list",
            cited("parallel.stage_layers"), sum, cited("model.num_hidden_layers"));
  }
}

void Checker::learning_rate() {
  if (config_.real("optimizer.min_learning_rate") > config_.real("optimizer.learning_rate")) {
    mistake("{} is above {} (the curve falls from the second to the first); lower the first",
            cited("optimizer.min_learning_rate"), cited("optimizer.learning_rate"));
  }
  const auto steps = config_.integer("train.steps");
  const auto warmup = config_.integer("optimizer.warmup_steps");
  const auto decay = config_.integer_or("optimizer.decay_steps", 0);
  if (!config_.automatic("optimizer.decay_steps") && config_.text("optimizer.curve") != "wsd") {
    mistake(
        "{} does not go with {} (only curve wsd has a fall of its own length); set "
        "optimizer.curve=wsd or optimizer.decay_steps=auto",
        cited("optimizer.decay_steps"), cited("optimizer.curve"));
  }
  if (warmup > steps) {
    mistake("{} is more than {} (the learning rate would never reach its height); lower the first",
            cited("optimizer.warmup_steps"), cited("train.steps"));
  } else if (warmup + decay > steps) {
    mistake("{} and {} together are more than {} (they may not overlap); lower one",
            cited("optimizer.warmup_steps"), cited("optimizer.decay_steps"), cited("train.steps"));
  }
}

void Checker::rope_scaling() {
  constexpr std::string_view parts[] = {
      "model.rope_scaling.factor", "model.rope_scaling.low_freq_factor",
      "model.rope_scaling.high_freq_factor", "model.rope_scaling.original_max_position_embeddings"};
  constexpr std::string_view type = "model.rope_scaling.rope_type";
  const auto kind = config_.text_or(type, "auto");
  // `linear` needs the first part, `llama3` all of them; a config.json may hold the others.
  const std::size_t needed_count = kind == "llama3" ? std::size(parts) : kind == "linear" ? 1 : 0;
  const bool from_file = !config_.text("model.from").empty();
  for (std::size_t index = 0; index < std::size(parts); ++index) {
    const auto part = parts[index];
    const bool given = !config_.automatic(part);
    if (index < needed_count && !given && !from_file) {
      mistake("{} needs {} (the formula has no default for it); give it", cited(type), part);
    }
    if (index >= needed_count && given && !(kind == "auto" && from_file)) {
      mistake(
          "{} does not go with {} (its formula has no place for it); set {}=llama3 or remove it",
          cited(part), cited(type), type);
    }
  }
  constexpr auto low = parts[1];
  constexpr auto high = parts[2];
  if (!config_.automatic(low) && !config_.automatic(high) &&
      config_.real(low) >= config_.real(high)) {
    mistake("{} is not below {} (wavelengths between the two are blended); swap them", cited(low),
            cited(high));
  }
}

void Checker::backends() {
  const auto& comm = config_.text("comm.backend");
  const auto& kernels = config_.text("numerics.backend");
  const bool on_gpu = comm == "nccl" || comm == "staged";
  if (on_gpu && (kernels == "cpu" || kernels == "reference")) {
    mistake("{} does not go with {} (it moves GPU memory); set comm.backend=auto",
            cited("comm.backend"), cited("numerics.backend"));
  }
  if (!on_gpu && comm != "auto" && kernels == "cuda") {
    mistake("{} does not go with {} (it moves host memory); set comm.backend=auto",
            cited("comm.backend"), cited("numerics.backend"));
  }
}

void Checker::evaluation() {
  if (config_.integer("train.eval_every") > 0 &&
      config_.weighted_texts("data.validation").empty()) {
    mistake(
        "{} needs data.validation (there is nothing to evaluate on); give the prefix of "
        "held-out tokens, or set train.eval_every=0",
        cited("train.eval_every"));
  }
}

void Checker::rounding() {
  if (config_.flag("numerics.stochastic_rounding") &&
      config_.text("numerics.precision") == "fp32") {
    mistake(
        "{} does not go with {} (parameters are their own fp32 masters, and nothing is rounded); "
        "set numerics.precision=bf16 or fp8, or numerics.stochastic_rounding=false",
        cited("numerics.stochastic_rounding"), cited("numerics.precision"));
  }
}

}  // namespace

base::Status check(const Config& config) {
  Checker checker(config);
  checker.batches();
  checker.lengths();
  checker.schedule();
  checker.stage_layers();
  checker.learning_rate();
  checker.rope_scaling();
  checker.backends();
  checker.evaluation();
  checker.rounding();
  return checker.finish();
}

}  // namespace trireme::config
