// SPDX-License-Identifier: Apache-2.0
// A Hugging Face folder as a step that everything here reads.
#include "trireme/huggingface/import.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/path.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/save.hpp"
#include "trireme/checkpoint/state_names.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/huggingface/config.hpp"
#include "trireme/huggingface/run_files.hpp"
#include "trireme/huggingface/weights.hpp"
#include "trireme/layout/flat.hpp"
#include "trireme/model/parameters.hpp"
#include "trireme/record/run_lock.hpp"
#include "trireme/schema/quoted.hpp"

#include "stored_weights.hpp"

#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace trireme::huggingface {

namespace fs = std::filesystem;

namespace {

base::Result<model::ModelConfig> source_model(const fs::path& folder) {
  if (!is_model_folder(folder)) {
    return base::checkpoint_failure(base::format(
        "'{}' has no config.json (it says of which model the weights are); name a Hugging Face "
        "folder with config.json and safetensors",
        folder.string()));
  }
  return model_of_weights(folder);
}

/// This rank's share of the weights: the parameters of each stored type, one after another, are cut
/// into equal shards.
class Share {
 public:
  /// Reads the share. Throws Error (checkpoint).
  Share(const StoredWeights& weights, const model::ModelConfig& config,
        const comm::ProcessGroup& world) {
    checkpoint::ContentsBuilder builder;
    for (const auto dtype : {device::DType::f32, device::DType::bf16}) {
      std::vector<layout::TensorSpec> tensors;
      for (const auto& parameter : model::parameters(config)) {
        if (weights.dtype(parameter.tensor.name) == dtype) tensors.push_back(parameter.tensor);
      }
      if (!tensors.empty()) add(weights, tensors, dtype, world, builder);
    }
    contents_ = builder.take();
  }

  const checkpoint::Contents& contents() const { return contents_; }
  const std::vector<device::Tensor>& shards() const { return shards_; }

 private:
  void add(const StoredWeights& weights, const std::vector<layout::TensorSpec>& tensors,
           device::DType dtype, const comm::ProcessGroup& world,
           checkpoint::ContentsBuilder& builder) {
    std::vector<std::int64_t> sizes;
    std::vector<layout::Box> boxes;
    for (const auto& tensor : tensors) {
      sizes.push_back(layout::element_count(tensor.shape));
      boxes.push_back(layout::whole(tensor.shape));
    }
    constexpr auto one_bucket = std::numeric_limits<std::int64_t>::max();
    const auto flat = layout::flat_layout(sizes, world.size(), one_bucket, 1);
    const auto mine = flat.shard_of_bucket(0, world.rank());
    const auto bucket =
        builder.add_bucket(dtype, {0, 1, static_cast<std::size_t>(world.size())}, mine.size());
    for (std::size_t index = 0; index < tensors.size(); ++index) {
      builder.add_part(tensors[index].name, tensors[index].shape, boxes[index], bucket,
                       flat.tensors[index].begin);
    }
    auto& values =
        values_.emplace_back(static_cast<std::size_t>(mine.size()) * device::size_of(dtype));
    shards_.push_back({values.data(), dtype, {mine.size()}});
    for (const auto& [tensor, box, begin] : layout::pieces_of_shard(flat, boxes, world.rank())) {
      weights.read(tensors[tensor].name, box,
                   shards_.back().slice(0, begin - mine.begin, layout::element_count(box)));
    }
  }

  checkpoint::Contents contents_;
  std::deque<std::vector<std::byte>> values_;
  std::vector<device::Tensor> shards_;
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
record::RunLock open_run(const fs::path& run, const std::string& job) {
  // Checked before anything is written; and again under the lock, because another start may have
  // been faster.
  refuse_used(run);
  auto lock = base::value_or_throw(record::RunLock::take(run, job));
  refuse_used(run);
  return lock;
}

/// Copies the files of the weights into the run: the model's description, and the tokenizer if
/// there is one.
void keep_files(const fs::path& folder, const model::ModelConfig& model, const fs::path& run) {
  keep_model(model, run);
  keep_companions(folder, run);
  if (base::exists(folder / "tokenizer.json")) keep_tokenizer(folder / "tokenizer.json", run);
}

base::Json state_of(const fs::path& folder, const model::ModelConfig& config, const fs::path& run) {
  base::Json state;
  state["data"] = {{"next_sample", 0}, {"fingerprint", base::format("{:016x}", 0)}};
  state["optimizer"] = checkpoint::fresh_optimizer;
  state["imported_from"] = base::absolute(folder).lexically_normal().string();
  state["model"] = config_json(config);
  state["tokenizer"] =
      schema::recorded(base::absolute(run / "tokenizer.json").lexically_normal().native());
  return state;
}

}  // namespace

fs::path import_folder(const ImportRequest& wanted, comm::ProcessGroup& world) {
  const auto& [folder, run, tool_version, job] = wanted;
  const auto config = comm::agree(world, source_model(folder));
  const auto share =
      comm::agree_after(world, [&] { return Share(StoredWeights(folder, config), config, world); });
  // Lock on the first rank, until the step is committed.
  std::optional<record::RunLock> lock;
  comm::agree(world, comm::status_of([&] {
                if (world.rank() != 0) return;
                lock = open_run(run, job);
                keep_files(folder, config, run);
              }));
  checkpoint::SaveRequest request;
  request.checkpoints = checkpoint::checkpoints_of_run(run);
  request.tool_version = tool_version;
  request.state = state_of(folder, config, run);
  request.contents = share.contents();
  request.shards = share.shards();
  const auto report = checkpoint::save(request, world);
  base::log::info("checkpoint", "{} parameters, {}, from '{}' as step 0",
                  model::parameter_count(config), base::bytes_text(report.payload_bytes),
                  folder.string());
  return report.folder;
}

}  // namespace trireme::huggingface
