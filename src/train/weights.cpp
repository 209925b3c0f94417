#include "trireme/train/weights.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/load.hpp"
#include "trireme/checkpoint/safetensors.hpp"
#include "trireme/model/parameters.hpp"

#include "attempt.hpp"

#include <map>
#include <string>
#include <vector>

namespace trireme::train {

namespace fs = std::filesystem;
using checkpoint::SafetensorsFolder;

namespace {

/// A part of a parameter and where its values go.
struct Wanted {
  std::string name;
  layout::Shape shape;
  layout::Box box;
  device::Tensor values;
};

std::vector<Wanted> wanted_parts(engine::Engine& engine) {
  std::vector<Wanted> wanted;
  if (engine.options().use == engine::Use::training) {
    for (const auto& part : engine.state_parts()) {
      // Moments have a purpose before their name; masters do not.
      if (part.name.find('/') == std::string::npos) {
        wanted.push_back({part.name, part.shape, part.box, part.values});
      }
    }
    return wanted;
  }
  for (const auto& part : engine.parameter_parts()) {
    wanted.push_back({part.name, part.shape, part.box, part.values});
  }
  return wanted;
}

/// Base models are stored without the prefix that their language models have.
std::string stored_name(const SafetensorsFolder& folder, const std::string& name) {
  if (folder.find(name) != nullptr) return name;
  const auto dot = name.find('.');
  const auto bare = dot == std::string::npos ? name : name.substr(dot + 1);
  return folder.find(bare) != nullptr ? bare : name;
}

void read_part(const SafetensorsFolder& folder, const model::HuggingFaceTensor& source,
               const Wanted& wanted) {
  auto box = wanted.box;
  box.offset[0] += source.first_row;
  const auto name = stored_name(folder, source.name);
  if (const auto* entry = folder.find(name); entry != nullptr && entry->shape != source.shape) {
    throw base::Error(
        base::ExitCode::checkpoint,
        base::format("tensor '{}' has shape [{}] but the model needs [{}]; check "
                     "config.json",
                     name, base::join(entry->shape, ", "), base::join(source.shape, ", ")));
  }
  base::success_or_throw(folder.read_box(name, box, wanted.values,
                                         source.transposed
                                             ? SafetensorsFolder::Orientation::transposed
                                             : SafetensorsFolder::Orientation::as_stored));
}

base::Result<base::Json> state_of_step(const fs::path& path) {
  auto step = checkpoint::find_step(path);
  if (!step) return step.failure();
  auto manifest = checkpoint::read_manifest(step->path);
  if (!manifest) return manifest.failure();
  return manifest->state;
}

void read_huggingface(const fs::path& folder, engine::Engine& engine) {
  const auto tensors = base::value_or_throw(SafetensorsFolder::open(folder));
  const auto& config = engine.options().model;
  std::map<std::string, model::HuggingFaceTensor> sources;
  for (const auto& parameter : model::parameters(config)) {
    sources.emplace(parameter.tensor.name, model::huggingface_tensor(config, parameter));
  }
  for (const auto& wanted : wanted_parts(engine)) {
    read_part(tensors, sources.at(wanted.name), wanted);
  }
}

void read_step(const fs::path& path, engine::Engine& engine, comm::ProcessGroup& world) {
  const auto step = runtime::agree(world, checkpoint::find_step(path));
  std::vector<checkpoint::LoadItem> items;
  for (const auto& wanted : wanted_parts(engine)) {
    items.push_back({wanted.name, wanted.shape, wanted.box, wanted.values});
  }
  checkpoint::load(step.path, items, world);
}

}  // namespace

bool is_huggingface(const fs::path& path) {
  return fs::exists(path / "config.json");
}

void load_parameters(const fs::path& path, engine::Engine& engine, comm::ProcessGroup& world) {
  if (is_huggingface(path)) {
    runtime::agree(world, attempt([&] { read_huggingface(path, engine); }));
  } else {
    read_step(path, engine, world);
  }
  if (engine.options().use == engine::Use::training) engine.state_changed();
}

base::Result<model::ModelConfig> model_of_weights(const fs::path& path) {
  if (is_huggingface(path)) return model::read_huggingface(path);
  const auto state = state_of_step(path);
  if (!state) return state.failure();
  if (!state->contains("model")) {
    return base::Failure{base::ExitCode::checkpoint,
                         base::format("'{}' does not say of which model it is", path.string())};
  }
  return model::from_huggingface((*state)["model"]);
}

}  // namespace trireme::train
