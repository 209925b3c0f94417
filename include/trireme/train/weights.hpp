#pragma once

#include "trireme/comm/process_group.hpp"
#include "trireme/config/config.hpp"
#include "trireme/engine/engine.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace trireme::train {

/// Whether a folder is one of Hugging Face's, with a config.json, and not ours.
bool is_huggingface(const std::filesystem::path& path);

/// Collective over the world. Fills the parameters that this rank holds from whatever people
/// have: a checkpoint step, a run (its newest verified step), or the safetensors of a Hugging
/// Face folder. An engine that trains gets masters too; its moments stay as they are. Throws
/// AgreedError (checkpoint) that names a tensor that is missing or has another shape.
void load_parameters(const std::filesystem::path& path, engine::Engine& engine,
                     comm::ProcessGroup& world);

/// Parts of parameters, and where their values lie.
struct DeviceParts {
  device::Device& device;
  std::vector<engine::ParameterPart> parts;
};
/// The same for parts of parameters, in f32 or the type that the products use.
void load_parameters(const std::filesystem::path& path, const model::ModelConfig& model,
                     const DeviceParts& parts, comm::ProcessGroup& world);

/// The tokenizer.json that belongs to weights: that of the Hugging Face folder or of the run; of a
/// step outside of a run, the one that it was trained with, when it still is where it was. Empty
/// when there is none.
std::filesystem::path tokenizer_of_weights(const std::filesystem::path& path);
/// What data.tokenizer names where that is a file, else tokenizer_of_weights(); data.tokenizer
/// where there is neither, for an error to name.
std::filesystem::path tokenizer_for(const config::Config& config,
                                    const std::filesystem::path& weights);

/// The model that such weights are of.
base::Result<model::ModelConfig> model_of_weights(const std::filesystem::path& path);
/// The same for a command that runs it: with as many positions as model.max_position_embeddings
/// gives a model with rotary embedding.
base::Result<model::ModelConfig> model_of_weights(const std::filesystem::path& path,
                                                  const config::Config& config);

enum class ExportTokenizer { required, left_out };

struct ExportRequest {
  /// A step, or a run: its newest.
  std::filesystem::path step;
  std::filesystem::path folder;
  /// tokenizer.json; empty: the one that belongs to the step.
  std::filesystem::path tokenizer;
  ExportTokenizer with_tokenizer = ExportTokenizer::required;
  /// f32 or bf16.
  device::DType dtype = device::DType::f32;
};

/// Writes a step as a Hugging Face folder: config.json, generation_config.json, safetensors,
/// tokenizer.json and tokenizer_config.json. What the run has kept of the folder that it was
/// imported from is written as it was. Throws Error (checkpoint); a tokenizer that is required and
/// not there is told before anything is written.
void export_huggingface(const ExportRequest& request);

struct ImportRequest {
  /// Of Hugging Face.
  std::filesystem::path folder;
  std::filesystem::path run;
  /// "trireme 0.1.0 (1a2b3c4)".
  std::string tool_version;
  /// Identity::job.
  std::string job;
};

/// Collective over the world. Writes the weights of a Hugging Face folder as step 0 of a run that
/// has no steps yet, without optimizer state: moments begin at zero when it is trained. Values
/// keep their bits (bf16 stays bf16; f16 becomes f32). Each rank holds its share of the rows.
/// Returns the step's folder. Throws Error (checkpoint): no config.json, or of a model that is not
/// built in; files that are missing, cut or malformed; a tensor that is missing or has another
/// shape; a run with steps. A run that another process holds: Error (launch).
std::filesystem::path import_huggingface(const ImportRequest& request, comm::ProcessGroup& world);

}  // namespace trireme::train
