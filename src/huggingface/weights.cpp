// SPDX-License-Identifier: Apache-2.0
#include "trireme/huggingface/weights.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/path.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/load.hpp"
#include "trireme/checkpoint/state_names.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/huggingface/config.hpp"
#include "trireme/huggingface/run_files.hpp"
#include "trireme/model/model_keys.hpp"
#include "trireme/schema/quoted.hpp"

#include "stored_weights.hpp"

#include <string>
#include <vector>

namespace trireme::huggingface {

namespace fs = std::filesystem;

namespace {

/// A part of a parameter and where its values go.
struct Wanted {
  std::string name;
  layout::Shape shape;
  layout::Box box;
  device::Tensor values;
};

std::vector<Wanted> wanted_of(const std::vector<engine::ParameterPart>& parts) {
  std::vector<Wanted> wanted;
  for (const auto& part : parts) wanted.push_back({part.name, part.shape, part.box, part.values});
  return wanted;
}

std::vector<Wanted> wanted_parts(engine::Engine& engine) {
  if (!engine.trains()) return wanted_of(engine.parameter_parts());
  std::vector<Wanted> wanted;
  for (const auto& part : engine.state_parts()) {
    if (checkpoint::is_moment(part.name)) continue;
    wanted.push_back({part.name, part.shape, part.box, part.values});
  }
  return wanted;
}

base::Result<base::Json> state_of_step(const fs::path& path) {
  auto step = checkpoint::find_step(path);
  if (!step) return step.failure();
  auto manifest = checkpoint::read_manifest(step->path);
  if (!manifest) return manifest.failure();
  return manifest->state;
}

void read_huggingface(const fs::path& folder, const model::ModelConfig& config,
                      const std::vector<Wanted>& all_wanted, device::Device& device) {
  const StoredWeights weights(folder, config);
  for (const auto& wanted : all_wanted) {
    // Host memory for one of them at a time.
    device::HostMirror mirror(device);
    weights.read(wanted.name, wanted.box, mirror.of(wanted.values));
    mirror.store();
  }
}

void read_step(const fs::path& path, const std::vector<Wanted>& all_wanted, device::Device& device,
               comm::ProcessGroup& world, const std::string& key) {
  std::vector<checkpoint::LoadItem> items;
  for (const auto& wanted : all_wanted) {
    items.push_back({wanted.name, wanted.shape, wanted.box, wanted.values});
  }
  checkpoint::load_from(path, [&](const checkpoint::Manifest&) { return items; }, world,
                        {.access = {.key = key}, .device = device.is_host() ? nullptr : &device});
}

void read_wanted(const fs::path& path, const model::ModelConfig& model,
                 const std::vector<Wanted>& wanted, device::Device& device,
                 comm::ProcessGroup& world, const std::string& key) {
  if (is_model_folder(path)) {
    comm::agree(world, comm::status_of([&] { read_huggingface(path, model, wanted, device); }));
  } else {
    read_step(path, wanted, device, world, key);
  }
}

}  // namespace

bool is_model_folder(const fs::path& path) {
  return base::exists(path / "config.json");
}

void load_parameters(const fs::path& path, engine::Engine& engine, comm::ProcessGroup& world,
                     const std::string& key) {
  read_wanted(path, engine.options().model, wanted_parts(engine), engine.device(), world, key);
  if (engine.trains()) engine.state_changed(0);
}

void load_parameters(const fs::path& path, const model::ModelConfig& model,
                     const DeviceParts& parts, comm::ProcessGroup& world, const std::string& key) {
  read_wanted(path, model, wanted_of(parts.parts), parts.device, world, key);
}

fs::path tokenizer_of_weights(const fs::path& path) {
  std::error_code error;
  fs::path found = run_of(path) / "tokenizer.json";
  if (!fs::is_regular_file(found, error) && !is_model_folder(path)) {
    const auto state = state_of_step(path);
    if (!state || !state->contains("tokenizer") || !(*state)["tokenizer"].is_string()) return {};
    found = schema::from_recorded((*state)["tokenizer"].get<std::string>());
  }
  return fs::is_regular_file(found, error) ? found : fs::path{};
}

fs::path tokenizer_for(const config::Config& config, const fs::path& weights) {
  fs::path named = config.options().data.tokenizer;
  std::error_code error;
  if (!named.empty() && fs::is_regular_file(named, error)) return named;
  // Paths of a configuration are relative to where it is used; the run's own copy is not.
  const auto own = tokenizer_of_weights(weights);
  return own.empty() ? named : own;
}

base::Result<model::ModelConfig> model_of_weights(const fs::path& path,
                                                  const config::Config& config) {
  auto model = model_of_weights(path);
  if (!model) return model;
  if (const auto texts = model::contradictions(config, *model); !texts.empty()) {
    base::log::warning("huggingface", "weights are of their own model, and not of {}: '{}'",
                       base::join(texts, ", "), path.string());
  }
  const auto& positions = config.options().model.max_position_embeddings;
  if (model->has_rotary() && positions) model->max_position_embeddings = *positions;
  return model;
}

base::Result<model::ModelConfig> model_of_weights(const fs::path& path) {
  if (is_model_folder(path)) {
    auto config = read_config(path);
    // Unusable weights are not a mistake of the command line.
    if (!config) return base::Failure{base::ExitCode::checkpoint, config.failure().text};
    return config;
  }
  const auto state = state_of_step(path);
  if (!state) {
    return base::Failure{
        state.failure().code,
        base::format("{}; weights are a step, a run directory, or a Hugging Face folder with "
                     "config.json and safetensors",
                     state.failure().text)};
  }
  if (!state->contains("model")) {
    return base::Failure{base::ExitCode::checkpoint,
                         base::format("'{}' does not say of which model it is", path.string())};
  }
  auto model = parse_config((*state)["model"], base::format("model of '{}'", path.string()));
  if (!model) return base::Failure{base::ExitCode::checkpoint, model.failure().text};
  return model;
}

}  // namespace trireme::huggingface
