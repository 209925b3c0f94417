// A step folder as a Hugging Face folder.
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/load.hpp"
#include "trireme/checkpoint/safetensors.hpp"
#include "trireme/model/parameters.hpp"
#include "trireme/train/weights.hpp"

#include "text_bytes.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace trireme::train {

namespace fs = std::filesystem;

namespace {

/// A stored tensor and the parameters that it is made of.
struct Source {
  model::HuggingFaceTensor tensor;
  std::vector<std::pair<std::int64_t, model::Parameter>> parts;  // first row, parameter
};

std::vector<Source> sources_of(const model::ModelConfig& config) {
  std::vector<Source> sources;
  std::map<std::string, std::size_t> index;
  for (const auto& parameter : model::parameters(config)) {
    const auto tensor = model::huggingface_tensor(config, parameter);
    const auto [place, is_new] = index.emplace(tensor.name, sources.size());
    if (is_new) sources.push_back({tensor, {}});
    sources[place->second].parts.emplace_back(tensor.first_row, parameter);
  }
  return sources;
}

/// Reads whole tensors of a step, one at a time: in the orientation of Hugging Face's file.
class TensorReader {
 public:
  explicit TensorReader(fs::path step)
      : step_(std::move(step)), manifest_(base::value_or_throw(checkpoint::read_manifest(step_))) {}

  const std::vector<float>& read(const Source& source) {
    if (held_ != source.tensor.name) {
      values_.assign(static_cast<std::size_t>(layout::element_count(source.tensor.shape)), 0.0F);
      for (const auto& [first_row, parameter] : source.parts)
        read_part(source, first_row, parameter);
      held_ = source.tensor.name;
    }
    return values_;
  }

 private:
  void read_part(const Source& source, std::int64_t first_row, const model::Parameter& parameter) {
    const auto& shape = parameter.tensor.shape;
    std::vector<float> part(static_cast<std::size_t>(layout::element_count(shape)));
    const device::Tensor flat(part.data(), device::DType::f32,
                              {static_cast<std::int64_t>(part.size())});
    const checkpoint::LoadItem item{parameter.tensor.name, shape, layout::whole(shape), flat};
    checkpoint::load_alone(step_, manifest_, {&item, 1});
    const std::int64_t columns = shape.size() == 2 ? shape[1] : 1;
    if (!source.tensor.transposed) {
      std::copy(part.begin(), part.end(), values_.begin() + first_row * columns);
      return;
    }
    const std::int64_t width = source.tensor.shape[1];
    for (std::int64_t row = 0; row < shape[0]; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        values_[static_cast<std::size_t>(column * width + first_row + row)] =
            part[static_cast<std::size_t>(row * columns + column)];
      }
    }
  }

  fs::path step_;
  checkpoint::Manifest manifest_;
  std::string held_;
  std::vector<float> values_;
};

}  // namespace

void export_huggingface(const fs::path& step, const fs::path& folder, const fs::path& tokenizer) {
  const auto config = base::value_or_throw(model_of_weights(step));
  const auto found =
      base::value_or_throw(checkpoint::find_step(step, checkpoint::VerifyLevel::full));
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw base::Error(base::ExitCode::checkpoint,
                      base::format("cannot make '{}': {}", folder.string(), error.message()));
  }
  const auto sources = sources_of(config);
  TensorReader reader(found.path);
  std::vector<checkpoint::SafetensorsOutput> outputs;
  for (const auto& source : sources) {
    outputs.push_back(
        {source.tensor.name, device::DType::f32, source.tensor.shape,
         [&reader, &source](std::int64_t begin, std::int64_t end, const device::Tensor& part) {
           const auto& values = reader.read(source);
           std::copy(values.begin() + begin, values.begin() + end, part.f32());
         }});
  }
  checkpoint::write_safetensors(folder, outputs);
  base::write_file_durably(folder / "config.json", model::to_huggingface(config).dump(2) + "\n");
  const auto spoken = tokenizer.empty() ? tokenizer_of_weights(found.path) : tokenizer;
  if (!spoken.empty()) {
    base::write_file_durably(folder / "tokenizer.json",
                             base::value_or_throw(base::read_text_file(spoken)));
  }
}

}  // namespace trireme::train
