// trireme checkpoint export
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/train/weights.hpp"

#include "apps/commands.hpp"

#include <memory>

namespace trireme::apps {
namespace {

struct ExportOptions {
  std::string step;
  std::string folder;
  std::string tokenizer;
};

Action prepare_export(CLI::App& app) {
  auto options = std::make_shared<ExportOptions>();
  app.add_option("DIR", options->step, "Step folder, or a run folder: its newest good step")
      ->required();
  app.add_option("--to", options->folder, "Folder to write")->type_name("HF_DIR")->required();
  app.add_option("--tokenizer", options->tokenizer,
                 "A tokenizer.json to put beside the weights (default: the one that the run was "
                 "trained with, when it still is where it was)")
      ->type_name("FILE");
  return [options](Context& context) {
    train::export_huggingface(options->step, options->folder, options->tokenizer);
    context.out.write(base::format("wrote {}\n", options->folder));
    return base::ExitCode::done;
  };
}

}  // namespace

Command checkpoint_export_command() {
  return {.name = "export",
          .summary = "Writes the weights of a step as a Hugging Face folder",
          .details =
              "config.json, safetensors in fp32 and tokenizer.json, as transformers 4 and 5 "
              "read them.",
          .prepare = prepare_export};
}

}  // namespace trireme::apps
