// A Hugging Face folder as a step that everything here reads.
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/save.hpp"
#include "trireme/train/weights.hpp"

#include "attempt.hpp"
#include "huggingface_weights.hpp"
#include "run_files.hpp"
#include "state_names.hpp"

#include <string>
#include <vector>

namespace trireme::train {

namespace fs = std::filesystem;

namespace {

base::Failure refusal(std::string text) {
  return {base::ExitCode::checkpoint, std::move(text)};
}

base::Result<model::ModelConfig> source_model(const fs::path& folder) {
  if (!is_huggingface(folder)) {
    return refusal(base::format(
        "'{}' has no config.json (it says of which model the weights are); name a Hugging Face "
        "folder with config.json and safetensors",
        folder.string()));
  }
  return model_of_weights(folder);
}

/// This rank's rows of every parameter.
class Share {
 public:
  Share(const model::ModelConfig& config, comm::ProcessGroup& world) {
    for (const auto& parameter : model::parameters(config)) {
      const auto& spec = parameter.tensor;
      auto box = layout::whole(spec.shape);
      const auto rows = spec.shape[0];
      box.offset[0] = rows * world.rank() / world.size();
      box.length[0] = rows * (world.rank() + 1) / world.size() - box.offset[0];
      items_.push_back({spec.name, spec.shape, box, {}});
    }
    values_.resize(items_.size());
  }

  void read(const HuggingFaceWeights& weights) {
    for (std::size_t index = 0; index < items_.size(); ++index) {
      auto& item = items_[index];
      const auto count = layout::element_count(item.box);
      const auto dtype = weights.dtype(item.name);
      values_[index].resize(static_cast<std::size_t>(count) * device::size_of(dtype));
      item.data = device::Tensor(values_[index].data(), dtype, {count});
      if (count > 0) weights.read(item.name, item.box, item.data);
    }
  }
  std::vector<checkpoint::SaveItem> items() const { return items_; }

 private:
  std::vector<checkpoint::SaveItem> items_;
  std::vector<std::vector<std::byte>> values_;
};

/// The run's folder with what came with the weights: the model's description, and the tokenizer if
/// there is one.
void prepare_run(const fs::path& folder, const model::ModelConfig& model, const fs::path& run) {
  if (!checkpoint::list(checkpoint::checkpoints_of_run(run)).empty()) {
    throw base::Error(base::ExitCode::checkpoint,
                      base::format("'{}' has checkpoints already (importing overwrites nothing); "
                                   "name another folder",
                                   run.string()));
  }
  if (is_huggingface(run)) {
    throw base::Error(base::ExitCode::checkpoint,
                      base::format("'{}' has a config.json (it would be read as a Hugging Face "
                                   "folder, not as a run); name another folder",
                                   run.string()));
  }
  std::error_code error;
  fs::create_directories(run, error);
  if (error) {
    throw base::Error(base::ExitCode::checkpoint,
                      base::format("cannot make '{}': {}", run.string(), error.message()));
  }
  keep_model(model, run);
  keep_companions(folder, run);
  if (fs::exists(folder / "tokenizer.json")) keep_tokenizer(folder / "tokenizer.json", run);
}

base::Json state_of(const fs::path& folder, const model::ModelConfig& config, const fs::path& run) {
  base::Json state;
  state["data"] = {{"next_sample", 0}, {"fingerprint", base::format("{:016x}", 0)}};
  state["optimizer"] = fresh_optimizer;
  state["imported_from"] = fs::absolute(folder).lexically_normal().string();
  state["model"] = model::to_huggingface(config);
  state["tokenizer"] = fs::absolute(run / "tokenizer.json").lexically_normal().string();
  return state;
}

}  // namespace

fs::path import_huggingface(const fs::path& folder, const fs::path& run,
                            comm::ProcessGroup& world) {
  const auto config = runtime::agree(world, source_model(folder));
  Share share(config, world);
  runtime::agree(world, attempt([&] { share.read(HuggingFaceWeights(folder, config)); }));
  runtime::agree(world, attempt([&] {
                   if (world.rank() == 0) prepare_run(folder, config, run);
                 }));
  checkpoint::SaveRequest request;
  request.checkpoints = checkpoint::checkpoints_of_run(run);
  request.tool_version = "trireme";
  request.state = state_of(folder, config, run);
  request.items = share.items();
  const auto report = checkpoint::save(request, world);
  base::log::info("checkpoint", "{} parameters, {}, from '{}' as step 0",
                  model::parameter_count(config), base::bytes_text(report.payload_bytes),
                  folder.string());
  return report.folder;
}

}  // namespace trireme::train
