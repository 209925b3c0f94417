// SPDX-License-Identifier: Apache-2.0
#include "trireme/train/checkpoints.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/path.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/load.hpp"
#include "trireme/checkpoint/save.hpp"
#include "trireme/checkpoint/state_names.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/huggingface/config.hpp"
#include "trireme/optim/curve.hpp"
#include "trireme/schema/quoted.hpp"
#include "trireme/train/continuation.hpp"

#include "train/saving/async_saves.hpp"
#include "train/saving/saved_contents.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace trireme::train {
namespace {

base::Json state_json(const std::filesystem::path& run, const Progress& progress,
                      const config::Config& config, const engine::Engine& engine) {
  const auto& sharding = engine.sharding().options();
  base::Json state;
  state["data"] = {{"next_sample", progress.next_sample},
                   {"fingerprint", base::format("{:016x}", progress.data_fingerprint)}};
  state["mesh"] = sharding.mesh.text();
  // Where the learning rate has an end.
  const bool falls = optim::curve_from(config.options()).falls();
  state["planned_steps"] = falls ? config.options().train.steps : 0;
  state["zero_level"] = sharding.zero_level;
  state["seed"] = engine.options().numerics.seed;
  state["model"] = huggingface::config_json(engine.options().model);
  if (progress.updates != progress.step) state["updates"] = progress.updates;
  if (progress.evaluation_is_due) state["evaluation_is_due"] = true;
  // JSON has no numbers that are not finite.
  if (progress.validation_loss && std::isfinite(*progress.validation_loss)) {
    state[checkpoint::validation_loss_name] = *progress.validation_loss;
  }
  if (!progress.best_losses.empty()) state["best_losses"] = progress.best_losses;
  // Written even if the run has no tokenizer: readers check that it exists.
  state["tokenizer"] = schema::recorded(base::absolute(run / "tokenizer.json").native());
  state["config"] = config.resolved_text();
  return state;
}

/// True if the checkpoint lacks state of this run's optimizer: another one wrote it, or one that
/// had other matrices. The same on all ranks.
bool is_of_another_optimizer(const sharding::Sharding& sharding,
                             const checkpoint::Manifest& manifest) {
  const auto own = saved_contents(sharding);
  return std::any_of(own.tensors.begin(), own.tensors.end(), [&](const auto& tensor) {
    return checkpoint::is_moment(tensor.name) && manifest.contents.find(tensor.name) == nullptr;
  });
}

/// Sets fp32 values to zero, on the host or on a GPU.
void clear(device::Device& device, const device::Tensor& values) {
  if (device.is_host()) {
    std::memset(values.raw(), 0, values.byte_count());
    return;
  }
  constexpr std::int64_t most = std::int64_t{1} << 20;
  const std::vector<float> zeros(static_cast<std::size_t>(std::min(most, values.element_count())),
                                 0.0F);
  const auto flat = values.flat();
  for (std::int64_t begin = 0; begin < values.element_count(); begin += most) {
    device.copy_in(zeros.data(),
                   flat.slice(0, begin, std::min(most, values.element_count() - begin)));
  }
  device.synchronize();
}

/// Whether the optimizer's state begins with this step.
enum class Moments { stored, fresh };

Moments moments_of(const sharding::Sharding& sharding, const checkpoint::Manifest& manifest) {
  if (checkpoint::has_fresh_optimizer(manifest)) return Moments::fresh;
  if (!is_of_another_optimizer(sharding, manifest)) return Moments::stored;
  base::log::warning(
      "train",
      "step {} was saved without state of optimizer.name = {} as it is set here "
      "(by another optimizer, with other optimizer.adamw_matrices, or by an "
      "earlier version of trireme): its weights go on, and the optimizer's state begins anew",
      manifest.step, optim::name(sharding.options().rule.kind));
  return Moments::fresh;
}

/// Items to load. Fresh moments begin at zero: a damaged step that was tried before may have filled
/// them in part.
std::vector<checkpoint::LoadItem> wanted(engine::Engine& engine, Moments moments) {
  std::vector<checkpoint::LoadItem> items;
  for (const auto& part : engine.state_parts()) {
    if (moments == Moments::fresh && checkpoint::is_moment(part.name)) {
      clear(engine.device(), part.values);
    } else {
      items.push_back({part.name, part.shape, part.box, part.values});
    }
  }
  return items;
}

Progress progress_of(const checkpoint::LoadReport& report, Moments moments) {
  Progress progress;
  progress.step = report.step;
  progress.tokens = report.tokens;
  try {
    const auto& data = report.state.at("data");
    // Moments of zero are biased as before the first update, whatever the step.
    progress.updates = moments == Moments::fresh ? 0 : report.state.value("updates", report.step);
    progress.next_sample = data.at("next_sample").get<std::uint64_t>();
    progress.planned_steps = report.state.value("planned_steps", std::int64_t{0});
    progress.evaluation_is_due = report.state.value("evaluation_is_due", false);
    progress.best_losses = report.state.value("best_losses", std::vector<double>{});
    progress.data_fingerprint = std::stoull(data.at("fingerprint").get<std::string>(), nullptr, 16);
  } catch (const std::exception& error) {
    throw base::Error(base::ExitCode::checkpoint,
                      base::format("{}: the manifest's data cursor cannot be read: {}",
                                   report.folder.string(), error.what()));
  }
  return progress;
}

Resumed resumed(const checkpoint::LoadReport& report, Moments moments, engine::Engine& engine) {
  const auto progress = progress_of(report, moments);
  engine.state_changed(progress.updates);
  return {progress, report};
}

checkpoint::LoadOptions to_device_of(engine::Engine& engine, checkpoint::LoadOptions options) {
  auto& device = engine.device();
  options.device = device.is_host() ? nullptr : &device;
  return options;
}

}  // namespace

bool Progress::evaluated(double loss, int keep) {
  validation_loss = loss;
  if (!std::isfinite(loss)) return false;
  const auto place = std::upper_bound(best_losses.begin(), best_losses.end(), loss);
  const auto rank = place - best_losses.begin();
  best_losses.insert(place, loss);
  const auto kept = static_cast<std::size_t>(keep);
  if (best_losses.size() > kept) best_losses.resize(kept);
  return rank < keep;
}

checkpoint::SaveRequest save_request(const SavedRun& saved, engine::Engine& engine) {
  if (engine.tied_copies_differ()) {
    base::log::local::warning(
        "train",
        "step {}: the copies of the tied table 'embedding.weight' on the first and the last "
        "pipeline stage are not the same (their gradients were not added alike); the checkpoint "
        "holds the first stage's, with which both go on after a resume; please report this",
        saved.progress.step);
  }
  checkpoint::SaveRequest request;
  request.checkpoints = saved.checkpoints;
  request.step = saved.progress.step;
  request.tokens = saved.progress.tokens;
  request.tool_version = saved.tool_version;
  request.state = state_json(saved.run, saved.progress, saved.config, engine);
  request.contents = saved.contents;
  request.key = saved.key;
  return request;
}

checkpoint::SaveReport save(const SavedRun& saved, engine::Engine& engine,
                            comm::ProcessGroup& world) {
  auto request = save_request(saved, engine);
  request.shards = engine.saved_shards();
  auto& device = engine.device();
  if (!device.is_host()) request.device = &device;
  return checkpoint::save(request, world,
                          {.files = saved.files, .before_commit = saved.before_commit});
}

std::optional<Resumed> resume(const std::filesystem::path& checkpoints, engine::Engine& engine,
                              comm::ProcessGroup& world, const checkpoint::LoadOptions& options) {
  auto moments = Moments::stored;
  const auto report = checkpoint::load_newest(
      checkpoints,
      [&](const checkpoint::Manifest& manifest) {
        base::success_or_throw(check_model(engine.options().model, manifest.state, checkpoints));
        moments = moments_of(engine.sharding(), manifest);
        return wanted(engine, moments);
      },
      world, to_device_of(engine, options));
  if (!report) return std::nullopt;
  return resumed(*report, moments, engine);
}

Resumed resume_from(const std::filesystem::path& path, engine::Engine& engine,
                    comm::ProcessGroup& world, const checkpoint::LoadOptions& options) {
  auto moments = Moments::stored;
  const auto report = checkpoint::load_from(
      path,
      [&](const checkpoint::Manifest& manifest) {
        moments = moments_of(engine.sharding(), manifest);
        return wanted(engine, moments);
      },
      world, to_device_of(engine, options));
  return resumed(report, moments, engine);
}

}  // namespace trireme::train
