// SPDX-License-Identifier: Apache-2.0
// trireme checkpoint export
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/checkpoint/signature.hpp"
#include "trireme/huggingface/export.hpp"

#include "apps/cli/commands.hpp"

#include <memory>

namespace trireme::apps {
namespace {

device::DType dtype_named(const std::string& name) {
  if (name == "bf16") return device::DType::bf16;
  if (name == "fp32") return device::DType::f32;
  throw base::Error(base::ExitCode::usage,
                    base::format("--dtype {} is no type of weights; use fp32 or bf16", name));
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
  return [options](Context& context) {
    huggingface::export_folder(*options);
    context.out.write(base::format("wrote {}\n", options->folder.string()));
    return base::ExitCode::done;
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
              "that came with the weights.\n"
              "Example: trireme checkpoint export runs/quickstart --to exported --dtype bf16",
          .prepare = prepare_export};
}

}  // namespace trireme::apps
