// SPDX-License-Identifier: Apache-2.0
// trireme checkpoint export
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/checkpoint/signature.hpp"
#include "trireme/huggingface/export.hpp"
#include "trireme/huggingface/run_files.hpp"
#include "trireme/track/model_registry.hpp"

#include "apps/cli/commands.hpp"

#include <memory>
#include <optional>

namespace trireme::apps {
namespace {

device::DType dtype_named(const std::string& name) {
  if (name == "bf16") return device::DType::bf16;
  if (name == "fp32") return device::DType::f32;
  throw base::Error(base::ExitCode::usage,
                    base::format("--dtype {} is no type of weights; use fp32 or bf16", name));
}

/// Where the exported folder is registered.
struct Registration {
  std::string target;
  std::string model;
};

std::optional<track::ModelRegistry> open_registry(const std::filesystem::path& step,
                                                  const Registration& registration,
                                                  const base::Environment& environment) {
  if (registration.target.empty()) {
    if (registration.model.empty()) return std::nullopt;
    throw base::Error(base::ExitCode::usage,
                      "--model-name names a registered model; give --register mlflow=URL with it");
  }
  const auto target = base::value_or_throw(track::parse_target(registration.target));
  return base::value_or_throw(track::ModelRegistry::open(
      huggingface::run_of(step), target, registration.model, {.environment = environment}));
}

base::ExitCode export_and_register(const huggingface::ExportRequest& request,
                                   const Registration& registration, Context& context) {
  // Order: before weights are written, which takes a while, what would be refused behind it.
  auto registry = open_registry(request.step, registration, context.environment);
  const auto step = huggingface::export_folder(request);
  context.out.write(base::format("wrote {}\n", request.folder.string()));
  if (!registry) return base::ExitCode::done;
  const auto version = registry->add(
      request.folder, base::format("{}-{}", step.filename().string(), device::name(request.dtype)));
  context.out.write(base::format("{} {} version {}: {}\n",
                                 version.is_new ? "registered" : "was registered before as",
                                 version.model, version.number, version.page));
  return base::ExitCode::done;
}

Action prepare_export(CLI::App& app) {
  auto options = std::make_shared<huggingface::ExportRequest>();
  app.add_option("DIR", options->step, "Step folder, or a run folder: its newest good step")
      ->required();
  app.add_option("--to", options->folder, "Folder to write")->type_name("HF_DIR")->required();
  app.add_option("--tokenizer", options->tokenizer,
                 "A tokenizer.json to put beside the weights (default: the run's own)")
      ->type_name("FILE");
  app.add_flag_callback(
      "--without-tokenizer",
      [options] { options->with_tokenizer = huggingface::ExportTokenizer::left_out; },
      "Writes weights and configuration alone");
  app.add_option_function<std::string>(
         "--key-file",
         [options](const std::string& file) {
           options->key = base::value_or_throw(checkpoint::read_key_file(file));
         },
         "The manifest must be signed with this key")
      ->type_name("FILE");
  app.add_option_function<std::string>(
         "--dtype", [options](const std::string& name) { options->dtype = dtype_named(name); },
         "Type of the weights")
      ->type_name("fp32|bf16")
      ->default_str("fp32");
  auto registration = std::make_shared<Registration>();
  app.add_option("--register", registration->target,
                 "Sends the folder to a registry of models, linked to the run")
      ->type_name("mlflow=URL");
  app.add_option("--model-name", registration->model,
                 "Registered model (default: the run's name); made if there is none")
      ->type_name("NAME");
  return [options, registration](Context& context) {
    return export_and_register(*options, *registration, context);
  };
}

}  // namespace

Command checkpoint_export_command() {
  return {.name = "export",
          .summary = "Writes the weights of a step as a Hugging Face folder",
          .details =
              "config.json, generation_config.json, safetensors, tokenizer.json and "
              "tokenizer_config.json, as transformers 4 and 5 read them. Of a run that was "
              "imported, generation and tokenizer settings (a chat template among them) are those "
              "that came with the weights. --register sends the folder to an MLflow server, as "
              "artifacts of the run and as a version of a registered model, once for each step and "
              "type of weights; MLFLOW_TRACKING_TOKEN is heeded.\n"
              "Example: trireme checkpoint export runs/quickstart --to exported --dtype bf16",
          .prepare = prepare_export};
}

}  // namespace trireme::apps
