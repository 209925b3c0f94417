// SPDX-License-Identifier: Apache-2.0
// A Hugging Face folder as a step that everything here reads.
#include "trireme/huggingface/import.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/save.hpp"
#include "trireme/checkpoint/state_names.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/huggingface/config.hpp"
#include "trireme/huggingface/run_files.hpp"
#include "trireme/huggingface/weights.hpp"
#include "trireme/model/parameters.hpp"
#include "trireme/runtime/run_lock.hpp"

#include "stored_weights.hpp"

#include <optional>
#include <string>
#include <vector>

namespace trireme::huggingface {

namespace fs = std::filesystem;

namespace {

base::Failure refusal(std::string text) {
  return {base::ExitCode::checkpoint, std::move(text)};
}

base::Result<model::ModelConfig> source_model(const fs::path& folder) {
  if (!is_model_folder(folder)) {
    return refusal(base::format(
        "'{}' has no config.json (it says of which model the weights are); name a Hugging Face "
        "folder with config.json and safetensors",
        folder.string()));
  }
  return model_of_weights(folder);
}

/// Rows of every parameter on this rank.
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

  void read(const StoredWeights& weights) {
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

/// Refuses a run directory that is already in use.
void refuse_used(const fs::path& run) {
  if (!checkpoint::list(checkpoint::checkpoints_of_run(run)).empty()) {
    throw base::Error(base::ExitCode::checkpoint,
                      base::format("'{}' has checkpoints already (importing overwrites nothing); "
                                   "name another folder",
                                   run.string()));
  }
  if (is_model_folder(run)) {
    throw base::Error(base::ExitCode::checkpoint,
                      base::format("'{}' has a config.json (it would be read as a Hugging Face "
                                   "folder, not as a run); name another folder",
                                   run.string()));
  }
}

/// Locks the run for this process, until the step is committed.
runtime::RunLock open_run(const fs::path& run, const std::string& job) {
  // Checked before anything is written; and again under the lock, because another start may have
  // been faster.
  refuse_used(run);
  auto lock = base::value_or_throw(runtime::RunLock::take(run, job));
  refuse_used(run);
  return lock;
}

/// Copies the files of the weights into the run: the model's description, and the tokenizer if
/// there is one.
void keep_files(const fs::path& folder, const model::ModelConfig& model, const fs::path& run) {
  keep_model(model, run);
  keep_companions(folder, run);
  if (fs::exists(folder / "tokenizer.json")) keep_tokenizer(folder / "tokenizer.json", run);
}

base::Json state_of(const fs::path& folder, const model::ModelConfig& config, const fs::path& run) {
  base::Json state;
  state["data"] = {{"next_sample", 0}, {"fingerprint", base::format("{:016x}", 0)}};
  state["optimizer"] = checkpoint::fresh_optimizer;
  state["imported_from"] = fs::absolute(folder).lexically_normal().string();
  state["model"] = config_json(config);
  state["tokenizer"] = fs::absolute(run / "tokenizer.json").lexically_normal().string();
  return state;
}

}  // namespace

fs::path import_folder(const ImportRequest& wanted, comm::ProcessGroup& world) {
  const auto& [folder, run, tool_version, job] = wanted;
  const auto config = comm::agree(world, source_model(folder));
  Share share(config, world);
  comm::agree(world, comm::status_of([&] { share.read(StoredWeights(folder, config)); }));
  // Lock on the first rank, until the step is committed.
  std::optional<runtime::RunLock> lock;
  comm::agree(world, comm::status_of([&] {
                if (world.rank() != 0) return;
                lock = open_run(run, job);
                keep_files(folder, config, run);
              }));
  checkpoint::SaveRequest request;
  request.checkpoints = checkpoint::checkpoints_of_run(run);
  request.tool_version = tool_version;
  request.state = state_of(folder, config, run);
  request.items = share.items();
  const auto report = checkpoint::save(request, world);
  base::log::info("checkpoint", "{} parameters, {}, from '{}' as step 0",
                  model::parameter_count(config), base::bytes_text(report.payload_bytes),
                  folder.string());
  return report.folder;
}

}  // namespace trireme::huggingface
