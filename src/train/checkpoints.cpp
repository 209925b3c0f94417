#include "trireme/train/checkpoints.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/load.hpp"
#include "trireme/checkpoint/save.hpp"
#include "trireme/runtime/agree.hpp"

#include "state_names.hpp"

#include <vector>

namespace trireme::train {
namespace {

base::Json state_json(const std::filesystem::path& run, const Progress& progress,
                      const config::Config& config, const engine::EngineOptions& options) {
  base::Json state;
  state["data"] = {{"next_sample", progress.next_sample},
                   {"fingerprint", base::format("{:016x}", progress.data_fingerprint)}};
  state["mesh"] = options.mesh.text();
  state["zero_level"] = options.zero_level;
  state["seed"] = options.seed;
  state["model"] = model::to_huggingface(options.model);
  // Whether the run has one is asked by those who read it.
  state["tokenizer"] = std::filesystem::absolute(run / "tokenizer.json").string();
  state["config"] = config.resolved_text();
  return state;
}

/// Moments that the checkpoint never had begin at zero, as they stand in a new engine.
std::vector<checkpoint::LoadItem> wanted(engine::Engine& engine,
                                         const checkpoint::Manifest& manifest,
                                         device::HostMirror& mirror) {
  const bool fresh = has_fresh_optimizer(manifest);
  std::vector<checkpoint::LoadItem> items;
  for (const auto& part : engine.state_parts()) {
    if (fresh && is_moment(part.name)) continue;
    items.push_back({part.name, part.shape, part.box, mirror.of(part.values)});
  }
  return items;
}

Progress progress_of(const checkpoint::LoadReport& report) {
  Progress progress;
  progress.step = report.step;
  progress.tokens = report.tokens;
  try {
    const auto& data = report.state.at("data");
    progress.next_sample = data.at("next_sample").get<std::uint64_t>();
    progress.data_fingerprint = std::stoull(data.at("fingerprint").get<std::string>(), nullptr, 16);
  } catch (const std::exception& error) {
    throw base::Error(base::ExitCode::checkpoint,
                      base::format("{}: the manifest's data cursor cannot be read: {}",
                                   report.folder.string(), error.what()));
  }
  return progress;
}

}  // namespace

std::uint64_t save(const std::filesystem::path& run, const Progress& progress,
                   const config::Config& config, engine::Engine& engine,
                   comm::ProcessGroup& world) {
  if (engine.tied_copies_differ()) {
    base::log::local::warning(
        "train",
        "step {}: the copies of the tied table 'embedding.weight' on the first and the last "
        "pipeline stage are not the same (their gradients were not added alike); the checkpoint "
        "holds the first stage's, with which both go on after a resume; please report this",
        progress.step);
  }
  checkpoint::SaveRequest request;
  request.checkpoints = checkpoint::checkpoints_of_run(run);
  request.step = progress.step;
  request.tokens = progress.tokens;
  request.tool_version = "trireme";
  request.state = state_json(run, progress, config, engine.options());
  device::HostMirror snapshot(engine.device());
  for (const auto& part : engine.state_parts()) {
    // Copies on other tensor-parallel ranks or stages may be cut at other places.
    if (!part.primary) continue;
    request.items.push_back({part.name, part.shape, part.box, snapshot.of(part.values)});
  }
  snapshot.fetch();
  return checkpoint::save(request, world).payload_bytes;
}

std::optional<Progress> resume(const std::filesystem::path& run, engine::Engine& engine,
                               comm::ProcessGroup& world) {
  // Anew for each step that is tried.
  std::optional<device::HostMirror> mirror;
  const auto report = checkpoint::load_newest(
      checkpoint::checkpoints_of_run(run),
      [&](const checkpoint::Manifest& manifest) {
        return wanted(engine, manifest, mirror.emplace(engine.device()));
      },
      world);
  if (!report) return std::nullopt;
  TRIREME_ENSURE(mirror.has_value(), "a step that was loaded was asked what it has");
  mirror->store();
  const auto progress = progress_of(*report);
  engine.state_changed(progress.step);
  return progress;
}

Progress resume_from(const std::filesystem::path& path, engine::Engine& engine,
                     comm::ProcessGroup& world) {
  const auto step = runtime::agree(world, checkpoint::find_step(path));
  const auto manifest = runtime::agree(world, checkpoint::read_manifest(step.path));
  device::HostMirror mirror(engine.device());
  const auto items = wanted(engine, manifest, mirror);
  const auto report = checkpoint::load(step.path, items, world);
  mirror.store();
  const auto progress = progress_of(report);
  engine.state_changed(progress.step);
  return progress;
}

}  // namespace trireme::train
