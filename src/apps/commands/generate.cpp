// SPDX-License-Identifier: Apache-2.0
// trireme generate
#include "trireme/inference/generate.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/runtime/session.hpp"

#include "apps/cli/commands.hpp"
#include "apps/cli/config_arguments.hpp"
#include "apps/cli/option_values.hpp"
#include "apps/cli/standard_input.hpp"
#include "apps/session_options.hpp"

#include <memory>

namespace trireme::apps {
namespace {

struct GenerateOptions {
  inference::GenerateRequest request;
  std::string prompts_file;
  bool json = false;
};

bool come_from_input(const GenerateOptions& options) {
  return options.prompts_file == "-";
}

void add_prompts(GenerateOptions& options, const std::vector<std::string>& more) {
  options.request.prompts.insert(options.request.prompts.end(), more.begin(), more.end());
}

void check_stops(const GenerateOptions& options) {
  for (const auto& stop : options.request.stops) {
    if (stop.empty()) {
      throw base::Error(base::ExitCode::usage,
                        "--stop is empty (every answer would end before it begins); give the text "
                        "that ends an answer");
    }
  }
}

void check_prompts(const GenerateOptions& options) {
  if (options.request.prompts.empty()) {
    throw base::Error(base::ExitCode::usage,
                      "there is no prompt; give one with --prompt TEXT or several with --prompts "
                      "FILE (one a line; - is standard input)");
  }
}

std::string json_line(const inference::GenerateRequest& request, const inference::Answer& answer) {
  const base::Json json{{"prompt", request.prompts[answer.prompt]},
                        {"text", answer.text},
                        {"tokens", answer.tokens},
                        {"prompt_tokens", answer.prompt_tokens},
                        {"ending", inference::name(answer.ending)}};
  return base::json_text(json) + "\n";
}

/// Output of answers: a single prompt's answer is written as it is generated, several one after the
/// other.
inference::AnswerListener listener_of(const GenerateOptions& options, Output& out) {
  const auto& request = options.request;
  inference::AnswerListener listener;
  if (options.json) {
    listener.answer = [&](const inference::Answer& answer) {
      out.write(json_line(request, answer));
    };
    return listener;
  }
  if (request.prompts.size() == 1) {
    listener.piece = [&, begun = false](std::string_view bytes) mutable {
      if (!begun) out.write(request.prompts.front());
      begun = true;
      out.write(bytes);
      out.flush();
    };
    // Line end, so that the log's next message begins a line of its own.
    listener.answer = [&](const inference::Answer&) {
      out.write("\n");
      out.flush();
    };
    return listener;
  }
  listener.answer = [&](const inference::Answer& answer) {
    const auto& prompt = request.prompts[answer.prompt];
    out.write(base::format("--- {}\n{}{}\n", answer.prompt + 1, prompt, answer.text));
    out.flush();
  };
  return listener;
}

void add_options(CLI::App& app, GenerateOptions& options) {
  auto& request = options.request;
  auto& sampling = request.sampling;
  app.add_option("--weights", request.weights,
                 "Checkpoint step, run directory (its newest step) or Hugging Face folder")
      ->type_name("PATH")
      ->required();
  app.add_option("--prompt", request.prompts, "Text to continue; may be given several times")
      ->type_name("TEXT")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--prompts", options.prompts_file,
                 "One prompt a line, or a JSON list of texts; - is standard input")
      ->type_name("FILE");
  app.add_option("--stop", request.stops, "Text that ends an answer; may be given several times")
      ->type_name("TEXT")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--tokenizer", request.tokenizer,
                 "tokenizer.json (default: the one that belongs to the weights)")
      ->type_name("FILE");
  app.add_option("--max-tokens", request.max_tokens,
                 "New tokens for each prompt at most (default: 128, or as many as the model has "
                 "positions for)")
      ->type_name("N")
      ->check(in_range(1, 1 << 20));
  app.add_option("--temperature", sampling.temperature,
                 "Divides the logits; 0 takes the most likely token always")
      ->type_name("T")
      ->check(in_range(0.0, 100.0))
      ->capture_default_str();
  app.add_option("--top-k", sampling.top_k, "Only the k most likely tokens; 0: all")
      ->type_name("K")
      ->check(zero_or_more())
      ->capture_default_str();
  app.add_option("--top-p", sampling.top_p,
                 "Only the most likely tokens that together have this probability")
      ->type_name("P")
      ->check(in_range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--seed", sampling.seed, "Of the random choice")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--batch", request.batch, "Prompts decoded side by side on each replica")
      ->type_name("N")
      ->check(in_range(1, 4096))
      ->capture_default_str();
  app.add_flag("--json", options.json,
               "One JSON object a prompt: prompt, text, tokens, prompt_tokens, ending");
}

Action prepare_generate(CLI::App& app) {
  auto arguments = ConfigArguments::add_to(app);
  auto options = std::make_shared<GenerateOptions>();
  add_options(app, *options);
  return [arguments, options](Context& context) {
    const auto config = base::value_or_throw(arguments->resolve(context.environment));
    check_stops(*options);
    if (!come_from_input(*options) && !options->prompts_file.empty()) {
      const auto& path = options->prompts_file;
      const auto text = base::value_or_throw(base::read_text_file(path));
      add_prompts(*options, base::value_or_throw(inference::parse_prompts(text, path)));
    }
    if (!come_from_input(*options)) check_prompts(*options);
    return runtime::Session::start(
        session_options(config), context.environment, [&](runtime::Session& session) {
          if (come_from_input(*options)) {
            add_prompts(*options, inference::prompts_from_input(session, [] {
              return base::value_or_throw(
                  inference::parse_prompts(read_standard_input(), "standard input"));
            }));
            check_prompts(*options);
          }
          inference::generate(options->request, config, session,
                              listener_of(*options, context.out));
          return base::ExitCode::done;
        });
  };
}

}  // namespace

Command generate_command() {
  return {.name = "generate",
          .summary = "Continues text with a trained model",
          .group = "Inference",
          .details =
              "With one prompt the answer appears as it is made; a stop text is no part of it. "
              "Under mpirun or srun any "
              "layout answers; in fp32 without temperature all give the same tokens, and "
              "the choice of each token with temperature depends on seed, prompt and "
              "position alone.",
          .prepare = prepare_generate};
}

}  // namespace trireme::apps
