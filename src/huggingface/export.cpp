// SPDX-License-Identifier: Apache-2.0
// A step folder as a Hugging Face folder.
#include "trireme/huggingface/export.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/load.hpp"
#include "trireme/huggingface/safetensors.hpp"
#include "trireme/huggingface/stored_tensor.hpp"
#include "trireme/huggingface/weights.hpp"
#include "trireme/model/parameters.hpp"

#include "exported_texts.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace trireme::huggingface {

namespace fs = std::filesystem;

namespace {

/// A stored tensor and the parameters that it is made of.
struct Source {
  StoredTensor tensor;
  std::vector<std::pair<std::int64_t, model::Parameter>> parts;  // first row, parameter
};

std::vector<Source> sources_of(const model::ModelConfig& config) {
  std::vector<Source> sources;
  std::map<std::string, std::size_t> index;
  for (const auto& parameter : model::parameters(config)) {
    const auto tensor = stored_tensor(config, parameter);
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

void store(std::span<const float> values, const device::Tensor& to) {
  if (to.dtype() == device::DType::f32) {
    std::copy(values.begin(), values.end(), to.f32());
  } else {
    std::transform(values.begin(), values.end(), to.bf16(), device::to_bf16);
  }
}

}  // namespace

fs::path export_folder(const ExportRequest& request) {
  const auto config = base::value_or_throw(model_of_weights(request.step));
  const auto found =
      base::value_or_throw(checkpoint::find_step(request.step, checkpoint::VerifyLevel::full));
  if (!request.key.empty()) {
    const auto signed_report =
        checkpoint::verify(found.path, checkpoint::VerifyLevel::quick, 0, request.key);
    if (!signed_report.good()) {
      throw base::Error(base::ExitCode::checkpoint, signed_report.damages.front().text);
    }
  }
  const ExportedTexts texts(request, found.path, config);
  std::error_code error;
  fs::create_directories(request.folder, error);
  if (error) {
    throw base::Error(
        base::ExitCode::checkpoint,
        base::format("cannot make '{}': {}", request.folder.string(), error.message()));
  }
  const auto sources = sources_of(config);
  TensorReader reader(found.path);
  std::vector<SafetensorsOutput> outputs;
  for (const auto& source : sources) {
    outputs.push_back(
        {source.tensor.name, request.dtype, source.tensor.shape,
         [&reader, &source](std::int64_t begin, std::int64_t end, const device::Tensor& part) {
           store(
               std::span(reader.read(source))
                   .subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)),
               part);
         }});
  }
  write_safetensors(request.folder, outputs);
  texts.write();
  return found.path;
}

}  // namespace trireme::huggingface
